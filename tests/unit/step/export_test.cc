// Perfetto traces and CSV.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "perfetto.pb.h"
#include "tests/unit/step/story.h"
#include "tools/step/report/export.h"
#include "tools/text/files.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace pb = orrery::perfetto;

pb::Trace exported(const Story& story) {
    const History history(story.records());
    pb::Trace trace;
    EXPECT_TRUE(
        trace.ParseFromString(perfetto_trace(history, {"orrery-1 1", {"copy 0", "vector 1", "vector 2"}})));
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
    const std::string base = ::testing::TempDir() + "orrery-step-export";
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
