// Later cases: limits that one card knows. Times are those of orrery-1 (8 cores of 1 GHz, VRAM 800 GB/s, 150 ns;
// PCIe 32 GB/s, 300 ns).
#include <array>
#include <memory>
#include <vector>

#include "tests/vm/prof/planted/beside.h"
#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

namespace planted {
namespace {

// So many launches of a kernel in a stream, queued before the first one begins.
void in_a_row(const char* kernel, unsigned times, const Work& work, const Work::Shape& shape) {
    const Gate gate;
    const orrery::Stream stream;
    gate.hold(stream);
    for (unsigned i = 0; i < times; ++i)
        work.launch(kernel, shape, stream);
    gate.open();
    stream.synchronize();
}

}  // namespace

// A column of a group's 1,024 rows is 1,024 lines, of 512 that the cache has. Of all groups that is 512 KiB, which
// VRAM brings in 655 ns; the cores have 32 cycles of loads and 16 of sums for it.
void vram_columns() {
    constexpr std::uint64_t kPitch = 272;
    in_a_row("add_columns", 3, Work(cores() * 1'024 * kPitch * sizeof(float)),
             {.rounds = 256, .skew = kPitch});
}

// Results become input by a copy instead of by a swap of pointers: reading and writing 16 MiB is 42 us of VRAM's
// time, the kernel 2 us.
void vram_swap_by_copy() {
    const Work work(16 * kMiB);
    const Gate gate;
    const orrery::Stream stream;
    gate.hold(stream);
    for (unsigned i = 0; i < 24; ++i) {
        work.launch("multiply_add", {.rounds = 100}, stream);
        orrery::copy(work.in.data(), work.out.data(), work.bytes, stream);
    }
    gate.open();
    stream.synchronize();
}

// 150 ns for each ticket and some cycles; 64 bytes of VRAM's time are 0.08 ns.
void latency_tickets() {
    in_a_row("draw_tickets", 3, Work(), {.rounds = 3'000});
}

// A table that was left in the host's memory: 300 ns for each entry, and 5 % of PCIe.
void latency_host_table() {
    const Work work(kMiB);
    const orrery::PinnedArray<std::uint32_t> table(work.in.size());
    for (std::uint32_t i = 0; i < table.size(); ++i)
        table[i] = (i * 1664525u + 1013904223u) % static_cast<std::uint32_t>(table.size());
    const PlantedArgs args{work.out.data(), reinterpret_cast<const float*>(table.data()), table.size(), 0, 0};
    const Gate gate;
    const orrery::Stream stream;
    gate.hold(stream);
    for (unsigned i = 0; i < 3; ++i)
        work.launch("chase", {.rounds = 2'000}, args, stream);
    gate.open();
    stream.synchronize();
}

// 4 KiB at a time: 0.13 us on PCIe each, and more than 0.5 us until they are under way and have come.
void launch_small_copies() {
    const Work work(4 * kMiB);
    const orrery::PinnedArray<float> host(kMiB);
    const Gate gate;
    const orrery::Stream stream;
    gate.hold(stream);
    for (std::size_t i = 0; i < 600; ++i)
        orrery::copy(work.in.data() + i * 1'024, host.data() + i * 1'024, 4'096, stream);
    work.launch("multiply_add", {.rounds = 100}, stream);
    gate.open();
    stream.synchronize();
}

// Each step's input comes from ordinary memory, by calls that return when it is there: 65 us on PCIe and 32 us of
// kernel, and in between the host copies 2 MiB by itself, and wakes up twice.
void host_pageable_input() {
    const Work work(2 * kMiB);
    std::vector<float> input(work.in.size(), 1.0f);
    const orrery::Stream stream;
    for (unsigned step = 0; step < 16; ++step) {
        input[step] = 2.0f;
        orrery::copy(work.in.data(), input.data(), work.bytes);
        work.launch("multiply_add", {.rounds = 2'000}, stream);
        stream.synchronize();
    }
}

// A solver that asks after each step of 2 us whether that was enough.
void host_asks_each_step() {
    const Work work;
    const orrery::Stream stream;
    float residual[8];
    for (unsigned step = 0; step < 80; ++step) {
        work.launch("multiply_add", {.rounds = 100}, stream);
        stream.synchronize();
        orrery::copy(residual, work.out.data(), sizeof residual);
        if (residual[0] < 0) return;
    }
}

// Four streams, but each part begins behind the null stream, as programs did where that waits for all: there,
// kernel and back are 131 us each, one after the other instead of side by side.
void copy_behind_null_stream() {
    const Work work(16 * kMiB);
    const orrery::PinnedArray<float> host(4 * kMiB);
    const std::array<orrery::Stream, 4> streams;
    const orrery::Stream null = orrery::Stream::null();
    const Gate gate;
    gate.hold(null);
    for (std::size_t i = 0; i < 8; ++i) {
        const orrery::Stream& stream = streams[i % 4];
        const std::size_t at = i % 4 * kMiB;
        const orrery::Event before(orrEventDisableTiming), behind(orrEventDisableTiming);
        before.record(null);
        stream.wait(before);
        orrery::copy(work.in.data() + at, host.data() + at, 4 * kMiB, stream);
        work.launch("multiply_add", {.rounds = 8'000}, stream);
        orrery::copy(host.data() + at, work.out.data() + at, 4 * kMiB, stream);
        behind.record(stream);
        null.wait(behind);
    }
    gate.open();
    null.synchronize();
}

// Three groups for eight cores. The quota is half of the card, of which this is three eighths: it never counts.
void imbalance_few_groups() {
    orrery::check(orrDeviceSetQuota(0, 500, 1'000));
    in_a_row("multiply_add", 4, Work(), {.groups = 3, .rounds = 20'000});
}

// Sizes of buckets as a power law has them: the first two take as long as all others together twice over, on
// eight cores. All is 2.7 times the first one's time, so the cores are idle for two thirds of it.
void imbalance_buckets() {
    in_a_row("sort_bucket", 2, Work(), {.groups = 14, .rounds = 1'200});
}

// Another process has kernels over both cards, and as much right to this one.
void preemption_by_gangs() {
    beside(
        8,
        [] {
            return [sides = std::make_shared<std::array<Side, 2>>(
                        std::array<Side, 2>{Side(0, kMiB), Side(1, kMiB)})](const orrery::Event& done) {
                std::vector<orrLaunchParams> parts;
                std::array<PlantedArgs, 2> args;
                for (const Side& side : *sides) {
                    PlantedArgs& own = args[static_cast<std::size_t>(side.device)];
                    own = {side.work->out.data(), side.work->in.data(), side.work->in.size(), 100'000, 0};
                    const orrery::DeviceGuard guard(side.device);
                    parts.push_back(orrery::launch_params(side.work->library.function("multiply_add"),
                                                          {cores(), 1, 1}, {1, 1, 1}, own, 0, *side.stream));
                }
                orrery::launch_gang(parts);
                done.record(*sides->front().stream);
            };
        },
        [] { in_a_row("mix_integers", 16, Work(), {.rounds = 40'000}); });
}

// A fifth of the card, and another process that takes what is left: alone it would take as long. Kernels of 240 us,
// so 1.4 ms of cores become 7 ms.
void quota_beside_another() {
    beside(
        100,
        [] {
            return [work = std::make_shared<Work>(), stream = std::make_shared<orrery::Stream>()](
                       const orrery::Event& done) {
                for (unsigned i = 0; i < 4; ++i)
                    work->launch("multiply_add", {.rounds = 8'000}, *stream);
                done.record(*stream);
            };
        },
        [] {
            orrery::check(orrDeviceSetQuota(0, 200, 1'000));
            in_a_row("mix_integers", 6, Work(), {.rounds = 20'000});
        });
}

// Half of the cores each, side by side.
void none_two_halves() {
    const Work work(kMiB);
    const orrery::Stream one, two;
    const Gate gate;
    for (const orrery::Stream* stream : {&one, &two}) {
        gate.hold(*stream);
        for (unsigned i = 0; i < 4; ++i)
            work.launch("multiply_add", {.groups = cores() / 2, .rounds = 40'000}, *stream);
    }
    gate.open();
    one.synchronize();
    two.synchronize();
}

// What is loaded is used four times from registers: 256 times 16 cycles a strip, and 64 GB/s of VRAM for each core.
// At first the rows come, 64 lines of 150 ns: 4 % of the time.
void none_matrices() {
    in_a_row("multiply_matrices", 4, Work(16 * kMiB), {.rounds = 64});
}

// Another process, which may have a twentieth of the card, and has it.
void none_beside_quota() {
    beside(
        4,
        [] {
            orrery::check(orrDeviceSetQuota(0, 50, 1'000));
            return [work = std::make_shared<Work>(), stream = std::make_shared<orrery::Stream>()](
                       const orrery::Event& done) {
                for (unsigned i = 0; i < 4; ++i)
                    work->launch("multiply_add", {.rounds = 2'000}, *stream);
                done.record(*stream);
            };
        },
        [] { in_a_row("multiply_add", 10, Work(), {.rounds = 20'000}); });
}

}  // namespace planted
