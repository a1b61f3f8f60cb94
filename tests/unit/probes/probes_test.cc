#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "emulator/probes/counters.h"
#include "emulator/probes/errors.h"

namespace orrery::emu {
namespace {

using testing::HasSubstr;

// A log in memory.
class Log {
  public:
    Log() : file_(open_memstream(&text_, &size_)) {}
    ~Log() {
        std::fclose(file_);
        std::free(text_);
    }
    std::FILE* file() { return file_; }
    std::string text() {
        std::fflush(file_);
        return {text_, size_};
    }

  private:
    char* text_ = nullptr;
    std::size_t size_ = 0;
    std::FILE* file_;
};

TEST(Counters, AddUpFromBothSides) {
    Counters counters;
    std::thread other([&] {
        for (int i = 0; i < 1000; ++i)
            counters.add_shared(ORR_CTR_KICKS);
    });
    for (int i = 0; i < 1000; ++i)
        counters.add(ORR_CTR_KICKS, 2);
    other.join();
    EXPECT_EQ(counters.get(ORR_CTR_KICKS), 3000u);
    EXPECT_EQ(counters.get(ORR_CTR_DOORBELLS), 0u);
    EXPECT_EQ(counters.get(ORR_COUNTER_COUNT), 0u);
    EXPECT_EQ(counters.get(~0u), 0u);
}

TEST(Errors, CountEachKindAndNameTheCause) {
    Counters counters;
    Log log;
    Errors errors(counters, log.file());
    errors.guest("register {:#x}", 0x123);
    errors.unimplemented("thing");
    errors.report(ErrorKind::kHostError, "no memory");
    EXPECT_THAT(log.text(), HasSubstr("guest error: register 0x123\n"));
    EXPECT_THAT(log.text(), HasSubstr("unimplemented: thing\n"));
    EXPECT_EQ(errors.count(ErrorKind::kGuestError), 1u);
    EXPECT_EQ(counters.get(ORR_CTR_GUEST_ERRORS), 1u);
    EXPECT_EQ(counters.get(ORR_CTR_UNIMPLEMENTED), 1u);
    EXPECT_EQ(errors.count(ErrorKind::kUndefined), 0u);
}

TEST(Errors, AFloodIsCountedAndNotWritten) {
    Counters counters;
    Log log;
    Errors errors(counters, log.file());
    for (int i = 0; i < 100'000; ++i)
        errors.guest("again");
    EXPECT_EQ(errors.count(ErrorKind::kGuestError), 100'000u);
    const std::string text = log.text();
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 100);
    EXPECT_THAT(text, HasSubstr("number 65536"));
    errors.note("still here");
    EXPECT_THAT(log.text(), HasSubstr("still here"));
}

TEST(Errors, WorkWithoutALog) {
    Counters counters;
    Errors errors(counters, nullptr);
    errors.guest("x");
    errors.note("y");
    EXPECT_EQ(errors.count(ErrorKind::kGuestError), 1u);
}

TEST(ErrorsDeathTest, OnlyOurOwnFaultEndsTheProcess) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            Counters counters;
            Errors errors(counters, stderr);
            errors.report(ErrorKind::kInternalError, "lost count of {}", 3);
        },
        "defect of the card: lost count of 3");
}

}  // namespace
}  // namespace orrery::emu
