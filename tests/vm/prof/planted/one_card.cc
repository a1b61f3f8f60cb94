// Limits that one card knows.
#include <algorithm>
#include <chrono>
#include <memory>

#include "tests/vm/prof/planted/beside.h"
#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

namespace planted {
namespace {

using Clock = std::chrono::steady_clock;

// Busy, as a program is that prepares its next step.
void host_works(Clock::duration time) {
    const auto end = Clock::now() + time;
    while (Clock::now() < end) {
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

// The later a host comes with the next of what follows, the more of the time is launches.
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

// Looks at each result before it begins the next step. By the clock it works for most of the time, on any
// machine: what a slow one takes for the steps is made up for, and a step ends it.
void host_between() {
    const Work work;
    const orrery::Stream stream;
    Clock::duration steps{}, own{};
    for (unsigned i = 0;; ++i) {
        const auto begin = Clock::now();
        work.launch("multiply_add", {.rounds = 400}, stream);
        stream.synchronize();
        steps += Clock::now() - begin;
        if (i >= 30 && own >= 2 * steps) break;
        const Clock::duration time = std::max<Clock::duration>(std::chrono::milliseconds(8), 3 * steps - own);
        host_works(time);
        own += time;
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

// Kernels of this process beside those of another one, which has the card's cores for most of the time.
void beside_another(const orrStreamAttributes& others) {
    beside(
        100,
        [&] {
            return [work = std::make_shared<Work>(),
                    stream = std::make_shared<orrery::Stream>(others)](const orrery::Event& done) {
                for (unsigned i = 0; i < 4; ++i)
                    work->launch("multiply_add", {.rounds = 8'000}, *stream);
                done.record(*stream);
            };
        },
        [] { repeat("mix_integers", 6, Work(), {.rounds = 8'000}); });
}
void preemption_by_urgent() {
    orrStreamAttributes urgent = ORR_INIT(orrStreamAttributes);
    urgent.priority = -1;
    beside_another(urgent);
}
void preemption_by_share() {
    orrStreamAttributes large = ORR_INIT(orrStreamAttributes);
    large.weight = 640;
    beside_another(large);
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
    orrery::fill(work.in.data(), 0, work.bytes);
}
// Copies there and back (131 us each) and kernels (197 us) side by side, the kernels nearly all of the time.
void none_pipeline() {
    const Work work(16 * kMiB);
    const orrery::PinnedArray<float> host(4 * kMiB);
    const orrery::Stream streams[3];
    work.begin(streams[0]);
    const orrery::Event begun(orrEventDisableTiming);
    begun.record(streams[0]);
    streams[1].wait(begun);
    streams[2].wait(begun);
    for (unsigned i = 0; i < 40; ++i) {
        const orrery::Stream& stream = streams[i % 3];
        const std::size_t at = i % 4 * kMiB;
        orrery::copy(work.in.data() + at, host.data() + at, 4 * kMiB, stream);
        work.launch("multiply_add", {.rounds = 12'000}, stream);
        orrery::copy(host.data() + at, work.out.data() + at, 4 * kMiB, stream);
    }
    for (const orrery::Stream& stream : streams)
        stream.synchronize();
}

void none_at_peak() {
    repeat("multiply_add", 6, Work(kMiB), {.rounds = 40'000});
}
void none_one_short_kernel() {
    repeat("triad", 1, Work(kMiB), {});
}

const std::vector<Case>& one_card_cases() {
    static const std::vector<Case> kCases{
        {.name = "compute_floats",
         .limit = "compute",
         .why = "multiply-adds in registers on all cores",
         .run = compute_floats,
         .share = {0.85, 1}},
        {.name = "compute_integers",
         .limit = "compute",
         .why = "whole numbers only, so no FLOP at all",
         .run = compute_integers,
         .share = {0.85, 1}},
        {.name = "compute_scalar",
         .limit = "compute",
         .why = "scalar code on all cores",
         .run = compute_scalar,
         .share = {0.85, 1}},
        {.name = "vram_triad",
         .limit = "vram_bandwidth",
         .why = "twelve bytes for each multiply-add",
         .run = vram_triad,
         .share = {0.8, 1}},
        {.name = "vram_sum",
         .limit = "vram_bandwidth",
         .why = "reads 16 MiB and adds them up",
         .run = vram_sum,
         .share = {0.8, 1}},
        {.name = "latency_chase",
         .limit = "latency",
         .why = "each load waits for the one before",
         .run = latency_chase,
         .share = {0.8, 1},
         .gain = {0.8, 1}},
        {.name = "latency_search",
         .limit = "latency",
         .why = "the same, and some scalar code for each",
         .run = latency_search,
         .share = {0.65, 0.95},
         .gain = {0.65, 0.95}},
        {.name = "vram_gather",
         .limit = "vram_bandwidth",
         .why = "lines of which a sixteenth is used",
         .run = vram_gather,
         .share = {0.6, 1}},
        {.name = "launch_small_kernels",
         .limit = "launch",
         .why = "400 kernels of less than a microsecond",
         .run = launch_small_kernels,
         .share = {0.5, 1},
         .gain = {0.5, 1}},
        {.name = "launch_relay",
         .limit = "launch",
         .why = "150 small kernels, each of which waits for the other stream",
         .run = launch_relay,
         .share = {0.5, 1},
         .gain = {0.5, 1}},
        {.name = "host_between",
         .limit = "host",
         .why = "looks at each result, and works for longer before the next launch",
         .run = host_between,
         .share = {0.5, 1}},
        {.name = "host_allocates",
         .limit = "host",
         .why = "allocates and frees around each kernel",
         .run = host_allocates,
         .share = {0.25, 1}},
        {.name = "copy_in_one_stream",
         .limit = "copy_not_overlapped",
         .why = "copies and kernels of one length, one after the other",
         .run = copy_in_one_stream,
         .share = {0.6, 0.8},
         .gain = {0.4, 0.66}},
        {.name = "copy_behind_events",
         .limit = "copy_not_overlapped",
         .why = "two streams whose events keep them apart",
         .run = copy_behind_events,
         .share = {0.4, 0.6},
         .gain = {0.35, 0.55}},
        {.name = "imbalance_one_long",
         .limit = "imbalance",
         .why = "one work-group has twelve times the others' work",
         .run = imbalance_one_long,
         .share = {0.7, 0.85},
         .gain = {0.7, 0.85}},
        {.name = "imbalance_tail",
         .limit = "imbalance",
         .why = "one work-group more than cores",
         .run = imbalance_tail,
         .at_bound = "compute",
         .share = {0.35, 0.5},
         .gain = {0.35, 0.5}},
        {.name = "preemption_by_urgent",
         .limit = "preemption",
         .why = "another process has urgent kernels",
         .run = preemption_by_urgent,
         .share = {0.5, 1},
         .gain = {0.5, 1}},
        {.name = "preemption_by_share",
         .limit = "preemption",
         .why = "another process has a larger share",
         .run = preemption_by_share,
         .share = {0.4, 0.95},
         .gain = {0.4, 0.95}},
        {.name = "quota_quarter",
         .limit = "quota",
         .why = "a quarter of the card",
         .run = quota_quarter,
         .share = {0.55, 0.8}},
        {.name = "quota_tenth",
         .limit = "quota",
         .why = "a tenth of the card",
         .run = quota_tenth,
         .share = {0.7, 0.92}},
        {.name = "none_nothing_done",
         .limit = "none",
         .why = "allocates, and launches nothing",
         .run = none_nothing_done,
         .share = {0, 0.1},
         .is_short = true},
        {.name = "none_pipeline",
         .limit = "none",
         .why = "copies there and back and kernels side by side, all of them busy",
         .run = none_pipeline,
         .share = {0, 0.1}},
        {.name = "none_at_peak",
         .limit = "none",
         .why = "one kernel after the other at the peak",
         .run = none_at_peak,
         .share = {0, 0.1}},
        {.name = "none_one_short_kernel",
         .limit = "none",
         .why = "one kernel of some microseconds",
         .run = none_one_short_kernel,
         .share = {0, 0.1},
         .is_short = true},
    };
    return kCases;
}

}  // namespace planted
