// Signals and marks of streams in profiles, and what the commands make of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/proftool/made_profile.h"
#include "tools/prof/page_data.h"
#include "tools/prof/show.h"
#include "tools/prof/stream_events.h"

namespace orrery::prof::test {
namespace {

// Stream x copies, marks and signals; stream y waits for that, then for the host, and then for somebody who
// is not here.
std::string made() {
    MadePart part;
    const auto copy = part.text("copy"), wait = part.text("wait"), x = part.text("stream 'x' on device 0"),
               y = part.text("stream 'y' on device 0"), gate = part.text("gate"),
               host = part.text("the host"), here = part.text("here"),
               call = part.text("orrStreamSignalSemaphore");
    part.orrery_1(0);
    part.call(call, 2'000, 2'050);
    part.copy(copy, x, 1'000'000, 3'000'000, 4096, 0, 0);
    WorkRecord first = part.work_of(Operation::kWait, wait, y, 1'500'000, 3'500'000, 0);
    first.from = static_cast<std::uint32_t>(From::kStream);
    first.from_stream = x;
    first.from_index = 1;
    first.semaphore = 4;
    first.value = 2;
    part.add(first);
    WorkRecord second = part.work_of(Operation::kWait, wait, y, 4'000'000, 9'000'000, 1);
    second.from = static_cast<std::uint32_t>(From::kHost);
    second.semaphore = 4;
    second.value = 7;
    part.add(second);
    WorkRecord third = part.work_of(Operation::kWait, wait, y, 9'500'000, 9'900'000, 2);
    third.from = static_cast<std::uint32_t>(From::kOutside);
    third.semaphore = 4;
    third.value = 9;
    part.add(third);
    part.add(mark_of(here, x, 0, 0));
    part.add(mark_of(here, x, 1, 3'000'000));
    part.add(signal_of(gate, x, 1, 3'200'000, 2));
    part.add(mark_of(here, x, 2, 3'200'000));
    SignalRecord far = signal_of(gate, x, 2, 3'300'000, 3);
    far.memory = 1;
    part.add(far);
    for (const std::uint64_t value : {6u, 8u}) {
        SignalRecord own = signal_of(gate, 0, value, value * 1'000'000, value);
        own.stream_name = host;
        part.add(own);
    }
    return part.bytes();
}

TEST(StreamEvents, OfAWaitTheSignalIsFound) {
    const Model model = made_model(made());
    const Activity& activity = model.processes.front();
    const SignalIndex index(activity);
    std::vector<std::uint64_t> values;
    for (const Work& one : activity.work) {
        const SignalRecord* const ender = index.ender_of(one);
        values.push_back(ender == nullptr ? 0 : ender->value);
    }
    EXPECT_EQ(values, (std::vector<std::uint64_t>{0, 2, 8, 0}))
        << "a copy; by the stream; by the host, the first of so much; by nobody here";
}

// A wait that the host ended, while another card's stream, whose records were read first, has signalled more
// since; and the host's own signals stand in the file in any order.
TEST(StreamEvents, OfTheHostAreNotTakenForAStreams) {
    MadePart part;
    const auto wait = part.text("wait"), y = part.text("stream 'y' on device 0"),
               other = part.text("stream 'z' on device 1"), host = part.text("the host");
    part.orrery_1(0);
    WorkRecord work = part.work_of(Operation::kWait, wait, y, 4'000'000, 9'000'000, 1);
    work.from = static_cast<std::uint32_t>(From::kHost);
    work.semaphore = 4;
    work.value = 3;
    part.add(work);
    struct {
        std::uint32_t stream, name;
        std::uint64_t time_ps, value;
    } const signals[] = {{other, other, 20'000'000, 9},
                         {0, host, 19'000'000, 7},
                         {0, host, 8'900'000, 3},
                         {0, host, 19'500'000, 4}};
    for (const auto& one : signals) {
        SignalRecord signal = signal_of(0, one.stream, 5, one.time_ps, one.value);
        signal.stream_name = one.name;
        part.add(signal);
    }
    const Model model = made_model(part.bytes());
    const Activity& activity = model.processes.front();
    const SignalIndex index(activity);
    ASSERT_EQ(activity.work.size(), 1u);
    const SignalRecord* const ender = index.ender_of(activity.work.front());
    ASSERT_NE(ender, nullptr);
    EXPECT_EQ(activity.text(ender->stream_name), "the host");
    EXPECT_EQ(ender->value, 3u);
    EXPECT_EQ(ender->time_ps, 8'900'000u);
    WorkRecord later = *activity.work.front().record;
    later.value = 4;
    Work second = activity.work.front();
    second.record = &later;
    ASSERT_NE(index.ender_of(second), nullptr);
    EXPECT_EQ(index.ender_of(second)->value, 7u) << "it came before that of 4";
}

TEST(StreamEvents, AddUpByNameAndWho) {
    const Model model = made_model(made());
    const auto sums = signal_sums(model.processes.front(), 0);
    ASSERT_EQ(sums.size(), 2u);
    for (const SignalSums& one : sums) {
        EXPECT_EQ(one.semaphore, "gate");
        EXPECT_EQ(one.count, 2u);
        EXPECT_EQ(one.ended, 1u);
        EXPECT_EQ(one.over_links, one.by == "the host" ? 0u : 1u);
    }
    const std::string text = report_text(model, 10);
    EXPECT_NE(text.find("signals of"), std::string::npos) << text;
    EXPECT_NE(text.find("over links"), std::string::npos) << text;
    EXPECT_NE(text.find("marks in streams"), std::string::npos) << text;
    EXPECT_NE(text.find("200.000 ns"), std::string::npos) << "from mark to mark\n" << text;
    const auto json = nlohmann::json::parse(report_json(model, 10));
    const auto& device = json["processes"][0]["devices"][0];
    ASSERT_EQ(device["stream_marks"].size(), 3u);
    EXPECT_TRUE(device["stream_marks"][0]["time_ps"].is_null()) << "nothing was before it";
    EXPECT_TRUE(device["stream_marks"][1]["since_ps"].is_null());
    EXPECT_EQ(device["stream_marks"][2]["since_ps"], 200'000);
    EXPECT_EQ(device["signals"].size(), 2u);
}

// The arrow to a wait begins at its signal.
TEST(StreamEvents, StandOnTimelines) {
    const Model model = made_model(made());
    const auto json = nlohmann::json::parse(chrome_json(model));
    std::vector<double> signals;
    std::vector<std::string> names;
    std::vector<std::pair<double, double>> arrows;
    int marks = 0;
    for (const auto& event : json["traceEvents"]) {
        const std::string what = event.value("ph", "");
        if (what == "i" && event["cat"] == "signal") {
            signals.push_back(event["ts"].get<double>());
            names.push_back(event["name"]);
        }
        if (what == "i" && event["cat"] == "stream mark") ++marks;
        if (what == "s" && event["name"] == "wait") arrows.emplace_back(event["ts"].get<double>(), 0);
        if (what == "f" && event["name"] == "wait") arrows.back().second = event["ts"].get<double>();
    }
    EXPECT_EQ(names, (std::vector<std::string>{"signal 'gate' 2", "signal 'gate' 3", "signal 'gate' 6",
                                               "signal 'gate' 8"}));
    EXPECT_EQ(marks, 3);
    ASSERT_EQ(arrows.size(), 2u);
    EXPECT_EQ(arrows[0].first, signals[0]);
    EXPECT_EQ(arrows[1].first, signals[3]);
    for (const auto& [from, to] : arrows)
        EXPECT_LE(from, to);
    const PageData page = page_data(model);
    std::vector<std::string> titles;
    for (const auto& track : page.meta["tracks"]) {
        if (track.contains("title")) titles.push_back(page.meta["texts"][track["title"].get<std::size_t>()]);
    }
    EXPECT_EQ(titles, (std::vector<std::string>{"signals of the host", "signals of stream 'x' on device 0",
                                                "marks of stream 'x' on device 0"}));
}

// Times of the card count from the first thing of it, whatever that is.
TEST(StreamEvents, AMarkBeforeAllWorkIsWhereThePageBegins) {
    MadePart part;
    const auto fill = part.text("fill"), x = part.text("stream 'x' on device 0"), early = part.text("early");
    part.orrery_1(0);
    part.add(part.work_of(Operation::kFill, fill, x, 1'000'000, 2'000'000));
    part.add(mark_of(early, x, 0, 700'000));
    EXPECT_EQ(page_data(made_model(part.bytes())).meta["modelBegin"], "700000");
}

TEST(StreamEvents, ThatAreCutOrNameNothingAreRefused) {
    for (const bool cut : {true, false}) {
        MadePart part;
        SignalRecord signal = signal_of(0, 0, 0, 1, 1);
        StreamMarkRecord mark = mark_of(0, 0, 0, 1);
        if (cut)
            signal.head.bytes = mark.head.bytes = 40;
        else
            signal.stream_name = mark.domain = 99;
        MadePart other = part;
        part.add(signal);
        other.add(mark);
        EXPECT_FALSE(parse_profile(made_profile(part.bytes())));
        EXPECT_FALSE(parse_profile(made_profile(other.bytes())));
    }
}

// Of a profile before 1.4.
TEST(StreamEvents, WorkWithoutTheNewEndIsReadAsEver) {
    MadePart part;
    const auto wait = part.text("wait"), y = part.text("stream 'y' on device 0");
    WorkRecord work = part.work_of(Operation::kWait, wait, y, 1, 2);
    work.head.bytes = 144;
    std::string old(reinterpret_cast<const char*>(&work), 144);
    struct Old {
        char bytes[144];
    } raw;
    std::memcpy(raw.bytes, old.data(), sizeof raw);
    part.add(raw);
    const Model model = made_model(part.bytes());
    ASSERT_EQ(model.processes.front().work.size(), 1u);
    EXPECT_EQ(model.processes.front().work.front().record->semaphore, 0u);
}

}  // namespace
}  // namespace orrery::prof::test
