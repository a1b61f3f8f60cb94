// Cards that keep step: what happens at each depends on nothing but what they send each other.
#include <gtest/gtest.h>

#include <poll.h>

#include <chrono>
#include <map>

#include "emulator/api/horizon.h"
#include "tests/unit/sync/members.h"

namespace orrery::emu::sync::test {
namespace {

constexpr ModelTime kLookahead = 500;

TEST(Horizon, IsWhatTheNearestOtherCouldSend) {
    const Promise cards[] = {{1000, 500}, {700, 500}, {kNever, 500}, {900, 100}};
    EXPECT_EQ(horizon(cards, 0), 1000u);
    EXPECT_EQ(horizon(cards, 1), 1000u);
    EXPECT_EQ(horizon(cards, 3), 1200u);
    EXPECT_EQ(horizon(std::span(cards).first(1), 0), kNever);
}

using Trace = std::vector<Happening>;

// One after the other, in the order of their times.
std::vector<Trace> reference(unsigned members, const std::vector<Happening>& begin) {
    std::vector<Trace> traces(members);
    std::set<std::pair<Happening, unsigned>> all;
    for (unsigned n = 0; n < members; ++n)
        all.insert({begin[n], n});
    while (!all.empty()) {
        const auto [what, at] = *all.begin();
        all.erase(all.begin());
        traces[at].push_back(what);
        for (const Consequence& next : consequences(members, at, what, kLookahead))
            all.insert({next.what, next.to});
    }
    return traces;
}

struct World {
    explicit World(unsigned members) : nodes(members) {
        for (unsigned n = 0; n < members; ++n)
            nodes[n].lockstep = join(folder, n + 1, kLookahead);
    }
    struct Node {
        std::unique_ptr<Lockstep> lockstep;
        std::mutex mutex;
        std::vector<Happening> inbox;
        std::set<Happening> queue;
        ModelTime now = 0;
        Trace trace;
        unsigned stragglers = 0;
    };
    void send(unsigned to, const Happening& what) {
        outstanding.fetch_add(1);
        const std::lock_guard lock(nodes[to].mutex);
        nodes[to].inbox.push_back(what);
    }
    void take(Node& node) {
        const std::lock_guard lock(node.mutex);
        for (const Happening& what : node.inbox) {
            if (what.at < node.now || (!node.trace.empty() && what < node.trace.back())) ++node.stragglers;
            node.queue.insert(what);
        }
        node.inbox.clear();
    }
    // As a card's round.
    bool round(unsigned self) {
        Node& node = nodes[self];
        Lockstep& step = *node.lockstep;
        step.beat();
        const std::uint64_t news = step.news();
        take(node);
        const ModelTime next = node.queue.empty() ? kNever : node.queue.begin()->at;
        if (next < step.promised() || next >= step.granted()) {
            if (step.has_promised(next, true)) return false;
            if (!step.promise(node.now, next, news, true, next != kNever)) return true;
            if (next >= step.granted()) return false;
        }
        bool did = false;
        while (!node.queue.empty() && node.queue.begin()->at < step.granted()) {
            const Happening what = *node.queue.begin();
            node.queue.erase(node.queue.begin());
            node.now = what.at;
            node.trace.push_back(what);
            for (const Consequence& then :
                 consequences(static_cast<unsigned>(nodes.size()), self, what, kLookahead)) {
                if (then.to == self) {
                    outstanding.fetch_add(1);
                    node.queue.insert(then.what);
                } else {
                    send(then.to, then.what);
                    step.sent(then.to + 1, then.what.at);
                }
            }
            outstanding.fetch_sub(1);
            did = true;
        }
        return did;
    }
    void run(unsigned self, unsigned seed) {
        unsigned quiet = 0;
        while (outstanding.load() != 0) {
            if (round(self)) {
                quiet = 0;
                // Hosts stop anybody at any time.
                if (mixed(seed, nodes[self].trace.size()) % 64 == 0)
                    std::this_thread::sleep_for(std::chrono::microseconds(50));
                continue;
            }
            if (++quiet < 20) continue;
            quiet = 0;
            Lockstep& step = *nodes[self].lockstep;
            if (!step.prepare_sleep()) continue;
            // What was sent wakes a card by its link; here it looks now and then.
            pollfd fd{step.fd(), POLLIN, 0};
            ::poll(&fd, 1, 1);
            step.after_sleep();
        }
    }

