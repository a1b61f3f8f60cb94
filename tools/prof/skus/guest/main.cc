// orrery-sku-work CLASS [--quick]: one class of work, in a range of that name, whose result is checked.
// orrery-prof sku-compare records it on cards of several kinds. All of a range's work waits for one signal,
// so that what the host does meanwhile is not in its time.
#include <fmt/format.h>
#include <orrery/orrery.h>
#include <orrery/prof.h>
#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "tools/prof/skus/guest/kernels.h"

ORR_EMBEDDED_KERNEL(suite_kernels);

namespace {

using orrery::DeviceArray;
using orrery::PinnedArray;
using orrery::Stream;

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::uint32_t cores() {
    return orrery::device_properties(orrery::current_device()).vector_cores;
}

// Small whole numbers, and halves of them: all sums are exact.
std::vector<float> numbers(std::size_t count, std::uint32_t period) {
    std::vector<float> all(count);
    for (std::size_t i = 0; i < count; ++i)
        all[i] = static_cast<float>(i % period);
    return all;
}

void expect(bool right, const char* what) {
    if (!right) throw std::runtime_error(fmt::format("{} is wrong", what));
}

class Kernels {
  public:
    Kernels() : library_(suite_kernels_image()) { library_.preload(); }
    void launch(const char* name, std::uint32_t groups, const SuiteArgs& args, const Stream& stream) const {
        orrery::launch(library_.function(name), {groups, 1, 1}, {1, 1, 1}, args, 0, stream);
    }

