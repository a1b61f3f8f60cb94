// Steps within calls: rows, sums, and who came last to barriers.
#include "tools/prof/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/proftool/made_profile.h"
#include "tests/unit/proftool/perfetto_reader.h"
#include "tools/prof/explain.h"
#include "tools/prof/show.h"

namespace orrery::prof::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kUs = 1'000'000;

// A graph of two lanes and a host node, launched twice.
MadePart of_a_graph() {
    MadePart part;
    part.orrery_1(0);
    const auto launch = part.text("orrGraphLaunch"), main = part.text("main"), saxpy = part.text("saxpy"),
               copy = part.text("copy"), host = part.text("host node");
    part.call(launch, 2'000, 2'500);
    part.add(part.work_of(Operation::kKernel, saxpy, main, 10 * kUs, 90 * kUs, 1));
    for (std::uint64_t round = 1; round <= 2; ++round) {
        const std::uint64_t at = (round - 1) * 40;
        StepRecord first =
                       step_of(StepOf::kGraph, StepKind::kKernel, saxpy, 0, (10 + at) * kUs, (30 + at) * kUs),
                   second =
                       step_of(StepOf::kGraph, StepKind::kCopy, copy, 0, (20 + at) * kUs, (50 + at) * kUs),
                   call = step_of(StepOf::kGraph, StepKind::kHost, host, -1, 2'100 + at, 2'110 + at);
        second.lane = second.number = 1;
        call.lane = call.number = 2;
        for (StepRecord* const one : {&first, &second, &call}) {
            one->round = round;
            part.add(*one);
        }
    }
    return part;
}

TEST(Steps, AreRowsOfTheirLanes) {
    const Model model = made_model(of_a_graph().bytes());
    const auto rows = step_rows(model.processes.at(0));
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].device, -1);
    EXPECT_EQ(rows[0].title, "graph 1, lane 2");
    EXPECT_EQ(rows[1].device, 0);
    EXPECT_EQ(rows[1].title, "graph 1, lane 0");
    EXPECT_EQ(rows[2].title, "graph 1, lane 1");
    for (const StepRow& row : rows) {
        ASSERT_EQ(row.steps.size(), 2u);
        EXPECT_EQ(row.steps[0]->round, 1u);
    }
}

TEST(Steps, ThatOverlapHaveRowsOfTheirOwn) {
    MadePart part = of_a_graph();
    const auto name = part.text("late");
    part.add(step_of(StepOf::kGraph, StepKind::kKernel, name, 0, 25 * kUs, 27 * kUs));
    EXPECT_EQ(step_rows(made_model(part.bytes()).processes.at(0)).size(), 4u);
}

TEST(Steps, AreAddedUpByOwnersAsPeopleCount) {
    MadePart part;
    part.orrery_1(0);
    const auto saxpy = part.text("saxpy");
    for (std::uint64_t owner = 1; owner <= 12; ++owner) {
        StepRecord step =
            step_of(StepOf::kGraph, StepKind::kKernel, saxpy, 0, owner * kUs, (owner + 1) * kUs);
        step.owner = owner;
        part.add(step);
    }
    const Model model = made_model(part.bytes());
    const auto sums = step_sums(model.processes.at(0));
    ASSERT_EQ(sums.size(), 12u);
    for (std::size_t i = 0; i < sums.size(); ++i)
        EXPECT_EQ(sums[i].owner, "graph " + std::to_string(i + 1));
}

// Times of anybody's file.
TEST(Steps, OutsideOfTheirDevicesWorkHaveNoRow) {
    MadePart part = of_a_graph();
    const auto name = part.text("early");
    part.add(step_of(StepOf::kGraph, StepKind::kKernel, name, 0, 1, 2));
    part.add(step_of(StepOf::kGraph, StepKind::kKernel, name, 0, 80 * kUs, ~std::uint64_t{0}));
    part.add(step_of(StepOf::kGraph, StepKind::kKernel, name, 9, 20 * kUs, 30 * kUs));
    const Model model = made_model(part.bytes());
    EXPECT_EQ(step_rows(model.processes.at(0)).size(), 3u);
    EXPECT_THAT(chrome_json(model), Not(HasSubstr("early")));
}

