// When a card's clock showed a time, by the host's; and several machines on one timeline.
#include "tools/prof/clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/proftool/made_profile.h"
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
