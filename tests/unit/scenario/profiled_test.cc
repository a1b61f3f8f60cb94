// Profiling is free: scenarios on cards that are profiled by all there is take the same model time, to the
// last word that the control core saw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/trace_sink.h>

#include "tests/unit/policy/generate.h"
#include "tests/unit/policy/reference.h"
#include "tests/unit/policy/special.h"
#include "tests/unit/scenario/plays.h"
#include "tools/scenario/report.h"
#include "tools/scenario/runner.h"
#include "tools/text/files.h"

namespace orrery::scenario {
namespace {

constexpr std::uint32_t kRing = 1u << 20, kLargeRing = 64u << 20;

struct Run {
    Result result;
    std::vector<std::vector<std::uint8_t>> recordings;  // of each card
    std::vector<Recording> said;                        // the same, if they are several cards'
};

Run play(const Scenario& scenario, std::uint32_t profile_bytes) {
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) / fmt::format("orrery-profiled-{}", ::getpid());
    std::filesystem::create_directory(folder);
    Options options;
    options.keep_history = true;
    options.profile_bytes = profile_bytes;
    for (std::size_t card = 0; card < scenario.cards.size(); ++card)
        options.record.push_back((folder / fmt::format("{}.otrace", card)).string());
    Run made;
    if (auto result = run(scenario, options)) {
        made.result = *std::move(result);
        for (const std::string& file : options.record) {
            made.recordings.push_back(text::read_file(file).value_or(std::vector<std::uint8_t>()));
            if (scenario.cards.size() > 1) read(file, made.said.emplace_back());
        }
    } else {
        ADD_FAILURE() << result.error();
    }
    std::filesystem::remove_all(folder);
    return made;
}

// How many records of each type the ring has; of one that was written over, none.
std::array<std::uint64_t, 256> types_in(const Result::Sink& sink) {
    std::array<std::uint64_t, 256> count{};
    if (sink.head > sink.ring.size()) return count;
    for (std::uint64_t at = 0; at + 1 < sink.head; at += ORR_SINK_WORDS(sink.ring[at + 1]))
        ++count.at(sink.ring[at + 1] & 0xff);
    return count;
}

// What the profiled run wrote of each card, after it was found to be the other one.
std::vector<Result::Sink> expect_same(const Scenario& scenario, std::uint32_t ring = kRing) {
    SCOPED_TRACE(scenario.name);
    for (const Card& card : scenario.cards)
        EXPECT_EQ(card.sku.profiling_record_ps, 0u) << "so its SKU says";
    const Run plain = play(scenario, 0);
    Run profiled = play(scenario, ring);
    const Result &was = plain.result, &is = profiled.result;
    EXPECT_TRUE(was.sinks.empty());
    EXPECT_EQ(is.sinks.size(), scenario.cards.size());
    EXPECT_EQ(is.start, was.start);
    EXPECT_EQ(is.end, was.end);
    EXPECT_EQ(is.makespan, was.makespan);
    EXPECT_EQ(is.counters, was.counters);
    EXPECT_TRUE(to_json(scenario, is) == to_json(scenario, was))
        << "times of jobs, decisions or events differ";
    EXPECT_EQ(is.log, was.log);
    EXPECT_EQ(profiled.recordings.size(), scenario.cards.size());
    for (std::size_t card = 0; card < profiled.recordings.size(); ++card) {
        EXPECT_GT(plain.recordings.at(card).size(), 1000u);
        // Of several cards the links come up in any order before the power-on.
        EXPECT_TRUE(profiled.recordings[card] == plain.recordings.at(card) ||
                    (scenario.cards.size() > 1 && profiled.said[card] == plain.said.at(card)))
            << "card " << card << ": what its control core saw, or when, is another";
    }
    for (const Result::Sink& sink : is.sinks)
        EXPECT_GT(sink.head, 0u) << "nothing was profiled";
    return std::move(profiled.result.sinks);
}

Scenario load(const std::string& file) {
    auto scenario = Scenario::load(std::filesystem::path(ORRERY_SOURCE_DIR) / file);
    EXPECT_TRUE(scenario) << scenario.error();
    return scenario ? *std::move(scenario) : Scenario{};
}

TEST(Profiled, ScenariosOfTheGalleryTakeTheSameTime) {
    for (const char* name : {"deadlock", "preemption", "priority-inversion", "unfair-weights"})
        expect_same(load(fmt::format("docs/traces/{}.toml", name)));
}

TEST(Profiled, MixedWorkTakesTheSameTimeAndEachKindOfRecordIsThere) {
    const auto sinks = expect_same(load("tests/system/step/mixed.toml"), kLargeRing);
    ASSERT_EQ(sinks.size(), 1u);
    ASSERT_LE(sinks[0].head, sinks[0].ring.size()) << "all of it is there";
    const auto count = types_in(sinks[0]);
    for (const unsigned type : {ORR_SINK_JOB, ORR_SINK_SAMPLE, ORR_SINK_PC, ORR_SINK_STEP})
        EXPECT_GT(count.at(type), 10u) << type;
    EXPECT_GT(count.at(ORR_TRACE_START_JOB), 10u) << "the firmware's";
}

// All of it with ORRERY_LONG set; else the first 200 ms, and of loads 20.
TEST(Profiled, LongWorkTakesTheSameTime) {
    Scenario scenario = load("tests/bench/step/long.toml");
    if (std::getenv("ORRERY_LONG") == nullptr)
        std::erase_if(scenario.submits, [](const Submit& submit) { return submit.at > 200 * kMs; });
    ASSERT_GT(scenario.submits.size(), 500u);
    expect_same(scenario);
}

std::uint64_t seeds() {
    const char* const wanted = std::getenv("ORRERY_SEEDS");
    return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1;
}

TEST(Profiled, RandomWorkTakesTheSameTime) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        expect_same(policy::random_scenario(seed));
        expect_same(policy::random_scenario(seed + 1000));
        expect_same(policy::gang_scenario(seed));
        expect_same(policy::quota_scenario(seed));
        expect_same(policy::restart_scenario(seed, true));
    }
}