TEST(Steps, StandInTheReport) {
    const Model model = made_model(of_a_graph().bytes());
    const std::string text = report_text(model, 10);
    EXPECT_THAT(text, HasSubstr("steps within calls  what    of             count      total       mean"));
    EXPECT_THAT(text, HasSubstr("saxpy               kernel  graph 1            2  40.000 us  20.000 us"));
    EXPECT_THAT(text, HasSubstr("host node           host    graph 1, host      2"));
    const auto json = nlohmann::json::parse(report_json(model, 10));
    const auto& steps = json.at("processes")[0].at("steps");
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(steps[0].at("name"), "copy") << "what took most";
    EXPECT_EQ(steps[0].at("total_ps"), 60 * kUs);
}

TEST(Steps, HaveRowsOfTheirOwnInTimelines) {
    const Model model = made_model(of_a_graph().bytes());
    const auto json = nlohmann::json::parse(chrome_json(model));
    std::set<std::string> names;
    std::size_t steps = 0;
    for (const auto& event : json.at("traceEvents")) {
        if (event.at("ph") == "M") names.insert(event.at("args").at("name"));
        if (event.value("cat", "") != "step") continue;
        ++steps;
        EXPECT_EQ(event.at("args").at("correlation"), 7);
        EXPECT_GE(event.at("ts"), 0.0);
    }
    EXPECT_EQ(steps, 6u);
    for (const char* name : {"graph 1, lane 0", "graph 1, lane 1", "graph 1, lane 2"})
        EXPECT_TRUE(names.contains(name)) << name;
    const PerfettoTrace trace = read_perfetto(perfetto_trace(model));
    std::set<std::string> tracks;
    for (const PerfettoTrace::Slice& slice : trace.slices) {
        if (slice.category == "step") tracks.insert(trace.tracks.at(slice.track).name);
    }
    EXPECT_EQ(tracks, (std::set<std::string>{"graph 1, lane 0", "graph 1, lane 1", "graph 1, lane 2"}));
    EXPECT_EQ(std::ranges::count(trace.slices, "step", &PerfettoTrace::Slice::category), 6);
}

// Processes of a group on a card each; waits: of each barrier in us, {0, 0}: did not wait. Of two groups they
// come to a barrier in turn.
std::string of_a_group(const std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>>& waits,
                       bool named = true, bool two_groups = false) {
    std::string parts;
    for (std::size_t rank = 0; rank < waits.size(); ++rank) {
        MadePart part(200 + rank, "rank");
        part.card(0, part.text("Orrery 1"), part.text("0000:01:00.0"), 8, 70 + rank);
        const auto main = part.text("main"), saxpy = part.text("iterate"), wait_name = part.text("wait"),
                   barrier = part.text("barrier"),
                   from = part.text("the barrier of rank " + std::to_string(rank) + " of a group");
        part.add(part.work_of(Operation::kKernel, saxpy, main, 0, 10 * kUs, 0));
        std::uint64_t round = 0;
        for (const auto& [begin, end] : waits[rank]) {
            StepRecord step = step_of(StepOf::kGroup, StepKind::kBarrier, barrier, 0, begin * kUs, end * kUs);
            step.owner = kOwnerOfAll | (two_groups && round % 2 == 1 ? 6 : 5);
            step.members = static_cast<std::uint32_t>(waits.size());
            step.number = rank;
            step.round = ++round;
            part.add(step);
            if (end == 0) continue;
            WorkRecord wait =
                part.work_of(Operation::kWait, wait_name, main, begin * kUs, end * kUs, round * 10);
            wait.from = static_cast<std::uint32_t>(From::kOutside);
            wait.from_name = named ? from : 0;
            part.add(wait);
        }
        part.add(part.work_of(Operation::kKernel, saxpy, main, 1'000 * kUs, 1'010 * kUs, 99));
        parts += part.bytes();
    }
    return parts;
}

