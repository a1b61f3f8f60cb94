// Samples of a card's counters are told to who wants them.
#include <orrery/hw/counters.h>
#include <orrery/prof.h>

#include <bit>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/prof/heard.h"
#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/prof/profiler.h"

namespace orrery::umd::test {
namespace {

struct Sample {
    orrProfSample told;
    std::vector<orrCounter_t> counters;
    std::vector<std::uint64_t> values;
};

class Samples : public ::testing::Test {
  protected:
    void SetUp() override {
        orrProfOptions options = ORR_INIT(orrProfOptions);
        options.want = orrProfWantSamples;
        ASSERT_OK(orrProfSubscribe(&subscription_, &told, this, &options));
        ASSERT_OK(orrDeviceFindCounter(&busy_, 0, "core_busy_ps"));
        ASSERT_OK(orrDeviceFindCounter(&bells_, 0, "doorbells"));
    }
    void TearDown() override { ASSERT_OK(orrProfUnsubscribe(subscription_)); }
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<Samples*>(user);
        EXPECT_EQ(record->kind, static_cast<std::uint32_t>(orrProfSampled));
        const auto& sample = *static_cast<const orrProfSample*>(record->params);
        const std::lock_guard lock(self.mutex_);
        self.samples_.push_back({sample,
                                 {sample.counters, sample.counters + sample.count},
                                 {sample.values, sample.values + sample.count}});
        if (self.ends_them) EXPECT_OK(orrProfStopSamples(self.subscription_, 0));
    }
    void take(std::initializer_list<std::uint64_t> words) {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().sample_words.insert(system_.card().sample_words.end(), words);
    }
    void lose() {
        const std::lock_guard lock(system_.card().mutex());
        system_.card().samples_lost = true;
    }
    std::uint32_t period() {
        const std::lock_guard lock(system_.card().mutex());
        return system_.card().sample_ns;
    }
    std::vector<Sample> flushed() {
        EXPECT_OK(orrProfFlush());
        const std::lock_guard lock(mutex_);
        return samples_;
    }

    FakeSystem system_;
    orrProfSubscription_t subscription_ = nullptr;
    orrCounter_t busy_ = 0, bells_ = 0;
    std::mutex mutex_;
    std::vector<Sample> samples_;
    bool ends_them = false;
};

TEST_F(Samples, AreOfTheCountersThatAreAskedFor) {
    const orrCounter_t both[] = {bells_, busy_};
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 5000, both, 2));
    EXPECT_EQ(period(), 5000u);
    {
        const std::lock_guard lock(system_.card().mutex());
        EXPECT_EQ(system_.card().sample_set[0], 1ull << ORR_CTR_CORE_BUSY_PS | 1ull << ORR_CTR_DOORBELLS);
        EXPECT_EQ(system_.card().sample_set[1], 0u);
    }
    // Time, number, and the counters in the order of their numbers. More than one read gives.
    take({5'000'000, 1, 10, 20, 10'000'000, 2, 11, 21, 25'000'000, 5, 12, 22});
    const auto all = flushed();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].told.device, 0);
    EXPECT_EQ(all[0].told.period_ns, 5000u);
    EXPECT_EQ(all[0].told.time_ps, 5'000'000u);
    EXPECT_EQ(all[0].counters, (std::vector{busy_, bells_}));
    EXPECT_EQ(all[0].values, (std::vector<std::uint64_t>{10, 20}));
    EXPECT_EQ(all[0].told.lost, 0u);
    EXPECT_EQ(all[1].told.lost, 0u);
    EXPECT_EQ(all[2].values, (std::vector<std::uint64_t>{12, 22}));
    EXPECT_EQ(all[2].told.lost, 2u) << "numbers 3 and 4";
    ASSERT_OK(orrProfStopSamples(subscription_, 0));
    EXPECT_EQ(period(), 0u);
    ASSERT_OK(orrProfStopSamples(subscription_, 0));
}

