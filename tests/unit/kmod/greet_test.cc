// How two drivers come to a session: all orders of what they say, of losses and of reloads, over two planes.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

extern "C" {
#include "kmod/orr_greet.h"
}

namespace {

// What goes over a plane. Other notes than greetings are of a session.
struct Note {
    enum Kind : std::uint8_t { kGreeting, kGoodbye, kOther } kind;
    orr_greeting said;
    auto key() const { return std::tuple(kind, said.nonce, said.known, said.before, said.asks); }
};

constexpr unsigned kPlanes = 2;
constexpr unsigned kMostSteps = 60;  // until all is quiet

struct Side {
    orr_greet greet{};
    unsigned plane = 0;
    bool notices = false;    // it has not seen yet that the other has begun anew
    std::uint16_t last = 0;  // epoch that it remembers
    orr_greet newest{};      // the last session, also if it has forgotten
    std::array<std::deque<Note>, kPlanes> in;
};

// Two sides, of which the first has the lower number. Each has another plane as its first.
struct World {
    std::array<Side, 2> sides;
    std::uint64_t nonces = 0;
    std::uint16_t shared = 0;  // epoch of the last session that both have been in
    std::string broken, story;

    World() {
        for (unsigned i = 0; i < 2; ++i)
            start(i);
    }

    void start(unsigned i) {
        Side& side = sides.at(i);
        side.greet = {};
        side.plane = i;
        side.last = 0;
        side.notices = false;
        if (sides.at(1 - i).last == 0) shared = 0;  // nobody knows any more
        orr_greet_anew(&side.greet, ++nonces, 0);
    }
    void send(unsigned i, const Note& note) { sides.at(1 - i).in.at(sides.at(i).plane).push_back(note); }
    void say(unsigned i, bool asks) { send(i, {Note::kGreeting, orr_greet_say(&sides.at(i).greet, asks)}); }
    orr_greeting of(unsigned i) const {
        return {.nonce = sides.at(i).greet.nonce, .known = 0, .before = 0, .asks = false};
    }
    void anew(unsigned i) { orr_greet_anew(&sides.at(i).greet, ++nonces, sides.at(i).last); }

    // --- what happens ---
    void tell(unsigned i, const char* what) { story += std::string(" ") + "AB"[i] + ' ' + what + ';'; }
    void lose(unsigned i) {
        tell(i, "begins anew");
        sides.at(i).notices = false;
        anew(i);
        say(i, true);
    }
    void reload(unsigned i, bool goodbye) {
        tell(i, goodbye ? "reloads" : "reloads without a word");
        if (goodbye && sides.at(i).greet.session) send(i, {Note::kGoodbye, of(i)});
        start(i);
        sides.at(1 - i).notices = true;
    }
    void want(unsigned i) {
        tell(i, "wants");
        if (sides.at(i).greet.session)
            send(i, {Note::kOther, {}});
        else
            say(i, true);
    }
    void restart(unsigned i) {
        if (!sides.at(i).greet.session) return;
        send(i, {Note::kGoodbye, of(i)});
        tell(i, "restarts");
        lose(i);
    }

    void open(unsigned i) {
        Side &side = sides.at(i), &other = sides.at(1 - i);
        tell(i, ("opens " + std::to_string(side.greet.epoch)).c_str());
        side.greet.session = true;
        const std::uint16_t epoch = side.greet.epoch, mine = std::exchange(side.last, epoch);
        side.newest = side.greet;
        const orr_greet& theirs = other.newest;
        const bool same = theirs.nonce == side.greet.peer && theirs.peer == side.greet.nonce;
        const std::uint16_t remembered = same ? theirs.before : other.last;
        if (same && theirs.epoch != epoch) broken = "two epochs of one session";
        if (mine != 0 && !newer(epoch, mine)) broken = "an epoch again";
        if (remembered != 0 && !newer(epoch, remembered)) broken = "an epoch of the other's again";
        // Of the last that both have been in, also if one of them has forgotten. After both have it is by
        // chance.
        if (shared != 0 && (mine != 0 || remembered != 0) && !newer(epoch, shared))
            broken = "an epoch of both again";
        if (same) shared = epoch;
    }
    static bool newer(std::uint16_t epoch, std::uint16_t than) {
        return static_cast<std::int16_t>(epoch - than) > 0;
    }