std::string limit_of(const Model& model, std::size_t process) {
    for (const Finding& finding : explain(model, model.processes.at(process), BarrierLasts(model)).findings) {
        if (finding.rule == "rank") return finding.title + ": " + finding.evidence;
    }
    return "";
}

TEST(Barriers, NameTheRankThatCameLast) {
    const Model model =
        made_model(of_a_group({{{10, 400}, {400, 900}}, {{10, 400}, {900, 901}}, {{0, 0}, {400, 900}}}));
    EXPECT_THAT(limit_of(model, 0), HasSubstr("waiting for rank 1: "));
    EXPECT_THAT(
        limit_of(model, 0),
        HasSubstr("rank 1 came last to 1 of 2 barriers of which the last is known, and this one waited "
                  "500.000 us"));
    EXPECT_THAT(limit_of(model, 1), HasSubstr("waiting for rank 2: ")) << "who did not wait at all";
    EXPECT_THAT(report_text(model, 10), HasSubstr("last at its barriers in streams: rank 1 (1), rank 2 (1)"));
}

TEST(Barriers, KeepRanksOfTwoGroupsApart) {
    const Model model = made_model(
        of_a_group({{{10, 400}, {500, 510}}, {{300, 400}, {450, 510}}}, true, /*two_groups=*/true));
    EXPECT_THAT(report_text(model, 10), HasSubstr("last at its barriers in streams: rank 1 of group 1 (1), "
                                                  "rank 0 of group 2 (1)\n"));
}

// As before: who was last nobody knows.
TEST(Barriers, NameNobodyIfThatIsNotKnown) {
    const auto limit = [](const std::string& parts) { return limit_of(made_model(parts), 0); };
    std::string parts = of_a_group({{{10, 900}}, {{800, 900}}});
    EXPECT_THAT(limit(parts), HasSubstr("waiting for rank 1: "));
    PartHead head{};
    std::memcpy(&head, parts.data(), sizeof head);
    parts.resize(sizeof head + head.bytes);
    EXPECT_THAT(limit(parts), HasSubstr("waiting for the barrier of rank 0")) << "the other's is missing";
    EXPECT_THAT(limit(of_a_group({{{10, 900}}, {{0, 0}}, {{0, 0}}})), HasSubstr("the barrier of rank 0"))
        << "two that did not wait";
}

// The group was destroyed before its semaphores' names were asked for.
TEST(Barriers, NameTheRankWithoutNamesOfSemaphores) {
    const auto waits = of_a_group({{{10, 900}}, {{800, 900}}}, false);
    EXPECT_THAT(limit_of(made_model(waits), 0), HasSubstr("waiting for rank 1: "));
}

TEST(Barriers, DoNotTakeWhatWasLostForNotWaiting) {
    MadePart lost(201, "rank");
    const auto barrier = lost.text("barrier");
    StepRecord step = step_of(StepOf::kGroup, StepKind::kBarrier, barrier, 0, 0, 0);
    step.owner = kOwnerOfAll | 5;
    step.members = 2;
    step.number = 1;
    step.round = 1;
    lost.add(step);
    std::string first = of_a_group({{{10, 900}}, {}});
    PartHead head{};
    std::memcpy(&head, first.data(), sizeof head);
    first.resize(sizeof head + head.bytes);
    EXPECT_THAT(limit_of(made_model(first + lost.bytes()), 0), HasSubstr("waiting for rank 1: "));
    lost.add(WorkLostRecord{{static_cast<std::uint16_t>(Type::kWorkLost), sizeof(WorkLostRecord), 0}, 0, 0});
    EXPECT_THAT(limit_of(made_model(first + lost.bytes()), 0), HasSubstr("the barrier of rank 0"));
}

}  // namespace
}  // namespace orrery::prof::test
