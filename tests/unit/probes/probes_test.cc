#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
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
    std::string text(Errors& errors) {
        errors.flush();
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
    EXPECT_THAT(log.text(errors), HasSubstr("guest error: register 0x123\n"));
    EXPECT_THAT(log.text(errors), HasSubstr("unimplemented: thing\n"));
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
    const std::string text = log.text(errors);
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 100);
    EXPECT_THAT(text, HasSubstr("number 65536"));
    errors.note("still here");
    EXPECT_THAT(log.text(errors), HasSubstr("still here"));
}

TEST(Errors, NotesOfOneKindAreLimitedAndHideNoOthers) {
    Counters counters;
    Log log;
    Errors errors(counters, log.file());
    for (int i = 0; i < 100'000; ++i)
        errors.note("the guest did it again, {}", i);
    errors.note("something else");
    const std::string text = log.text(errors);
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 100);
    EXPECT_THAT(text, HasSubstr("number 65536"));
    EXPECT_THAT(text, HasSubstr("note: something else"));
}

// A pipe that nobody reads: whoever has something to say goes on, and so does the end.
TEST(Errors, ALogThatTakesNothingHoldsNobody) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::FILE* const in = fdopen(ends[1], "w");
    {
        Counters counters;
        Errors errors(counters, in);
        for (unsigned kind = 0; kind < 4; ++kind) {
            for (int i = 0; i < 100; ++i)
                errors.report(static_cast<ErrorKind>(kind), "{:2000}", i);
        }
        EXPECT_EQ(errors.count(ErrorKind::kHostError), 100u);
        // Once somebody reads, it all comes.
        std::string read_back(1 << 20, '\0');
        std::size_t size = 0;
        while (size < 4 * 64 * 2000) {
            const ssize_t got = ::read(ends[0], read_back.data() + size, read_back.size() - size);
            ASSERT_GT(got, 0);
            size += static_cast<std::size_t>(got);
        }
        for (unsigned kind = 0; kind < 4; ++kind) {
            for (int i = 0; i < 1'000'000; ++i)
                errors.report(static_cast<ErrorKind>(kind), "{:2000}", i);
        }
    }
    std::fclose(in);
    ::close(ends[0]);
}

TEST(LogWriter, SaysHowManyLinesAreLost) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::FILE* const in = fdopen(ends[1], "w");
    std::string text;
    {
        LogWriter writer(in);
        for (int i = 0; i < 5000; ++i)
            writer.put(std::string(1000, 'x'));
        std::thread reader([&] {
            std::array<char, 65536> bytes;
            while (text.find("were lost") == std::string::npos) {
                const ssize_t got = ::read(ends[0], bytes.data(), bytes.size());
                if (got <= 0) break;
                text.append(bytes.data(), static_cast<std::size_t>(got));
            }
        });
        reader.join();
    }
    std::fclose(in);
    ::close(ends[0]);
    EXPECT_THAT(text, HasSubstr("lines were lost"));
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
