// How measurements are judged, kept and compared, and what is said of suites that fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tools/bench/history.h"
#include "tools/bench/p2p.h"
#include "tools/bench/suite.h"

namespace orrery::bench {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

// "card" is a part of other suites' figures too.
TEST(Table, ASuiteIsChosenByItsName) {
    const auto chosen = [](const char* name) {
        const auto suites = suites_that_match(name);
        return std::vector<std::string>(suites.begin(), suites.end());
    };
    for (const Suite& suite : suites())
        EXPECT_EQ(chosen(std::string(suite.name).c_str()), std::vector{std::string(suite.name)});
    EXPECT_GT(chosen("card.*").size(), 1u) << "names of figures match";
    EXPECT_EQ(chosen("graph of 100"), std::vector<std::string>{"card"});
    EXPECT_EQ(chosen(".*").size(), suites().size());
    EXPECT_TRUE(chosen("no such name").empty());
}

// A pair has two cards, and a file may say how many it has.
TEST(P2p, TheTopologySaysHowManyCardsThereAreIfNobodyElseDoes) {
    P2pOptions options;
    const auto command = [&] { return pairs_command(options, "bin", true); };
    EXPECT_THAT(command(), HasSubstr("--topology 'ring' "));
    EXPECT_THAT(command(), HasSubstr(" --cards 4 "));
    options.topology = "pair";
    EXPECT_THAT(command(), HasSubstr("--topology 'pair' "));
    EXPECT_THAT(command(), Not(HasSubstr("--cards")));
    options.cards = 8;
    options.topology = "mesh";
    EXPECT_THAT(command(), HasSubstr(" --cards 8 "));
    options.topology.clear();
    EXPECT_THAT(command(), HasSubstr(" --cards 8 "));
    EXPECT_THAT(command(), HasSubstr("--sync lockstep -- orrery-bench-p2p --model"));
    EXPECT_THAT(pairs_command(options, "bin", false), HasSubstr("--sync free -- orrery-bench-p2p --host"));
    options.patterns = true;
    EXPECT_THAT(command(), HasSubstr("--sync lockstep -- orrery-bench-p2p --patterns"));
}

Json measurement(const char* name, Json size, std::vector<double> samples, std::vector<double> yardstick) {
    return {{"name", name}, {"size", std::move(size)}, {"samples", samples}, {"yardstick", yardstick}};
}

Json card_suite(double job, double batch) {
    Json all = Json::array({measurement("empty job", nullptr, {job}, {100}),
                            measurement("job in a batch of 32", nullptr, {batch}, {50}),
                            measurement("SGEMM 128^3", nullptr, {1}, {})});
    for (const Figure& figure : figures()) {
        const std::string name(figure.name);
        const bool there = std::ranges::any_of(all, [&](const Json& one) { return one.at("name") == name; });
        if (figure.suite != "card" || there) continue;
        const std::vector<double> yardstick(figure.yardstick.empty() ? 0 : 1, 2.0);
        for (const std::uint64_t size : figure.sizes)
            all.push_back(measurement(name.c_str(), size, {1}, yardstick));
        if (figure.sizes.empty()) all.push_back(measurement(name.c_str(), nullptr, {1}, yardstick));
    }
    return all;
}

std::vector<Result> judged(std::string_view suite, const Json& measured, double factor = 1) {
    auto results = results_of(suite, measured, {});
    judge(results, factor);
    return results;
}

std::string thrown(const auto& what) {
    try {
        what();
    } catch (const std::exception& error) {
        return error.what();
    }
    return {};
}

TEST(BenchTable, EachFigureStandsInItOnceAndHasASuite) {
    std::set<std::pair<std::string_view, bool>> names;
    for (const Figure& figure : figures()) {
        EXPECT_TRUE(names.insert({figure.name, figure.sizes.empty()}).second) << figure.name;
        const auto has_name = [&](const Suite& suite) { return suite.name == figure.suite; };
        EXPECT_EQ(std::ranges::count_if(suites(), has_name), 1) << figure.name;
        const bool ratio = figure.goal.kind == Goal::Kind::kOfYardstickAtMost ||
                           figure.goal.kind == Goal::Kind::kOfYardstickAtLeast ||
                           figure.goal.kind == Goal::Kind::kFasterAtLeast;
        EXPECT_TRUE(!ratio || !figure.yardstick.empty()) << figure.name;
        EXPECT_TRUE(figure.goal.size == 0 ||
                    std::ranges::find(figure.sizes, figure.goal.size) != figure.sizes.end())
            << figure.name;
    }
}

TEST(BenchTable, RatiosToAYardstick) {
    auto results = judged("card", card_suite(1.7, 2));
    EXPECT_EQ(results[0].holds, true);
    EXPECT_DOUBLE_EQ(*results[0].ratio, 0.017);
    EXPECT_EQ(results[1].holds, true) << "25 times as fast";
    EXPECT_EQ(results.back().holds, std::nullopt) << "has no goal";
    results = judged("card", card_suite(1.9, 2.1));
    EXPECT_EQ(results[0].holds, false);
    EXPECT_EQ(results[1].holds, false);
    EXPECT_EQ(results[0].goal_text(), "<= 0.018 of it");
}

// One that was disturbed together with its yardstick says as much as the others.
TEST(BenchTable, ASpreadOfRatiosIsThatOfSamplesBesideEachOther) {
    Json all = card_suite(1.7, 2);
    all[0] = measurement("empty job", nullptr, {1, 10, 2, 3}, {100, 1000, 100, 100});
    all[1] = measurement("job in a batch of 32", nullptr, {1, 2, 4}, {50, 50, 100});
    const auto results = judged("card", all);
    EXPECT_DOUBLE_EQ(*results[0].ratio_p10, 0.01);
    EXPECT_DOUBLE_EQ(*results[0].ratio_p90, 0.02);
    EXPECT_DOUBLE_EQ(*results[1].ratio_p10, 25) << "times as fast";
    EXPECT_DOUBLE_EQ(to_json(results[0]).at("ratio_p90").get<double>(), 0.02);
    EXPECT_EQ(results[2].ratio_p10, std::nullopt) << "without a yardstick";
    all[0] = measurement("empty job", nullptr, {1, 2, 3}, {100});
    EXPECT_EQ(judged("card", all)[0].ratio_p10, std::nullopt) << "not beside each other";
}

TEST(BenchTable, HostTimesScaleWithTheMachine) {
    std::vector<double> samples(100, 90.0);
    samples.front() = 1000;  // beyond the 95th percentile
    const Json measured = Json::array({measurement("link cut, told", nullptr, samples, {})});
    EXPECT_EQ(judged("link", measured)[0].holds, true);
    EXPECT_EQ(judged("link", measured, 0.8)[0].holds, false) << "a quicker machine has less";
    EXPECT_EQ(judged("link", measured, 0.8)[0].goal_text(), "95 % <= 80 ms");
}

TEST(BenchTable, OneSizeHasTheGoalAndSaysHowFastTheMachineIs) {
    const Json measured = Json::array({measurement("interpreter", 100, {200}, {100}),
                                       measurement("interpreter", 1000, {200}, {100}),
                                       measurement("interpreter", 10'000'000, {800}, {54}),
                                       measurement("interpreter, to the end", nullptr, {800}, {400})});
    const auto results = judged("core", measured);
    EXPECT_EQ(results[0].holds, std::nullopt);
    EXPECT_EQ(results[2].holds, true);
    EXPECT_DOUBLE_EQ(host_factor(results).value(), 2);
    EXPECT_EQ(results[2].label(), "interpreter [10000000 instr.]");
    EXPECT_EQ(host_factor(judged("card", card_suite(1, 1))), std::nullopt);
}

TEST(BenchTable, WhatDoesNotFitTheTableIsAnError) {
    Json measured = card_suite(1, 1);
    measured.erase(0);
    EXPECT_THAT(thrown([&] { (void)results_of("card", measured, {}); }),
                HasSubstr("has not measured 'empty job'"));
    measured.push_back(measurement("full job", nullptr, {1}, {}));
    EXPECT_THAT(thrown([&] { (void)results_of("card", measured, {}); }),
                HasSubstr("'full job', which is not"));
    EXPECT_THAT(thrown([&] {
                    (void)results_of("link", Json::array({measurement("link cut, told", nullptr, {}, {})}),
                                     {});
                }),
                HasSubstr("no samples"));
    EXPECT_THAT(thrown([&] {
                    (void)results_of("link", Json::array({measurement("link cut, told", nullptr, {1}, {1})}),
                                     {});
                }),
                HasSubstr("yardstick"));
}

class BenchFiles : public ::testing::Test {
  protected:
    BenchFiles() { std::filesystem::create_directories(folder_); }
    ~BenchFiles() override { std::filesystem::remove_all(folder_); }
    const std::filesystem::path folder_ =
        std::filesystem::path(::testing::TempDir()) / ("bench files " + std::to_string(::getpid()));
    const Places places_{folder_, folder_, folder_};
};

TEST_F(BenchFiles, TheLatestRunIsWhatIsComparedWith) {
    const auto file = folder_ / "history.jsonl";
    EXPECT_EQ(History::read(file).runs(), 0u);
    append(file, judged("card", card_suite(1, 1)), "first", 1);
    std::ofstream(file, std::ios::app) << "not JSON\n{\"figures\": 3}\n";
    append(file, judged("card", card_suite(2, 1)), "second", std::nullopt);
    const History history = History::read(file);
    EXPECT_EQ(history.runs(), 2u);
    const Earlier earlier = history.latest("empty job").value();
    EXPECT_DOUBLE_EQ(earlier.value, 2);
    const auto now = [&](double job) { return judged("card", card_suite(job, 1))[0]; };
    EXPECT_EQ(change(now(2), earlier), "same");
    EXPECT_EQ(change(now(1.5), earlier), "-25 %");
    EXPECT_EQ(change(now(6), earlier), "3 x");
    EXPECT_EQ(history.latest("full job"), std::nullopt);
}

TEST_F(BenchFiles, ASuiteThatFailsSaysWhy) {
    const Suite fails{"card", "", "echo no card here >&2; exit 3"};
    EXPECT_THAT(thrown([&] { (void)run(fails, {}, places_); }), HasSubstr("no card here"));
    const Suite talks{"card", "", "echo hello"};
    EXPECT_THAT(thrown([&] { (void)run(talks, {}, places_); }), HasSubstr("no list of measurements"));
}

TEST_F(BenchFiles, ASuiteIsToldItsSizes) {
    const Suite echo{"core", "", "echo \"[$SIZES]\""};
    EXPECT_EQ(run(echo, {}, places_), Json::array({100, 1000, 10'000'000}));
    EXPECT_EQ(run(echo, {7, 8}, places_), Json::array({7, 8}));
    const Suite timed{"boot", "", "", "true", 3};
    EXPECT_EQ(run(timed, {}, places_).at(0).at("samples").size(), 3u);
}

}  // namespace
}  // namespace orrery::bench
