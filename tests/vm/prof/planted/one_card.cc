// Limits that one card knows.
#include <chrono>
#include <thread>

#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

namespace planted {
namespace {

// Busy, as a program is that prepares its next step; by the clock, so that it takes as long on any machine.
void host_works(std::chrono::microseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
}

void repeat(const char* kernel, unsigned times, const Work& work, const Work::Shape& shape) {
    const orrery::Stream stream;
    for (unsigned i = 0; i < times; ++i)
        work.launch(kernel, shape, stream);
    stream.synchronize();
}

}  // namespace

void compute_floats() {
    repeat("multiply_add", 4, Work(), {.rounds = 20'000});
}
void compute_integers() {
    repeat("mix_integers", 4, Work(), {.rounds = 20'000});
}
void compute_scalar() {
    repeat("scalar_steps", 4, Work(), {.rounds = 60'000});
}
void vram_triad() {
    repeat("triad", 20, Work(16 * kMiB), {});
}
void vram_sum() {
    repeat("sum_up", 20, Work(16 * kMiB), {.rounds = 2});
}
void latency_chase() {
    const Work work(4 * kMiB, true);
    repeat("chase", 3, work, {.rounds = 6'000});
}
void latency_search() {
    const Work work(4 * kMiB, true);
    repeat("search", 3, work, {.rounds = 5'000});
}
// Lines of 64 bytes of which 4 are used.
void vram_gather() {
    const Work work(4 * kMiB, true);
    repeat("gather", 20, work, {.rounds = 6'000});
}

void launch_small_kernels() {
    repeat("multiply_add", 400, Work(), {.rounds = 4});
}
// Each in a stream of its own that waits for the one before.
void launch_relay() {
    const Work work;
    const orrery::Stream one, two;
    for (unsigned i = 0; i < 150; ++i) {
        const orrery::Stream& now = i % 2 == 0 ? one : two;
        const orrery::Stream& next = i % 2 == 0 ? two : one;
        work.launch("multiply_add", {.rounds = 8}, now);
        const orrery::Event done(orrEventDisableTiming);
        done.record(now);
        next.wait(done);
    }
    one.synchronize();
    two.synchronize();
}

// Looks at each result before it begins the next step.
void host_between() {
    const Work work;
    const orrery::Stream stream;
    for (unsigned i = 0; i < 30; ++i) {
        work.launch("multiply_add", {.rounds = 400}, stream);
        stream.synchronize();
        host_works(std::chrono::milliseconds(8));
    }
}
void host_allocates() {
    const Work work;
    const orrery::Stream stream;
    for (unsigned i = 0; i < 30; ++i) {
        const orrery::DeviceArray<float> scratch(kMiB);
        work.launch("multiply_add", {.rounds = 200}, {scratch.data(), nullptr, scratch.size(), 0, 0}, stream);
        stream.synchronize();
    }
}

// There, kernel, and back, one after the other, each as long as the next.
void copy_in_one_stream() {
    const Work work(4 * kMiB);
    const orrery::PinnedArray<float> host(kMiB);
    const orrery::Stream stream;
    for (unsigned i = 0; i < 6; ++i) {
        orrery::copy(work.in.data(), host.data(), host.bytes(), stream);
        work.launch("multiply_add", {.rounds = 6'000}, stream);
        orrery::copy(host.data(), work.out.data(), host.bytes(), stream);
    }
    stream.synchronize();
}
// The next part's copy waits for this part's kernel, though it goes elsewhere.
void copy_behind_events() {
    const Work work(8 * kMiB);
    const orrery::PinnedArray<float> host(kMiB);
    const orrery::Stream copies, kernels;
    for (unsigned i = 0; i < 8; ++i) {
        orrery::copy(work.in.data() + i % 2 * kMiB, host.data(), host.bytes(), copies);
        const orrery::Event there(orrEventDisableTiming), done(orrEventDisableTiming);
        there.record(copies);
        kernels.wait(there);
        work.launch("multiply_add", {.rounds = 8'000}, kernels);
        done.record(kernels);
        copies.wait(done);
    }
    copies.synchronize();
    kernels.synchronize();
}

void imbalance_one_long() {
    repeat("multiply_add", 4, Work(), {.rounds = 2'000, .skew = 12});
}
// One group more than there are cores.
void imbalance_tail() {
    repeat("mix_integers", 4, Work(), {.groups = cores() + 1, .rounds = 12'000});
}

// A batch job that somebody in a hurry interrupts all the time.
void preemption_by_urgent() {
    const Work work;
    orrStreamAttributes low = ORR_INIT(orrStreamAttributes), high = ORR_INIT(orrStreamAttributes);
    low.priority = 1;
    high.priority = -1;
    const orrery::Stream batch(low), urgent(high);
    work.launch("multiply_add", {.groups = 4 * cores(), .rounds = 20'000}, batch);
    while (!batch.done()) {
        work.launch("multiply_add", {.rounds = 600}, urgent);
        urgent.synchronize();
    }
}
// The same by two streams that take turns, whose kernels are longer.
void preemption_by_two() {
    const Work work;
    orrStreamAttributes high = ORR_INIT(orrStreamAttributes);
    high.priority = -1;
    const orrery::Stream batch;
    const orrery::Stream urgent[2]{orrery::Stream(high), orrery::Stream(high)};
    for (unsigned i = 0; i < 3; ++i)
        work.launch("sum_up", {.groups = 2 * cores(), .rounds = 60}, batch);
    for (unsigned turn = 0; !batch.done(); ++turn) {
        work.launch("mix_integers", {.rounds = 1'500}, urgent[turn % 2]);
        urgent[turn % 2].synchronize();
    }
}

void quota_quarter() {
    orrery::check(orrDeviceSetQuota(0, 250, 1'000));
    repeat("multiply_add", 4, Work(), {.rounds = 20'000});
}
void quota_tenth() {
    orrery::check(orrDeviceSetQuota(0, 100, 500));
    repeat("sum_up", 3, Work(8 * kMiB), {.rounds = 16});
}

void none_nothing_done() {
    const Work work(64 * 1024);
}
// Copies there and back and kernels side by side, each busy nearly all of the time.
void none_pipeline() {
    const Work work(16 * kMiB);
    const orrery::PinnedArray<float> host(4 * kMiB);
    const orrery::Stream streams[3];
    for (unsigned i = 0; i < 12; ++i) {
        const orrery::Stream& stream = streams[i % 3];
        const std::size_t at = i % 4 * kMiB;
        orrery::copy(work.in.data() + at, host.data() + at, 4 * kMiB, stream);
        work.launch("multiply_add", {.rounds = 8'000}, stream);
        orrery::copy(host.data() + at, work.out.data() + at, 4 * kMiB, stream);
    }
    for (const orrery::Stream& stream : streams)
        stream.synchronize();
}

// Two kinds of kernels, each half of the time, at two different limits.
void none_mixture() {
    const Work work(8 * kMiB);
    const orrery::Stream stream;
    for (unsigned i = 0; i < 6; ++i) {
        work.launch("multiply_add", {.rounds = 4'000}, stream);
        work.launch("triad", {.rounds = 2}, stream);
    }
    stream.synchronize();
}
void none_one_short_kernel() {
    repeat("triad", 1, Work(kMiB), {});
}

}  // namespace planted