    TempFolder folder;
    std::vector<Node> nodes;
    std::atomic<std::int64_t> outstanding = 0;
};

class Lockstepped : public testing::TestWithParam<unsigned> {};

TEST_P(Lockstepped, EveryRunIsTheOneInTheOrderOfTimes) {
    const unsigned members = GetParam();
    std::vector<Happening> begin;
    for (unsigned n = 0; n < members; ++n)
        begin.push_back({.at = 1000 + 10 * n, .from = members, .number = n, .hops = 40});
    const std::vector<Trace> expected = reference(members, begin);
    for (unsigned seed = 0; seed < 3; ++seed) {
        World world(members);
        world.outstanding = members;
        for (unsigned n = 0; n < members; ++n)
            world.nodes[n].queue.insert(begin[n]);
        // All have promised something before the first goes on, as cards have that boot.
        for (unsigned n = 0; n < members; ++n)
            world.nodes[n].lockstep->promise(0, begin[n].at, 0, false, true);
        {
            std::vector<std::jthread> threads;
            for (unsigned n = 0; n < members; ++n)
                threads.emplace_back([&, n] { world.run(n, seed * 16 + n); });
        }
        for (unsigned n = 0; n < members; ++n) {
            EXPECT_EQ(world.nodes[n].stragglers, 0u);
            EXPECT_GT(world.nodes[n].trace.size(), 100u);
            EXPECT_TRUE(world.nodes[n].trace == expected[n])
                << "member " << n << ": " << world.nodes[n].trace.size() << " of " << expected[n].size();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Of, Lockstepped, testing::Values(2, 4, 8));

bool is_told(const Lockstep& step) {
    pollfd fd{step.fd(), POLLIN, 0};
    return ::poll(&fd, 1, 0) != 0;
}

// Whoever computes looks at the others once a window, and no message or wake-up goes either way until a
// sleeper's own time has come.
TEST(Lockstep, WhoComputesAndWhoSleepsExchangeNothing) {
    const TempFolder folder;
    const auto works = join(folder, 1), waits = join(folder, 2), naps = join(folder, 3);
    constexpr ModelTime kWakes = 100 * Lockstep::kWindow;
    ASSERT_TRUE(works->promise(0, 0, works->news(), true, true));
    ASSERT_TRUE(waits->promise(0, kNever, waits->news(), true, false));
    ASSERT_TRUE(naps->promise(0, kWakes, naps->news(), true, false));
    ASSERT_TRUE(waits->prepare_sleep() && naps->prepare_sleep());
    unsigned asked = 0;
    for (ModelTime now = 0; now < kWakes; now = works->granted(), ++asked) {
        ASSERT_TRUE(works->promise(now, now, works->news(), true, true));
        ASSERT_EQ(works->granted(), now + Lockstep::kWindow);
        ASSERT_FALSE(works->changed() || is_told(*works) || is_told(*waits) || is_told(*naps))
            << "at " << now;
    }
    EXPECT_EQ(asked, 100u);
    EXPECT_EQ(waits->news() + naps->news() + works->news(), 0u);
    // From here on two are at work, and meet once a latency; the third still hears nothing.
    ASSERT_TRUE(works->promise(kWakes, kWakes, works->news(), true, true));
    EXPECT_TRUE(is_told(*naps));
    naps->after_sleep();
    for (ModelTime now = kWakes; now < kWakes + 10 * kLookahead; now += kLookahead) {
        ASSERT_TRUE(naps->promise(now, now, naps->news(), true, true));
        ASSERT_TRUE(works->promise(now, now, works->news(), true, true));
        EXPECT_EQ(works->granted(), now + kLookahead);
    }
    EXPECT_FALSE(is_told(*waits));
}

// Who has nothing to do, or works beside others who have nothing to do, asks nobody.
TEST(Lockstep, AMemberAloneGoesOnInWindows) {
    const TempFolder folder;
    const auto a = join(folder, 1), b = join(folder, 2);
    EXPECT_TRUE(a->promise(0, 0, a->news(), true, true));
    EXPECT_EQ(a->granted(), Lockstep::kWindow) << "b has promised nothing yet, and never sends by itself";
    EXPECT_TRUE(b->promise(0, 7000, b->news(), true, true));
    EXPECT_EQ(b->granted(), 500u) << "a is at 0";
    EXPECT_TRUE(a->promise(400, 400, a->news(), true, true));
    EXPECT_EQ(a->granted(), 7500u);
}

// The answer to what a member sends itself is the nearest that can come.
TEST(Lockstep, WhoSendsIsGrantedTheAnswersTimeOnly) {
    const TempFolder folder;
    const auto a = join(folder, 1), b = join(folder, 2);
    ASSERT_TRUE(a->promise(0, 0, a->news(), true, true));
    a->sent(2, 900);
    EXPECT_EQ(a->granted(), 1400u);
    // b hears of it before a goes on: it has not looked yet.
    const std::uint64_t before = b->news();
    ASSERT_TRUE(a->promise(1400, 1400, a->news(), true, true));
    EXPECT_EQ(a->granted(), 1400u) << "b may have sent something at 900";
    EXPECT_FALSE(b->promise(0, kNever, before, true, false)) << "it has to look once more";
    EXPECT_TRUE(b->promise(0, 900, b->news(), true, true));
    EXPECT_EQ(b->granted(), 1900u);
    EXPECT_TRUE(b->promise(900, kNever, b->news(), true, false));
    EXPECT_TRUE(a->changed());
    EXPECT_TRUE(a->promise(1400, 1400, a->news(), true, true));
    EXPECT_EQ(a->granted(), 1400 + Lockstep::kWindow);
}

// What comes from a host finds a member asleep: it acts where nobody is taken by surprise.
TEST(Lockstep, AnIntruderComesNoEarlierThanOthersCountOn) {
    const TempFolder folder;
    const auto a = join(folder, 1), b = join(folder, 2);
    ASSERT_TRUE(b->promise(0, kNever, b->news(), true, false));
    ASSERT_TRUE(a->promise(0, 1000, a->news(), true, true));
    const ModelTime reach = a->granted();
    EXPECT_EQ(b->intrude(10), reach - 500);
    EXPECT_EQ(b->promised(), reach - 500);
    EXPECT_EQ(b->granted(), 1500u) << "what the other sends until then comes first";
    ASSERT_TRUE(a->promise(5000, 5000, a->news(), true, true));
    EXPECT_EQ(a->granted(), reach) << "and then the other waits for it";
    // Who has not promised to keep quiet comes as it is.
    EXPECT_EQ(a->intrude(6000), 6000u);
}

// A timer that nobody wants to run yet is no reason for others to be far behind.
TEST(Lockstep, WhoDoesNotWantToGoOnIsGrantedNothing) {
    const TempFolder folder;
    const auto a = join(folder, 1), b = join(folder, 2);
    ASSERT_TRUE(b->promise(0, kNever, b->news(), true, false));
    ASSERT_TRUE(a->promise(100, 1'000'000'000, a->news(), false, false));
    EXPECT_EQ(a->granted(), 100u);
    EXPECT_EQ(b->intrude(10), 10u);
    EXPECT_FALSE(b->others_active());
}

}  // namespace
}  // namespace orrery::emu::sync::test
