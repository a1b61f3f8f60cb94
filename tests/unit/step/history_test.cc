// What is made of the trace records.
#include <gtest/gtest.h>

#include "tests/unit/step/story.h"
#include "tools/records/figures.h"
#include "tools/records/history.h"
#include "tools/records/statistics.h"

namespace orrery::step {
namespace {

TEST(History, PutsPreemptedJobsTogether) {
    const auto story = three_queues();
    const History history(story->records());
    ASSERT_EQ(history.jobs().size(), 4u);
    const Job& job = history.jobs()[1];
    EXPECT_EQ(job.queue, 1u);
    EXPECT_EQ(job.index, 1u);
    EXPECT_EQ(job.preemptions, 1u);
    ASSERT_EQ(job.segments.size(), 2u);
    EXPECT_EQ(job.used(), 65 * kUs);
    EXPECT_EQ(job.segments[0].status, ORR_DONE_PREEMPTED);
    EXPECT_EQ(job.segments[1].start, 55 * kUs);
    // To go on; before it started its queue was ready only for the few nanoseconds between its records.
    const Time gap = job.segments[1].start - job.segments[0].end;
    EXPECT_GT(gap, 2 * kUs);
    EXPECT_GE(history.waiting(job), gap);
    EXPECT_LT(history.waiting(job), gap + 10'000);
    EXPECT_TRUE(job.finished);
    EXPECT_EQ(history.ports(), 3u);
}

TEST(History, CountsWaitingByState) {
    const auto story = three_queues();
    const History history(story->records());
    const QueueLife* batch = history.queue_at(2, 30 * kUs);
    ASSERT_NE(batch, nullptr);
    EXPECT_EQ(batch->state_at(5 * kUs), ORR_TSTATE_IDLE);
    EXPECT_EQ(batch->state_at(30 * kUs), ORR_TSTATE_VECTOR_PORT);
    EXPECT_EQ(batch->waiting(25 * kUs, 30 * kUs), 5 * kUs);
    EXPECT_EQ(batch->waiting(45 * kUs, 50 * kUs), 0u);
}

TEST(History, TellsLivesOfOneNumberApart) {
    Story s;
    s.at(1 * kUs).create(5, 0, ORR_PRIORITY_LOW, 64, "first").state(5, ORR_TSTATE_SEMAPHORE);
    s.at(2 * kUs).record(ORR_TRACE_QUEUE, 5, 0xffffffffu, {0});
    s.at(3 * kUs).create(5, 1, ORR_PRIORITY_HIGH, 64, "second");
    const auto story = s.finish();
    const History history(story->records());
    ASSERT_EQ(history.queues().size(), 2u);
    EXPECT_EQ(history.queue_at(5, 1500 * 1000)->name, "first");
    EXPECT_GE(history.queue_at(5, 1500 * 1000)->destroyed, 2 * kUs);
    EXPECT_EQ(history.queue_at(5, 4 * kUs)->name, "second");
    EXPECT_EQ(history.queue_at(5, 4 * kUs)->priority, ORR_PRIORITY_HIGH);
    EXPECT_EQ(history.queue_at(9, 4 * kUs), nullptr);
    EXPECT_EQ(history.queue(5, 1500 * 1000), "queue 5 \"first\"");
    EXPECT_EQ(history.queue(5, 4 * kUs), "queue 5 \"second\"");
    EXPECT_EQ(history.queue_row(5), "queue 5 \"first\", \"second\"");
    EXPECT_EQ(history.queue(9, 4 * kUs), "queue 9");
}

TEST(History, WaitsEndWithTheSignalThatWokeThem) {
    const auto story = deadlock();
    const History history(story->records());
    ASSERT_EQ(history.waits().size(), 3u);
    EXPECT_EQ(history.waits()[0].wake, 0u);
    EXPECT_EQ(history.waits()[0].to, kNever);
    EXPECT_EQ(history.waits()[2].signalled_by, 3u);
    ASSERT_TRUE(history.waits()[2].signal);
    EXPECT_EQ(history.records()[*history.waits()[2].signal].word[1], 7u);
    ASSERT_EQ(history.deadlocks().size(), 1u);
    EXPECT_EQ(history.deadlocks()[0].edges.size(), 2u);
}

TEST(History, SurvivesRecordsThatMakeNoSense) {
    // Ends without beginnings, unknown types, all-ones: a reader of other firmware must not fall over.
    Story s;
    s.end_job(3, 77, 9, 1, 1).record(ORR_TRACE_RESUME, 4, 0xffff, {1}).record(ORR_TRACE_WAKE, 9, 99, {1, 2});
    s.record(200, 0xffff, ~0u, {~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull})
        .record(ORR_TRACE_DEADLOCK, 1, 0xffffffffu);
    s.record(ORR_TRACE_END_JOB, 0xffff, 0xffffffffu, {~0ull, ~0ull, 0, ~0ull})
        .record(ORR_TRACE_STATE, 0xffff, 0xffffffffu);
    for (std::uint32_t type = 0; type < 256; ++type)
        s.record(type, 0xfffe, ~0u, {~0ull, 1, 0, 5});
    const auto story = s.finish();
    const History history(story->records());
    for (const Record& record : history.records())
        EXPECT_FALSE(describe(record, history).empty());
    EXPECT_LE(statistics(history, story->end_time()).jobs, history.jobs().size());
}

// What waits when the recording ends has waited so long, and what was not done wins nothing.
TEST(Statistics, CountWhatHasNotComeToAnEnd) {
    Story s;
    s.at(1 * kUs)
        .create(1, 0, ORR_PRIORITY_NORMAL, 64, "starved")
        .create(2, 0, ORR_PRIORITY_HIGH, 64, "busy");
    s.at(2 * kUs).doorbell(1, 1).doorbell(2, 1).state(1, ORR_TSTATE_READY).state(2, ORR_TSTATE_TURN);
    s.start_job(2, 0, 0, 1).state(2, ORR_TSTATE_OWN);
    s.at(5 * kUs).end_job(2, 0, 0, 2 * kUs, 3 * kUs).state(2, ORR_TSTATE_IDLE);
    const auto story = s.finish();
    const History history(story->records());
    const Statistics figures = statistics(history, 12 * kUs);
    EXPECT_FALSE(figures.done);
    EXPECT_EQ(figures.jobs, 1u);
    EXPECT_EQ(figures.makespan(), 12 * kUs - figures.first_doorbell);
    const QueueStatistics* starved = figures.of(&history.queues()[0]);
    ASSERT_NE(starved, nullptr);
    EXPECT_FALSE(starved->done);
    EXPECT_NEAR(static_cast<double>(starved->waiting.max), 10e6, 1e5);
    EXPECT_TRUE(figures.of(&history.queues()[1])->done);
    EXPECT_NE(to_text(history, figures).find("makespan > "), std::string::npos);
    EXPECT_NE(to_text(history, figures).find("not all work was done by 12.000 us"), std::string::npos);
    EXPECT_TRUE(to_json(history, figures)["makespan_ps"].is_null());
    // The same without the starved one: done, and measured to the end of the last job.
    Story t;
    t.at(2 * kUs).create(2, 0, ORR_PRIORITY_HIGH, 64, "busy").doorbell(2, 1).state(2, ORR_TSTATE_TURN);
    t.start_job(2, 0, 0, 1).at(5 * kUs).end_job(2, 0, 0, 2 * kUs, 3 * kUs).state(2, ORR_TSTATE_IDLE);
    const auto done = t.finish();
    const History all(done->records());
    const Statistics ended = statistics(all, 12 * kUs);
    EXPECT_TRUE(ended.done);
    EXPECT_EQ(ended.makespan(), ended.last_end - ended.first_doorbell);
    EXPECT_LT(ended.makespan(), 4 * kUs);
}

TEST(Percentiles, AreByNearestRank) {
    std::vector<Time> values;
    for (Time i = 100; i > 0; --i)
        values.push_back(i);
    const Percentiles p = percentiles(values);
    EXPECT_EQ(p.p50, 50u);
    EXPECT_EQ(p.p90, 90u);
    EXPECT_EQ(p.p99, 99u);
    EXPECT_EQ(p.max, 100u);
    EXPECT_EQ(percentiles({7}).p99, 7u);
    EXPECT_EQ(percentiles({}).max, 0u);
}

}  // namespace
}  // namespace orrery::step
