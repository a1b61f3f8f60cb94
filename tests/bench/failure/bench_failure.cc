// How soon a host that waits for something learns that it will never come, by the guest's clock.
//   bench_failure          a kernel traps, or the process is killed that was to signal
//   bench_failure --links  a link is cut; for a VM whose second card has the fault plan "link count=all fail"
//   bench_failure --cards  a card dies; for a VM whose cards have "dispatch first=1 die"; the times only
//   bench_failure --times N a measurement of such times, N from standard input
#include <fmt/format.h>
#include <orrery/fw/failure.h>
#include <sys/wait.h>
#include <unistd.h>
#include <orrery/embedded_kernel.hpp>

#include <orrery/orrery.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/vm/kmod/device.h"
#include "tests/vm/umd/kernels.h"
#include "tools/bench/guest/clock.h"
#include "tools/bench/measured.h"

ORR_EMBEDDED_KERNEL(umd_test_kernels);

namespace {

using orrery::bench::Measured;
using Clock = std::chrono::steady_clock;

// Real time, whatever the guest's clock does.
double ms_since(Clock::time_point begin) {
    const auto took = Clock::now() - begin;  // first: the factor takes seconds to find
    static const double factor = orrery::bench::clock_factor().value_or(1);
    return std::chrono::duration<double, std::milli>(took).count() * factor;
}

// Of so many rounds.
void measure(Measured& measured, const char* name, int rounds, const std::function<double()>& round_ms) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i)
        times.push_back(round_ms());
    measured.add({name, {}, std::move(times), {}});
}

void expect(orrError_t told, orrError_t cause, const char* what) {
    if (told != cause)
        throw std::runtime_error(
            fmt::format("{} was told as {}: {}", what, orrGetErrorName(told), orrGetLastErrorText()));
}