    void take(unsigned i, unsigned plane) {
        Side& side = sides.at(i);
        const Note note = side.in.at(plane).front();
        tell(i, ("hears " + std::to_string(note.said.nonce) + '(' + std::to_string(note.said.known) +
                 ") by " + std::to_string(plane))
                    .c_str());
        side.in.at(plane).pop_front();
        if (plane != side.plane) {
            if (side.greet.session) return;  // the card has a route by the other
            if (!orr_greet_moves(&side.greet, 1 + i, 2 - i, true)) return say(i, true);
            side.plane = plane;
            anew(i);
        }
        if (note.kind == Note::kGoodbye) {
            if (side.greet.session && side.greet.peer == note.said.nonce) anew(i);
            return;
        }
        if (note.kind == Note::kOther) {
            if (!side.greet.session) say(i, true);
            return;
        }
        if (orr_greet_ends(&side.greet, &note.said)) anew(i);
        if (orr_greet_hear(&side.greet, &note.said)) open(i);
        if (orr_greet_answers(&side.greet, &note.said)) say(i, false);
    }

    bool agree() const {
        const orr_greet &a = sides[0].greet, &b = sides[1].greet;
        return a.session && b.session && a.peer == b.nonce && b.peer == a.nonce && a.epoch == b.epoch &&
               sides[0].plane == sides[1].plane;
    }
    bool quiet() const {
        for (const Side& side : sides)
            for (const auto& plane : side.in)
                if (!plane.empty()) return false;
        return true;
    }
    // Nothing else happens. Whether it becomes quiet.
    bool settle() {
        for (unsigned i = 0; i < 2; ++i)
            if (sides.at(i).notices) lose(i);
        for (unsigned steps = 0; !quiet(); ++steps) {
            if (steps == kMostSteps) return false;
            for (unsigned i = 0; i < 2; ++i)
                for (unsigned plane = 0; plane < kPlanes; ++plane)
                    if (!sides.at(i).in.at(plane).empty()) take(i, plane);
        }
        return true;
    }

    // Nonces by the order in which they are met, so that states that differ in nothing else are one.
    std::vector<std::uint64_t> key() const {
        std::vector<std::uint64_t> key, names{0};
        const auto name = [&](std::uint64_t nonce) {
            for (std::size_t n = 0; n < names.size(); ++n)
                if (names[n] == nonce) return n;
            names.push_back(nonce);
            return names.size() - 1;
        };
        for (const Side& side : sides) {
            const orr_greet& greet = side.greet;
            key.insert(key.end(), {name(greet.nonce), name(greet.peer), name(greet.told), greet.before,
                                   greet.epoch, greet.session, side.plane, side.notices, side.last,
                                   name(side.newest.nonce), name(side.newest.peer), side.newest.epoch});
            for (const auto& plane : side.in) {
                key.push_back(plane.size());
                for (const Note& note : plane)
                    key.insert(key.end(), {note.kind, name(note.said.nonce), name(note.said.known),
                                           note.said.before, note.said.asks});
            }
        }
        key.push_back(shared);
        return key;
    }
};

// All states that are come to with so many things that go wrong, and so many that somebody wants.
class Search {
  public:
    Search(unsigned harms, unsigned wants) { visit(World{}, harms, wants); }
    std::size_t states() const { return seen_.size(); }

