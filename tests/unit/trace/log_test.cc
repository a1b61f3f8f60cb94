#include "emulator/trace/log.h"

#include <gtest/gtest.h>

#include <string>

#include "emulator/trace/clock.h"

namespace orrery::emu {
namespace {

std::string error_of(std::vector<std::uint8_t> bytes, std::uint64_t steps = 100) {
    Log log;
    const auto done = decode_log(bytes, steps, log);
    return done ? "" : std::to_string(done.error().at) + ": " + done.error().reason;
}

TEST(Log, TakesWhatTheFormatSays) {
    Log log;
    // A load of 0x1234 with a stall of 300 and a line, a store, a boundary at 5, a doorbell note.
    const std::vector<std::uint8_t> bytes = {0x2c, 0x34, 0x12, 0xac, 0x02, 0x01, 0x01, 0x06, 0x05,
                                             0x0a, 0x13, 0x01, 0x04, 1,    2,    3,    4};
    ASSERT_TRUE(decode_log(bytes, 10, log));
    ASSERT_EQ(log.accesses.size(), 2u);
    EXPECT_EQ(log.accesses[0].value, 0x1234u);
    EXPECT_EQ(log.accesses[0].stall, 300u);
    EXPECT_EQ(log.accesses[0].lines, 1u);
    ASSERT_EQ(log.boundaries.size(), 1u);
    EXPECT_EQ(log.boundaries[0].step, 5u);
    EXPECT_EQ(log.boundaries[0].ps, 10u);
    ASSERT_EQ(log.notes.size(), 1u);
    EXPECT_EQ(log.notes[0].step, 6u);
    EXPECT_EQ(log.notes[0].time_ps, 2);
    EXPECT_EQ(log.notes[0].field[3], 4u);
}

TEST(Log, RefusesTheRest) {
    EXPECT_EQ(error_of({0x20, 0x34}), "0: a record is cut");
    EXPECT_EQ(error_of({0x01, 0x24}), "1: a record is cut");
    EXPECT_EQ(error_of({0xb0}), "0: an access of an unknown form");
    EXPECT_EQ(error_of({0x11}), "0: an access of an unknown form");
    EXPECT_EQ(error_of({0x12, 0}), "0: a boundary of an unknown form");
    EXPECT_EQ(error_of({0x02, 101}), "0: a record lies beyond the last step of its block");
    EXPECT_EQ(error_of({0x02, 60, 0x02, 60}), "2: a record lies beyond the last step of its block");
    EXPECT_EQ(error_of({0x0a, 1, 0x04}), "0: an unknown interrupt line");
    EXPECT_EQ(error_of({0x03, 0, 0}), "0: a note of an unknown kind");
    EXPECT_EQ(error_of({0xf3, 0, 0}), "0: a note of an unknown kind");
    EXPECT_EQ(error_of({0x73, 0, 0, 1, 2, 3}), "0: a record is cut");
    EXPECT_EQ(error_of({0x83, 0, 0, 0, 0xff, 0xff, 0x7f}), "0: a change of memory that is too long");
    EXPECT_EQ(error_of({0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}),
              "0: a number is too long");
}

TEST(CoreClock, CountsWholeCyclesOfWhatPasses) {
    CoreClock clock(1000);
    clock.start(5'000);
    EXPECT_EQ(clock.time(3), 8'000u);
    EXPECT_EQ(clock.pass(2'500), 2u);
    EXPECT_EQ(clock.pass(499), 0u);
    EXPECT_EQ(clock.pass(1), 1u);
    EXPECT_EQ(clock.time(3), 11'000u);
    clock.step_without_time();
    EXPECT_EQ(clock.time(4), 11'000u);
}

}  // namespace
}  // namespace orrery::emu
