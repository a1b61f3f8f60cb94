// What a run failed of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/fw/queue.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/mmu.h>

#include "tools/step/report/cause.h"

namespace orrery::step {
namespace {

using testing::HasSubstr;

Record error(Time time, std::uint32_t code, std::uint64_t detail = 0) {
    Record record;
    record.type = ORR_TRACE_ERROR;
    record.a = 3;
    record.b = code;
    record.word[2] = detail;
    record.step = time / 1000;
    record.time = time;
    return record;
}

Witness card(std::uint32_t number, const History& history) {
    Witness out;
    out.card = number;
    out.history = &history;
    out.end = 900;
    out.end_time = 900'000;
    return out;
}

std::vector<std::string> kinds(const std::vector<Witness>& cards, const Ending& ending = {}) {
    std::vector<std::string> out;
    for (const Cause& cause : causes(cards, ending))
        out.push_back(cause.kind);
    return out;
}

TEST(Cause, NothingFailed) {
    const History quiet({});
    EXPECT_TRUE(causes({card(0, quiet)}, {}).empty());
    EXPECT_TRUE(causes({}, {}).empty());
}

TEST(Cause, TheEarliestErrorThatFollowsFromNoOtherIsTheFirst) {
    const History a({error(100'000, ORR_QERR_POISON), error(300'000, ORR_QERR_TIMEOUT)});
    const History b({error(200'000, ORR_QERR_FAULT, ORR_FAULT_PEER_DOWN)});
    const auto all = causes({card(0, a), card(1, b)}, {});
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].kind, "queue-error fault");
    EXPECT_EQ(all[0].card, 1u);
    EXPECT_EQ(all[0].step, 200u);
    EXPECT_THAT(all[0].text, HasSubstr("the link is down"));
    EXPECT_EQ(all[1].kind, "queue-error timeout");
    EXPECT_EQ(all[2].kind, "queue-error poison");
}

TEST(Cause, TimesAreOfTheSystem) {
    const History a({error(300'000, ORR_QERR_TIMEOUT)}), b({error(200'000, ORR_QERR_BAD_DESC)});
    Witness late = card(1, b);
    late.system = [](Time own) { return own + 500'000; };
    EXPECT_EQ(kinds({card(0, a), late}).front(), "queue-error timeout");
}

TEST(Cause, ADeadCardComesBeforeWhatTheKernelSays) {
    const History a({error(100'000, ORR_QERR_FAULT)}), b({});
    Witness dead = card(1, b);
    dead.died = "was killed by signal 9 (Killed)";
    Ending ending;
    ending.kernel_report = "Oops";
    ending.text = "card 1 died";
    EXPECT_THAT(kinds({card(0, a), dead}, ending),
                testing::ElementsAre("card-died", "kernel-report", "queue-error fault", "run-failed"));
    const auto all = causes({card(0, a), dead}, ending);
    EXPECT_EQ(all[0].card, 1u);
    EXPECT_EQ(all[0].step, 900u);
    EXPECT_FALSE(all[1].card);
}

TEST(Cause, TheFirmwareAndWhatItsRestartTakesAway) {
    const History a({error(500'000, ORR_QERR_LOST), error(500'000, ORR_QERR_FIRMWARE)});
    Witness one = card(0, a);
    one.stops = {{true, 400'000, 400}, {false, 450'000, 410}};
    const auto all = causes({one}, {});
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0].kind, "firmware-halted");
    EXPECT_EQ(all[0].step, 399u) << "just before it";
    EXPECT_EQ(all[1].kind, "firmware-silent");
}

TEST(Cause, ACardWithoutARecordingCanHaveDied) {
    Witness dead;
    dead.card = 2;
    dead.died = "exited with status 1";
    EXPECT_EQ(causes({dead}, {}).front().card, 2u);
}

TEST(Cause, OfManyTheFirstAreTold) {
    std::vector<Record> records;
    for (Time time = 1; time < 1000; ++time)
        records.push_back(error(time * 1000, ORR_QERR_FAULT));
    const History many(std::move(records));
    EXPECT_EQ(causes({card(0, many)}, {}).size(), 16u);
}

TEST(Cause, TheDriversFirstError) {
    EXPECT_EQ(driver_error("[    8.9] orrery: loading out-of-tree module taints kernel.\n"
                           "[    9.0] orrery 0000:01:00.0: [drm] card 1 (Orrery 1)\n"
                           "[   10.2] orrery 0000:02:00.0: [drm] *ERROR* the card is lost: all-ones\n"
                           "[   10.3] orrery 0000:01:00.0: [drm] *ERROR* another\n"),
              "0000:02:00.0: the card is lost: all-ones");
    EXPECT_EQ(driver_error(""), "");
    EXPECT_EQ(driver_error("*ERROR* orrery "), "");
    Ending ending;
    ending.guest_log = "x orrery 1: *ERROR* y";
    EXPECT_EQ(causes({}, ending).front().kind, "driver-error");
}

}  // namespace
}  // namespace orrery::step
