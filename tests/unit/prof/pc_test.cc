// Where vector cores were is told with the kernel that they were in, once that has ended.
#include <orrery/prof.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/prof/heard.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/prof/profiler.h"

namespace orrery::umd::test {
namespace {

class Pcs : public ::testing::Test {
  protected:
    void SetUp() override {
        orrProfOptions options = ORR_INIT(orrProfOptions);
        options.want = orrProfWantWork | orrProfWantPcs;
        ASSERT_OK(orrProfSubscribe(&subscription_, &told, this, &options));
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        ASSERT_OK(orrStreamCreateWithAttributes(&stream_, &attributes));
        ASSERT_OK(orrMalloc(&memory_, 4096));
    }
    void TearDown() override {
        EXPECT_OK(orrProfStopPcSampling(subscription_, 0));
        if (subscription_ != nullptr) ASSERT_OK(orrProfUnsubscribe(subscription_));
    }
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<Pcs*>(user);
        const std::lock_guard lock(self.mutex_);
        if (record->kind == orrProfWorkDone) {
            const auto& work = *static_cast<const orrProfWork*>(record->params);
            self.work_ = work;
            self.correlation_ = record->correlation;
        } else {
            EXPECT_EQ(record->kind, static_cast<std::uint32_t>(orrProfPcSampled));
            self.samples_.push_back(*static_cast<const orrProfPcSample*>(record->params));
            self.names_.emplace_back(record->name == nullptr ? "" : record->name);
            self.sample_correlation_ = record->correlation;
        }
    }
    void with_card(const std::function<void(FakeCard& card)>& what) {
        FakeCard& card = system_.card();
        const std::lock_guard lock(card.mutex());
        what(card);
    }
    static drm_orr_pc_record at(std::uint64_t time, std::uint16_t core, std::uint16_t cause,
                                std::uint32_t count = 1) {
        drm_orr_pc_record record{};
        record.time_ps = time;
        record.pc = 0x1234;
        record.group = 7;
        record.count = count;
        record.core = core;
        record.cause = cause;
        return record;
    }
    std::vector<orrProfPcSample> flushed() {
        EXPECT_OK(orrProfFlush());
        const std::lock_guard lock(mutex_);
        return samples_;
    }

    FakeSystem system_;
    orrProfSubscription_t subscription_ = nullptr;
    orrStream_t stream_ = nullptr;
    void* memory_ = nullptr;
    std::mutex mutex_;
    std::vector<orrProfPcSample> samples_;
    std::vector<std::string> names_;
    orrProfWork work_{};
    std::uint64_t correlation_ = 0, sample_correlation_ = 0;
};

TEST_F(Pcs, AreToldWithTheirWorkWhenItHasEnded) {
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 500));
    with_card([](FakeCard& card) {
        EXPECT_EQ(card.pc_ns, 500u);
        card.pcs_of_next = {at(5'500, 0, orrProfStallLatency, 3), at(6'000, 1, orrProfStallBarrier),
                            at(7'000, 0, orrProfStallComputing)};
    });
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    const auto all = flushed();
    ASSERT_EQ(all.size(), 3u);
    const std::lock_guard lock(mutex_);
    for (const orrProfPcSample& each : all) {
        EXPECT_EQ(each.device, 0);
        EXPECT_EQ(each.period_ns, 500u);
        EXPECT_EQ(each.lost, 0u);
        EXPECT_EQ(each.stream, work_.stream);
        EXPECT_EQ(each.index, work_.index);
        EXPECT_EQ(each.begin_ps, work_.begin_ps);
        EXPECT_EQ(each.group, 7u);
        EXPECT_EQ(each.function, nullptr) << "no module is there";
        EXPECT_EQ(each.source, nullptr);
    }
    EXPECT_EQ(all[0].time_ps, 5'500u);
    EXPECT_EQ(all[0].count, 3u);
    EXPECT_EQ(all[0].stall, static_cast<std::uint32_t>(orrProfStallLatency));
    EXPECT_EQ(all[1].core, 1u);
    EXPECT_EQ(all[1].stall, static_cast<std::uint32_t>(orrProfStallBarrier));
    EXPECT_EQ(names_, (std::vector<std::string>{"fill", "fill", "fill"}));
    EXPECT_EQ(sample_correlation_, correlation_);
}

// Of a job that never ends here, as its end was lost, or is another's.
TEST_F(Pcs, OfJobsThatNobodyKnowsAreNotTold) {
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 500));
    with_card([](FakeCard& card) {
        card.pc_records = {at(1, 0, 0), at(2, 0, 0)};
        card.pc_records[1].start_ps = 77;
        drm_orr_pc_record ended = at(3, 0, 0);
        ended.kind = ORR_PC_JOB;
        ended.start_ps = 77;
        ended.queue = 12'345;
        card.pc_records.push_back(ended);
    });
    const auto all = flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].count, 0u);
    EXPECT_EQ(all[0].lost, 1u);
}

