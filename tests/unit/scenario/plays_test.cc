// The same play of 2, 4 and 8 cards twice, once beside a host that has much else to do: what each card
// decided and did, and when, is the same. On the cards: a ring of copies and signals, kernels that are
// preempted, a launch over all cards, and copies of all cards to one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/scenario/report.h"
#include "tools/scenario/runner.h"
#include "tools/text/files.h"

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

std::string play_of(unsigned cards) {
    const std::vector<int> members(cards, 1);
    std::string text = "name = \"play\"\nuntil = \"40ms\"\n";
    for (unsigned n = 0; n < cards; ++n)  // each is linked with each
        text += fmt::format("[[card]]\n{}", cards > 4 ? "sku = \"orrery-0\"\n" : "");
    text += fmt::format("[[gang]]\nname = \"g\"\nmembers = [{}]\n", fmt::join(members, ", "));
    for (unsigned n = 0; n < cards; ++n) {
        text += fmt::format(
            "[[context]]\nname = \"c{0}\"\ncard = {0}\n[[semaphore]]\nname = \"s{0}\"\ncard = {0}\n"
            "[[queue]]\nname = \"a{0}\"\ncontext = \"c{0}\"\n"
            "[[queue]]\nname = \"g{0}\"\ncontext = \"c{0}\"\n"
            "[[queue]]\nname = \"u{0}\"\ncontext = \"c{0}\"\npriority = \"high\"\n",
            n);
    }
    for (unsigned n = 0; n < cards; ++n) {
        const std::string wait = fmt::format("{{op = \"wait\", semaphore = \"s{}\", value = 1}}", n);
        // A ring; each card works beside.
        text += fmt::format(
            "[[submit]]\nqueue = \"a{0}\"\nat = \"1010us\"\njobs = [{{op = \"kernel\", groups = {4}, cycles "
            "= "
            "200000}}, {1}{{op = \"copy\", bytes = \"300K\", to = \"card{2}\", ordered = true}}, "
            "{{op = \"signal\", semaphore = \"s{2}\", value = 1}}{3}]\n",
            n, n == 0 ? "" : wait + ", ", (n + 1) % cards, n == 0 ? ", " + wait : "", 4 + 3 * n);
        // In between.
        text += fmt::format(
            "[[submit]]\nqueue = \"u{0}\"\nat = \"{1}us\"\nevery = \"150us\"\ncount = 4\n"
            "jobs = [{{op = \"kernel\", groups = 4, cycles = 20000}}]\n",
            n, 1050 + 13 * n);
        // All of them, which come to it at different times.
        text += fmt::format(
            "[[submit]]\nqueue = \"g{0}\"\nat = \"{1}us\"\njobs = [{{op = \"gang\", gang = \"g\", round = "
            "1}}, "
            "{{op = \"kernel\", groups = 2, cycles = 5000, resident = true}}]\n",
            n, 5000 + 7 * n);
        // All to one.
        if (n != 0)
            text += fmt::format(
                "[[submit]]\nqueue = \"a{0}\"\nat = \"8ms\"\njobs = [{{op = \"copy\", bytes = \"1M\", to = "
                "\"card0\", ordered = true}}, {{op = \"signal\", semaphore = \"s0\", value = {1}}}]\n",
                n, n + 1);
    }
    return text;
}

// All that the cards decided and did, with its times. A recording's blocks end by the host's clock, so files
// are not compared.
std::string play(const Scenario& scenario) {
    Options options;
    options.keep_history = true;
    const auto result = run(scenario, options);
    if (!result) {
        ADD_FAILURE() << result.error();
        return {};
    }
    EXPECT_TRUE(result->done) << "there is work left over";
    return to_json(scenario, *result).dump();
}

class Plays : public ::testing::TestWithParam<unsigned> {};

TEST_P(Plays, AreTheSameBesideABusyHost) {
    const auto scenario = Scenario::parse(play_of(GetParam()), "play", {});
    ASSERT_TRUE(scenario) << scenario.error();
    const std::string quiet = play(*scenario);
    std::string beside;
    {
        const BusyHost busy;
        beside = play(*scenario);
    }
    EXPECT_TRUE(!quiet.empty() && beside == quiet) << "times of jobs, decisions or events differ";
}

INSTANTIATE_TEST_SUITE_P(Cards, Plays, ::testing::Values(2u, 4u, 8u));

}  // namespace
}  // namespace orrery::scenario