// The card takes what it is asked for a little later: until then it goes on with the numbers from before.
TEST_F(Samples, BeginAnewBehindThoseFromBefore) {
    const orrCounter_t both[] = {bells_, busy_};
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 5000, both, 2));
    take({5'000'000, 700, 1, 1, 10'000'000, 1, 2, 2, 15'000'000, 2, 3, 3});
    const auto all = flushed();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[1].told.lost, 0u);
    EXPECT_EQ(all[2].told.lost, 0u);
}

// Those that are lost last have none behind them that could say so.
TEST_F(Samples, AreMissedWhenTheyEnd) {
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 5000, &busy_, 1));
    take({5'000'000, 1, 10});
    lose();
    ASSERT_EQ(flushed().size(), 1u);
    take({9'000'000, 5, 11});
    ASSERT_EQ(flushed().size(), 2u);
    EXPECT_EQ(samples_[1].told.lost, 3u) << "once";
    lose();
    ASSERT_OK(orrProfStopSamples(subscription_, 0));
    ASSERT_EQ(samples_.size(), 3u);
    EXPECT_EQ(samples_[2].told.count, 0u);
    EXPECT_EQ(samples_[2].told.lost, 1u);
    EXPECT_EQ(samples_[2].told.device, 0);
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 5000, &busy_, 1));
    ASSERT_OK(orrProfStopSamples(subscription_, 0));
    EXPECT_EQ(samples_.size(), 3u);
}

// Of what a callback takes from the card nothing is lost: another thread tells it.
TEST_F(Samples, WhatACallbackTakesIsTold) {
    struct Tool {
        Samples* test;
        std::function<void()> at_leave;
    } tool{this, {}};
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want = orrProfWantSamples | orrProfWantCalls;
    ASSERT_OK(orrProfUnsubscribe(subscription_));
    const auto told_or_leave = [](void* user, const orrProfRecord* record) {
        Tool& own = *static_cast<Tool*>(user);
        if (record->kind == orrProfSampled) told(own.test, record);
        if (record->kind == orrProfLeave && own.at_leave) std::exchange(own.at_leave, {})();
    };
    ASSERT_OK(orrProfSubscribe(&subscription_, told_or_leave, &tool, &options));
    const auto inside = [&](const std::function<void()>& what) {
        tool.at_leave = what;
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
    };
    const auto wait_for = [&](std::size_t count) {
        while (true) {
            const std::lock_guard lock(mutex_);
            if (samples_.size() >= count) break;
        }
    };
    inside([&] {
        ASSERT_OK(orrProfStartSamples(subscription_, 0, 1000, &busy_, 1));
        take({1, 1, 10});
        ASSERT_OK(orrProfFlush());
        take({2, 2, 11});
        ASSERT_OK(orrProfStartSamples(subscription_, 0, 2000, &bells_, 1));
        take({3, 1, 12});
        lose();
        ASSERT_OK(orrProfStopSamples(subscription_, 0));
    });
    wait_for(4);
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 1000, &busy_, 1));
    take({4, 1, 13});
    const auto all = flushed();
    ASSERT_EQ(all.size(), 5u);
    EXPECT_EQ(all[0].told.period_ns, 1000u);
    EXPECT_EQ(all[1].counters, std::vector{busy_});
    EXPECT_EQ(all[2].counters, std::vector{bells_});
    EXPECT_EQ(all[2].told.period_ns, 2000u);
    for (const std::size_t i : {0u, 1u, 2u, 4u}) {
        EXPECT_EQ(all[i].told.lost, 0u) << i;
        EXPECT_EQ(all[i].values, std::vector<std::uint64_t>{10 + i - i / 4});
    }
    EXPECT_EQ(all[3].told.count, 0u);
}

TEST_F(Samples, AreOfAllIfNothingElseIsSaid) {
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 1000, nullptr, 0));
    std::size_t count = 0;
    ASSERT_OK(orrDeviceGetCounterCount(&count, 0));
    const std::lock_guard lock(system_.card().mutex());
    const auto& set = system_.card().sample_set;
    EXPECT_EQ(static_cast<std::size_t>(std::popcount(set[0]) + std::popcount(set[1])), count);
}

