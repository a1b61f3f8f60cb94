// Profiles are read with suspicion.
#include "tools/prof/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/proftool/made_profile.h"
#include "tools/prof/compare.h"
#include "tools/prof/explain.h"
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
    part.orrery_1(0);
    part.add(LinkRecord{
        {static_cast<std::uint16_t>(Type::kLink), sizeof(LinkRecord), 0}, 0, 1, 78, 1, 2, 3, 4, 400, 500});
    part.memory(0, 2'600, 4'096, 4'096);
    part.memory(-1, 2'700, 64, 64);
    part.copy(copy, step, 30, 50, 1'024, -1, 0);
    WorkRecord wait = part.work_of(Operation::kWait, step, io, 20, 40);
    wait.from = static_cast<std::uint32_t>(From::kStream);
    wait.from_stream = step;
    wait.from_index = 1;
    wait.from_name = io;
    part.add(wait);
    WorkCountersRecord counters{};
    counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
    counters.stream = step;
    counters.begin_ps = 10;
    counters.busy_ps = counters.instructions = counters.vram_read = counters.flops_f32 = 1'000;
    part.add(counters);
    struct {
        SampleSetRecord head;
        SampledCounter counters[2];
    } const set{{{static_cast<std::uint16_t>(Type::kSampleSet), 56, 0}, 0, 2, 1'000'000},
                {{40, copy, io, 0}, {41, step, io, 0}}};
    part.add(set);
    struct {
        SampleRecord head;
        std::uint64_t values[2];
    } const sample{{{static_cast<std::uint16_t>(Type::kSample), 40, 0}, 0, 2, 1'000'000}, {5, 6}};
    part.add(sample);
    PcSampleRecord pc{};
    pc.head = {static_cast<std::uint16_t>(Type::kPcSample), sizeof pc, copy};
    part.add(pc);
    part.add(SamplesLostRecord{{static_cast<std::uint16_t>(Type::kSamplesLost), sizeof(SamplesLostRecord), 0},
                               0,
                               static_cast<std::uint32_t>(Type::kPcSample),
                               9});
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
    EXPECT_EQ(process.cards.size(), 1u);
    EXPECT_EQ(process.sku.size(), 9u);
    EXPECT_EQ(process.links.size(), 1u);
    EXPECT_EQ(process.memory.size(), 2u);
    EXPECT_EQ(process.counters.size(), 1u);
    ASSERT_EQ(process.samples.size(), 1u);
    EXPECT_EQ(process.sample_sets.at(process.samples[0].set).counters.size(), 2u);
    EXPECT_EQ(process.sample_values, (std::vector<std::uint64_t>{5, 6}));
    EXPECT_EQ(process.pc_samples.size(), 1u);
    EXPECT_EQ(process.lost_samples.at(0).pcs, 9u);
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
    expect_refused(made_profile("", 2), "format 2.7, and this orrery-prof reads format 1");
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
    refused([](MadePart& part, std::uint32_t) { part.card(0, 7, 1); }, "names a text that is not there");
    refused(
        [](MadePart& part, std::uint32_t name) {
            part.card(3, name, name);
            part.card(3, name, name);
        },
        "device 3 for a second time");
    refused([](MadePart& part, std::uint32_t) { part.memory(0, 1, 64, 63); }, "less memory in use");
    refused(
        [](MadePart& part, std::uint32_t name) {
            WorkRecord wait = part.work_of(Operation::kWait, name, name, 1, 2);
            wait.from_name = 9;
            part.add(wait);
        },
        "names a text that is not there");
    refused([](MadePart& part, std::uint32_t) { part.add(RecordHead{8, 8, 0}); },
            "counters of work that are");
    refused([](MadePart& part,
               std::uint32_t) { part.add(SampleSetRecord{{9, sizeof(SampleSetRecord), 0}, 0, 1, 1}); },
            "samples that are too short");
    refused(
        [](MadePart& part, std::uint32_t) { part.add(SampleRecord{{10, sizeof(SampleRecord), 0}, 0, 0, 1}); },
        "counters that nothing names");
    for (const int type : {9, 10, 11, 12, 16, 17, 18, 19, 22})
        refused([&](MadePart& part,
                    std::uint32_t) { part.add(RecordHead{static_cast<std::uint16_t>(type), 8, 0}); },
                "too short");
}

// Who puts parts together says that something was cut: the last of what there is.
TEST(Profile, HasAWordOfWhatWasCutAtTheEndOfAPartOnly) {
    const CutRecord cut{{static_cast<std::uint16_t>(Type::kCut), sizeof cut, 0}, 5'000, 96};
    MadePart part = a_part();
    part.add(cut);
    const std::string last = part.bytes();
    part.add(RecordHead{});  // nothing more
    ASSERT_TRUE(parse_profile(made_profile(part.bytes())));
    MadePart twice = a_part();
    twice.add(cut);
    twice.add(cut);
    MadePart more = a_part();
    more.add(cut);
    more.call(1, 2'000, 2'500);
    for (const MadePart* const bad : {&twice, &more}) {
        const auto read = parse_profile(made_profile(bad->bytes()));
        ASSERT_FALSE(read);
        EXPECT_THAT(read.error().text, HasSubstr("it goes on behind the word of what was cut"));
    }
    PartHead head{};
    std::memcpy(&head, last.data(), sizeof head);
    PartCheck check(head, 0);
    const std::size_t good = check.look(std::string_view(last).substr(sizeof head), false);
    EXPECT_EQ(good, last.size() - sizeof head - sizeof cut);
    EXPECT_THAT(check.fault(), HasSubstr("which no process writes"));
}

// Of a part by anybody, with its records behind byte 0: what is good of it, looked at by pieces.
std::string good_part(const PartHead& head, std::string_view records, std::size_t piece, bool& faulty) {
    PartCheck check(head, 0);
    std::size_t good = 0;
    while (good < records.size() && !check.is_done()) {
        const bool more = records.size() - good > piece;
        good += check.look(records.substr(good, piece), more);
    }
    faulty = !check.fault().empty();
    PartHead own = head;
    const CutRecord cut{{static_cast<std::uint16_t>(Type::kCut), sizeof cut, 0}, good + 1, 0};
    own.bytes = good + sizeof cut;
    return std::string(reinterpret_cast<const char*>(&own), sizeof own) +
           std::string(records.substr(0, good)) +
           std::string(reinterpret_cast<const char*>(&cut), sizeof cut);
}

// What is found good of a part is what readers take, and what is not they refuse.
TEST(Profile, OfWhatIsGoodOfAnyPartIsRead) {
    MadePart part = a_part();
    for (int i = 0; i < 3'000; ++i)
        part.call(1, 2, 3);
    part.sample(0, 2'000'000, {7, 8});
    const std::string whole = part.bytes();
    std::mt19937 random(12);
    int bad = 0;
    for (int turn = 0; turn < 600; ++turn) {
        std::string bytes = whole;
        const std::size_t among = turn % 2 == 0 ? 2'000 : bytes.size() - sizeof(PartHead);
        for (unsigned change = random() % 4 + 1; change > 0; --change)
            bytes[sizeof(PartHead) + random() % among] = static_cast<char>(random());
        PartHead head{};
        std::memcpy(&head, bytes.data(), sizeof head);
        const std::string_view records = std::string_view(bytes).substr(sizeof head);
        bool faulty = false, faulty_by_pieces = false;
        const std::string good = good_part(head, records, records.size(), faulty);
        EXPECT_EQ(good_part(head, records, 66'000, faulty_by_pieces), good);
        EXPECT_EQ(faulty, faulty_by_pieces);
        const auto profile = parse_profile(made_profile(good));
        ASSERT_TRUE(profile) << profile.error().text;
        EXPECT_TRUE(profile->processes.at(0).cut);
        EXPECT_EQ(parse_profile(made_profile(bytes)).has_value(), !faulty);
        bad += faulty ? 1 : 0;
    }
    EXPECT_GT(bad, 100);
    EXPECT_LT(bad, 590);
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
        auto profile = parse_profile(bytes);
        if (!profile) continue;
        ++read;
        const Model model(*std::move(profile));
        EXPECT_FALSE(stat_text(model).empty());
        if (turn % 8 != 0) continue;  // what takes long
        EXPECT_FALSE(report_text(model, 10).empty());
        EXPECT_FALSE(report_json(model, 10).empty());
        EXPECT_FALSE(instructions_text(model).empty());
        EXPECT_FALSE(explain_text(model).empty());
        EXPECT_FALSE(explain_json(model).empty());
        EXPECT_FALSE(compare_text({&model, 1}, {&model, 1}, 10).empty());
        EXPECT_FALSE(compare_json({&model, 1}, {&model, 1}).empty());
        EXPECT_FALSE(chrome_json(model).empty());
        EXPECT_FALSE(perfetto_trace(model).empty());
        EXPECT_FALSE(html_page(model, "any").empty());
    }
    EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace orrery::prof::test
