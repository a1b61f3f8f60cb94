// Profiles are read with suspicion.
#include "tools/prof/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/proftool/made_profile.h"
#include "tools/prof/show.h"

namespace orrery::prof::test {
namespace {

using ::testing::HasSubstr;

MadePart a_part() {
    MadePart part;
    const auto copy = part.text("orrMemcpy"), step = part.text("step"), io = part.text("io");
    part.range(Type::kRangeBegin, step, 1'500);
    part.call(copy, 2'000, 2'500);
    part.range(Type::kRangeBegin, step, 2'600, io);
    part.range(Type::kRangeEnd, 0, 3'000);
    part.range(Type::kMark, step, 3'100, io);
    part.range(Type::kRangeEnd, 0, 3'500, io);
    part.work(copy, step, 10, 20);
    part.work(copy, step, 15, 30, 8, 1);
    part.add(WorkLostRecord{{static_cast<std::uint16_t>(Type::kWorkLost), sizeof(WorkLostRecord), 0}, 1, 0});
    return part;
}

void expect_refused(const std::string& bytes, const char* why) {
    const auto profile = parse_profile(bytes);
    ASSERT_FALSE(profile) << why;
    EXPECT_THAT(profile.error().text, HasSubstr(why));
}

TEST(Profile, HasWhatWasWritten) {
    MadePart late(200, "late one");
    late.head.begin_ns = 5'000;
    const auto profile = parse_profile(made_profile(late.bytes() + a_part().bytes()));
    ASSERT_TRUE(profile) << profile.error().text;
    ASSERT_EQ(profile->processes.size(), 2u);
    const Process& process = profile->processes[0];
    EXPECT_EQ(process.pid, 100u);
    EXPECT_EQ(process.command, "program");
    ASSERT_EQ(process.calls.size(), 1u);
    EXPECT_EQ(process.text(process.calls[0].head.text), "orrMemcpy");
    EXPECT_EQ(process.ranges.size(), 5u);
    EXPECT_EQ(profile->processes[1].command, "late one");
    EXPECT_EQ(profile->begin_ns, 1'000u);
}

TEST(Profile, SkipsTypesThatItDoesNotKnowAndEndsWhereNothingWasWritten) {
    MadePart part;
    const RecordHead strange[2] = {{999, 16, 3}, {}};
    part.add(strange);
    part.call(part.text("a"), 1, 2);
    part.add(RecordHead{});
    part.add(RecordHead{7, 3, 9});
    const auto profile = parse_profile(made_profile(part.bytes()));
    ASSERT_TRUE(profile) << profile.error().text;
    EXPECT_EQ(profile->processes[0].calls.size(), 1u);
}

TEST(Profile, ThatIsNoneIsRefused) {
    expect_refused("", "not a profile");
    expect_refused("hello, this is not a profile", "not a profile");
    expect_refused(made_profile("", 2), "format 2.0, and this orrery-prof reads format 1");
    expect_refused(made_profile(std::string(300, 'x')), "at byte 16 no process begins");
    EXPECT_TRUE(parse_profile(made_profile("")));
}

TEST(Profile, ThatIsCutIsRefusedWhereverThatIs) {
    const std::string whole = made_profile(a_part().bytes());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        if (size == 16) continue;  // one without processes
        expect_refused(whole.substr(0, size), size < 16 ? "not a profile" : "cut at byte");
    }
}

TEST(Profile, ThatContradictsItselfIsRefused) {
    const auto refused = [](const auto& change, const char* why) {
        MadePart part;
        const auto name = part.text("a");
        change(part, name);
        expect_refused(made_profile(part.bytes()), why);
    };
    refused([](MadePart& part, std::uint32_t) { part.call(2, 1, 2); }, "names a text that is not there");
    refused([](MadePart& part, std::uint32_t) { part.range(Type::kMark, 1, 2, 99); }, "names a text");
    refused([](MadePart& part, std::uint32_t name) { part.call(name, 2, 1); }, "ends before it begins");
    refused([](MadePart& part, std::uint32_t) { part.work(1, 99, 1, 2); }, "names a text that is not there");
    refused([](MadePart& part, std::uint32_t) { part.work(1, 1, 2, 1); }, "work that ends before it begins");
    refused([](MadePart& part, std::uint32_t) { part.add(RecordHead{6, 8, 1}); }, "work that is too short");
    refused([](MadePart& part, std::uint32_t) { part.add(RecordHead{7, 8, 1}); },
            "lost work that is too short");
    refused([](MadePart& part, std::uint32_t) { part.add(RecordHead{1, 8, 2}); }, "text without an end");
    refused([](MadePart& part, std::uint32_t) { part.add(RecordHead{1, 8, 9}); }, "has text 9 where 2 comes");
    refused([](MadePart& part, std::uint32_t) { part.add(RecordHead{2, 8, 1}); }, "a call that is too short");
    refused([](MadePart& part, std::uint32_t) { part.add(RecordHead{5, 8, 1}); },
            "a range that is too short");
    refused([](MadePart& part, std::uint32_t) { part.add(RecordHead{2, 4, 1}); }, "4 bytes, which cannot be");
    refused([](MadePart& part, std::uint32_t) { part.add(RecordHead{2, 800, 1}); },
            "800 bytes, which cannot be");
    refused([](MadePart& part, std::uint32_t) { part.add(std::uint8_t{9}); }, "cut within a record");
}

// Whatever it says: an answer, and nothing worse. Sanitizers look on in `make test-sanitize`.
TEST(Profile, OfAnyBytesIsReadOrRefused) {
    const std::string whole = made_profile(a_part().bytes());
    std::mt19937 random(11);
    int read = 0;
    for (int turn = 0; turn < 3'000; ++turn) {
        std::string bytes = whole;
        for (unsigned change = random() % 4 + 1; change > 0; --change)
            bytes[random() % bytes.size()] = static_cast<char>(random());
        const auto profile = parse_profile(bytes);
        if (!profile) continue;
        ++read;
        EXPECT_FALSE(stat_text(*profile).empty());
        EXPECT_FALSE(chrome_json(*profile).empty());
        EXPECT_FALSE(perfetto_trace(*profile).empty());
    }
    EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace orrery::prof::test
