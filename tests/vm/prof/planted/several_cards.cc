// Limits that lie between two cards.
#include <array>

#include <orrery/group.h>

#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

namespace planted {
namespace {

// Rounds at whose end both wait for each other; what each does in one is `rounds`.
void in_step(unsigned steps, const std::array<std::uint64_t, 2>& rounds) {
    const Side sides[2]{Side(0, kMiB), Side(1, kMiB)};
    join_cards();
    const int devices[2]{0, 1};
    orrGroup_t groups[2];
    orrery::check(orrGroupCreateAll(groups, 2, devices, 0));
    for (const Side& side : sides) {
        const orrery::DeviceGuard guard(side.device);
        side.work->begin(*side.stream, 40);
    }
    for (unsigned step = 0; step < steps; ++step)
        for (const Side& side : sides) {
            const orrery::DeviceGuard guard(side.device);
            side.work->launch("multiply_add", {.rounds = rounds[static_cast<unsigned>(side.device)]},
                              *side.stream);
            orrery::check(orrGroupBarrierAsync(groups[side.device], side.stream->handle(), nullptr));
        }
    for (const Side& side : sides)
        side.stream->synchronize();
    for (orrGroup_t group : groups)
        orrery::check(orrGroupDestroy(group));
}

}  // namespace

void link_copies() {
    const Side from(0, 8 * kMiB), to(1, 8 * kMiB);
    join_cards();
    for (unsigned i = 0; i < 4; ++i)
        orrery::copy(to.work->in.data(), from.work->in.data(), 8 * kMiB, *from.stream);
    from.stream->synchronize();
}
// A kernel whose input lies on the other card.
void link_kernel() {
    const Side here(0, 2 * kMiB), there(1, 2 * kMiB);
    join_cards();
    const PlantedArgs args{here.work->out.data(), there.work->in.data(), there.work->in.size(), 0, 0};
    for (unsigned i = 0; i < 3; ++i)
        here.work->launch("sum_up", {.rounds = 1}, args, *here.stream);
    here.stream->synchronize();
}

// Card 1 begins each round with what card 0 has made, which takes five times as long as its own part. It is
// told round by round, so that a slow host is late for both.
void rank_relay() {
    const Side slow(0, kMiB), quick(1, kMiB);
    join_cards();
    for (const Side* side : {&slow, &quick}) {
        const orrery::DeviceGuard guard(side->device);
        side->work->begin(*side->stream, 40);
    }
    for (unsigned i = 0; i < 60; ++i) {
        orrery::Event made(orrery::empty);
        {
            const orrery::DeviceGuard guard(0);
            slow.work->launch("multiply_add", {.rounds = 5'000}, *slow.stream);
            made = orrery::Event(orrEventDisableTiming);
            made.record(*slow.stream);
        }
        const orrery::DeviceGuard guard(1);
        quick.stream->wait(made);
        quick.work->launch("multiply_add", {.rounds = 1'000}, *quick.stream);
    }
    quick.stream->synchronize();
}
void rank_in_step() {
    in_step(30, {1'000, 6'000});
}

void none_in_step() {
    in_step(10, {20'000, 20'000});
}

const std::vector<Case>& several_cards_cases() {
    static const std::vector<Case> kCases{
        {.name = "link_copies",
         .limit = "link",
         .why = "8 MiB at a time to the other card",
         .run = link_copies,
         .share = {0.9, 1},
         .in_step = true},
        {.name = "link_kernel",
         .limit = "link",
         .why = "a kernel reads its input from the other card",
         .run = link_kernel,
         .share = {0.7, 1},
         .in_step = true},
        {.name = "rank_relay",
         .limit = "other_card",
         .why = "card 1 waits for what card 0 makes",
         .run = rank_relay,
         .device = 1,
         .words = "device 0",
         .share = {0.65, 0.85},
         .gain = {0.65, 0.85},
         .innocent = 0,
         .in_step = true},
        {.name = "rank_in_step",
         .limit = "rank",
         .why = "barriers, and card 1 has six times the work",
         .run = rank_in_step,
         .words = "waiting for rank 1",
         .share = {0.7, 0.9},
         .gain = {0.7, 0.9},
         .innocent = 1,
         .in_step = true},
        {.name = "none_in_step",
         .limit = "none",
         .why = "barriers between cards that have the same to do",
         .run = none_in_step,
         .share = {0, 0.1},
         .innocent = 1,
         .in_step = true},
    };
    return kCases;
}

}  // namespace planted
