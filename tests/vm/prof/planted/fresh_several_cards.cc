// Later cases: limits that lie between two cards, whose link has 50 GB/s and 0.5 us.
#include <array>
#include <memory>
#include <vector>

#include <orrery/group.h>

#include "tests/vm/prof/planted/cases.h"
#include "tests/vm/prof/planted/work.h"

namespace planted {
namespace {

// Holds the first card's stream, and the second one's until the first is let go.
void hold_both(const Gate& gate, const Side& first, const Side& second) {
    gate.hold(*first.stream);
    orrery::Event begun(orrEventDisableTiming);
    {
        const orrery::DeviceGuard guard(first.device);
        begun = orrery::Event(orrEventDisableTiming);
        begun.record(*first.stream);
    }
    const orrery::DeviceGuard guard(second.device);
    second.stream->wait(begun);
}

// Steps of two neighbours: a kernel, and beside it what the other one's next step needs of the last one.
void exchange(unsigned steps, std::uint64_t rounds, std::size_t bytes) {
    const Side sides[2]{Side(0, 2 * bytes), Side(1, 2 * bytes)};
    join_cards();
    std::array<orrery::Stream, 2> outgoing{orrery::Stream(orrery::empty), orrery::Stream(orrery::empty)};
    // Of the step before: its kernel is done, and what it sent has come.
    std::array<orrery::Event, 2> worked{orrery::Event(orrery::empty), orrery::Event(orrery::empty)};
    std::array<orrery::Event, 2> sent{orrery::Event(orrery::empty), orrery::Event(orrery::empty)};
    const Gate gate;
    hold_both(gate, sides[0], sides[1]);
    for (unsigned me = 0; me < 2; ++me) {
        const orrery::DeviceGuard guard(sides[me].device);
        outgoing[me] = orrery::Stream();
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
    gate.open();
    for (unsigned me = 0; me < 2; ++me) {
        sides[me].stream->synchronize();
        outgoing[me].synchronize();
    }
}

}  // namespace

// 4 MiB are 84 us on the link, the kernel beside it is 24 us.
void link_halo() {
    exchange(12, 1'500, 4 * kMiB);
}
// 320 us of kernel, beside which 84 us of link do not matter.
void none_halo_hidden() {
    exchange(6, 20'000, 4 * kMiB);
}

// Card 0 makes pieces in 16 us each, for which card 1 has two buffers and takes 96 us: so card 0 waits for a buffer
// for five sixths of the time.
void rank_full_buffers() {
    constexpr unsigned kPieces = 48, kBuffers = 2;
    constexpr std::size_t kBytes = 64 << 10;
    const Side maker(0, kMiB), user(1, kMiB);
    join_cards();
    const Gate gate;
    gate.hold(*maker.stream);
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
    gate.open();
    user.stream->synchronize();
    maker.stream->synchronize();
}

// Rank 0 has the border of the field as well, four times the other one's work: 64 us a step, of which rank 1 waits
// for 48.
void rank_with_border() {
    const Side sides[2]{Side(0, kMiB), Side(1, kMiB)};
    join_cards();
    const int devices[2]{0, 1};
    orrGroup_t groups[2];
    orrery::check(orrGroupCreateAll(groups, 2, devices, 0));
    const Gate gate;
    hold_both(gate, sides[0], sides[1]);
    for (unsigned step = 0; step < 16; ++step)
        for (const Side& side : sides) {
            const orrery::DeviceGuard guard(side.device);
            side.work->launch("mix_integers", {.rounds = side.device == 0 ? 5'333u : 1'333u}, *side.stream);
            orrery::check(orrGroupBarrierAsync(groups[side.device], side.stream->handle(), nullptr));
        }
    gate.open();
    for (const Side& side : sides)
        side.stream->synchronize();
    for (orrGroup_t group : groups)
        orrery::check(orrGroupDestroy(group));
}

}  // namespace planted
