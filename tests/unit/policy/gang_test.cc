// Gangs beside each other and beside other work, on real cards with the real image: none keeps others out,
// whatever its kernels take, and none is kept out. All in model time.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>

#include "tests/unit/scenario/jobs.h"
#include "tools/scenario/runner.h"

namespace orrery::policy {
namespace {

using namespace scenario;

constexpr std::uint32_t kCores = 8;

class Gangs : public testing::Test {
  protected:
    explicit Gangs(std::size_t cards = 1) {
        made.name = "gangs";
        made.cards.resize(cards);
        for (Card& card : made.cards) {
            card.sku.vector_ports = 4;
            card.sku.vector_cores = kCores;
        }
    }
    // Each user has one process, and there one context on each card.
    std::uint32_t queue(std::uint32_t user, std::uint32_t card = 0,
                        std::uint32_t priority = ORR_PRIORITY_NORMAL) {
        std::uint32_t context = 0;
        for (; context < made.contexts.size(); ++context) {
            if (made.contexts[context].user == user && made.contexts[context].card == card) break;
        }
        if (context == made.contexts.size())
            made.contexts.push_back({fmt::format("c{}", context), card, user, user, 0, 0});
        Queue added;
        added.name = fmt::format("q{}", made.queues.size());
        added.context = context;
        added.priority = priority;
        made.queues.push_back(added);
        return static_cast<std::uint32_t>(made.queues.size() - 1);
    }
    // A gang with one member in each of the queues.
    std::uint32_t gang(const std::vector<std::uint32_t>& queues) {
        std::vector<std::uint32_t> members(made.cards.size());
        for (const std::uint32_t queue : queues)
            ++members[made.card_of(made.queues[queue])];
        made.gangs.push_back({fmt::format("g{}", made.gangs.size()), members});
        return static_cast<std::uint32_t>(made.gangs.size() - 1);
    }
    // A launch in each of the queues, and as many after it as `rounds` says.
    void launch(const std::vector<std::uint32_t>& queues, Ps at, std::uint32_t groups, Ps time,
                std::uint64_t rounds = 1) {
        const std::uint32_t number = gang(queues);
        for (const std::uint32_t queue : queues) {
            Submit submit{at, queue, {}};
            for (std::uint64_t round = 1; round <= rounds; ++round) {
                Job join;
                join.op = Op::kGang;
                join.gang = number;
                join.round = round;
                Job together = kernel(groups, time / 1000);
                together.resident = true;
                submit.jobs.push_back(join);
                submit.jobs.push_back(together);
            }
            made.submits.push_back(submit);
        }
    }
    // `most`: so many gangs find no place, as others wait.
    void run_until(Ps until, std::uint32_t most = 0) {
        made.until = until;
        ASSERT_EQ(made.check(), "");
        auto ran = scenario::run(made, {});
        ASSERT_TRUE(ran) << ran.error();
        result = *std::move(ran);
        std::uint32_t without_place = 0;
        for (const QueueResult& queue : result.queues) {
            if (queue.error == ORR_QERR_GANG && queue.error_detail == ORR_GANG_NO_PLACE)
                ++without_place;
            else
                EXPECT_EQ(queue.error, ORR_QERR_NONE) << queue.name << ", detail " << queue.error_detail;
        }
        EXPECT_LE(without_place, most);
    }
    const JobResult& job(std::uint32_t queue, std::uint64_t index) const {
        return *std::ranges::find_if(
            result.jobs, [&](const JobResult& one) { return one.queue == queue && one.index == index; });
    }
    // From the launch to the start.
    Ps waited(std::uint32_t queue) const {
        const JobResult& one = job(queue, 1);
        return one.started == kUnknown ? kUnknown : one.started - one.submitted;
    }
    Scenario made;
    Result result;
};

class GangsOverCards : public Gangs {
  protected:
    GangsOverCards() : Gangs(2) {}
};

// Of the first user's small gangs always one runs, so the card is never free of them.
TEST_F(Gangs, SmallOnesThatOverlapLetABigOneIn) {
    for (const Ps time : {2 * kMs, 30 * kMs}) {
        SetUp();
        made.contexts.clear(), made.queues.clear(), made.gangs.clear(), made.submits.clear();
        for (std::uint64_t n = 0; n < 2; ++n)
            launch({queue(1)}, 10 * kUs + n * time / 2, 3, time, 120 * kMs / time);
        const std::uint32_t big = queue(2);
        launch({big}, 40 * kMs, kCores, kMs);
        run_until(100 * kMs);
        EXPECT_LT(waited(big), 10 * kMs) << "small ones of " << time / kMs << " ms";
        EXPECT_NE(job(big, 1).finished, kUnknown);
    }
}

// All ports run gangs, none of which ends soon.
TEST_F(Gangs, DoNotKeepRealtimeOut) {
    for (int n = 0; n < 4; ++n)
        launch({queue(1)}, 10 * kUs, 2, 50 * kMs);
    const std::uint32_t realtime = queue(2, 0, ORR_PRIORITY_REALTIME);
    made.submits.push_back({10 * kMs, realtime, {kernel(1, 10'000)}});
    run_until(100 * kMs);
    const JobResult& one = job(realtime, 0);
    ASSERT_NE(one.finished, kUnknown);
    EXPECT_LT(one.started - one.submitted, 20 * kUs);
}

// Nor do more of one user's than may be saved, each of which goes before those that are: they wait for areas.
TEST_F(Gangs, OfOneUserDoNotBecomeSuchAsAreNeverPreempted) {
    made.save_areas = 16;
    for (std::uint64_t n = 0; n < 24; ++n)
        launch({queue(1)}, 10 * kUs + n * 2 * kMs, kCores, 400 * kMs);
    const std::uint32_t other = queue(2), realtime = queue(3, 0, ORR_PRIORITY_REALTIME);
    made.submits.push_back({20 * kUs, other, std::vector<Job>(2000, kernel(kCores, 100'000))});
    for (std::uint64_t n = 0; n < 10; ++n)
        made.submits.push_back({(15 + 13 * n) * kMs, realtime, {kernel(1, 10'000)}});
    run_until(150 * kMs, 24);
    for (std::uint64_t n = 0; n < 10; ++n) {
        const JobResult& one = job(realtime, n);
        ASSERT_NE(one.started, kUnknown) << n;
        // Mostly 4 us; 24 where it comes while the core looks through the gangs that wait.
        EXPECT_LT(one.started - one.submitted, 30 * kUs) << n;
    }
    std::vector<Ps> done(7);
    for (const JobResult& one : result.jobs) {
        if (one.queue == other && one.finished < 140 * kMs) done[one.finished / (20 * kMs)] += 100 * kUs;
    }
    for (std::size_t n = 0; n < done.size(); ++n)
        EXPECT_GT(done[n], 8 * kMs) << "of the " << n << "th 20 ms";
}

// What many that are saved cost the core keeps nobody else waiting: no longer than as many kernels do.
TEST_F(Gangs, ThatAreSavedCostOthersLittle) {
    constexpr Ps kFrom = 80 * kMs;
    std::uint64_t copied[2] = {};
    for (const bool gangs : {false, true}) {
        made.contexts.clear(), made.queues.clear(), made.gangs.clear(), made.submits.clear();
        made.save_areas = 64;
        for (std::uint64_t n = 0; n < 24; ++n) {
            const Ps at = 10 * kUs + n * 3 * kMs;
            if (gangs)
                launch({queue(1)}, at, kCores, 400 * kMs);
            else
                made.submits.push_back({at, queue(1), {kernel(kCores, 400'000'000)}});
        }
        const std::uint32_t copies = queue(2), realtime = queue(3, 0, ORR_PRIORITY_REALTIME);
        Job copy;
        copy.op = Op::kCopy;
        copy.bytes = 4096;
        made.submits.push_back({kFrom, copies, std::vector<Job>(60'000, copy)});
        for (std::uint64_t n = 1; n <= 30; ++n)
            made.submits.push_back({kFrom + n * 1'037 * kUs, realtime, {kernel(1, 10'000)}});
        run_until(kFrom + 40 * kMs, 4);
        for (std::uint64_t n = 0; n < 30; ++n) {
            const JobResult& one = job(realtime, n);
            ASSERT_NE(one.started, kUnknown) << n;
            EXPECT_LT(one.started - one.submitted, 20 * kUs) << n;
        }
        for (const JobResult& one : result.jobs)
            copied[gangs] += one.queue == copies && one.finished != kUnknown ? 1 : 0;
    }
    EXPECT_GT(static_cast<double>(copied[1]), 0.95 * static_cast<double>(copied[0]));
}

// One that may push nobody off, as its user has had more, keeps no place before others.
TEST_F(Gangs, ThatMayPushNobodyLetOthersPass) {
    launch({queue(1)}, 10 * kUs, 1, 400 * kMs);
    made.submits.push_back({20 * kUs, queue(2), {kernel(kCores - 1, 100'000'000)}});
    const std::uint32_t whole = queue(2), small = queue(2);
    launch({whole}, 101 * kMs, kCores, kMs);
    launch({small}, 102 * kMs, 1, kMs);
    run_until(130 * kMs);
    EXPECT_EQ(waited(whole), kUnknown) << "the other user has had less all the time";
    EXPECT_LT(waited(small), 2 * kMs);
}

// Two that want all cores and do not end: each has half of the time.
TEST_F(Gangs, OfTwoUsersShareTheTime) {
    const std::uint32_t a = queue(1), b = queue(2);
    launch({a}, 10 * kUs, kCores, 400 * kMs);
    launch({b}, 20 * kUs, kCores, 400 * kMs);
    run_until(100 * kMs);
    const auto of = [&](std::uint32_t queue) { return static_cast<double>(result.queues[queue].vector_ps); };
    const double all = static_cast<double>(100 * kMs) * kCores;
    EXPECT_GT(of(a) / all, 0.45);
    EXPECT_GT(of(b) / all, 0.45);
}

// Of one user's the higher class goes first, and the lower one has a slice each time that it is due.
TEST_F(Gangs, OfALowerClassHaveASliceEachBound) {
    const std::uint32_t normal = queue(1), low = queue(1, 0, ORR_PRIORITY_LOW);
    launch({normal}, 10 * kUs, kCores, 400 * kMs);
    launch({low}, 20 * kUs, kCores, 400 * kMs);
    run_until(120 * kMs);
    const auto of = [&](std::uint32_t queue) { return static_cast<double>(result.queues[queue].vector_ps); };
    EXPECT_GT(of(low) / of(normal), 1.0 / 8);
    EXPECT_LT(of(low) / of(normal), 1.0 / 4);
}

// Other work of another user beside one that does not end.
TEST_F(Gangs, ShareTheTimeWithKernels) {
    const std::uint32_t a = queue(1), b = queue(2);
    launch({a}, 10 * kUs, kCores, 400 * kMs);
    made.submits.push_back({20 * kUs, b, std::vector<Job>(2000, kernel(kCores, 100'000))});
    run_until(100 * kMs);
    const auto of = [&](std::uint32_t queue) { return static_cast<double>(result.queues[queue].vector_ps); };
    const double all = static_cast<double>(100 * kMs) * kCores;
    EXPECT_GT(of(a) / all, 0.4);
    EXPECT_GT(of(b) / all, 0.4);
}

// On each card another user runs gangs for this card alone, each of a length of its own.
TEST_F(GangsOverCards, AreNotKeptOutByThoseOfEachCard) {
    launch({queue(1, 0)}, 10 * kUs, kCores, 20 * kMs, 20);
    launch({queue(1, 1)}, 10 * kUs, kCores, 300 * kMs, 2);
    const std::uint32_t a = queue(2, 0), b = queue(2, 1);
    launch({a, b}, 50 * kMs, kCores, kMs);
    run_until(150 * kMs);
    for (const std::uint32_t part : {a, b}) {
        EXPECT_LT(waited(part), 20 * kMs);
        EXPECT_NE(job(part, 1).finished, kUnknown);
    }
}

// Two over both cards: they leave and resume as wholes, on both cards at once.
TEST_F(GangsOverCards, OfTwoUsersShareTheTime) {
    const std::vector<std::uint32_t> a = {queue(1, 0), queue(1, 1)}, b = {queue(2, 0), queue(2, 1)};
    launch(a, 10 * kUs, kCores, 400 * kMs);
    launch(b, 20 * kUs, kCores, 400 * kMs);
    run_until(100 * kMs);
    for (const std::uint32_t one : {a[0], a[1], b[0], b[1]})
        EXPECT_GT(static_cast<double>(result.queues[one].vector_ps) / static_cast<double>(100 * kMs * kCores),
                  0.4)
            << made.queues[one].name;
}

// One over both cards, that does not end, leaves each card's others their part, and has its own.
TEST_F(GangsOverCards, ShareTheTimeOfEachCard) {
    const std::uint32_t a = queue(1, 0), b = queue(1, 1), c = queue(2, 0), d = queue(2, 1);
    launch({a, b}, 10 * kUs, kCores, 400 * kMs);
    launch({c}, 20 * kUs, kCores, 400 * kMs);
    launch({d}, 5 * kMs, kCores, 400 * kMs);
    run_until(200 * kMs);
    for (const std::uint32_t one : {a, b, c, d})
        EXPECT_GT(static_cast<double>(result.queues[one].vector_ps) / static_cast<double>(200 * kMs * kCores),
                  0.3)
            << made.queues[one].name;
}

// Gangs of one card and of both, of all sizes and lengths, beside kernels of all classes, with many save
// areas and with few: all come to an end.
TEST_F(GangsOverCards, OfAllKindsEnd) {
    std::uint64_t preempted = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        made.contexts.clear(), made.queues.clear(), made.gangs.clear(), made.submits.clear();
        made.save_areas = seed % 3 == 0 ? 5 : 16;
        std::mt19937_64 random(seed);
        const auto pick = [&](std::uint64_t low, std::uint64_t high) {
            return static_cast<std::uint32_t>(low + random() % (high - low + 1));
        };
        for (std::uint32_t n = pick(3, 6); n > 0; --n) {
            const std::uint32_t user = pick(1, 3), where = pick(0, 3), members = pick(1, 2),
                                level = pick(0, 2);
            std::vector<std::uint32_t> queues;
            for (std::uint32_t card = 0; card < 2; ++card) {
                for (std::uint32_t m = 0; m < members && (where == card || where >= 2); ++m)
                    queues.push_back(queue(user, card, level));
            }
            launch(queues, pick(10, 3'000) * kUs, pick(1, kCores / members), pick(100, 8'000) * kUs,
                   pick(1, 3));
        }
        for (std::uint32_t n = pick(0, 4); n > 0; --n)
            made.submits.push_back(
                {pick(10, 9'000) * kUs, queue(pick(1, 3), pick(0, 1), pick(0, 3)),
                 std::vector<Job>(pick(1, 4), kernel(pick(1, 12), pick(10'000, 2'000'000)))});
        run_until(400 * kMs);
        EXPECT_TRUE(result.done) << "seed " << seed << "\n" << made.to_toml();
        for (const JobResult& one : result.jobs)
            preempted += one.job.resident ? one.preempted : 0;
        if (HasFailure()) break;
    }
    EXPECT_GT(preempted, 50u) << "gangs are seldom preempted here";
}

}  // namespace
}  // namespace orrery::policy
