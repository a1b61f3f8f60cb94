// The search for ways between cards (orr_map.c): in chains, rings, tori, meshes, switches and systems by
// chance. Each way is looked at as the cards take it, and all of them together for circles of waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include "kmod/orr_map.h"

unsigned int orr_test_warnings = 0;
}

namespace {

using Way = std::vector<u8>;
constexpr unsigned kNoWay = std::numeric_limits<unsigned>::max();

class System {
  public:
    explicit System(unsigned cards) : map_(std::make_unique<orr_map>()) {
        map_->count = cards;
        for (unsigned i = 0; i < cards; ++i) {
            map_->card[i].forward_ns = 100;
            for (orr_map_port& port : map_->card[i].port)
                port.peer = ORR_MAP_NONE;
        }
    }
    unsigned cards() const { return map_->count; }
    orr_map& map() { return *map_; }
    // The next free port of each; false: one has none.
    bool link(unsigned a, unsigned b) {
        const unsigned p = free_port(a), q = free_port(b);
        if (a == b || p == ORR_LINK_MAX_PORTS || q == ORR_LINK_MAX_PORTS) return false;
        ++since_;
        port(a, p) = used(b, q);
        port(b, q) = used(a, p);
        return true;
    }
    void unlink(unsigned card, unsigned p) {
        const orr_map_port gone = port(card, p);
        port(gone.peer, gone.peer_port) = port(card, p) = nothing();
    }
    void over_switches(unsigned a, u8 p, unsigned b, u8 q) {
        map_->fabric[a][b].links = map_->fabric[b][a].links = 2;
        map_->fabric[a][b].port = p;
        map_->fabric[b][a].port = q;
    }
    orr_map_port& port(unsigned card, unsigned p) { return map_->card[card].port[p]; }
    Way way(unsigned from, unsigned to) const {
        std::array<u8, ORR_WAY_LINKS> ports{};
        const unsigned links = orr_map_way(map_.get(), from, to, ports.data());
        return {ports.begin(), ports.begin() + links};
    }
    void compute() { orr_map_compute(map_.get()); }

    // Links on the shortest way; only over cards that pass on.
    std::vector<unsigned> distances(unsigned from) const {
        std::vector<unsigned> all(cards(), kNoWay);
        std::vector<unsigned> next{from};
        all[from] = 0;
        for (std::size_t at = 0; at < next.size(); ++at) {
            const orr_map_card& card = map_->card[next[at]];
            if (next[at] != from && (card.forward_ns == 0 || map_->card[from].forward_ns == 0)) continue;
            for (const orr_map_port& port : card.port) {
                if (!port.used || all[port.peer] != kNoWay) continue;
                if (next[at] != from && map_->card[port.peer].forward_ns == 0) continue;
                all[port.peer] = all[next[at]] + 1;
                next.push_back(port.peer);
            }
        }
        return all;
    }

    // What holds of all ways. `shortest`: none is longer than it has to be.
    void check(const std::string& what, bool shortest) {
        SCOPED_TRACE(what);
        waits_.clear();
        for (unsigned from = 0; from < cards(); ++from) {
            const std::vector<unsigned> far = distances(from);
            for (unsigned to = 0; to < cards(); ++to) {
                if (from == to) continue;
                SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
                const Way there = way(from, to);
                if (far[to] == kNoWay) {
                    EXPECT_TRUE(there.empty()) << "no links lead there";
                    continue;
                }
                if (far[to] > ORR_WAY_LINKS) continue;
                if (shortest) ASSERT_EQ(there.size(), far[to]);
                // A way round may be longer than cards pass on.
                if (there.empty()) {
                    EXPECT_FALSE(shortest);
                    continue;
                }
                ASSERT_NO_FATAL_FAILURE(check_way(from, to, there));
            }
        }
        EXPECT_FALSE(has_circle()) << "messages for other cards may wait for each other";
    }