struct Kernels {
    Kernels() {
        orrery::check(
            orrModuleLoadData(&module, umd_test_kernels_image().data(), umd_test_kernels_image().size()));
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
double trap_ms(const Kernels& kernels, bool dependent) {
    const orrery::Stream failing;
    const orrery::Stream waiting;
    const orrery::Event event;
    const auto begin = Clock::now();
    orrery::launch(kernels.trap, {1, 1, 1}, {1, 1, 1}, TestArgs{}, 0, failing);
    // The cause may be there already: then these calls tell it.
    orrError_t told = orrSuccess;
    if (dependent) {
        told = orrEventRecord(event.get(), failing.get());
        if (told == orrSuccess) told = orrStreamWaitEvent(waiting.get(), event.get(), nullptr);
    }
    if (told == orrSuccess) told = orrStreamSynchronize(dependent ? waiting.get() : failing.get());
    const double took = ms_since(begin);
    expect(told, orrErrorIllegalInstruction, "a trap");
    return took;
}

// --- another process, with memory of its own and a queue that is to signal in ours ---

using orrery::kmod_test::File;
constexpr std::uint64_t kRing = 0x10000000, kWords = 0x40000000;

void must(bool good, const std::string& what) {
    if (!good) throw std::runtime_error(what);
}

// Its queue waits for what never comes, and would signal behind that.
[[noreturn]] void run_signaller(int memory, int ready) {
    const File file = orrery::kmod_test::open_card();
    std::uint32_t vm = 0, handle = 0;
    if (!file || orrery::kmod_test::create_vm(file.get(), vm) != 0 ||
        orrery::kmod_test::import_bo(file.get(), memory, handle) != 0 ||
        orrery::kmod_test::map(file.get(), vm, handle, kWords, 4096) != 0)
        ::_exit(2);
    orrery::kmod_test::Queue queue(file.get(), vm, kRing);
    drm_orr_signaller attached{
        .queue = queue.number(), .flags = 0, .semaphore = kWords, .count = 1, .pad = 0};
    if (queue.error() != 0 ||
        orrery::kmod_test::call(file.get(), DRM_IOCTL_ORR_SIGNALLER_ATTACH, &attached) != 0)
        ::_exit(3);
    queue.submit(
        std::array{orrery::kmod_test::wait_for(kWords + 16, 1), orrery::kmod_test::signal(kWords, 1)});
    if (::write(ready, "!", 1) != 1) ::_exit(4);
    for (;;)
        ::pause();
}

// From before the kill to the end of the wait.
double process_ms() {
    const File file = orrery::kmod_test::open_card();
    std::uint32_t vm = 0;
    orrery::kmod_test::Buffer words;
    File memory;
    must(orrery::kmod_test::create_vm(file.get(), vm) == 0 &&
             orrery::kmod_test::make_buffer(file.get(), vm, kWords, 4096, ORR_BO_VRAM, words) == 0 &&
             orrery::kmod_test::export_bo(file.get(), words.handle, memory) == 0,
         "no memory to share");
    int ready[2];
    must(::pipe(ready) == 0, "no pipe");
    const File reads(ready[0]), writes(ready[1]);
    const pid_t child = ::fork();
    if (child == 0) run_signaller(memory.get(), ready[1]);
    char byte = 0;
    must(::read(ready[0], &byte, 1) == 1, "the other process has ended");
    orrery::kmod_test::Queue queue(file.get(), vm, kRing);
    must(queue.error() == 0, "no queue");
    const std::uint64_t index = queue.submit(orrery::kmod_test::wait_for(kWords, 1));
    drm_orr_queue_wait state{};
    const auto begin = Clock::now();
    ::kill(child, SIGKILL);
    const int error = orrery::kmod_test::wait(file.get(), queue.number(), index, 10, state);
    const double took = ms_since(begin);
    ::waitpid(child, nullptr, 0);
    must(error == 0 && state.error == ORR_QERR_POISON, "nobody was told of the process that was killed");
    return took;
}

// --- cards and links ---

// In a process of its own: from before the launch on the first card that is there, which dies of it, to the
// moment at which the host that waits for it has the cause.
int die() {
    const Kernels kernels;
    const orrery::Stream stream;
    const auto begin = Clock::now();
    orrError_t told = orrLaunchKernel(kernels.trap, {1, 1, 1}, {1, 1, 1}, nullptr, 0, 0, stream.handle());
    if (told == orrSuccess) told = orrStreamSynchronize(stream.handle());
    fmt::print("{}\n", ms_since(begin));
    expect(told, orrErrorDeviceLost, "the death of a card");
    std::fflush(stdout);
    // What is left of the card is not to be cleaned up.
    ::_exit(0);
}

int all_die() {
    int cards = 0;
    orrery::check(orrGetDeviceCount(&cards));
    for (int n = 0; n < cards; ++n)
        must(std::system("bench_failure --die") == 0, "the death of a card was not told");
    return 0;
}

// Both cards see the memory of the first. A queue of the second is to signal there, and another one writes
// over the link, which cuts it: from before that to the end of the wait. It trains again at once.
class Link {
  public:
    Link() {
        File shared;
        for (unsigned card = 0; card < 2; ++card) {
            files_[card] = orrery::kmod_test::open_card(card);
            must(orrery::kmod_test::create_vm(files_[card].get(), vms_[card]) == 0, "no address space");
        }
        std::uint32_t handle = 0;
        must(orrery::kmod_test::make_buffer(files_[0].get(), vms_[0], kWords, 4096, ORR_BO_VRAM, words_) ==
                     0 &&
                 orrery::kmod_test::export_bo(files_[0].get(), words_.handle, shared) == 0 &&
                 orrery::kmod_test::import_bo(files_[1].get(), shared.get(), handle) == 0 &&
                 orrery::kmod_test::map(files_[1].get(), vms_[1], handle, kWords, 4096) == 0,
             "no memory behind a link");
    }
    double round_ms() {
        const std::uint64_t ring = kRing + (rounds_++ * 3 << 16);
        drm_orr_query_link link{};
        do {
            must(orrery::kmod_test::call(files_[1].get(), DRM_IOCTL_ORR_QUERY_LINK, &link) == 0, "no link");
            ::usleep(1'000);
        } while (link.state != ORR_LINK_UP);
        words_.words()[0] = words_.words()[1] = 0;
        orrery::kmod_test::Queue waiter(files_[0].get(), vms_[0], ring),
            writer(files_[1].get(), vms_[1], ring), signaller(files_[1].get(), vms_[1], ring + (1 << 16));
        drm_orr_signaller attached{
            .queue = signaller.number(), .flags = 0, .semaphore = kWords, .count = 1, .pad = 0};
        must(waiter.error() == 0 && writer.error() == 0 && signaller.error() == 0 &&
                 orrery::kmod_test::call(files_[1].get(), DRM_IOCTL_ORR_SIGNALLER_ATTACH, &attached) == 0,
             "no queues");
        const std::uint64_t index = waiter.submit(orrery::kmod_test::wait_for(kWords, 1));
        drm_orr_queue_wait state{};
        const auto begin = Clock::now();
        writer.submit(orrery::kmod_test::signal(kWords + 16, rounds_));
        const int error = orrery::kmod_test::wait(files_[0].get(), waiter.number(), index, 10, state);
        const double took = ms_since(begin);
        must(error == 0 && state.error == ORR_QERR_POISON &&
                 ORR_FAILURE_CODE(state.error_detail) == ORR_QERR_PEER_LOST,
             "nobody was told of the link that was cut");
        return took;
    }

  private:
    File files_[2];
    std::uint32_t vms_[2] = {};
    orrery::kmod_test::Buffer words_;
    std::uint64_t rounds_ = 0;
};

Measured measure_all(std::string_view what, std::string_view rounds) {
    Measured measured;
    if (what == "--times") {
        std::vector<double> times;
        for (double one = 0; std::cin >> one;)
            times.push_back(one);
        must(std::cin.eof() && std::to_string(times.size()) == rounds,
             fmt::format("{} times and no more were read, not {}", times.size(), rounds));
        measured.add({"card killed, told", {}, std::move(times), {}});
        return measured;
    }
    if (what == "--links") {
        Link link;
        measure(measured, "link cut, told", 40, [&] { return link.round_ms(); });
        return measured;
    }
    // First, while this process has no threads.
    measure(measured, "process killed, told", 40, process_ms);
    const Kernels kernels;
    measure(measured, "trap, told to its stream", 200, [&] { return trap_ms(kernels, false); });
    measure(measured, "trap, told to a dependent", 200, [&] { return trap_ms(kernels, true); });
    return measured;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::string_view what = argc > 1 ? argv[1] : "";
        if (what == "--die") return die();
        if (what == "--cards") return all_die();
        return measure_all(what, argc > 2 ? argv[2] : "").print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_failure: {}\n", error.what());
        return 1;
    }
}
