// When a card's clock showed a time, by the host's; and several machines on one timeline.
#include "tools/prof/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>
#include <vector>

#include "tests/unit/proftool/made_profile.h"
#include "tests/unit/proftool/perfetto_reader.h"
#include "tools/prof/show.h"

namespace orrery::prof::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMs = 1'000'000, kUs = 1'000'000;  // in ns, in ps

ClockRecord clock_at(std::uint64_t before_ns, std::uint64_t ps, std::uint64_t after_ns,
                     std::uint32_t in_step = 0) {
    return {{static_cast<std::uint16_t>(Type::kClock), sizeof(ClockRecord), 0},
            0,
            in_step,
            before_ns,
            ps,
            after_ns};
}

TEST(HostClock, KnowsAMomentBetweenWhatWasReadAroundIt) {
    HostClock clock;
    clock.add(clock_at(1'000, 100, 1'010));
    clock.add(clock_at(3'000, 500, 3'020));
    clock.add(clock_at(2'000, 100, 2'010));  // it stood still
    clock.not_passed(2'400, 300);            // work, submitted then
    clock.settle();
    const auto moment = clock.host_of(300);
    ASSERT_TRUE(moment);
    EXPECT_EQ(moment->least_ns, 2'400u);
    EXPECT_EQ(moment->most_ns, 3'020u);
    EXPECT_EQ(moment->at_ns(), 2'710u);
    EXPECT_EQ(moment->error_ns(), 310u);
    EXPECT_EQ(clock.host_of(200)->least_ns, 2'000u);
    EXPECT_FALSE(clock.host_of(99));
    EXPECT_FALSE(clock.host_of(501));
}

TEST(HostClock, ThatContradictsItselfSaysNothing) {
    HostClock clock;
    clock.add(clock_at(5'000, 100, 5'010));
    clock.add(clock_at(1'000, 900, 1'010));  // it has gone back
    clock.settle();
    EXPECT_FALSE(clock.host_of(500));
}

TEST(HostOffset, IsWhatTheirCardsAllow) {
    // The other host's clock is 1 s ahead; both submit each 10 ms and look 2 ms later, in turn.
    StepTimes one, other;
    for (std::uint64_t i = 1; i < 10; ++i) {
        StepTimes& times = i % 2 == 0 ? one : other;
        const std::uint64_t ahead = i % 2 == 0 ? 0 : 1'000 * kMs;
        times.begun.emplace_back(i * 1'000 * kUs, 10 * i * kMs + ahead);
        times.reached.emplace_back((i * 1'000 + 500) * kUs, (10 * i + 2) * kMs + ahead);
    }
    const auto offset = host_offset(one, other);
    ASSERT_TRUE(offset);
    EXPECT_LE(offset->ns - static_cast<std::int64_t>(offset->error_ns),
              1'000 * static_cast<std::int64_t>(kMs));
    EXPECT_GE(offset->ns + static_cast<std::int64_t>(offset->error_ns),
              1'000 * static_cast<std::int64_t>(kMs));
    EXPECT_LE(offset->error_ns, 12 * kMs);
    EXPECT_FALSE(host_offset(one, {}));
    // What cannot be: all of one before the other by either's clock.
    StepTimes early{{{1'000 * kUs, 50}}, {{1, 51}}}, late{{{1'000 * kUs, 900}}, {{5'000 * kUs, 10}}};
    early.reached = {{5'000 * kUs, 20}};
    EXPECT_FALSE(host_offset(early, late));
}

// A process of a machine whose clock is so much ahead; what it does begins at `first` ms of the first's.
MadePart made_part(std::uint64_t machine, std::uint64_t ahead_ms, std::uint64_t first,
                   std::uint32_t in_step) {
    MadePart part(100, "rank");
    part.head.machine = machine;
    part.head.begin_ns = (first + ahead_ms) * kMs;
    part.orrery_1(0);
    const std::uint32_t stream = part.text("main"), name = part.text("saxpy");
    for (std::uint64_t i = 0; i < 8; ++i) {
        const std::uint64_t ms = first + 10 * i;
        WorkRecord work =
            part.work_of(Operation::kKernel, name, stream, ms * 1'000 * kUs, (ms * 1'000 + 400) * kUs, i);
        work.submitted_ns = (ms + ahead_ms) * kMs;
        part.add(work);
        part.add(
            clock_at((ms + ahead_ms) * kMs, (ms * 1'000 + 400) * kUs, (ms + 1 + ahead_ms) * kMs, in_step));
    }
    return part;
}

TEST(Machines, StandOnOneTimelineIfTheirCardsKeepStep) {
    const Model model = made_model(made_part(1, 0, 1'000, 1).bytes() + made_part(2, 700, 1'005, 1).bytes());
    ASSERT_EQ(model.profile.machines.size(), 2u);
    const Machine& second = model.profile.machines[1];
    ASSERT_TRUE(second.aligned);
    EXPECT_NEAR(static_cast<double>(second.offset.ns), 700e6, static_cast<double>(second.offset.error_ns));
    EXPECT_LE(second.offset.error_ns, 11 * kMs);
    const auto first_submitted = model.processes[0].work[0].record->submitted_ns;
    const auto second_submitted = model.processes[1].work[0].record->submitted_ns;
    EXPECT_NEAR(static_cast<double>(second_submitted) - static_cast<double>(first_submitted), 5e6,
                static_cast<double>(second.offset.error_ns));
    const DeviceModel& device = model.processes[0].devices[0];
    EXPECT_TRUE(device.on_host_clock);
    EXPECT_LE(device.clock_worst_ns, 6 * kMs);
    EXPECT_THAT(report_text(model, 5), HasSubstr("machine 2: its host's clock is known to "));
    EXPECT_THAT(report_text(model, 5), HasSubstr("process 100 of machine 2: rank\n"));
    EXPECT_THAT(report_text(model, 5), HasSubstr("    clock: by the host's to "));
    EXPECT_THAT(chrome_json(model), HasSubstr("\"pid\":100000100"));
    EXPECT_THAT(chrome_json(model), HasSubstr("machine 2: rank"));
}

struct Drawn {
    double begin, end;  // us from the profile's begin
};
std::vector<Drawn> drawn_work(const Model& model) {
    std::vector<Drawn> all;
    for (const auto& event : nlohmann::json::parse(chrome_json(model)).at("traceEvents")) {
        if (event.value("cat", "") == "work")
            all.push_back({event.at("ts"), event.at("ts").get<double>() + event.at("dur").get<double>()});
    }
    return all;
}
double us_of(const Model& model, std::uint64_t ns) {
    return static_cast<double>(ns - model.profile.begin_ns) / 1e3;
}

TEST(Timelines, HaveWorkAsLongAsOnTheCard) {
    const Model model = made_model(made_part(1, 0, 1'000, 0).bytes());
    ASSERT_TRUE(model.processes[0].devices[0].on_host_clock);
    const std::vector<Drawn> drawn = drawn_work(model);
    ASSERT_EQ(drawn.size(), 8u);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
        EXPECT_NEAR(drawn[i].end - drawn[i].begin, 400, 1e-6);
        const std::uint64_t submitted = model.processes[0].work[i].record->submitted_ns;
        EXPECT_GE(drawn[i].begin, us_of(model, submitted));
        EXPECT_LE(drawn[i].end, us_of(model, submitted + kMs)) << "when it was told";
    }
}

// Submitted one behind the other, by one call or by several, and told when the last has ended.
TEST(Timelines, HaveGapsAsOnTheCard) {
    for (const std::uint64_t apart_ns : {0u, 10'000u}) {
        MadePart part;
        part.head.begin_ns = kMs;
        const std::uint32_t stream = part.text("main"), name = part.text("saxpy");
        for (std::uint64_t i = 0; i < 10; ++i) {
            WorkRecord work =
                part.work_of(Operation::kKernel, name, stream, 102 * i * kUs, (102 * i + 100) * kUs, i);
            work.submitted_ns = kMs + i * apart_ns;
            part.add(work);
        }
        part.add(clock_at(kMs, 1'018 * kUs, 21 * kMs));
        const Model model = made_model(part.bytes());
        ASSERT_TRUE(model.processes[0].devices[0].on_host_clock);
        const std::vector<Drawn> drawn = drawn_work(model);
        ASSERT_EQ(drawn.size(), 10u);
        for (std::size_t i = 0; i < drawn.size(); ++i) {
            EXPECT_NEAR(drawn[i].end - drawn[i].begin, 100, 1e-6);
            if (i > 0) EXPECT_NEAR(drawn[i].begin - drawn[i - 1].end, 2, 1e-6);
        }
        // And in Perfetto none is drawn within another.
        const PerfettoTrace trace = read_perfetto(perfetto_trace(model));
        std::uint64_t ended = 0;
        std::size_t seen = 0;
        for (const auto& slice : trace.slices) {
            if (slice.category != "work") continue;
            ++seen;
            EXPECT_GE(slice.begin, ended);
            EXPECT_EQ(slice.end - slice.begin, 100'000u);
            ended = slice.end;
        }
        EXPECT_EQ(seen, 10u);
    }
}

// Streams of cards that a host computes at any pace and looks at now and then: `host_ns` of what happened is
// known here, and to the profile only in part.
TEST(Timelines, KeepTheOrderOfTheCard) {
    std::mt19937 random(7);
    const auto up_to = [&](std::uint64_t most) { return random() % (most + 1); };
    for (int turn = 0; turn < 300; ++turn) {
        MadePart part;
        part.head.begin_ns = kMs;
        const std::uint32_t name = part.text("work");
        const std::uint32_t streams[] = {part.text("a"), part.text("b"), part.text("c")};
        const double pace = std::vector{0.2, 1.0, 30.0}[up_to(2)];  // of the host's time by the card's
        // The card's time, piece by piece: idle for a time of the host's, or at work for one of its own.
        std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces = {{1'000, 2 * kMs}};
        const auto host_ns = [&](std::uint64_t ps) {
            const auto behind = std::ranges::upper_bound(pieces, std::pair(ps, ~std::uint64_t{0}));
            const auto [from_ps, from_ns] = *std::prev(behind);
            return from_ns + static_cast<std::uint64_t>(static_cast<double>(ps - from_ps) / 1e3 * pace);
        };
        std::uint64_t ends[3] = {1'000, 1'000, 1'000};
        std::vector<WorkRecord> works;
        for (std::uint64_t i = 0; i < 40; ++i) {
            const std::uint64_t stream = up_to(2);
            if (up_to(5) == 0) {  // all is done, and the host does something else
                const std::uint64_t all = *std::ranges::max_element(ends);
                pieces.emplace_back(all + 1, host_ns(all) + up_to(5 * kMs));
                std::ranges::fill(ends, all + 1);
            }
            const std::uint64_t begin = std::max(ends[stream], pieces.back().first) + up_to(3) * 1'234'567;
            const bool waits = up_to(6) == 0;
            WorkRecord work = part.work_of(waits ? Operation::kWait : Operation::kKernel, name,
                                           streams[stream], begin, begin + up_to(300) * 777'777, i);
            ends[stream] = work.end_ps;
            works.push_back(work);
        }
        part.add(clock_at(kMs, 0, kMs));
        for (WorkRecord& work : works) {
            work.submitted_ns = host_ns(work.begin_ps) - up_to(kMs);
            part.add(work);
            if (up_to(3) == 0)
                part.add(clock_at(work.submitted_ns, work.end_ps, host_ns(work.end_ps) + up_to(kMs)));
        }
        const std::uint64_t last = *std::ranges::max_element(ends);
        part.add(clock_at(host_ns(last), last, host_ns(last) + kMs));
        const Model model = made_model(part.bytes());
        const Activity& activity = model.processes[0];
        const DeviceModel& device = activity.devices[0];
        ASSERT_TRUE(device.on_host_clock);
        std::vector<std::pair<std::uint64_t, std::uint64_t>> placed;
        for (const Work& one : activity.work) {
            const Stretch& stretch = device.stretch_of(one);
            placed.emplace_back(stretch.ns(one.record->begin_ps), stretch.ns(one.record->end_ps));
            const auto [begin, end] = placed.back();
            EXPECT_LE(end - begin, one.ps() / 1000 + 1);
            EXPECT_GE(end - begin, one.ps() / 1000);
            if (one.operation() == Operation::kWait) continue;
            EXPECT_GE(begin, one.record->submitted_ns);
            const std::uint64_t truth = host_ns(one.record->begin_ps);
            EXPECT_LE(begin > truth ? begin - truth : truth - begin, device.stretches.worst_ns + 1);
        }
        for (std::size_t i = 0; i < placed.size(); ++i) {
            for (std::size_t j = 0; j < placed.size(); ++j) {
                if (activity.work[i].record->end_ps <= activity.work[j].record->begin_ps)
                    EXPECT_LE(placed[i].second, placed[j].first) << "turn " << turn;
            }
        }
        // What is counted stands on the same timeline.
        std::uint64_t before = 0;
        for (std::uint64_t ps = 0; ps <= last; ps += last / 500) {
            const auto ns = device.moment_ns(ps);
            ASSERT_TRUE(ns);
            EXPECT_GE(*ns, before) << "turn " << turn;
            before = *ns;
        }
    }
}

TEST(Machines, OfFreeCardsKeepTheirOwnClocks) {
    const Model model = made_model(made_part(1, 0, 1'000, 0).bytes() + made_part(2, 700, 1'005, 0).bytes());
    EXPECT_FALSE(model.profile.machines.at(1).aligned);
    EXPECT_EQ(model.processes[1].work[0].record->submitted_ns, 1'705 * kMs);
    EXPECT_THAT(stat_text(model), HasSubstr("machine 2: nothing says how its host's clock is"));
}

TEST(Machines, OfOneBootAreOne) {
    const Model model = made_model(made_part(7, 0, 1'000, 1).bytes() + made_part(7, 0, 1'005, 1).bytes());
    EXPECT_EQ(model.profile.machines.size(), 1u);
    EXPECT_THAT(report_text(model, 5), Not(HasSubstr("machine")));
}

TEST(Machines, TakeTimesOfAnybodysFile) {
    MadePart part = made_part(2, 700, 1'005, 1);
    part.call(part.text("orrMalloc"), 0, ~std::uint64_t{0});
    part.add(clock_at(~std::uint64_t{0} - 1, ~std::uint64_t{0}, ~std::uint64_t{0}, 1));
    const Model model = made_model(made_part(1, 0, 1'000, 1).bytes() + part.bytes());
    EXPECT_LE(model.processes[1].process->calls.at(0).begin_ns,
              model.processes[1].process->calls.at(0).end_ns);
    const auto bad = parse_profile(made_profile([] {
        MadePart wrong;
        wrong.add(clock_at(5, 1, 4));
        return wrong.bytes();
    }()));
    ASSERT_FALSE(bad);
    EXPECT_THAT(bad.error().text, HasSubstr("has a time of a clock that ends before it begins"));
}

}  // namespace
}  // namespace orrery::prof::test