// Records of work, which are everybody's, come by the same way.
TEST_F(Samples, LeaveRoomForRecords) {
    system_.card().counters = 40;
    EXPECT_FAIL(orrProfStartSamples(subscription_, 0, 2199, nullptr, 0), orrErrorInvalidValue,
                "give 2200 ns or more, or fewer counters");
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 2200, nullptr, 0));
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 1000, &busy_, 1));
}

TEST_F(Samples, AreToldWithoutAFlushToo) {
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 1000, &busy_, 1));
    take({5'000'000, 1, 10});
    while (true) {
        const std::lock_guard lock(mutex_);
        if (samples_.size() == 1) break;
    }
}

TEST_F(Samples, EndInACallback) {
    ends_them = true;
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 1000, &busy_, 1));
    take({5'000'000, 1, 10, 6'000'000, 2, 11});
    (void)flushed();
    EXPECT_EQ(period(), 0u);
    ends_them = false;
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 2000, &busy_, 1));
    const std::size_t before = flushed().size();
    take({7'000'000, 1, 10});
    EXPECT_EQ(flushed().size(), before + 1);
}

TEST_F(Samples, AreAskedForProperly) {
    EXPECT_FAIL(orrProfStartSamples(subscription_, 0, 999, &busy_, 1), orrErrorInvalidValue, "give 1000 to");
    EXPECT_FAIL(orrProfStartSamples(subscription_, 0, 1ull << 32, &busy_, 1), orrErrorInvalidValue,
                "give 1000 to");
    EXPECT_FAIL(orrProfStartSamples(subscription_, 0, 1000, nullptr, 1), orrErrorInvalidValue, "counters");
    const orrCounter_t none = 3, twice[] = {busy_, busy_};
    EXPECT_FAIL(orrProfStartSamples(subscription_, 0, 1000, &none, 1), orrErrorInvalidValue,
                "no counter of device 0");
    EXPECT_FAIL(orrProfStartSamples(subscription_, 0, 1000, twice, 2), orrErrorInvalidValue, "twice");
    EXPECT_FAIL(orrProfStartSamples(subscription_, 7, 1000, &busy_, 1), orrErrorInvalidDevice, "7");
    system_.card().takes_samples = false;
    EXPECT_FAIL(orrProfStartSamples(subscription_, 0, 1000, &busy_, 1), orrErrorNotSupported, "no samples");
    EXPECT_OK(orrProfStopSamples(subscription_, 0));
}

// Two tools, each with a subscription.
class TwoOfSamples : public Samples {
  protected:
    void SetUp() override {
        Samples::SetUp();
        // As one that is made in its start().
        thread_marks().tool = "second";
        second_ = std::make_unique<Heard>(orrProfWantSamples);
        thread_marks().tool = nullptr;
    }
    std::size_t heard() {
        EXPECT_OK(orrProfFlush());
        return second_->records.size();
    }
    std::unique_ptr<Heard> second_;
};

TEST_F(TwoOfSamples, HaveTheSameOnesBoth) {
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 5000, &busy_, 1));
    take({5'000'000, 1, 10});
    ASSERT_OK(orrProfStartSamples(second_->subscription(), 0, 5000, &busy_, 1));
    take({10'000'000, 2, 11});
    EXPECT_EQ(flushed().size(), 2u);
    EXPECT_EQ(heard(), 2u) << "all who want are told";
    // The first one goes; the other one's go on, and lose nothing.
    take({15'000'000, 3, 12});
    ASSERT_OK(orrProfStopSamples(subscription_, 0));
    EXPECT_EQ(heard(), 3u) << "what there was has been told";
    EXPECT_EQ(period(), 5000u);
    ASSERT_OK(orrProfStopSamples(subscription_, 0)) << "it has none, and ends none";
    EXPECT_EQ(period(), 5000u);
    take({20'000'000, 4, 13});
    EXPECT_EQ(heard(), 4u);
    for (const Sample& each : samples_)
        EXPECT_EQ(each.told.lost, 0u);
    ASSERT_OK(orrProfStopSamples(second_->subscription(), 0));
    EXPECT_EQ(period(), 0u);
}

