// Two cards that see each other's boards, for tests of gangs over both.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "firmware/sched/sync/gang.h"
#include "tests/unit/firmware/gangs.h"

namespace orrery::fw::test {

// Two cards: each sees the page with the other's boards.
class TwoCards : public testing::Test {
  protected:
    static constexpr std::uint64_t kBoardPage = kSharedMemory + 0x1000;

    struct Flight {
        std::uint32_t to;
        std::uint64_t offset, value;
    };

    explicit TwoCards(bool areas = true) : areas_(areas) {}

    void SetUp() override {
        for (std::uint32_t c = 0; c < 2; ++c) {
            cards.push_back(std::make_unique<Bench>(chip()));
            Bench& card = *cards.back();
            if (areas_) give_areas(card);
            ASSERT_TRUE(card.boot());
            for (std::uint32_t context = 1; context <= 2; ++context) {
                card.create_context(context, context, context);  // of two users
                card.soc.map_peer(context, kPeerVa, [this, c](std::uint64_t offset, std::uint64_t value) {
                    flights.push_back({1 - c, offset, value});
                });
            }
            // Boards at 0 and 0x200 of the page; their tables of peers.
            for (std::uint64_t b = 0; b < 2; ++b)
                card.set_shared(0x2000 + 0x200 * b + 8 * (1 - c), kPeerVa + 0x200 * b);
            for (std::uint32_t n = 0; n < 4; ++n)
                queues[c].push_back(card.create_queue(n, 1 + n / 2, 16, 1000));
        }
    }
    void TearDown() override {
        for (const auto& card : cards)
            EXPECT_TRUE(card->soc.violations().empty()) << card->soc.violations().front();
    }
    // What is on the link arrives, from cards whose clocks are ahead.
    void deliver(std::uint64_t ahead_ps = 0) {
        while (!flights.empty()) {
            const Flight flight = flights.front();
            flights.pop_front();
            Bench& card = *cards[flight.to];
            card.soc.time += ahead_ps;
            if (card.soc.memory(kBoardPage + flight.offset) < flight.value)
                card.soc.set_memory(kBoardPage + flight.offset, flight.value);
            card.soc.poke(kBoardPage + flight.offset);
            card.run();
        }
    }
    void submit(std::uint32_t card, std::uint32_t queue, std::uint16_t members, std::uint64_t board,
                std::uint64_t round = 1) {
        ProcessQueue& q = queues[card][queue];
        cards[card]->submit(
            q, {gang(members, round, static_cast<std::uint16_t>(card), 2, kBoard + board), resident(2)});
    }
    void finish(std::uint32_t card) {
        for (const std::uint32_t port : cards[card]->soc.busy_ports())
            cards[card]->soc.finish(port);
        cards[card]->run();
    }
    void pass_time(std::uint32_t c, std::uint64_t us) {
        Bench& card = *cards[c];
        const std::uint64_t until = card.soc.time + us * 1'000'000;
        while (card.soc.timer <= until) {
            if (card.soc.time < card.soc.timer) card.soc.time = card.soc.timer;
            card.run();
        }
        card.soc.time = std::max(card.soc.time, until);
    }
    std::size_t busy(std::uint32_t card) { return running(*cards[card]); }

    std::vector<std::unique_ptr<Bench>> cards;
    std::vector<ProcessQueue> queues[2];
    std::deque<Flight> flights;

  private:
    bool areas_;
};

// Nothing is preempted, gangs neither.
class TwoCardsWithoutAreas : public TwoCards {
  protected:
    TwoCardsWithoutAreas() : TwoCards(false) {}
};

}  // namespace orrery::fw::test
