// Later cases: limits that one card knows. Times are those of orrery-1 (8 cores of 1 GHz, VRAM 800 GB/s, 150
// ns; PCIe 32 GB/s, 300 ns).
#include <array>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/vm/prof/planted/beside.h"
#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

namespace planted {
namespace {

void in_a_row(const char* kernel, unsigned times, const Work& work, const Work::Shape& shape) {
    const orrery::Stream stream;
    for (unsigned i = 0; i < times; ++i)
        work.launch(kernel, shape, stream);
    stream.synchronize();
}

// So many kernels in each of two streams, side by side.
void in_two_streams(const Work& work, unsigned groups, unsigned times) {
    const orrery::Stream one, two;
    const orrery::Event begun(orrEventDisableTiming);
    work.begin(one);
    begun.record(one);
    two.wait(begun);
    for (const orrery::Stream* stream : {&one, &two})
        for (unsigned i = 0; i < times; ++i)
            work.launch("multiply_add", {.groups = groups, .rounds = 40'000}, *stream);
    one.synchronize();
    two.synchronize();
}

}  // namespace

// A column of a group's 1,024 rows is 1,024 lines, of 512 that the cache has. Of all groups that is 512 KiB,
// which VRAM brings in 655 ns; the cores have 32 cycles of loads and 16 of sums for it.
void vram_columns() {
    constexpr std::uint64_t kPitch = 272;
    in_a_row("add_columns", 3, Work(cores() * 1'024 * kPitch * sizeof(float)),
             {.rounds = 256, .skew = kPitch});
}

// Results become input by a copy instead of by a swap of pointers: reading and writing 16 MiB is 42 us of
// VRAM's time, the kernel 2 us.
void vram_swap_by_copy() {
    const Work work(16 * kMiB);
    const orrery::Stream stream;
    for (unsigned i = 0; i < 24; ++i) {
        work.launch("multiply_add", {.rounds = 100}, stream);
        orrery::copy(work.in.data(), work.out.data(), work.bytes, stream);
    }
    stream.synchronize();
}

// Two streams of kernels of half of the cores each: together they have all of VRAM's bandwidth, of which four
// cores alone could take as much.
void vram_two_streams() {
    const Work one_work(8 * kMiB), two_work(8 * kMiB);
    const orrery::Stream one, two;
    const orrery::Event begun(orrEventDisableTiming);
    one_work.begin(one);
    begun.record(one);
    two.wait(begun);
    for (unsigned i = 0; i < 12; ++i) {
        one_work.launch("triad", {.groups = cores() / 2}, one);
        two_work.launch("triad", {.groups = cores() / 2}, two);
    }
    one.synchronize();
    two.synchronize();
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
    const orrery::Stream stream;
    for (unsigned i = 0; i < 3; ++i)
        work.launch("chase", {.rounds = 2'000}, args, stream);
    stream.synchronize();
}

// 4 KiB at a time: 0.13 us on PCIe each, and more than 0.5 us until they are under way and have come.
// As a graph: so the host is not what they wait for.
void launch_small_copies() {
    const orrery::DeviceArray<float> there(kMiB);
    const orrery::PinnedArray<float> host(kMiB);
    const orrery::Stream stream;
    orrery::Graph::begin_capture(stream);
    for (std::size_t i = 0; i < 600; ++i)
        orrery::copy(there.data() + i * 1'024, host.data() + i * 1'024, 4'096, stream);
    const orrery::GraphExec all(orrery::Graph::end_capture(stream));
    all.launch(stream);
    stream.synchronize();
}

// Each step's input comes from ordinary memory, by calls that return when it is there: 65 us on PCIe, and
// then 32 us of kernel. (What the host takes to copy 2 MiB is in no card's time, which does not go on while a
// card is idle.)
void copy_pageable_input() {
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

// A thread makes batches, and tells the stream of each, which takes 6 us to copy it and 16 us to use it.
void host_makes_batches() {
    constexpr std::uint64_t kBatches = 30;
    const Work work;
    const orrery::PinnedArray<float> batch(50'000);
    const orrery::Stream stream;
    const orrery::Semaphore made, used;
    std::thread maker([&] {
        std::mt19937 numbers;
        for (std::uint64_t i = 1; i <= kBatches; ++i) {
            for (float& number : batch)
                number = static_cast<float>(numbers());
            made.signal(i);
            used.wait(i);
        }
    });
    for (std::uint64_t i = 1; i <= kBatches; ++i) {
        stream.wait(made, i);
        orrery::copy(work.in.data(), batch.data(), batch.bytes(), stream);
        work.launch("multiply_add", {.rounds = 1'000}, stream);
        stream.signal(used, i);
    }
    maker.join();
    stream.synchronize();
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
    work.begin(null);
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
    null.synchronize();
}

// Three groups for eight cores. The quota is half of the card, of which this is three eighths: it never
// counts.
void imbalance_few_groups() {
    orrery::check(orrDeviceSetQuota(0, 500, 1'000));
    in_a_row("multiply_add", 4, Work(), {.groups = 3, .rounds = 20'000});
}

// Two streams side by side, of one group each: six of eight cores have nothing.
void imbalance_two_streams() {
    in_two_streams(Work(), 1, 3);
}

// Groups that meet after each step, where seven of eight have a tenth of the last one's work, and then look
// again and again whether it has come: 79 % of the cores' time.
void imbalance_in_steps() {
    const Work work;
    const orrery::Stream stream;
    work.launch("multiply_add", {.rounds = 1'000}, stream);
    const PlantedArgs args{work.out.data(), work.in.data(), work.in.size(), 2'000, 10};
    for (unsigned i = 0; i < 2; ++i) {
        orrery::fill(work.out.data(), 0, 8, stream);
        orrery::launch_cooperative(work.library.function("meet_in_steps"), {cores(), 1, 1}, {1, 1, 1}, args,
                                   0, stream);
    }
    stream.synchronize();
}

// Sizes of buckets as a power law has them: the first two take as long as all others together twice over, on
// eight cores. All is 2.7 times the first one's time, so the cores are idle for two thirds of it.
void imbalance_buckets() {
    in_a_row("sort_bucket", 2, Work(), {.groups = 14, .rounds = 1'200});
}

// A fifth of the card, and another process that takes what is left: alone it would take as long. Kernels of
// 240 us, so 1.4 ms of cores become 7 ms.
void quota_beside_another() {
    beside(
        100,
        [] {
            return [work = std::make_shared<Work>(),
                    stream = std::make_shared<orrery::Stream>()](const orrery::Event& done) {
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
    in_two_streams(Work(kMiB), cores() / 2, 4);
}

// Whole numbers only, behind a few microseconds of floating point.
void none_whole_numbers() {
    const Work work;
    const orrery::Stream stream;
    work.launch("multiply_add", {.rounds = 200}, stream);
    for (unsigned i = 0; i < 4; ++i)
        work.launch("mix_integers", {.rounds = 40'000}, stream);
    stream.synchronize();
}

// What is loaded is used four times from registers: 256 times 16 cycles a strip, and 64 GB/s of VRAM for each
// core. At first the rows come, 64 lines of 150 ns: 4 % of the time.
void none_matrices() {
    in_a_row("multiply_matrices", 4, Work(16 * kMiB), {.rounds = 64});
}

// Another process, which may have a twentieth of the card, and has it.
void none_beside_quota() {
    beside(
        4,
        [] {
            orrery::check(orrDeviceSetQuota(0, 50, 1'000));
            return [work = std::make_shared<Work>(),
                    stream = std::make_shared<orrery::Stream>()](const orrery::Event& done) {
                for (unsigned i = 0; i < 4; ++i)
                    work->launch("multiply_add", {.rounds = 2'000}, *stream);
                done.record(*stream);
            };
        },
        [] { in_a_row("multiply_add", 10, Work(), {.rounds = 20'000}); });
}

const std::vector<Case>& fresh_one_card_cases() {
    static const std::vector<Case> kCases{
        {.name = "vram_columns",
         .limit = "vram_bandwidth",
         .why = "a matrix by columns, which do not fit into the cache",
         .run = vram_columns,
         .share = {0.8, 1}},
        {.name = "vram_swap_by_copy",
         .limit = "vram_bandwidth",
         .why = "copies results back into the input instead of swapping pointers",
         .run = vram_swap_by_copy,
         .share = {0.75, 0.97}},
        {.name = "vram_two_streams",
         .limit = "vram_bandwidth",
         .why = "two streams that have all of the bandwidth together",
         .run = vram_two_streams,
         .share = {0.75, 1}},
        {.name = "latency_tickets",
         .limit = "latency",
         .why = "atomics on one counter, each of which is waited for",
         .run = latency_tickets,
         .share = {0.85, 1},
         .gain = {0.85, 1}},
        {.name = "latency_host_table",
         .limit = "latency",
         .why = "entry by entry through a table in the host's memory",
         .run = latency_host_table,
         .share = {0.85, 1},
         .gain = {0.85, 1}},
        {.name = "launch_small_copies",
         .limit = "launch",
         .why = "2.4 MiB in pieces of 4 KiB",
         .run = launch_small_copies,
         .share = {0.75, 0.95},
         .gain = {0.7, 0.95}},
        {.name = "host_asks_each_step",
         .limit = "host",
         .why = "looks after each step of 2 us whether that was the last",
         .run = host_asks_each_step,
         .share = {0.25, 1}},
        {.name = "host_makes_batches",
         .limit = "host",
         .why = "a thread of the host makes each batch, for longer than the card uses it",
         .run = host_makes_batches,
         .share = {0.25, 1}},
        {.name = "copy_pageable_input",
         .limit = "copy_not_overlapped",
         .why = "waits for each copy from ordinary memory before it launches",
         .run = copy_pageable_input,
         .share = {0.5, 0.75},
         .gain = {0.2, 0.4}},
        {.name = "copy_behind_null_stream",
         .limit = "copy_not_overlapped",
         .why = "four streams, all of them behind the null stream",
         .run = copy_behind_null_stream,
         .share = {0.55, 0.7},
         .gain = {0.5, 0.7}},
        {.name = "imbalance_few_groups",
         .limit = "imbalance",
         .why = "three groups on eight cores, and a quota that never counts",
         .run = imbalance_few_groups,
         .share = {0.5, 0.65},
         .gain = {0.5, 0.65}},
        {.name = "imbalance_two_streams",
         .limit = "imbalance",
         .why = "two streams side by side, of one group each",
         .run = imbalance_two_streams,
         .share = {0.6, 0.8},
         .gain = {0.6, 0.8}},
        {.name = "imbalance_buckets",
         .limit = "imbalance",
         .why = "sorts buckets of which two have most",
         .run = imbalance_buckets,
         .share = {0.55, 0.7},
         .gain = {0.55, 0.7}},
        {.name = "imbalance_in_steps",
         .limit = "imbalance",
         .why = "groups that look again and again whether the slow one has come",
         .run = imbalance_in_steps,
         .share = {0.6, 0.85},
         .gain = {0.6, 0.85}},
        {.name = "quota_beside_another",
         .limit = "quota",
         .why = "a fifth of the card, and another process takes the rest",
         .run = quota_beside_another,
         .share = {0.5, 0.85}},
        {.name = "none_two_halves",
         .limit = "none",
         .why = "two streams, each with half of the cores",
         .run = none_two_halves,
         .share = {0, 0.1}},
        {.name = "none_whole_numbers",
         .limit = "none",
         .why = "whole numbers at their bound, and a little floating point",
         .run = none_whole_numbers,
         .share = {0, 0.1}},
        {.name = "none_matrices",
         .limit = "none",
         .why = "a product of matrices out of registers",
         .run = none_matrices,
         .share = {0, 0.1}},
        {.name = "none_beside_quota",
         .limit = "none",
         .why = "another process may have a twentieth of the card",
         .run = none_beside_quota,
         .share = {0, 0.1}},
    };
    return kCases;
}

}  // namespace planted
