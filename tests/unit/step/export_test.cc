// Perfetto traces and CSV.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <map>
#include <optional>
#include <set>

#include "perfetto.pb.h"
#include "tests/unit/step/story.h"
#include "tools/step/report/export.h"
#include "tools/step/report/path.h"
#include "tools/text/files.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace pb = orrery::perfetto;

pb::Trace exported(const Story& story) {
    const History history(story.records());
    pb::Trace trace;
    EXPECT_TRUE(trace.ParseFromString(
        perfetto_trace({{{&history, {}}, "card orrery-1 1", {"copy 0", "vector 1", "vector 2"}}})));
    return trace;
}

TEST(Perfetto, HasATrackForEachEngineQueueAndTheCore) {
    const pb::Trace trace = exported(*three_queues());
    std::map<std::string, std::uint64_t> tracks;
    for (const auto& packet : trace.packet())
        if (packet.has_track_descriptor())
            tracks[packet.track_descriptor().name()] = packet.track_descriptor().uuid();
    for (const char* name :
         {"card orrery-1 1", "copy 0", "vector 1", "vector 2", "control core", "queue 0 \"ui\"",
          "queue 1 \"train\"", "queue 2 \"batch\"", "queues that wait for a turn or an engine"})
        EXPECT_TRUE(tracks.contains(name)) << name;
    std::set<std::uint64_t> ids;
    for (const auto& [name, id] : tracks)
        EXPECT_TRUE(ids.insert(id).second) << name;
}

