// Gangs, quotas, deadlocks, restarts, many queues and long waits: what must hold of each in every run,
// natively and on the card.
#include <gtest/gtest.h>
#include <orrery/fw/queue.h>
#include <orrery/hw/engine.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/unit/policy/check.h"
#include "tests/unit/policy/special.h"
#include "tools/scenario/runner.h"

namespace orrery::policy {
namespace {

using scenario::kMs;
using scenario::kUs;
using scenario::Scenario;
using Player = std::expected<History, std::string> (*)(const Scenario&);

constexpr std::array<Player, 2> kPlayers = {run_native, [](const Scenario& s) { return run_on_card(s); }};
constexpr std::array kPlayerNames = {"natively", "on the card"};

std::string where(std::uint64_t seed, std::size_t player, const Scenario& scenario) {
    return "seed " + std::to_string(seed) + ", " + kPlayerNames[player] + "\n" +
           (scenario.queues.size() < 100 ? scenario.to_toml() : "");
}

TEST(Gangs, StartAndResumeAsAWholeOrNotAtAll) {
    std::uint64_t resumed = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const Scenario scenario = gang_scenario(seed);
        ASSERT_EQ(scenario.check(), "");
        for (std::size_t player = 0; player < kPlayers.size(); ++player) {
            const auto history = kPlayers[player](scenario);
            ASSERT_TRUE(history) << history.error();
            Limits limits;
            limits.grips = false;
            const Verdict verdict = check(scenario, *history, limits);
            ASSERT_EQ(verdict.wrong, "") << where(seed, player, scenario);
            resumed += verdict.gangs_resumed;
        }
    }
    EXPECT_GT(resumed, 100u) << "gangs are seldom preempted here";
}

// A user alone has all copy engines, and what runs on each can be taken off it: another one's copy of a
// higher class does not wait until one has ended.
TEST(Copies, AUserAloneKeepsAllEnginesAtWork) {
    constexpr std::uint32_t kEngines = 8;
    for (const std::uint32_t areas : {2u, 12u, 16u}) {
        Scenario scenario;
        scenario.name = "copies";
        scenario.until = 20 * kMs;
        scenario.cards[0].sku.copy_engines = kEngines;
        scenario.save_areas = areas;
        scenario.contexts = {{"all", 0, 1, 1, 0, 0}, {"one", 0, 2, 2, 0, 0}};
        scenario::Job copy;
        copy.op = scenario::Op::kCopy;
        for (std::uint32_t n = 0; n <= kEngines; ++n) {
            scenario::Queue queue;
            queue.name = "q" + std::to_string(n);
            queue.context = n == kEngines ? 1 : 0;
            queue.priority = n == kEngines ? ORR_PRIORITY_HIGH : ORR_PRIORITY_NORMAL;
            scenario.queues.push_back(queue);
            copy.bytes = n == kEngines ? 4096 : 64 << 20;
            scenario.submits.push_back({n == kEngines ? 100 * kUs : 10 * kUs, n, {copy}});
        }
        ASSERT_EQ(scenario.check(), "");
        for (std::size_t player = 0; player < kPlayers.size(); ++player) {
            const auto history = kPlayers[player](scenario);
            ASSERT_TRUE(history) << history.error();
            std::uint32_t started = 0;
            bool ended = false, other = false;
            for (const Happening& one : history->all) {
                if (one.kind == Happening::Kind::kStart && one.queue < kEngines && one.at < 100 * kUs)
                    ++started;
                if (one.kind == Happening::Kind::kStart && one.queue == kEngines) other = !ended;
                ended |= one.kind == Happening::Kind::kEnd && one.status == ORR_DONE_OK;
            }
            EXPECT_EQ(started, kEngines) << areas << " areas, " << kPlayerNames[player];
            EXPECT_TRUE(other) << areas << " areas, " << kPlayerNames[player];
        }
    }
}

TEST(ManyQueues, AThousandShareTheSlots) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        const Scenario scenario = many_queues_scenario(seed);
        ASSERT_EQ(scenario.check(), "");
        for (std::size_t player = 0; player < kPlayers.size(); ++player) {
            const auto history = kPlayers[player](scenario);
            ASSERT_TRUE(history) << history.error();
            Limits limits;
            limits.grip_ps += 2 * scenario.queues.size() * kUs;
            ASSERT_EQ(check(scenario, *history, limits).wrong, "") << where(seed, player, scenario);
        }
    }
}

