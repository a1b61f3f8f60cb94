// Recordings of linked cards on one time line: the gallery's, of a VM with two cards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>

#include <orrery/fw/trace.h>

#include "perfetto.pb.h"
#include "tools/step/commands/cards.h"
#include "tools/text/files.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;

class TwoCards : public ::testing::Test {
  protected:
    void SetUp() override {
        for (const char* file : {GALLERY "/two-cards-0.otrace", GALLERY "/two-cards-1.otrace"}) {
            auto session = open_session(file, {});
            ASSERT_TRUE(session) << session.error().text;
            auto debugger = Debugger::make(std::move(*session), {});
            ASSERT_TRUE(debugger) << debugger.error().text;
            (*debugger)->cards = &cards_;
            cards_.all.push_back(std::move(*debugger));
        }
    }
    Result<Reply> run(std::string_view line) { return cards_.now().execute(line); }

    Cards cards_;
};

TEST_F(TwoCards, WhatOneSignalsTheOtherHearsLater) {
    const auto together = run("together");
    ASSERT_TRUE(together) << together.error().text;
    std::map<std::size_t, std::vector<Time>> told, heard;  // by card
    Time last = 0;
    for (const Json& event : together->data["events"]) {
        const Time at = event["system_time_ps"];
        EXPECT_GE(at, last);
        last = at;
        const std::size_t card = event["card"];
        if (event["type"] == "signal") told[card].push_back(at);
        if (event["type"] == "poke") heard[card].push_back(at);
    }
    std::size_t messages = 0;
    for (const std::size_t from : {0u, 1u}) {
        // The two cards tell nobody else anything.
        // What comes while the core is busy with one is heard together with it.
        ASSERT_LE(heard[1 - from].size(), told[from].size());
        for (std::size_t n = 0; n < heard[1 - from].size(); ++n) {
            EXPECT_LT(told[from][n], heard[1 - from][n]) << n;
            ++messages;
        }
    }
    EXPECT_GT(messages, 3u);
    EXPECT_THAT(together->text, HasSubstr("card 1"));
    EXPECT_THAT(together->text, HasSubstr("by system time"));
}

TEST_F(TwoCards, OneIsChosenAndTheOthersFollowItsMoment) {
    const auto all = run("card");
    ASSERT_TRUE(all) << all.error().text;
    EXPECT_EQ(all->data["cards"].size(), 2u);
    ASSERT_TRUE(run("card 1"));
    EXPECT_EQ(cards_.current, 1u);
    ASSERT_TRUE(run("until event.type == signal && event.b == 0"));
    const auto synced = run("sync");
    ASSERT_TRUE(synced) << synced.error().text;
    const Session &one = cards_.all[0]->session(), &here = cards_.all[1]->session();
    EXPECT_LE(system_time(one, one.time()), system_time(here, here.time()));
    EXPECT_GT(one.position(), 1000u);
    EXPECT_FALSE(run("card 2"));
    EXPECT_FALSE(run("together nowhen"));
}

TEST_F(TwoCards, AreExportedAsOneTraceWithTheirMessages) {
    const std::string file = ::testing::TempDir() + fmt::format("orrery-two-cards-{}", ::getpid());
    const auto exported = run("export perfetto " + file);
    ASSERT_TRUE(exported) << exported.error().text;
    EXPECT_THAT(exported->text, HasSubstr("a Perfetto trace of 2 cards"));
    const auto bytes = text::read_file(file);
    std::filesystem::remove(file);
    ASSERT_TRUE(bytes);
    perfetto::Trace trace;
    ASSERT_TRUE(trace.ParseFromArray(bytes->data(), static_cast<int>(bytes->size())));
    // By flow: the process (its number is in the track's id) and the time of its two ends.
    struct End {
        std::uint64_t card = 0, time = 0;
    };
    std::map<std::uint64_t, End> begin, end;
    std::set<std::string> processes;
    for (const auto& packet : trace.packet()) {
        if (packet.track_descriptor().has_process())
            processes.insert(packet.track_descriptor().process().process_name());
        const auto& event = packet.track_event();
        for (const auto flow : event.flow_ids())
            begin[flow] = {event.track_uuid() >> 32, packet.timestamp()};
        for (const auto flow : event.terminating_flow_ids())
            end[flow] = {event.track_uuid() >> 32, packet.timestamp()};
    }
    EXPECT_THAT(processes, testing::ElementsAre(testing::StartsWith("card 0: Orrery 1 0"),
                                                testing::StartsWith("card 1: Orrery 1 0")));
    std::size_t messages = 0;
    for (const auto& [flow, from] : begin) {
        EXPECT_LE(from.time, end[flow].time);
        if (from.card == end[flow].card) continue;
        ++messages;
        EXPECT_EQ(from.card, 1u) << "card 0 tells nothing that wakes anybody";
    }
    EXPECT_GE(messages, 1u);
}

TEST_F(TwoCards, TimesTurnIntoOneAnother) {
    for (const auto& debugger : cards_.all) {
        const Session& session = debugger->session();
        for (Time own = session.about().start; own <= session.end_time(); own += session.end_time() / 97 + 1)
            EXPECT_EQ(own_time(session, system_time(session, own)), own);
    }
}

TEST(OneCard, HasNoCommonTimeLine) {
    auto session = open_session(GALLERY "/deadlock.otrace", {});
    ASSERT_TRUE(session);
    auto debugger = Debugger::make(std::move(*session), {});
    ASSERT_TRUE(debugger);
    for (const char* command : {"card", "together", "sync"}) {
        const auto reply = (*debugger)->execute(command);
        ASSERT_FALSE(reply);
        EXPECT_THAT(reply.error().text, HasSubstr("'orrery-step card0.otrace card1.otrace' opens"));
    }
}

}  // namespace
}  // namespace orrery::step