TEST_F(Pcs, AreRefusedWhereNobodyListensOrNothingIsSaid) {
    EXPECT_EQ(orrProfStartPcSampling(subscription_, 0, 99), orrErrorInvalidValue);
    EXPECT_EQ(orrProfStartPcSampling(subscription_, 7, 500), orrErrorInvalidDevice);
    with_card([](FakeCard& card) { card.says_pcs = false; });
    EXPECT_EQ(orrProfStartPcSampling(subscription_, 0, 500), orrErrorNotSupported);
    with_card([](FakeCard& card) { card.says_pcs = true; });
    ASSERT_OK(orrProfUnsubscribe(subscription_));
    subscription_ = nullptr;
    EXPECT_EQ(orrProfStartPcSampling(subscription_, 0, 500), orrErrorInvalidValue) << "nobody wants them";
}

TEST_F(Pcs, ThatAreLostAreCounted) {
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 500));
    with_card([](FakeCard& card) { card.pcs_lost = true; });
    const auto all = flushed();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].count, 0u);
    EXPECT_EQ(all[0].lost, 1u);
}

// What the card has put down before is of the period from before.
TEST_F(Pcs, OfAnotherPeriodComeBehindThoseFromBefore) {
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 500));
    with_card([](FakeCard& card) { card.pcs_of_next = {at(5'500, 0, orrProfStallLatency)}; });
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 1'000));
    with_card([](FakeCard& card) { card.pcs_of_next = {at(9'500, 0, orrProfStallLatency)}; });
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    const auto all = flushed();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].period_ns, 500u);
    EXPECT_EQ(all[1].period_ns, 1'000u);
}

// A callback is not told inside of itself: what is read there is told later.
TEST_F(Pcs, ThatAreFlushedOrEndedInACallbackAreTold) {
    ASSERT_OK(orrProfUnsubscribe(subscription_));
    struct Flusher {
        Pcs* pcs;
        orrProfSubscription_t* subscription;
        bool ends = false;
    } flusher{this, &subscription_};
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want = orrProfWantWork | orrProfWantPcs | orrProfWantCalls;
    const auto callback = [](void* user, const orrProfRecord* record) {
        const auto& own = *static_cast<Flusher*>(user);
        if (record->kind == orrProfWorkDone || record->kind == orrProfPcSampled) return told(own.pcs, record);
        if (record->kind != orrProfLeave || std::string(record->name) != "orrStreamSynchronize") return;
        EXPECT_OK(own.ends ? orrProfStopPcSampling(*own.subscription, 0) : orrProfFlush());
    };
    ASSERT_OK(orrProfSubscribe(&subscription_, callback, &flusher, &options));
    for (const std::size_t count : {1u, 2u, 3u}) {
        ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 500));
        with_card([](FakeCard& card) { card.pcs_of_next = {at(5'500, 0, orrProfStallLatency)}; });
        ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
        flusher.ends = count > 1;
        ASSERT_OK(orrStreamSynchronize(stream_));
        for (std::size_t told = 0; told < count; std::this_thread::yield()) {
            const std::lock_guard lock(mutex_);
            told = samples_.size();
        }
        for (bool on = flusher.ends; on; std::this_thread::yield())
            with_card([&](FakeCard& card) { on = card.pc_ns != 0; });
    }
}

// Who only wants samples hears none without somebody who wants work: others may have them.
TEST_F(Pcs, EndWhenNobodyWantsWorkAnyMore) {
    orrProfSubscription_t other = nullptr;
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want = orrProfWantPcs;
    ASSERT_OK(orrProfSubscribe(&other, &told, this, &options));
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 1'000));
    ASSERT_OK(orrProfUnsubscribe(subscription_));
    subscription_ = nullptr;
    for (bool ended = false; !ended; std::this_thread::yield())
        with_card([&](FakeCard& card) { ended = card.pc_ns == 0; });
    ASSERT_OK(orrProfUnsubscribe(other));
}

// Two tools: the same for both, or an error that says who has others.
TEST_F(Pcs, OfTwoAreTheSameOrRefused) {
    thread_marks().tool = "second";
    Heard second(orrProfWantWork | orrProfWantPcs);
    thread_marks().tool = nullptr;
    const auto period = [&] {
        std::uint32_t now = 0;
        with_card([&](FakeCard& card) { now = card.pc_ns; });
        return now;
    };
    ASSERT_OK(orrProfStartPcSampling(second.subscription(), 0, 500));
    EXPECT_FAIL(orrProfStartPcSampling(subscription_, 0, 600), orrErrorSystem,
                "tool 'second' has samples of device 0's vector cores (each 500 ns)");
    // That core would have no other samples.
    EXPECT_FAIL(orrProfStartInstructionTrace(subscription_, 0, 0, 0, 1'000), orrErrorSystem, "tool 'second'");
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 500));
    with_card([](FakeCard& card) { card.pcs_of_next = {at(5'500, 0, orrProfStallLatency)}; });
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    ASSERT_OK(orrProfStopPcSampling(subscription_, 0));
    const auto told_to = [&] {
        return std::ranges::count(second.records, static_cast<std::uint32_t>(orrProfPcSampled),
                                  &orrProfRecord::kind);
    };
    EXPECT_EQ(told_to(), 1);
    EXPECT_EQ(flushed().size(), 1u);
    EXPECT_EQ(period(), 500u) << "the other one has them";
    with_card([](FakeCard& card) { card.pcs_of_next = {at(7'500, 0, orrProfStallLatency)}; });
    ASSERT_OK(orrMemsetAsync(memory_, 1, 64, stream_));
    ASSERT_OK(orrStreamSynchronize(stream_));
    ASSERT_OK(orrProfStopPcSampling(second.subscription(), 0));
    EXPECT_EQ(told_to(), 2);
    EXPECT_EQ(period(), 0u);
    // A trace beside samples is for who is alone with both.
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 500));
    ASSERT_OK(orrProfStartInstructionTrace(subscription_, 0, 0, 0, 1'000));
    EXPECT_FAIL(orrProfStartPcSampling(second.subscription(), 0, 600), orrErrorSystem,
                "each 500 ns, each instruction of core 0");
    second.end();
}

TEST_F(Pcs, EndWhenTheyAreStopped) {
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 500));
    ASSERT_OK(orrProfStopPcSampling(subscription_, 0));
    with_card([](FakeCard& card) { EXPECT_EQ(card.pc_ns, 0u); });
    EXPECT_OK(orrProfStopPcSampling(subscription_, 0));
}

TEST_F(Pcs, EndWhenNobodyListensAnyMore) {
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 1'000));
    ASSERT_OK(orrProfUnsubscribe(subscription_));
    subscription_ = nullptr;
    for (bool ended = false; !ended; std::this_thread::yield())
        with_card([&](FakeCard& card) { ended = card.pc_ns == 0; });
}

}  // namespace
}  // namespace orrery::umd::test