TEST(Profiled, ManyQueuesTakeTheSameTime) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed)
        expect_same(policy::many_queues_scenario(seed));
}

TEST(Profiled, LoadsTakeTheSameTime) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        std::uint32_t first_low = 0;
        Scenario scenario = policy::load_scenario(seed, first_low);
        if (std::getenv("ORRERY_LONG") == nullptr) scenario.until = 20 * kMs;
        std::erase_if(scenario.submits, [&](const Submit& submit) { return submit.at >= scenario.until; });
        expect_same(scenario);
    }
}

TEST(Profiled, WaitsTakeTheSameTime) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
        std::vector<std::vector<std::uint32_t>> cycles;
        expect_same(policy::wait_scenario(seed, cycles));
    }
}

TEST(Profiled, OnePortTakesTheSameTime) {
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed)
        expect_same(policy::one_port_scenario(seed));
}

class ProfiledPlays : public testing::TestWithParam<unsigned> {};

TEST_P(ProfiledPlays, TakeTheSameTime) {
    const auto scenario = Scenario::parse(play_of(GetParam()), "play", {});
    ASSERT_TRUE(scenario) << scenario.error();
    expect_same(*scenario);
}

INSTANTIATE_TEST_SUITE_P(Cards, ProfiledPlays, testing::Values(2u, 4u, 8u));

// Two cards: copies over the link, a gang on both, and a core that crashes.
TEST(Profiled, CardsTogetherTakeTheSameTime) {
    auto scenario = Scenario::parse(R"(
name = "together"
until = "21ms"
[[card]]
[[card]]
[[context]]
name = "c0"
[[context]]
name = "c1"
card = 1
[[semaphore]]
name = "s0"
[[semaphore]]
name = "s1"
card = 1
[[gang]]
name = "g"
members = [2, 2]
[[queue]]
name = "a"
context = "c0"
[[queue]]
name = "b"
context = "c1"
[[queue]]
name = "ga"
context = "c0"
count = 2
[[queue]]
name = "gb"
context = "c1"
count = 2
[[submit]]
queue = "a"
at = "1010us"
jobs = [{op = "kernel", groups = 8, cycles = 5000}, {op = "copy", bytes = "5M", to = "card1", ordered = true},
  {op = "signal", semaphore = "s1", value = 1}, {op = "wait", semaphore = "s0", value = 1}, {op = "timestamp"}]
[[submit]]
queue = "b"
at = "1015us"
jobs = [{op = "wait", semaphore = "s1", value = 1}, {op = "kernel", groups = 16, cycles = 1000},
  {op = "copy", bytes = "1M", from = "host"}, {op = "signal", semaphore = "s0", value = 1}]
[[submit]]
queue = "ga"
at = "2ms"
jobs = [{op = "gang", gang = "g", round = 1}, {op = "kernel", groups = 2, cycles = 5000, resident = true}]
[[submit]]
queue = "gb"
at = "2ms"
jobs = [{op = "gang", gang = "g", round = 1}, {op = "kernel", groups = 2, cycles = 5000, resident = true}]
[[submit]]
queue = "b"
at = "4ms"
jobs = [{op = "kernel", groups = 16, cycles = 50000}]
[[action]]
at = "4020us"
do = "crash"
card = 1
)",
                                    "together.toml");
    ASSERT_TRUE(scenario) << scenario.error();
    expect_same(*scenario);
}

}  // namespace
}  // namespace orrery::scenario
