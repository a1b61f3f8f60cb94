// The judge of planted programs: what it lets pass and what not.
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/vm/prof/planted/cases.h"

namespace planted {
namespace {

constexpr const char* kHost =
    R"({"rule": "host", "share": 0.6, "title": "the host", "evidence": "", "gap": "60.0 us of the card's time less",
        "at_bound": false})";
constexpr const char* kCompute =
    R"({"rule": "compute", "share": 0.3, "title": "compute", "evidence": "", "gap": "99 % of the peak",
        "at_bound": true})";
constexpr const char* kRank =
    R"({"rule": "rank", "share": 0.8, "title": "waiting for rank 1", "evidence": "", "gap": "80.0 us less",
        "at_bound": false})";

std::string device(int number, const char* verdict, const std::string& findings) {
    return fmt::format(R"({{"device": {}, "span_ps": 100000000, "verdict": "{}", "findings": [{}]}})", number,
                       verdict, findings);
}
std::string judged(const Case& one, const std::string& devices, const std::string& later = "[]") {
    std::istringstream json(fmt::format(
        R"({{"processes": [{{"pid": 8, "devices": {}}}, {{"pid": 7, "devices": [{}]}}]}})", later, devices));
    return wrong_in(one, json);
}

Case of(const char* limit) {
    Case one{};
    one.name = "a_case";
    one.limit = limit;
    one.why = "it is";
    return one;
}

TEST(Planted, IsWhatTheVerdictNamesFirst) {
    const std::string both = std::string(kHost) + "," + kCompute;
    EXPECT_EQ(judged(of("host"), device(0, "limited most by the host", both)), "");
    EXPECT_NE(judged(of("compute"), device(0, "limited most by the host", both)), "");
    EXPECT_EQ(judged(of("compute"), device(0, "nothing limits it beyond compute", kCompute)), "");
    EXPECT_NE(judged(of("host"), device(0, "too short to say what limits it", kHost)), "");
}

TEST(Planted, WhatIsAtItsBoundComesFirstOnlyWhereItIsTheTruth) {
    const std::string said =
        device(0, "at its bound (compute) for 30 % of that; beyond it limited most by the host",
               std::string(kCompute) + "," + kHost);
    Case host = of("host");
    EXPECT_NE(judged(host, said), "");
    host.at_bound = "compute";
    EXPECT_EQ(judged(host, said), "");
    EXPECT_EQ(judged(of("compute"), said), "");
}

TEST(Planted, IsOfTheDeviceAndTheRank) {
    Case rank = of("rank");
    rank.words = "rank 1";
    const std::string waits = device(0, "limited most by waiting for rank 1", kRank);
    EXPECT_EQ(judged(rank, waits), "");
    rank.words = "rank 0";
    EXPECT_NE(judged(rank, waits), "");
    rank.words = "";
    rank.device = 1;
    EXPECT_NE(judged(rank, waits), "");
}

TEST(Planted, NothingHoldsUpTheInnocent) {
    Case rank = of("rank");
    rank.innocent = 1;
    const std::string waits = device(0, "limited most by waiting for rank 1", kRank) + ",";
    EXPECT_EQ(judged(rank, waits + device(1, "nothing limits it beyond compute", kCompute)), "");
    EXPECT_NE(judged(rank, waits + device(1, "limited most by the host", kHost)), "");
}

TEST(Planted, SizesArePlausible) {
    Case host = of("host");
    const std::string said = device(0, "limited most by the host", kHost);
    host.share = {0.5, 0.7};
    EXPECT_EQ(judged(host, said), "");
    host.share = {0.7, 1};
    EXPECT_NE(judged(host, said), "");
    host.share = {};
    host.gain = {0.1, 0.5};
    EXPECT_NE(judged(host, said), "");
    host.gain = {0.5, 0.7};
    EXPECT_EQ(judged(host, said), "");
    Case compute = of("compute");
    const std::string full = device(0, "nothing limits it beyond compute", kCompute);
    EXPECT_EQ(judged(compute, full), "");
    compute.gain = {0, 1};
    EXPECT_NE(judged(compute, full), "") << "no time is told that would be gained";
}

TEST(Planted, NoneHasNothingElseForLong) {
    Case none = of("none");
    none.share = {0, 0.1};
    EXPECT_EQ(judged(none, device(0, "nothing limits it beyond compute", kCompute)), "");
    EXPECT_NE(
        judged(none, device(0, "nothing limits it beyond compute", std::string(kCompute) + "," + kHost)), "");
    EXPECT_NE(judged(none, device(0, "limited most by the host", kHost)), "");
}

TEST(Planted, IsTooShortOnlyWhereItIsMeantToBe) {
    Case none = of("none");
    const std::string said = device(0, "too short to say what limits it", "");
    EXPECT_NE(judged(none, said), "");
    none.is_short = true;
    EXPECT_EQ(judged(none, said), "");
}

TEST(Planted, IsTheFirstProcess) {
    const std::string own = device(0, "limited most by the host", kHost);
    const std::string other = device(0, "limited most by waiting for rank 1", kRank);
    EXPECT_EQ(judged(of("host"), own, "[" + other + "]"), "");
    EXPECT_NE(judged(of("rank"), own, "[" + other + "]"), "");
}

TEST(Planted, WhatIsKnownToBeWrongHasToBeWrong) {
    const Case one = of("host");
    const Known known{"a_case", "is wrong", "why"};
    EXPECT_EQ(complaint(one, nullptr, ""), "");
    EXPECT_NE(complaint(one, nullptr, "it is wrong"), "");
    EXPECT_EQ(complaint(one, &known, "it is wrong"), "");
    EXPECT_NE(complaint(one, &known, "device 0 is not in it"), "");
    EXPECT_NE(complaint(one, &known, ""), "");
}

}  // namespace
}  // namespace planted
