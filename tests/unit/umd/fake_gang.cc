// Gangs, as a card of the fake sees them.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/clock.h"

namespace orrery::umd::test {

std::optional<FakeGangs::Member> FakeCard::member(const orr_packet& packet) {
    const auto p = std::bit_cast<orr_packet_gang>(packet);
    std::uint64_t fault = 0;
    if (p.round == 0 || p.cards == 0 || p.cards > ORR_GANG_MAX_CARDS || p.card >= p.cards || p.members != 1)
        return std::nullopt;
    const std::uint64_t bytes = 2ull * p.cards * sizeof(orr_semaphore);
    if (p.board % 16 != 0 || translate(p.board, bytes, ORR_BIND_READ | ORR_BIND_WRITE, &fault) == nullptr)
        return std::nullopt;
    if (p.cards == 1) return FakeGangs::Member{{p.board, p.round}, p.card, p.cards};
    const auto* table = translate(p.peers, 8ull * p.cards, ORR_BIND_READ, &fault);
    if (table == nullptr) return std::nullopt;
    std::uint64_t boards[ORR_GANG_MAX_CARDS] = {};
    std::memcpy(boards, table, 8ull * p.cards);
    for (std::uint16_t card = 0; card < p.cards; ++card) {
        if (card != p.card && translate(boards[card], bytes, ORR_BIND_WRITE, &fault) == nullptr)
            return std::nullopt;
    }
    return FakeGangs::Member{{p.card == 0 ? p.board : boards[0], p.round}, p.card, p.cards};
}

std::optional<FakeOutcome> FakeCard::gather(Queue& queue, const orr_packet_dispatch& dispatch) {
    if (!queue.gang) return std::nullopt;
    EXPECT_NE(dispatch.header.flags & ORR_PKT_F_RESIDENT, 0)
        << "a gang's dispatch has all its groups on cores";
    const auto apart = [&] { return FakeOutcome{ORR_QERR_GANG, 0, FakeGangs::all().missing(*queue.gang)}; };
    switch (FakeGangs::all().join(*queue.gang, uid)) {
        case FakeGangs::State::kRuns:
            return std::nullopt;
        case FakeGangs::State::kFailed:
            return apart();
        case FakeGangs::State::kNoPlace:
            return FakeOutcome{ORR_QERR_GANG, 0, ORR_GANG_NO_PLACE};
        case FakeGangs::State::kGathers:
            break;
    }
    // Without a limit it waits for ever: the machine's load fails nothing.
    busy_ = true;
    if (queue.since_ns == 0) queue.since_ns = now_ns();
    const std::int64_t limit = std::int64_t{queue.options.limit_us} * 1000;
    if (limit == 0 || now_ns() - queue.since_ns < limit) return FakeOutcome{.running = true};
    return apart();
}

void FakeCard::leave_gang(Queue& queue) {
    if (queue.gang) FakeGangs::all().end(*queue.gang, uid);
    queue.gang.reset();
}

}  // namespace orrery::umd::test