  private:
    struct Open {
        World world;
        unsigned harms, wants;
    };
    void visit(World first, unsigned most_harms, unsigned most_wants) {
        std::vector<Open> open;
        const auto add = [&](World world, unsigned harms, unsigned wants) {
            ASSERT_TRUE(world.broken.empty()) << world.broken << ':' << world.story;
            auto key = world.key();
            key.push_back(harms);
            key.push_back(wants);
            if (!seen_.insert(std::move(key)).second) return;
            ends_well(world);
            open.push_back({std::move(world), harms, wants});
        };
        add(std::move(first), most_harms, most_wants);
        while (!open.empty() && !::testing::Test::HasFatalFailure()) {
            const Open now = std::move(open.back());
            open.pop_back();
            const auto then = [&](unsigned harms, unsigned wants, const auto& what) {
                World world = now.world;
                what(world);
                add(std::move(world), now.harms - harms, now.wants - wants);
            };
            for (unsigned i = 0; i < 2; ++i) {
                for (unsigned plane = 0; plane < kPlanes; ++plane) {
                    if (now.world.sides.at(i).in.at(plane).empty()) continue;
                    then(0, 0, [&](World& w) { w.take(i, plane); });
                    if (now.harms > 0)
                        then(1, 0, [&](World& w) {
                            w.tell(i, "hears nothing of one");
                            w.sides.at(i).in.at(plane).pop_front();
                        });
                }
                if (now.world.sides.at(i).notices) then(0, 0, [&](World& w) { w.lose(i); });
                if (now.wants > 0) then(0, 1, [&](World& w) { w.want(i); });
                if (now.harms == 0) continue;
                then(1, 0, [&](World& w) { w.lose(i); });
                then(1, 0, [&](World& w) { w.restart(i); });
                for (const bool goodbye : {false, true})
                    then(1, 0, [&](World& w) { w.reload(i, goodbye); });
            }
        }
    }
    // If nothing more goes wrong, whoever wants a session has one.
    void ends_well(const World& world) {
        for (unsigned i = 0; i < 2; ++i) {
            World next = world;
            ASSERT_TRUE(next.settle()) << "they go on and on:" << next.story;
            next.want(i);
            ASSERT_TRUE(next.settle()) << "they go on and on:" << next.story;
            ASSERT_TRUE(next.broken.empty()) << next.broken << ':' << next.story;
            ASSERT_TRUE(next.agree()) << "side " << i << " has no session:" << next.story;
        }
    }
    std::set<std::vector<std::uint64_t>> seen_;
};

TEST(Greet, EveryOrderEndsInASessionOfANewEpoch) {
    EXPECT_GT(Search(2, 2).states(), 30'000u);
    EXPECT_GT(Search(3, 1).states(), 30'000u);
}

TEST(Greet, EpochsAreAheadOfBothAndTheSameOnBothSides) {
    for (const unsigned a : {0u, 1u, 2u, 0x7fffu, 0x8000u, 0x8001u, 0xfffeu, 0xffffu})
        for (const unsigned b : {0u, 1u, 2u, 0x7fffu, 0x8000u, 0x8001u, 0xfffeu, 0xffffu}) {
            const u16 epoch = orr_epoch_of(static_cast<u16>(a), static_cast<u16>(b), 0x1234);
            EXPECT_EQ(epoch, orr_epoch_of(static_cast<u16>(b), static_cast<u16>(a), 0x1234)) << a << ' ' << b;
            EXPECT_NE(epoch, 0) << a << ' ' << b;
            // Nobody is ahead of the other by more than what was begun while he had forgotten.
            const int apart = std::abs(static_cast<std::int16_t>(a - b));
            if (a != 0 && b != 0 && apart > 0x7ff0) continue;
            for (const unsigned before : {a, b})
                if (before != 0) EXPECT_TRUE(World::newer(epoch, static_cast<u16>(before))) << a << ' ' << b;
        }
}

// As many cards as there are places are met one after the other, and one more.
TEST(Greet, PlacesOfIdleSessionsAreReused) {
    std::array<u8, 4> uses{};
    u32 last = 0;
    const auto place = [&] { return orr_greet_place(uses.data(), uses.size(), &last); };
    std::set<u32> given;
    for (std::size_t n = 0; n < uses.size(); ++n) {
        const u32 at = place();
        ASSERT_LT(at, uses.size());
        given.insert(at);
        uses.at(at) = ORR_PLACE_IDLE;
    }
    EXPECT_EQ(given.size(), uses.size());
    const u32 newest = last, oldest = place();
    ASSERT_LT(oldest, uses.size()) << "idle ones hold nobody up";
    EXPECT_NE(oldest, newest);
    uses = {ORR_PLACE_USED, ORR_PLACE_IDLE, ORR_PLACE_USED, ORR_PLACE_GONE};
    for (int n = 0; n < 3; ++n)
        EXPECT_EQ(place(), 3u) << "one without a session first";
    uses = {ORR_PLACE_USED, ORR_PLACE_IDLE, ORR_PLACE_USED, ORR_PLACE_USED};
    EXPECT_EQ(place(), 1u);
    uses.fill(ORR_PLACE_USED);
    EXPECT_EQ(place(), uses.size());
}

}  // namespace
