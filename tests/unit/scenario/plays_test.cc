// The same play of 2, 4 and 8 cards twice, once beside a host that has much else to do: what each card
// decided and did, and when, is the same, and so is each card's recording: every access of its control core
// beyond its own memory, every record and note, with step and time (in whatever order its links came up
// before the power-on). On the cards: a ring of copies and signals, kernels that are preempted, a launch over
// all cards, and copies of all cards to one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/unit/scenario/plays.h"
#include "tools/scenario/report.h"
#include "tools/scenario/runner.h"

namespace orrery::scenario {
namespace {

// Other threads than the play's that have all CPUs of the host, and take and give back memory.
class BusyHost {
  public:
    BusyHost() {
        for (unsigned n = 0; n < 2 * std::max(1u, std::thread::hardware_concurrency()); ++n)
            threads_.emplace_back([this, n] {
                for (std::uint64_t x = n; !over_; ++x) {
                    std::vector<std::uint64_t> words(1u << (10 + x % 8), x);
                    for (std::uint64_t& word : words)
                        word = word * 6364136223846793005u + sum_.fetch_add(1, std::memory_order_relaxed);
                }
            });
        while (sum_ < 100'000)
            std::this_thread::yield();
    }
    ~BusyHost() { over_ = true; }
    BusyHost(const BusyHost&) = delete;
    BusyHost& operator=(const BusyHost&) = delete;

  private:
    std::atomic<bool> over_ = false;
    std::atomic<std::uint64_t> sum_ = 0;
    std::vector<std::jthread> threads_;
};

struct Played {
    std::string json;  // all that the cards decided and did, with its times
    std::vector<Recording> recordings;
};

Played play(const Scenario& scenario) {
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) / fmt::format("orrery-plays-{}", ::getpid());
    std::filesystem::create_directory(folder);
    Options options;
    options.keep_history = true;
    for (std::size_t card = 0; card < scenario.cards.size(); ++card)
        options.record.push_back((folder / fmt::format("{}.otrace", card)).string());
    Played made;
    if (const auto result = run(scenario, options)) {
        EXPECT_TRUE(result->done) << "there is work left over";
        made.json = to_json(scenario, *result).dump();
        for (const std::string& file : options.record)
            read(file, made.recordings.emplace_back());
    } else {
        ADD_FAILURE() << result.error();
    }
    std::filesystem::remove_all(folder);
    return made;
}

class Plays : public ::testing::TestWithParam<unsigned> {};

TEST_P(Plays, AreTheSameBesideABusyHost) {
    const auto scenario = Scenario::parse(play_of(GetParam()), "play", {});
    ASSERT_TRUE(scenario) << scenario.error();
    const Played quiet = play(*scenario);
    Played beside;
    {
        const BusyHost busy;
        beside = play(*scenario);
    }
    EXPECT_TRUE(!quiet.json.empty() && beside.json == quiet.json)
        << "times of jobs, decisions or events differ";
    ASSERT_EQ(quiet.recordings.size(), GetParam());
    ASSERT_EQ(beside.recordings.size(), GetParam());
    EXPECT_FALSE(quiet.recordings[0] == quiet.recordings[1]) << "it looks at nothing";
    for (unsigned card = 0; card < GetParam(); ++card) {
        const Recording &was = quiet.recordings[card], &is = beside.recordings[card];
        EXPECT_GT(was.accesses, 100u);
        EXPECT_GT(was.records.size(), 20u);
        EXPECT_GT(was.notes.size(), 5u);
        EXPECT_TRUE(is == was) << "card " << card << ": " << was.accesses << " and " << is.accesses
                               << " accesses, " << was.records.size() << " and " << is.records.size()
                               << " records, ends at " << was.end_ps << " and " << is.end_ps << " ps";
    }
}

INSTANTIATE_TEST_SUITE_P(Cards, Plays, ::testing::Values(2u, 4u, 8u));

}  // namespace
}  // namespace orrery::scenario