  private:
    static orr_map_port nothing() {
        orr_map_port port{};
        port.peer = ORR_MAP_NONE;
        return port;
    }
    unsigned free_port(unsigned card) {
        unsigned p = 0;
        while (p < ORR_LINK_MAX_PORTS && port(card, p).used)
            ++p;
        return p;
    }
    orr_map_port used(unsigned peer, unsigned peer_port) const {
        orr_map_port port{};
        port.peer = static_cast<u8>(peer);
        port.peer_port = peer_port;
        port.used = true;
        port.since = since_;
        return port;
    }
    // It ends there, each part of it is the way of its ends, and the way back is the same.
    void check_way(unsigned from, unsigned to, const Way& there) {
        std::vector<unsigned> over{from};
        Way back;
        for (const u8 p : there) {
            const orr_map_port& out = port(over.back(), p);
            ASSERT_TRUE(out.used);
            if (over.size() > 1) EXPECT_NE(map_->card[over.back()].forward_ns, 0u);
            back.insert(back.begin(), static_cast<u8>(out.peer_port));
            over.push_back(out.peer);
        }
        ASSERT_EQ(over.back(), to);
        EXPECT_EQ(way(to, from), back);
        for (std::size_t i = 1; i + 1 < over.size(); ++i) {
            EXPECT_EQ(way(over[i], to), Way(there.begin() + static_cast<std::ptrdiff_t>(i), there.end()));
            EXPECT_EQ(way(from, over[i]), Way(there.begin(), there.begin() + static_cast<std::ptrdiff_t>(i)));
        }
        // What leaves a card for one that passes it on waits for the room behind that. Room behind the last
        // link is for that card, and waits for nobody.
        for (std::size_t i = 0; i + 3 < over.size(); ++i)
            waits_.insert({{over[i], there[i]}, {over[i + 1], there[i + 1]}});
    }
    // Takes away who waits for nobody, until nothing goes any more.
    bool has_circle() const {
        std::set<Wait> left = waits_;
        for (std::size_t before = 0; before != left.size();) {
            before = left.size();
            std::set<Port> waiting;
            for (const Wait& wait : left)
                waiting.insert(wait.first);
            std::erase_if(left, [&](const Wait& wait) { return !waiting.contains(wait.second); });
        }
        return !left.empty();
    }