TEST(Perfetto, SlicesOfATrackNestAndCarryTheirTimes) {
    for (const auto& story : {three_queues(), deadlock()}) {
        const pb::Trace trace = exported(*story);
        std::map<std::uint64_t, int> depth;
        std::set<std::uint64_t> known;
        bool ran = false;
        for (const auto& packet : trace.packet()) {
            EXPECT_EQ(packet.trusted_packet_sequence_id(), 1u);
            if (packet.has_track_descriptor()) known.insert(packet.track_descriptor().uuid());
            if (!packet.has_track_event()) continue;
            const auto& event = packet.track_event();
            EXPECT_TRUE(known.contains(event.track_uuid()));
            if (event.type() == pb::TrackEvent::TYPE_SLICE_BEGIN) ++depth[event.track_uuid()];
            if (event.type() == pb::TrackEvent::TYPE_SLICE_END) {
                EXPECT_GE(--depth[event.track_uuid()], 0);
            }
            if (event.name() == "queue 2 \"batch\" DISPATCH") {
                ran = true;
                EXPECT_EQ(packet.timestamp(), 40'000u);
            }
        }
        for (const auto& [track, open] : depth)
            EXPECT_EQ(open, 0) << track;
        EXPECT_EQ(ran, story->records().size() == three_queues()->records().size());
    }
}

TEST(Perfetto, FlowsLeadFromSignalsToThoseTheyWoke) {
    const pb::Trace trace = exported(*deadlock());
    std::map<std::uint64_t, int> begun, ended;
    for (const auto& packet : trace.packet()) {
        for (const auto flow : packet.track_event().flow_ids()) {
            ++begun[flow];
            EXPECT_EQ(packet.track_event().name(), "signal");
        }
        for (const auto flow : packet.track_event().terminating_flow_ids()) {
            ++ended[flow];
            EXPECT_EQ(packet.track_event().name(), "wake");
        }
    }
    EXPECT_EQ(begun.size(), 1u);
    EXPECT_EQ(begun, ended);
}

// Card 0 signals a semaphore of card 1, whose clock is 100 us behind.
class LinkedCards : public ::testing::Test {
  protected:
    static constexpr std::uint64_t kElsewhere = ~std::uint64_t{0}, kMemory = 0x1000;
    static constexpr Time kBehind = 100 * kUs;

    LinkedCards() {
        Story tells, hears;
        tells.create(1, 0, 1, 64, "tells");
        for (const auto& [time, value] : {std::pair{105 * kUs, 6u}, {110 * kUs, 7u}, {190 * kUs, 7u}})
            tells.at(time).record(ORR_TRACE_SIGNAL, 1, 0, {kElsewhere, value, 0x40});
        hears.create(2, 0, 1, 64, "hears").at(5 * kUs).record(ORR_TRACE_WAIT, 2, 0, {kMemory, 7, 0x80, 0});
        hears.at(6 * kUs).record(ORR_TRACE_POKE, 0, 0, {kMemory});  // of 6: wakes nobody
        hears.at(12 * kUs).record(ORR_TRACE_POKE, 0, 1, {kMemory});
        hears.record(ORR_TRACE_WAKE, 2, ORR_WAKE_PEER, {kMemory, 7});
        // One of its own queues is woken by a signal of this card: no message.
        hears.at(20 * kUs).record(ORR_TRACE_SIGNAL, 2, 1, {kMemory, 8, 0x80});
        tells_ = std::make_unique<History>(tells.finish()->records());
        hears_ = std::make_unique<History>(hears.finish()->records());
        cards_ = {{{tells_.get(), {}}, "card 0: a", {}},
                  {{hears_.get(), [](Time own) { return own + kBehind; }}, "card 1: b", {}}};
    }

    std::unique_ptr<History> tells_, hears_;
    std::vector<ExportCard> cards_;
};

TEST_F(LinkedCards, AreAProcessEachInOneTrace) {
    pb::Trace trace;
    ASSERT_TRUE(trace.ParseFromString(perfetto_trace(cards_)));
    std::map<std::int32_t, std::string> processes;
    std::map<std::uint64_t, std::string> tracks;
    std::map<std::uint64_t, std::set<std::string>> children;
    for (const auto& packet : trace.packet()) {
        if (packet.has_track_event()) {
            EXPECT_TRUE(tracks.contains(packet.track_event().track_uuid()));
        }
        if (!packet.has_track_descriptor()) continue;
        const auto& track = packet.track_descriptor();
        EXPECT_TRUE(tracks.try_emplace(track.uuid(), track.name()).second) << track.name();
        if (track.has_process()) processes[track.process().pid()] = track.process().process_name();
        if (track.has_parent_uuid()) children[track.parent_uuid()].insert(track.name());
    }
    EXPECT_THAT(processes, testing::ElementsAre(std::pair(1, "card 0: a"), std::pair(2, "card 1: b")));
    ASSERT_EQ(children.size(), 2u);
    for (const auto& [parent, names] : children) {
        const bool tells = tracks[parent] == "card 0: a";
        EXPECT_TRUE(names.contains("control core"));
        EXPECT_TRUE(names.contains(tells ? "queue 1 \"tells\"" : "queue 2 \"hears\""));
        EXPECT_FALSE(names.contains(tells ? "queue 2 \"hears\"" : "queue 1 \"tells\""));
    }
}

TEST_F(LinkedCards, AMessageIsAFlowFromOneToTheOther) {
    pb::Trace trace;
    ASSERT_TRUE(trace.ParseFromString(perfetto_trace(cards_)));
    std::map<std::uint64_t, std::string> begin, end;
    for (const auto& packet : trace.packet()) {
        const auto& event = packet.track_event();
        const std::string here = fmt::format("{} {}", packet.timestamp(), event.name());
        for (const auto flow : event.flow_ids())
            begin[flow] = here;
        for (const auto flow : event.terminating_flow_ids())
            end[flow] = here;
    }
    // On the common time line: the signal of 7 that came before, and on from there to who woke.
    std::map<std::string, std::string> flows;
    for (const auto& [flow, from] : begin)
        flows[from] = end[flow];
    EXPECT_THAT(flows, testing::ElementsAre(std::pair("110000 signal", "112000 poke"),
                                            std::pair("112000 poke", "112001 wake")));
}

TEST_F(LinkedCards, AMessageIsNotHeardBeforeItWasSent) {
    cards_[1].system_time = {};
    EXPECT_TRUE(find_messages({cards_[0], cards_[1]}).empty());
}

// A third card sends 7 to somebody else: behind the true sender, or too late to be taken for it.
TEST_F(LinkedCards, AMessageOfOneOfSeveralCardsHasNoFlow) {
    for (const auto& [time, messages] : {std::pair{111 * kUs, 0u}, {113 * kUs, 1u}}) {
        Story other;
        other.create(1, 0, 1, 64, "other").at(time).record(ORR_TRACE_SIGNAL, 1, 0, {kElsewhere, 7, 0xc0});
        const History history(other.finish()->records());
        const auto found = find_messages({cards_[0], cards_[1], {&history, {}}});
        ASSERT_EQ(found.size(), messages) << time;
        for (const Message& message : found)
            EXPECT_EQ(message.from, 0u);
    }
}

// Two cards send the same value at almost the same time, to two semaphores: the address says who woke whom.
TEST_F(LinkedCards, TheSemaphoresAddressTellsWhoseMessageItWas) {
    for (const std::uint64_t va : {0x80u, 0xc0u}) {
        Story other;
        other.create(1, 0, 1, 64, "other").at(111 * kUs).record(ORR_TRACE_SIGNAL, 1, 0, {kElsewhere, 7, va});
        const History history(other.finish()->records());
        const auto found = find_messages({cards_[0], cards_[1], {&history, {}}});
        ASSERT_EQ(found.size(), va == 0x80 ? 1u : 0u);
        if (!found.empty()) EXPECT_EQ(found[0].from, 2u);
    }
}

// Queue 2 of card 1 waits for what queue 1 of card 0 signals when it has done a job, behind a doorbell.
class PathBack : public ::testing::Test {
  protected:
    static constexpr std::uint64_t kElsewhere = ~std::uint64_t{0}, kMemory = 0x1000, kVa = 0x80;

    static std::vector<PathPiece::Kind> kinds(const Path& path) {
        std::vector<PathPiece::Kind> all;
        for (const PathPiece& piece : path.pieces)
            all.push_back(piece.kind);
        return all;
    }
    // The wait ends with this value, or not at all.
    void tell(std::optional<std::uint64_t> value) {
        Story first, second;
        first.at(10 * kUs).create(1, 0, 1, 64, "first").state(1, ORR_TSTATE_IDLE);
        first.at(20 * kUs).doorbell(1, 2).state(1, ORR_TSTATE_READY);
        first.at(22 * kUs).state(1, ORR_TSTATE_TURN).start_job(1, 0, 0, 4);
        first.at(40 * kUs).end_job(1, 0, 0, 23 * kUs, 16 * kUs);
        if (value) first.at(41 * kUs).record(ORR_TRACE_SIGNAL, 1, 0, {kElsewhere, *value, kVa});
        second.at(5 * kUs).create(2, 0, 1, 64, "second").state(2, ORR_TSTATE_SEMAPHORE);
        second.record(ORR_TRACE_WAIT, 2, 0, {kMemory, 3, kVa, 0});
        if (value) {
            second.at(43 * kUs).record(ORR_TRACE_POKE, 0, 1, {kMemory});
            second.record(ORR_TRACE_WAKE, 2, ORR_WAKE_PEER, {kMemory, *value});
            second.state(2, ORR_TSTATE_READY);
        }
        second.at(50 * kUs).idle(3);
        stories_ = {first.finish(), second.finish()};
        for (std::size_t n = 0; n < 2; ++n)
            histories_[n] = std::make_unique<History>(stories_[n]->records());
        cards_ = {{histories_[0].get(), {}}, {histories_[1].get(), {}}};
    }
    Path from(std::uint64_t step, Time now) const {
        return path_back(cards_, find_messages(cards_), 1, 2, step, now);
    }

    std::array<std::unique_ptr<Story>, 2> stories_;
    std::array<std::unique_ptr<History>, 2> histories_;
    std::vector<CardHistory> cards_;
};

TEST_F(PathBack, LeadsOverTheLinkToTheDoorbell) {
    using enum PathPiece::Kind;
    tell(3);
    const Path path = from(stories_[1]->end(), 50 * kUs);
    ASSERT_EQ(kinds(path), (std::vector{kWorks, kWaits, kLink, kWorks})) << path.begin;
    EXPECT_EQ(path.pieces[1].card, 1u);
    EXPECT_EQ(path.pieces[2].card, 0u);
    EXPECT_EQ(path.pieces[2].from, 41 * kUs);
    EXPECT_GE(path.pieces[2].to, 43 * kUs);
    EXPECT_EQ(path.pieces[3].queue, 1u);
    EXPECT_EQ(path.pieces[3].engines / kUs, 17u);
    EXPECT_THAT(path.pieces[3].text, HasSubstr("DISPATCH of 4 groups"));
    EXPECT_THAT(path.begin, HasSubstr("the host rang the doorbell of queue 1 \"first\" of card 0"));
    // In the midst of its wait the same, without what came after.
    EXPECT_EQ(kinds(from(stories_[1]->records().back().step - 4, 30 * kUs)),
              (std::vector{kWaits, kLink, kWorks}));
}

TEST_F(PathBack, OfWhatNobodyEndsSaysWhoWasLast) {
    using enum PathPiece::Kind;
    for (const std::optional<std::uint64_t> value :
         {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1ull << 63 | 5)}) {
        tell(value);
        const Path path = from(stories_[1]->records()[3].step + 1, 30 * kUs);
        EXPECT_EQ(kinds(path), std::vector{kWaits});
        EXPECT_EQ(path.pieces[0].to, kNever);
        EXPECT_THAT(path.begin, HasSubstr("nobody has signalled it"));
    }
}

