// What waits for a file that takes nothing: how much memory that is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <latch>
#include <utility>
#include <vector>

#include "emulator/trace/flight.h"
#include "emulator/trace/record_writer.h"
#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

constexpr std::size_t kWhole = 1600 << 10;

class Waiting : public testing::Test {
  protected:
    std::vector<std::uint8_t> buffer() {
        std::vector<std::uint8_t> next = writer_.spare();
        if (next.empty()) ++fresh_;
        next.resize(kWhole);
        return next;
    }
    void put(std::size_t bytes) {
        orr_otrace_block block{};
        block.kind = ORR_OTRACE_LOG;
        writer_.put(block, buffer(), bytes);
    }
    ~Waiting() override {
        if (!open_.try_wait()) open_.count_down();
    }

    const TemporaryFile file_;
    std::latch open_{1};
    unsigned fresh_ = 0;  // buffers that had to be made
    RecordWriter writer_{file_.path(), UniqueFd(::open(file_.path().c_str(), O_WRONLY | O_CREAT, 0644)), 0,
                         [this](int, const void*, std::size_t count) {
                             open_.wait();
                             return static_cast<ssize_t>(count);
                         }};
};

// As of a core that sleeps: next to nothing, twice a second, for as long as the disk stands.
TEST_F(Waiting, LittleTakesLittle) {
    for (int i = 0; i < 2'000; ++i)
        put(28);
    EXPECT_TRUE(writer_.room());
    EXPECT_LE(fresh_, 2u);
}

TEST_F(Waiting, MemoryCountsUsedOrNot) {
    std::size_t waiting = 0;
    for (; writer_.room(); ++waiting)
        put(kWhole / 2);
    EXPECT_LE((waiting - 1) * kWhole, RecordWriter::kMostWaiting);
    EXPECT_EQ(fresh_, waiting);
    open_.count_down();
    writer_.wait_for_room();
    writer_.drain();
    EXPECT_TRUE(writer_.room());
    put(kWhole / 2);
    EXPECT_EQ(fresh_, waiting) << "they come back";
}

// It would have to be made longer, and cleared, by the thread of the card.
TEST_F(Waiting, WhatWasMadeToMeasureIsNoSpare) {
    open_.count_down();
    orr_otrace_block block{};
    block.kind = ORR_OTRACE_KEYFRAME;
    writer_.put(block, std::vector<std::uint8_t>(5'000));
    writer_.drain();
    EXPECT_TRUE(writer_.spare().empty());
}

// --- segments ---

class Segments : public testing::Test {
  protected:
    static constexpr std::uint64_t kStride = 1 << 20;

    void put(std::uint32_t kind, std::size_t bytes) {
        orr_otrace_block block{};
        block.kind = kind;
        writer_.put(block, std::vector<std::uint8_t>(bytes));
        writer_.drain();
    }
    void segment(std::uint64_t time) {
        writer_.put_segment(std::vector<std::uint8_t>(sizeof(orr_otrace_header)), time);
        writer_.drain();
    }

    const TemporaryFile file_;
    RecordWriter writer_{"the flight recorder",
                         UniqueFd(::open(file_.path().c_str(), O_RDWR | O_CREAT, 0644)),
                         0,
                         {},
                         kStride};
};

// Else one whose begin is as long as it may become would be followed by the next one at once.
TEST_F(Segments, AreNotFullOfWhatTheyBeginWith) {
    for (const std::uint32_t begin : {ORR_OTRACE_START, ORR_OTRACE_RESUME}) {
        segment(0);
        put(ORR_OTRACE_IMAGE, 100'000);
        put(ORR_OTRACE_SYMBOLS, 100'000);
        EXPECT_EQ(writer_.segment_bytes(), 0u);
        put(begin, 100'000);
        EXPECT_EQ(writer_.segment_bytes(), 0u);
        put(ORR_OTRACE_LOG, 20);
        EXPECT_EQ(writer_.segment_bytes(), sizeof(orr_otrace_block) + 20);
    }
    // Starts that follow are what it is full of.
    put(ORR_OTRACE_START, 20);
    EXPECT_EQ(writer_.segment_bytes(), 2 * (sizeof(orr_otrace_block) + 20));
}

TEST_F(Segments, SayUpToWhereTheyAreGood) {
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit old_limit{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    rlimit limit = old_limit;
    limit.rlim_cur = kFlightHead + kStride + 10;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    segment(1'000);
    EXPECT_EQ(writer_.error(), "");
    segment(2'000);
    setrlimit(RLIMIT_FSIZE, &old_limit);
    std::signal(SIGXFSZ, old_handler);
    EXPECT_EQ(writer_.error(),
              "recording to the flight recorder stopped: a segment could not be begun: No space left on "
              "device; it is good up to model time 2000 ps");
}

}  // namespace
}  // namespace orrery::emu