TEST_F(TwoOfSamples, HaveNotTwoKindsAndAreToldWho) {
    ASSERT_OK(orrProfStartSamples(second_->subscription(), 0, 5000, &busy_, 1));
    EXPECT_FAIL(orrProfStartSamples(subscription_, 0, 4000, &busy_, 1), orrErrorSystem,
                "tool 'second' has samples of device 0's counters, 1 of them each 5000 ns");
    EXPECT_FAIL(orrProfStartSamples(subscription_, 0, 5000, &bells_, 1), orrErrorSystem, "tool 'second'");
    EXPECT_EQ(period(), 5000u) << "nothing was taken from it";
    take({5'000'000, 1, 10});
    EXPECT_EQ(heard(), 1u);
    // Who is alone may have others instead, and who is not may not.
    ASSERT_OK(orrProfStartSamples(second_->subscription(), 0, 4000, &busy_, 1));
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 4000, &busy_, 1));
    EXPECT_FAIL(orrProfStartSamples(second_->subscription(), 0, 5000, &busy_, 1), orrErrorSystem,
                "the program, or a library of it, has samples of device 0's counters");
    ASSERT_OK(orrProfStopSamples(second_->subscription(), 0));
    EXPECT_EQ(period(), 4000u);
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 2000, &bells_, 1)) << "it is alone now";
    EXPECT_EQ(period(), 2000u);
}

// One that ends without a word leaves nothing behind that others would wait for.
TEST_F(TwoOfSamples, AreOneOnceTheOtherHasEnded) {
    ASSERT_OK(orrProfStartSamples(second_->subscription(), 0, 5000, &busy_, 1));
    const orrProfSubscription_t ended = second_->subscription();
    second_->end();
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 4000, &bells_, 1));
    EXPECT_EQ(period(), 4000u);
    EXPECT_FAIL(orrProfStartSamples(ended, 0, 4000, &bells_, 1), orrErrorInvalidValue, "has ended");
    ASSERT_OK(orrProfStopSamples(ended, 0));
    EXPECT_EQ(period(), 4000u);
    ASSERT_OK(orrProfUnsubscribe(subscription_));
    while (period() != 0)
        std::this_thread::yield();
    Samples::SetUp();
}

TEST_F(TwoOfSamples, AreForWhoWantsToBeTold) {
    Heard calls(orrProfWantCalls);
    EXPECT_FAIL(orrProfStartSamples(calls.subscription(), 0, 5000, &busy_, 1), orrErrorInvalidValue,
                "subscribe with orrProfWantSamples");
    EXPECT_FAIL(orrProfStartSamples(nullptr, 0, 5000, &busy_, 1), orrErrorInvalidValue, "has ended");
}

TEST_F(Samples, ClocksAreReadWithinTwoOfTheHosts) {
    orrProfClock clock = ORR_INIT(orrProfClock);
    EXPECT_EQ(orrProfReadClock(nullptr, 0), orrErrorInvalidValue);
    EXPECT_EQ(orrProfReadClock(&clock, 99), orrErrorInvalidDevice);
    ASSERT_OK(orrProfReadClock(&clock, 0));
    EXPECT_EQ(clock.device, 0);
    EXPECT_GT(clock.before_ns, 0u);
    EXPECT_LE(clock.before_ns, clock.after_ns);
    orrProfClock later = ORR_INIT(orrProfClock);
    ASSERT_OK(orrProfReadClock(&later, 0));
    EXPECT_LE(clock.after_ns, later.before_ns);
    EXPECT_LE(clock.device_ps, later.device_ps);
}

}  // namespace
}  // namespace orrery::umd::test