  private:
    orrery::Library library_;
};

// All of it is submitted before any of it begins, behind a kernel that gives the control core the time to be
// done with the host's signal, and nothing of the card is asked until it has ended: so its times are those of
// the model alone.
template <typename Submit>
void measured(const char* range, const Kernels& kernels, std::span<const Stream> streams, Submit&& submit) {
    const orrery::Semaphore gate;
    for (const Stream& stream : streams) {
        orrery::check(orrStreamWaitSemaphore(stream.handle(), gate.get(), 1, nullptr));
        kernels.launch("settle", 1, {nullptr, nullptr, 0, 10'000}, stream);
    }
    orrery::check(orrProfRangePush(nullptr, range));
    submit();
    orrery::check(orrProfRangePop(nullptr));
    gate.signal(1);
    for (const Stream& stream : streams) {
        orrError_t state = orrErrorNotReady;
        while ((state = orrStreamQuery(stream.handle())) == orrErrorNotReady)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        orrery::check(state);
    }
}

void memory(bool quick) {
    const std::size_t count = (quick ? 24 : 40) * kMiB / sizeof(float);
    const std::vector<float> x = numbers(count, 64), y = numbers(count, 50);
    const DeviceArray<float> in(count), out(count);
    orrery::copy(in.data(), x.data(), in.bytes());
    orrery::copy(out.data(), y.data(), out.bytes());
    const Kernels kernels;
    const Stream stream;
    measured("memory", kernels, {&stream, 1},
             [&] { kernels.launch("triad", cores(), {out.data(), in.data(), count, 0}, stream); });
    std::vector<float> got(count);
    orrery::copy(got.data(), out.data(), out.bytes());
    bool right = true;
    for (std::size_t i = 0; i < count; ++i)
        right = right && got[i] == y[i] + 0.5f * x[i];
    expect(right, "the triad");
}

void latency(bool quick) {
    const std::size_t count = 4 * kMiB / sizeof(std::uint32_t), rounds = quick ? 500 : 5'000;
    std::vector<std::uint32_t> next(count);
    // A linear congruence whose period is a power of two: all of them.
    for (std::uint32_t i = 0; i < count; ++i)
        next[i] = (i * 1664525u + 1013904223u) % static_cast<std::uint32_t>(count);
    constexpr std::uint32_t kChains = 8;
    const DeviceArray<float> in(count), out(kChains);
    orrery::copy(in.data(), next.data(), in.bytes());
    const Kernels kernels;
    const Stream stream;
    measured("latency", kernels, {&stream, 1},
             [&] { kernels.launch("chase", kChains, {out.data(), in.data(), count, rounds}, stream); });
    std::array<std::uint32_t, kChains> got{};
    orrery::copy(got.data(), out.data(), sizeof got);
    bool right = true;
    for (std::size_t chain = 0; chain < kChains; ++chain) {
        auto want = static_cast<std::uint32_t>(chain * kChainStep % count);
        for (std::size_t i = 0; i < rounds; ++i)
            want = next[want];
        right = right && got.at(chain) == want;
    }
    expect(right, "where a chain ends");
}

void launch(bool) {
    constexpr std::uint32_t kLaunches = 64;
    const DeviceArray<float> out(1);
    orrery::fill(out.data(), 0, out.bytes());
    const Kernels kernels;
    const Stream stream;
    measured("launch", kernels, {&stream, 1}, [&] {
        for (std::uint32_t i = 0; i < kLaunches; ++i)
            kernels.launch("step", 1, {out.data(), nullptr, 1, 0}, stream);
    });
    std::uint32_t got = 0;
    orrery::copy(&got, out.data(), sizeof got);
    expect(got == kLaunches, "the number of launches");
}

void copies(bool quick) {
    const std::size_t count = (quick ? 2 : 8) * kMiB / sizeof(float);
    const PinnedArray<float> there(count), back(count);
    const std::vector<float> x = numbers(count, 1000);
    std::copy(x.begin(), x.end(), there.data());
    const DeviceArray<float> card(count);
    const Kernels kernels;
    const Stream stream;
    measured("copies", kernels, {&stream, 1}, [&] {
        orrery::copy(card.data(), there.data(), card.bytes(), stream);
        orrery::copy(back.data(), card.data(), card.bytes(), stream);
    });
    expect(std::equal(x.begin(), x.end(), back.data()), "what came back");
}

void link(bool quick) {
    const std::size_t count = (quick ? 4 : 16) * kMiB / sizeof(float);
    const std::vector<float> x = numbers(count, 1000);
    orrery::enable_peer_access(0, 1);
    orrery::enable_peer_access(1, 0);
    const auto on = [&](int device) {
        const orrery::DeviceGuard guard(device);
        return DeviceArray<float>(count);
    };
    const DeviceArray<float> here = on(0), there = on(1);
    orrery::copy(here.data(), x.data(), here.bytes());
    const Kernels kernels;
    const Stream stream;
    measured("link", kernels, {&stream, 1},
             [&] { orrery::copy(there.data(), here.data(), here.bytes(), stream); });
    std::vector<float> got(count);
    orrery::copy(got.data(), there.data(), there.bytes());
    expect(got == x, "what the other card has");
}

// Parts that are copied there, computed on and copied back, each in one of three streams.
void mixed(bool quick) {
    constexpr std::size_t kParts = 6;
    const std::size_t count = (quick ? 256 : 1024) * 1024 / sizeof(float);
    const PinnedArray<float> host(kParts * count);
    const std::vector<float> x = numbers(kParts * count, 64);
    std::copy(x.begin(), x.end(), host.data());
    const DeviceArray<float> in(kParts * count), out(kParts * count);
    orrery::fill(out.data(), 0, out.bytes());
    const Kernels kernels;
    const std::array<Stream, 3> streams;
    measured("mixed", kernels, streams, [&] {
        for (std::size_t i = 0; i < kParts; ++i) {
            const Stream& stream = streams.at(i % streams.size());
            const std::size_t at = i * count, bytes = count * sizeof(float);
            orrery::copy(in.data() + at, host.data() + at, bytes, stream);
            for (unsigned round = 0; round < 4; ++round)
                kernels.launch("triad", cores(), {out.data() + at, in.data() + at, count, 0}, stream);
            orrery::copy(host.data() + at, out.data() + at, bytes, stream);
        }
    });
    bool right = true;
    for (std::size_t i = 0; i < x.size(); ++i)
        right = right && host.data()[i] == 2 * x[i];
    expect(right, "the pipeline's result");
}

struct Class {
    std::string_view name;
    void (*run)(bool quick);
};
constexpr std::array<Class, 6> kClasses = {{{"memory", memory},
                                            {"latency", latency},
                                            {"launch", launch},
                                            {"copies", copies},
                                            {"link", link},
                                            {"mixed", mixed}}};

}  // namespace

int main(int argc, char** argv) {
    const bool quick = argc == 3 && std::string_view(argv[2]) == "--quick";
    for (const Class& one : kClasses) {
        if ((argc != 2 && !quick) || argv[1] != one.name) continue;
        try {
            one.run(quick);
        } catch (const std::exception& error) {
            fmt::print(stderr, "orrery-sku-work {}: {}\n", one.name, error.what());
            return 1;
        }
        return 0;
    }
    fmt::print(stderr, "usage: orrery-sku-work memory|latency|launch|copies|link|mixed [--quick]\n");
    return 2;
}
