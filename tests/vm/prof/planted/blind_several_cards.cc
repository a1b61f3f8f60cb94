// Blind cases of two cards in step, by an author who has not read the rules.
#include <array>

#include <orrery/group.h>

#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

namespace planted {
namespace {

// What neighbours do beside their kernels, and the last thing that each has sent and used.
struct Neighbours {
    Neighbours(std::size_t bytes, unsigned begin) : sides{Side(0, bytes), Side(1, bytes)} {
        join_cards();
        for (unsigned me = 0; me < 2; ++me) {
            const orrery::DeviceGuard guard(sides[me].device);
            outgoing[me] = orrery::Stream();
            sides[me].work->begin(*sides[me].stream, begin);
            used[me] = orrery::Event(orrEventDisableTiming);
            used[me].record(*sides[me].stream);
        }
    }
    // To the other one's `in`, behind what `after` has so far and behind the use of what was there.
    void send(unsigned me, std::size_t at, std::size_t bytes, const orrery::Stream& after) {
        const orrery::DeviceGuard guard(sides[me].device);
        const orrery::Event made(orrEventDisableTiming);
        made.record(after);
        outgoing[me].wait(made);
        outgoing[me].wait(used[1 - me]);
        orrery::copy(sides[1 - me].work->in.data() + at, sides[me].work->out.data() + at, bytes,
                     outgoing[me]);
        sent[me] = orrery::Event(orrEventDisableTiming);
        sent[me].record(outgoing[me]);
    }
    // Behind what the other one has sent: takes it into the weights.
    void apply(unsigned me) {
        const orrery::DeviceGuard guard(sides[me].device);
        sides[me].stream->wait(sent[1 - me]);
        sides[me].stream->wait(sent[me]);
        sides[me].work->launch("multiply_add", {.rounds = 200}, *sides[me].stream);
        used[me] = orrery::Event(orrEventDisableTiming);
        used[me].record(*sides[me].stream);
    }
    void layer(unsigned me, std::uint64_t rounds) const {
        const orrery::DeviceGuard guard(sides[me].device);
        sides[me].work->launch("multiply_add", {.rounds = rounds}, *sides[me].stream);
    }
    void synchronize() const {
        for (const Side& side : sides)
            side.stream->synchronize();
    }

    std::array<Side, 2> sides;
    std::array<orrery::Stream, 2> outgoing{orrery::Stream(orrery::empty), orrery::Stream(orrery::empty)};
    std::array<orrery::Event, 2> sent{orrery::Event(orrery::empty), orrery::Event(orrery::empty)};
    std::array<orrery::Event, 2> used{orrery::Event(orrery::empty), orrery::Event(orrery::empty)};
};

}  // namespace

// Two halves of a model, one batch at a time: there and back, 80 us of kernel on each card and 1.3 us for
// 64 KiB on the link. Each card waits for the other for half of the time.
void blind_pipeline_one_batch() {
    constexpr std::size_t kBytes = 64 << 10;
    const Side sides[2]{Side(0, kMiB), Side(1, kMiB)};
    join_cards();
    for (const Side& side : sides) {
        const orrery::DeviceGuard guard(side.device);
        side.work->begin(*side.stream, 40);
    }
    orrery::Event there(orrery::empty);
    for (unsigned batch = 0; batch < 12; ++batch)
        for (unsigned me = 0; me < 2; ++me) {
            const orrery::DeviceGuard guard(sides[me].device);
            const Side& own = sides[me];
            if (batch != 0 || me != 0) own.stream->wait(there);
            own.work->launch("multiply_add", {.rounds = 5'000}, *own.stream);
            orrery::copy(sides[1 - me].work->in.data(), own.work->out.data(), kBytes, *own.stream);
            there = orrery::Event(orrEventDisableTiming);
            there.record(*own.stream);
        }
    for (const Side& side : sides)
        side.stream->synchronize();
}

// Gradients of four layers, 48 us each, are exchanged when all are there: 168 us for 8 MiB each way, of which
// three quarters or more would fit beside the layers.
void blind_allreduce_after() {
    Neighbours both(8 * kMiB, 40);
    for (unsigned step = 0; step < 6; ++step) {
        for (unsigned me = 0; me < 2; ++me) {
            for (unsigned one = 0; one < 4; ++one)
                both.layer(me, 3'000);
            both.send(me, 0, 8 * kMiB, *both.sides[me].stream);
        }
        for (unsigned me = 0; me < 2; ++me)
            both.apply(me);
    }
    both.synchronize();
}

// The same as it should be: 96 us a layer, and 21 us for its 1 MiB while the next layer works. The last
// layer's are 5 % of a step.
void blind_none_data_parallel() {
    Neighbours both(4 * kMiB, 80);
    for (unsigned step = 0; step < 4; ++step) {
        for (unsigned one = 0; one < 4; ++one)
            for (unsigned me = 0; me < 2; ++me) {
                both.layer(me, 6'000);
                both.send(me, one * kMiB / sizeof(float), kMiB, *both.sides[me].stream);
            }
        for (unsigned me = 0; me < 2; ++me)
            both.apply(me);
    }
    both.synchronize();
}

// Experts whose tokens are 7:1 in one step and 1:7 in the next: both have as much in all, and each waits for
// the other in every second step, 96 of 224 us.
void blind_experts() {
    const Side sides[2]{Side(0, kMiB), Side(1, kMiB)};
    join_cards();
    const int devices[2]{0, 1};
    orrGroup_t groups[2];
    orrery::check(orrGroupCreateAll(groups, 2, devices, 0));
    for (const Side& side : sides) {
        const orrery::DeviceGuard guard(side.device);
        side.work->begin(*side.stream, 4);
    }
    for (int step = 0; step < 12; ++step)
        for (const Side& side : sides) {
            const orrery::DeviceGuard guard(side.device);
            const std::uint64_t rounds = step % 2 == side.device ? 7'000 : 1'000;
            side.work->launch("multiply_add", {.rounds = rounds}, *side.stream);
            orrery::check(orrGroupBarrierAsync(groups[side.device], side.stream->handle(), nullptr));
        }
    for (const Side& side : sides)
        side.stream->synchronize();
    for (orrGroup_t group : groups)
        orrery::check(orrGroupDestroy(group));
}

const std::vector<Case>& blind_several_cards_cases() {
    static const std::vector<Case> kCases{
        {.name = "blind_experts",
         .limit = "rank",
         .why = "each step's work is unequal, though all of it is equal",
         .run = blind_experts,
         .words = "waiting for rank 1",
         .at_bound = "compute",
         .share = {0.35, 0.5},
         .gain = {0.35, 0.5},
         .in_step = true},
        {.name = "blind_pipeline_one_batch",
         .limit = "other_card",
         .why = "two halves of a model, and one batch at a time",
         .run = blind_pipeline_one_batch,
         .device = 1,
         .words = "device 0",
         .at_bound = "compute",
         .share = {0.38, 0.55},
         .gain = {0.38, 0.55},
         .in_step = true},
        {.name = "blind_allreduce_after",
         .limit = "copy_not_overlapped",
         .why = "gradients are exchanged when all layers have theirs",
         .run = blind_allreduce_after,
         .at_bound = "compute",
         .share = {0.35, 0.5},
         .gain = {0.3, 0.5},
         .in_step = true},
        {.name = "blind_none_data_parallel",
         .limit = "none",
         .why = "gradients are exchanged while the next layer works",
         .run = blind_none_data_parallel,
         .share = {0, 0.1},
         .innocent = 1,
         .in_step = true},
    };
    return kCases;
}

}  // namespace planted