// Core time that the contexts have used, from the ends of jobs. What a job used is spread evenly over the
// time that it had a port: the most that a context can have had in a period is what its quota gives, and
// what running kernels use until they have been stopped.
TEST(Quotas, AreKept) {
    std::uint64_t held_back = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        const Scenario scenario = quota_scenario(seed);
        ASSERT_EQ(scenario.check(), "");
        const auto history = run_on_card(scenario);
        ASSERT_TRUE(history) << history.error();
        const double cores = scenario.cards[0].sku.vector_cores;
        std::vector<double> used(scenario.contexts.size());
        Ps last = 0;
        for (const Happening& one : history->all) {
            if (one.kind == Happening::Kind::kEnd) {
                used[scenario.queues[one.queue].context] += static_cast<double>(one.used_ps);
                last = one.at;
            }
            held_back += one.kind == Happening::Kind::kQuota ? 1 : 0;
            for (std::size_t n = 0; n < used.size(); ++n) {
                const auto& context = scenario.contexts[n];
                if (context.quota == 0) continue;
                const double period = context.period_us * 1e6;
                const double quota = context.quota / 1e3 * cores * period;
                // Preempting takes up to some 10 us on every core, a group on a core may be in its grace.
                const double over = 20e6 * cores;
                // A period began before the first arrival.
                const double periods = std::floor(static_cast<double>(one.at) / period) + 2;
                ASSERT_LE(used[n], periods * (quota + over)) << "context " << n << " at " << one.at << "\n"
                                                             << where(seed, 1, scenario);
            }
        }
        // And those that have more to do get what they may.
        for (std::uint32_t n = 0; n < scenario.queues.size(); ++n) {
            ASSERT_EQ(history->errors[n], ORR_QERR_NONE) << where(seed, 1, scenario);
            const auto& context = scenario.contexts[scenario.queues[n].context];
            if (context.quota == 0) ASSERT_EQ(history->completed[n], history->submitted[n].size());
        }
        ASSERT_GT(last, 0u);
    }
    EXPECT_GT(held_back, 50u);
}

std::vector<std::vector<std::uint32_t>> reported(const History& history) {
    std::vector<std::vector<std::uint32_t>> cycles;
    std::vector<std::uint32_t> edges;
    for (const Happening& one : history.all) {
        if (one.kind != Happening::Kind::kDeadlock) continue;
        if (!edges.empty() && edges.back() != one.queue) return {{~0u}};  // the edges are no circle
        if (edges.empty()) edges.push_back(one.queue);
        edges.push_back(one.holder);
        if (one.edge + 1 < one.edges) continue;
        if (edges.front() != edges.back()) return {{~0u}};
        edges.pop_back();
        std::ranges::rotate(edges, std::ranges::min_element(edges));
        cycles.push_back(std::move(edges));
        edges.clear();
    }
    std::ranges::sort(cycles);
    return cycles;
}

TEST(Deadlocks, EveryCircleIsReportedOnceAndNothingElse) {
    std::size_t circles = 0, free = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        std::vector<std::vector<std::uint32_t>> cycles;
        const Scenario scenario = wait_scenario(seed, cycles);
        ASSERT_EQ(scenario.check(), "");
        circles += cycles.size();
        free += cycles.empty() ? 1 : 0;
        for (std::size_t player = 0; player < kPlayers.size(); ++player) {
            const auto history = kPlayers[player](scenario);
            ASSERT_TRUE(history) << history.error();
            ASSERT_EQ(reported(*history), cycles) << where(seed, player, scenario);
            ASSERT_EQ(history->done, cycles.empty()) << where(seed, player, scenario);
        }
    }
    EXPECT_GT(circles, 20u);
    EXPECT_GT(free, 10u);
}

TEST(Restarts, LoseNothingAndRepeatNothing) {
    std::size_t stopped = 0;
    for (std::uint64_t seed = 1; seed <= 24; ++seed) {
        const Scenario scenario = restart_scenario(seed, seed % 2 == 0);
        ASSERT_EQ(scenario.check(), "");
        const auto history = run_on_card(scenario);
        ASSERT_TRUE(history) << history.error();
        Limits limits;
        limits.grips = false;
        for (const auto& crash : scenario.actions)
            limits.may_fail.insert(crash.queue);
        ASSERT_EQ(check(scenario, *history, limits).wrong, "") << where(seed, 1, scenario);
        stopped += static_cast<std::size_t>(std::ranges::count(history->errors, ORR_QERR_FIRMWARE));
    }
    EXPECT_GT(stopped, 2u);
}

// docs/firmware.md: the lowest class starts within the bound of each class above it, and a slice of theirs.
TEST(Waiting, OfTheLowestClassIsBounded) {
    constexpr Ps kBound = 14 * kMs;
    Ps longest = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        std::uint32_t first_low = 0;
        const Scenario scenario = load_scenario(seed, first_low);
        ASSERT_EQ(scenario.check(), "");
        const auto result = scenario::run(scenario, {});
        ASSERT_TRUE(result) << result.error();
        for (const auto& job : result->jobs) {
            if (job.queue < first_low) continue;
            const Ps waited = std::min(job.started, result->end) - job.submitted;
            longest = std::max(longest, waited);
            ASSERT_LE(waited, kBound) << "queue " << job.queue << " packet " << job.index << " seed " << seed;
            ASSERT_NE(job.finished, scenario::kUnknown)
                << "queue " << job.queue << " packet " << job.index << " seed " << seed;
        }
    }
    RecordProperty("longest_us", static_cast<int>(longest / kUs));
    EXPECT_GT(longest, kMs) << "no load at all";
}

}  // namespace
}  // namespace orrery::policy
