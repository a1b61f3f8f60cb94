// How soon a host that waits for a stream learns that what this stream waited for has failed, by the guest's
// clock. Prints a list of entries for orrery-bench-report; ends with 1 if a goal does not hold.
#include <fmt/format.h>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/vm/umd/kernels.h"
#include "umd/samples/kernel_image.h"

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 200;
constexpr double kGoalMs = 100;  // 95th percentile

struct Kernels {
    Kernels() {
        orrery::check(orrModuleLoadData(&module, kernel_image().data(), kernel_image().size()));
        orrery::check(orrModuleGetFunction(&trap, module, "trap"));
    }
    ~Kernels() { (void)orrModuleUnload(module); }
    Kernels(const Kernels&) = delete;
    Kernels& operator=(const Kernels&) = delete;

    orrModule_t module{};
    orrFunction_t trap{};
};

// From before the launch of a kernel that traps to the moment at which who waits has the cause.
// `dependent`: it is the host, for another stream that waits for an event behind the kernel.
double round_ms(const Kernels& kernels, bool dependent) {
    const orrery::Stream failing;
    const orrery::Stream waiting;
    const orrery::Event event;
    const auto begin = Clock::now();
    orrery::launch(kernels.trap, {1, 1, 1}, {1, 1, 1}, TestArgs{}, 0, failing);
    // The cause may be there already: then these calls tell it.
    orrError_t told = orrSuccess;
    if (dependent) {
        told = orrEventRecord(event.get(), failing.get());
        if (told == orrSuccess) told = orrStreamWaitEvent(waiting.get(), event.get());
    }
    if (told == orrSuccess) told = orrStreamSynchronize(dependent ? waiting.get() : failing.get());
    const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
    if (told != orrErrorIllegalInstruction) {
        throw std::runtime_error(
            fmt::format("a trap was told as {}: {}", orrGetErrorName(told), orrGetLastErrorText()));
    }
    return took.count();
}

Json measure(const Kernels& kernels, const char* name, bool dependent) {
    std::vector<double> times;
    for (int i = 0; i < kRounds; ++i)
        times.push_back(round_ms(kernels, dependent));
    std::ranges::sort(times);
    const auto at = [&](double share) {
        return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
    };
    const double p95 = at(0.95);
    return {{"name", name},
            {"value", p95},
            {"unit", "ms"},
            {"goal", fmt::format("<= {:.0f} ms (95th pct)", kGoalMs)},
            {"holds", p95 <= kGoalMs},
            {"median", at(0.5)},
            {"p10", at(0.1)},
            {"p90", at(0.9)}};
}

}  // namespace

int main() {
    try {
        const Kernels kernels;
        const Json list = {measure(kernels, "trap, told to its own stream", false),
                           measure(kernels, "trap, told to a dependent stream", true)};
        fmt::print("{}\n", list.dump(2));
        const bool holds =
            std::ranges::all_of(list, [](const Json& entry) { return entry.at("holds").get<bool>(); });
        return std::fflush(stdout) == 0 && holds ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_failure: {}\n", error.what());
        return 1;
    }
}