    using Port = std::pair<unsigned, u8>;
    using Wait = std::pair<Port, Port>;  // who, whom
    std::unique_ptr<orr_map> map_;
    std::set<Wait> waits_;
    u32 since_ = 0;
};

class Maps : public ::testing::Test {
  protected:
    void TearDown() override { EXPECT_EQ(orr_test_warnings, 0u); }
};

System chain(unsigned cards) {
    System system(cards);
    for (unsigned i = 0; i + 1 < cards; ++i)
        system.link(i, i + 1);
    return system;
}

System ring(unsigned cards) {
    System system = chain(cards);
    system.link(cards - 1, 0);
    return system;
}

System torus(unsigned rows, unsigned columns) {
    System system(rows * columns);
    for (unsigned row = 0; row < rows; ++row)
        for (unsigned column = 0; column < columns; ++column) {
            const unsigned at = row * columns + column;
            if (columns > 1) system.link(at, row * columns + (column + 1) % columns);
            if (rows > 1) system.link(at, (row + 1) % rows * columns + column);
        }
    return system;
}

TEST_F(Maps, AChainsWaysAreItsLinks) {
    for (unsigned cards = 1; cards <= 9; ++cards) {
        System system = chain(cards);
        system.compute();
        system.check("chain of " + std::to_string(cards), true);
    }
}

TEST_F(Maps, AWayHasNoMoreLinksThanAMessageMayGo) {
    System system = chain(ORR_WAY_LINKS + 2);
    system.compute();
    EXPECT_EQ(system.way(0, ORR_WAY_LINKS).size(), std::size_t{ORR_WAY_LINKS});
    EXPECT_TRUE(system.way(0, ORR_WAY_LINKS + 1).empty());
}

TEST_F(Maps, ARingOfUpToFiveGoesTheShortWay) {
    for (unsigned cards = 3; cards <= 5; ++cards) {
        System system = ring(cards);
        system.compute();
        system.check("ring of " + std::to_string(cards), true);
    }
}

// There a message could wait for room that another one takes, all round: some go the other way.
TEST_F(Maps, ALongerRingHasNoCircleOfWaits) {
    for (unsigned cards = 6; cards <= 16; ++cards) {
        System system = ring(cards);
        system.compute();
        system.check("ring of " + std::to_string(cards), false);
        // Neighbours reach each other by their link in any case.
        for (unsigned i = 0; i < cards; ++i)
            if (const Way way = system.way(i, (i + 1) % cards); !way.empty() && way.size() != 1)
                EXPECT_EQ(way.size(), cards - 1) << "one link of them is used by nobody";
    }
}

TEST_F(Maps, AMeshsWaysAreOneLinkEach) {
    for (unsigned cards = 2; cards <= ORR_LINK_MAX_PORTS + 1; ++cards) {
        System system(cards);
        for (unsigned i = 0; i < cards; ++i)
            for (unsigned j = i + 1; j < cards; ++j)
                ASSERT_TRUE(system.link(i, j));
        system.compute();
        system.check("mesh of " + std::to_string(cards), true);
    }
}

TEST_F(Maps, AllCardsOfATorusReachEachOther) {
    const std::pair<unsigned, unsigned> shapes[] = {{2, 2}, {2, 4}, {3, 3}, {2, 8}, {4, 4}, {3, 5}};
    for (const auto& [rows, columns] : shapes) {
        System system = torus(rows, columns);
        system.compute();
        system.check(std::to_string(rows) + " x " + std::to_string(columns), false);
        for (unsigned from = 0; from < system.cards(); ++from)
            for (unsigned to = 0; to < system.cards(); ++to)
                if (from != to) EXPECT_FALSE(system.way(from, to).empty()) << from << " to " << to;
    }
}

// Larger ones have ways without circles, and some that would take more links than a message may go.
TEST_F(Maps, ALargeTorusHasNoCircleOfWaits) {
    System system = torus(4, 8);
    system.compute();
    system.check("4 x 8", false);
}

// The one that has been used for longer, by both.
TEST_F(Maps, OfTwoLinksOfTwoCardsBothTakeTheSame) {
    System system(3);
    system.link(0, 1);
    system.link(1, 0);
    system.link(1, 2);
    system.compute();
    system.check("two links", true);
    const Way used = system.way(0, 1);
    system.unlink(0, used[0]);
    system.compute();
    system.check("the other one", true);
    EXPECT_NE(system.way(0, 1), used);
}

TEST_F(Maps, ACardThatDoesNotPassOnIsAnEndOnly) {
    System system = ring(5);
    system.map().card[2].forward_ns = 0;
    system.compute();
    system.check("a ring with one that does not pass on", true);
    EXPECT_EQ(system.way(1, 2).size(), 1u);
    EXPECT_EQ(system.way(1, 3).size(), 3u) << "round by the others";
    EXPECT_TRUE(system.way(0, 2).empty()) << "and it sends and takes nothing that others pass on";
}

TEST_F(Maps, CardsThatNoLinksJoinHaveNoWay) {
    System system(5);
    system.link(0, 1);
    system.link(3, 4);
    system.compute();
    system.check("two pairs and one alone", true);
}

TEST_F(Maps, OverSwitchesWhereNoCablesLead) {
    System system(4);
    system.link(0, 1);
    system.over_switches(0, 7, 1, 6);
    system.over_switches(1, 6, 2, 5);
    system.compute();
    EXPECT_EQ(system.way(0, 1), Way{0}) << "the cable";
    EXPECT_FALSE(system.map().fabric[0][1].used);
    EXPECT_EQ(system.way(1, 2), Way{6});
    EXPECT_EQ(system.way(2, 1), Way{5});
    EXPECT_TRUE(system.map().fabric[2][1].used);
    EXPECT_TRUE(system.way(0, 2).empty()) << "no card passes on what goes over switches";
    EXPECT_TRUE(system.way(0, 3).empty());
    // What an earlier search said counts no more.
    system.unlink(0, 0);
    system.compute();
    EXPECT_EQ(system.way(0, 1), Way{7});
}

// Up to 24 cards with links between any two, of which some go one after the other.
TEST_F(Maps, AnySystemHasWaysThatFit) {
    std::mt19937 random(7);  // NOLINT: the same each time
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    for (int round = 0; round < 150; ++round) {
        System system(2 + below(23));
        for (unsigned links = below(3 * system.cards()); links > 0; --links)
            system.link(below(system.cards()), below(system.cards()));
        for (unsigned i = 0; i < system.cards(); ++i)
            if (below(12) == 0) system.map().card[i].forward_ns = 0;
        for (int change = 0; change < 4; ++change) {
            system.compute();
            system.check("round " + std::to_string(round) + ", " + std::to_string(change), false);
            if (HasFatalFailure()) return;
            const unsigned card = below(system.cards()), p = below(ORR_LINK_MAX_PORTS);
            if (system.port(card, p).used) system.unlink(card, p);
        }
    }
}

}  // namespace
