// Later cases: limits that lie between two cards, whose link has 50 GB/s and 0.5 us.
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include <orrery/group.h>

#include "tests/vm/prof/planted/beside.h"
#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

namespace planted {
namespace {

// Steps of two neighbours: a kernel, and beside it what the other one's next step needs of the last one.
void exchange(unsigned steps, std::uint64_t rounds, std::size_t bytes) {
    const Side sides[2]{Side(0, 2 * bytes), Side(1, 2 * bytes)};
    join_cards();
    std::array<orrery::Stream, 2> outgoing{orrery::Stream(orrery::empty), orrery::Stream(orrery::empty)};
    // Of the step before: its kernel is done, and what it sent has come.
    std::array<orrery::Event, 2> worked{orrery::Event(orrery::empty), orrery::Event(orrery::empty)};
    std::array<orrery::Event, 2> sent{orrery::Event(orrery::empty), orrery::Event(orrery::empty)};
    for (unsigned me = 0; me < 2; ++me) {
        const orrery::DeviceGuard guard(sides[me].device);
        outgoing[me] = orrery::Stream();
    }
    for (unsigned me = 0; me < 2; ++me) {
        const orrery::DeviceGuard guard(sides[me].device);
        sides[me].work->begin(*sides[me].stream, 40);
        worked[me] = orrery::Event(orrEventDisableTiming);
        worked[me].record(*sides[me].stream);
        sent[me] = orrery::Event(orrEventDisableTiming);
        sent[me].record(*sides[me].stream);
    }
    for (unsigned step = 0; step < steps; ++step) {
        std::array<orrery::Event, 2> now_worked{orrery::Event(orrery::empty), orrery::Event(orrery::empty)};
        std::array<orrery::Event, 2> now_sent{orrery::Event(orrery::empty), orrery::Event(orrery::empty)};
        for (unsigned me = 0; me < 2; ++me) {
            const orrery::DeviceGuard guard(sides[me].device);
            const Side& own = sides[me];
            own.stream->wait(sent[1 - me]);
            outgoing[me].wait(worked[me]);
            outgoing[me].wait(worked[1 - me]);
            own.work->launch("multiply_add", {.rounds = rounds}, *own.stream);
            now_worked[me] = orrery::Event(orrEventDisableTiming);
            now_worked[me].record(*own.stream);
            orrery::copy(sides[1 - me].work->in.data() + step % 2 * bytes / sizeof(float),
                         own.work->out.data() + step % 2 * bytes / sizeof(float), bytes, outgoing[me]);
            now_sent[me] = orrery::Event(orrEventDisableTiming);
            now_sent[me].record(outgoing[me]);
        }
        worked = std::move(now_worked);
        sent = std::move(now_sent);
    }
    for (unsigned me = 0; me < 2; ++me) {
        sides[me].stream->synchronize();
        outgoing[me].synchronize();
    }
}

}  // namespace

// 16 MiB are 336 us on the link, the kernel beside it is 96 us.
void link_halo() {
    exchange(8, 6'000, 16 * kMiB);
}
// 320 us of kernel, beside which 84 us of link do not matter.
void none_halo_hidden() {
    exchange(6, 20'000, 4 * kMiB);
}

// Card 0 makes pieces in 16 us each, for which card 1 has two buffers and takes 96 us: so card 0 waits for a
// buffer for five sixths of the time.
void rank_full_buffers() {
    constexpr unsigned kPieces = 48, kBuffers = 2;
    constexpr std::size_t kBytes = 64 << 10;
    const Side maker(0, kMiB), user(1, kMiB);
    join_cards();
    // Long enough that the host is ahead of the cards from then on: else that is what card 0 waits for.
    for (const Side* side : {&maker, &user}) {
        const orrery::DeviceGuard guard(side->device);
        side->work->begin(*side->stream, 60);
    }
    std::vector<orrery::Event> used;
    for (unsigned piece = 0; piece < kPieces; ++piece) {
        float* const buffer = user.work->in.data() + piece % kBuffers * kBytes / sizeof(float);
        orrery::Event made(orrery::empty);
        {
            const orrery::DeviceGuard guard(0);
            maker.work->launch("multiply_add", {.rounds = 1'000}, *maker.stream);
            if (piece >= kBuffers) maker.stream->wait(used[piece - kBuffers]);
            orrery::copy(buffer, maker.work->out.data(), kBytes, *maker.stream);
            made = orrery::Event(orrEventDisableTiming);
            made.record(*maker.stream);
        }
        const orrery::DeviceGuard guard(1);
        user.stream->wait(made);
        user.work->launch("multiply_add", {.rounds = 6'000}, *user.stream);
        used.emplace_back(orrEventDisableTiming);
        used.back().record(*user.stream);
    }
    user.stream->synchronize();
    maker.stream->synchronize();
}

// Rank 0 has the border of the field as well, four times the other one's work: 64 us a step, of which rank 1
// waits for 48.
void rank_with_border() {
    const Side sides[2]{Side(0, kMiB), Side(1, kMiB)};
    join_cards();
    const int devices[2]{0, 1};
    orrGroup_t groups[2];
    orrery::check(orrGroupCreateAll(groups, 2, devices, 0));
    for (const Side& side : sides) {  // long enough for the host to be ahead
        const orrery::DeviceGuard guard(side.device);
        side.work->begin(*side.stream, 40);
    }
    for (unsigned step = 0; step < 48; ++step)
        for (const Side& side : sides) {
            const orrery::DeviceGuard guard(side.device);
            side.work->launch("multiply_add", {.rounds = side.device == 0 ? 4'000u : 1'000u}, *side.stream);
            orrery::check(orrGroupBarrierAsync(groups[side.device], side.stream->handle(), nullptr));
        }
    for (const Side& side : sides)
        side.stream->synchronize();
    for (orrGroup_t group : groups)
        orrery::check(orrGroupDestroy(group));
}

// A table on the other card, entry by entry: 1 us on the link there and back, and some cycles.
void link_remote_table() {
    const Side here(0, kMiB);
    join_cards();
    std::optional<Work> table;
    {
        const orrery::DeviceGuard guard(1);
        table.emplace(kMiB, true);
        const orrery::Stream stream;
        table->launch("multiply_add", {.rounds = 1}, stream);
        stream.synchronize();
    }
    const PlantedArgs args{here.work->out.data(), table->in.data(), table->in.size(), 0, 0};
    for (unsigned i = 0; i < 3; ++i)
        here.work->launch("chase", {.rounds = 300}, args, *here.stream);
    here.stream->synchronize();
}

// Kernels over both cards, of 1.6 ms, and as patient as a machine needs that does other things.
class Gangs {
  public:
    void launch() const {
        std::vector<orrLaunchParams> parts;
        std::array<PlantedArgs, 2> args;
        for (const Side& side : sides_) {
            PlantedArgs& own = args[static_cast<std::size_t>(side.device)];
            own = {side.work->out.data(), side.work->in.data(), side.work->in.size(), 100'000, 0};
            const orrery::DeviceGuard guard(side.device);
            parts.push_back(orrery::launch_params(side.work->library.function("multiply_add"),
                                                  {cores(), 1, 1}, {1, 1, 1}, own, 0, *side.stream));
        }
        orrery::launch_gang(parts);
    }
    const orrery::Stream& stream() const { return *sides_[0].stream; }

  private:
    static orrStreamAttributes patient() {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.limit_us = 600'000'000;
        return attributes;
    }
    std::array<Side, 2> sides_{Side(0, kMiB, patient()), Side(1, kMiB, patient())};
};

// Another process has kernels over both cards, and as much right to this one.
void preemption_by_gangs() {
    beside(
        8,
        [] {
            return [gangs = std::make_shared<Gangs>()](const orrery::Event& done) {
                gangs->launch();
                done.record(gangs->stream());
            };
        },
        [] {
            const Work work;
            const orrery::Stream stream;
            for (unsigned i = 0; i < 16; ++i)
                work.launch("mix_integers", {.rounds = 40'000}, stream);
            stream.synchronize();
        });
}
const std::vector<Case>& fresh_several_cards_cases() {
    static const std::vector<Case> kCases{
        {.name = "link_halo",
         .limit = "link",
         .why = "what neighbours need takes longer than their kernels",
         .run = link_halo,
         .at_bound = "compute",
         .share = {0.7, 1},
         .in_step = true},
        {.name = "link_remote_table",
         .limit = "link",
         .why = "entry by entry through a table on the other card",
         .run = link_remote_table,
         .share = {0.75, 1},
         .in_step = true},
        {.name = "rank_full_buffers",
         .limit = "other_card",
         .why = "card 0 waits until card 1 has used a buffer",
         .run = rank_full_buffers,
         .words = "device 1",
         .share = {0.65, 0.85},
         .gain = {0.65, 0.85},
         .innocent = 1,
         .in_step = true},
        {.name = "rank_with_border",
         .limit = "rank",
         .why = "barriers, and card 0 has four times the work",
         .run = rank_with_border,
         .device = 1,
         .words = "waiting for rank 0",
         .share = {0.65, 0.8},
         .gain = {0.65, 0.8},
         .innocent = 0,
         .in_step = true},
        {.name = "preemption_by_gangs",
         .limit = "preemption",
         .why = "another process has kernels over both cards",
         .run = preemption_by_gangs,
         .at_bound = "compute",
         .share = {0.3, 0.7},
         .gain = {0.3, 0.7},
         .in_step = true},
        {.name = "none_halo_hidden",
         .limit = "none",
         .why = "what neighbours need comes while they work",
         .run = none_halo_hidden,
         .share = {0, 0.1},
         .innocent = 1,
         .in_step = true},
    };
    return kCases;
}

}  // namespace planted