TEST(Csv, HasAJobALine) {
    const auto story = three_queues();
    const History history(story->records());
    const std::string csv = jobs_csv(history);
    EXPECT_THAT(
        csv,
        StartsWith("queue,name,context,class,weight,index,packet,size,doorbell_ps,start_ps,end_ps,used_ps,"));
    EXPECT_THAT(
        csv, HasSubstr("\n2,batch,0,normal,128,0,DISPATCH,4,20001000,40000000,60001000,20000000,40000000,"));
    EXPECT_EQ(std::ranges::count(csv, '\n'), 5);
    const std::string decisions = decisions_csv(history);
    EXPECT_THAT(decisions, HasSubstr("\n2,50008000,87,vector,0,ui,0,preempt,2\n"));
}

TEST(Csv, QuotesNames) {
    Story s;
    s.create(1, 0, 1, 64, "a,\"b\"").doorbell(1, 1).start_job(1, 0, 0, 1).end_job(1, 0, 0, 5, 1);
    const auto story = s.finish();
    EXPECT_THAT(jobs_csv(History(story->records())), HasSubstr("\n1,\"a,\"\"b\"\"\",0,"));
}

TEST(Export, SaysWhatItWrote) {
    const auto debugger = debug(three_queues());
    const std::string base = ::testing::TempDir() + "orrery-step-export" + std::to_string(::getpid());
    const auto reply = debugger->execute("export csv " + base + ".csv");
    ASSERT_TRUE(reply) << reply.error().text;
    EXPECT_EQ(reply->data["files"].size(), 2u);
    EXPECT_EQ(reply->data["files"][1]["file"], base + "-decisions.csv");
    const auto perfetto = debugger->execute("export perfetto " + base + ".perfetto-trace");
    ASSERT_TRUE(perfetto) << perfetto.error().text;
    pb::Trace trace;
    const auto bytes = read_file(base + ".perfetto-trace");
    ASSERT_TRUE(bytes);
    EXPECT_TRUE(trace.ParseFromArray(bytes->data(), static_cast<int>(bytes->size())));
    for (const char* ending : {".csv", "-decisions.csv", ".perfetto-trace"})
        std::remove((base + ending).c_str());
    EXPECT_THAT(run(*debugger, "export csv /nowhere/x.csv"), StartsWith("error: /nowhere/x.csv: "));
    EXPECT_THAT(run(*debugger, "export pdf x"), StartsWith("error: 'export perfetto FILE'"));
}

}  // namespace
}  // namespace orrery::step
