// What kernels and copies did, told with them: all together it is what the card's counters went up by. And
// samples of these counters, and of where vector cores are.
#include <drm/orrery_accel.h>
#include <fcntl.h>
#include <orrery/prof.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <optional>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

struct Did {
    std::string name;
    orrProfWork work;
    std::optional<orrProfWorkCounters> counters;
};

class Profile : public ::testing::Test {
  protected:
    void SetUp() override {
        orrProfOptions options = ORR_INIT(orrProfOptions);
        options.want = orrProfWantWork | orrProfWantCounters | orrProfWantSamples | orrProfWantPcs;
        ASSERT_OK(orrProfSubscribe(&subscription_, &told, this, &options));
        ASSERT_OK(orrMalloc(&memory_, kBytes));
        ASSERT_OK(orrMemset(memory_, 0, kBytes));
        ASSERT_OK(orrProfFlush());
        done_.clear();
        std::size_t count = 0;
        ASSERT_OK(orrDeviceGetCounterCount(&count, 0));
        for (std::size_t number = 0; number < count; ++number) {
            orrCounterInfo info = ORR_INIT(orrCounterInfo);
            ASSERT_OK(orrDeviceGetCounterInfo(&info, 0, number));
            names_.emplace_back(info.name);
            counters_.push_back(info.counter);
        }
        before_ = read();
    }
    void TearDown() override {
        ASSERT_OK(orrProfUnsubscribe(subscription_));
        ASSERT_OK(orrFree(memory_));
    }
    static void told(void* user, const orrProfRecord* record) {
        auto& self = *static_cast<Profile*>(user);
        const std::lock_guard lock(self.mutex_);
        if (record->kind == orrProfWorkDone) {
            const auto& work = *static_cast<const orrProfWork*>(record->params);
            self.done_.push_back({record->name, work, {}});
            if (work.counters != nullptr) self.done_.back().counters = *work.counters;
        } else if (record->kind == orrProfSampled) {
            const auto& sample = *static_cast<const orrProfSample*>(record->params);
            self.samples_.emplace_back(sample.time_ps,
                                       std::vector(sample.values, sample.values + sample.count));
        } else if (record->kind == orrProfPcSampled) {
            const auto& sample = *static_cast<const orrProfPcSample*>(record->params);
            self.pcs_.push_back({record->name == nullptr ? "" : record->name,
                                 sample.function == nullptr ? "" : sample.function, sample});
        }
    }
    std::vector<std::uint64_t> read() const {
        std::vector<std::uint64_t> values(counters_.size());
        EXPECT_OK(orrDeviceReadCounters(values.data(), 0, counters_.data(), counters_.size()));
        return values;
    }
    // How much the counter of this name went up.
    std::uint64_t up(const std::string& name) const {
        const auto at = std::ranges::find(names_, name) - names_.begin();
        return after_.at(static_cast<std::size_t>(at)) - before_.at(static_cast<std::size_t>(at));
    }
    std::uint64_t sum(std::uint64_t orrProfWorkCounters::* which, bool kernels) const {
        std::uint64_t all = 0;
        for (const Did& did : done_)
            if ((did.work.operation == orrProfOperationKernel) == kernels) all += (*did.counters).*which;
        return all;
    }

    // On a slow host the library's own thread may be at it for longer than the call waits.
    orrError_t stop_pcs() {
        orrError_t answer = orrErrorTimeout;
        while (answer == orrErrorTimeout)
            answer = orrProfStopPcSampling(subscription_, 0);
        return answer;
    }

    static constexpr std::size_t kBytes = 8 << 20;
    Card card_{0};
    orrProfSubscription_t subscription_ = nullptr;
    void* memory_ = nullptr;
    std::mutex mutex_;
    std::vector<Did> done_;
    std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> samples_;
    struct At {
        std::string kernel, function;
        orrProfPcSample sample;
    };
    std::vector<At> pcs_;
    std::vector<std::string> names_;
    std::vector<orrCounter_t> counters_;
    std::vector<std::uint64_t> before_, after_;
};

TEST_F(Profile, WhatKernelsAndCopiesDidIsAllThatTheCardCounted) {
    using Counters = orrProfWorkCounters;
    Card other(0);
    constexpr int kRounds = 10;
    for (int n = 1; n <= kRounds; ++n) {
        const TestArgs small{static_cast<std::uint64_t*>(memory_), 1000, 1};
        const TestArgs large{reinterpret_cast<std::uint64_t*>(at(memory_, 1 << 20)), 1 << 14, 1};
        ASSERT_OK(card_.launch("add_value", small, static_cast<std::uint32_t>(n), 8));
        ASSERT_OK(other.launch("add_value", large, 16, 32));
        ASSERT_OK(orrMemcpyAsync(at(memory_, 2 << 20), at(memory_, 4 << 20),
                                 static_cast<std::size_t>(n) << 16, orrMemcpyDeviceToDevice, card_.stream));
    }
    ASSERT_OK(orrStreamSynchronize(card_.stream));
    ASSERT_OK(orrStreamSynchronize(other.stream));
    ASSERT_OK(orrProfFlush());
    after_ = read();
    const std::lock_guard lock(mutex_);
    ASSERT_EQ(done_.size(), 3u * kRounds);
    std::map<std::uint64_t, std::uint64_t> groups;
    std::uint64_t copied = 0;
    for (const Did& did : done_) {
        ASSERT_TRUE(did.counters) << did.name;
        if (did.work.operation != orrProfOperationKernel) {
            copied += did.counters->moved;
            EXPECT_EQ(did.counters->busy_ps, did.work.used_ps);
            EXPECT_EQ(did.counters->vram_written, did.counters->moved);
            continue;
        }
        ++groups[did.counters->groups];
        EXPECT_EQ(did.counters->items, did.counters->groups * (did.counters->groups == 16 ? 32 : 8));
        EXPECT_GT(did.counters->cores, 0u);
        EXPECT_LE(did.counters->cores, did.counters->groups);
        EXPECT_LE(did.counters->busy_ps, did.work.used_ps);
        EXPECT_GT(did.counters->vram_read, 0u);
    }
    for (int n = 1; n <= kRounds; ++n)
        EXPECT_EQ(groups[static_cast<std::uint64_t>(n)], 1u) << n;
    EXPECT_EQ(groups[16], static_cast<std::uint64_t>(kRounds));
    EXPECT_EQ(copied, kRounds * (kRounds + 1) / 2 << 16);
    for (const auto& [which, name] : std::initializer_list<std::pair<std::uint64_t Counters::*, const char*>>{
             {&Counters::groups, "vector_groups"},
             {&Counters::items, "vector_items"},
             {&Counters::instructions, "vector_instructions"},
             {&Counters::busy_ps, "vector_busy_ps"},
             {&Counters::queued_ps, "vector_queued_ps"},
             {&Counters::latency_ps, "vector_latency_ps"},
             {&Counters::bandwidth_ps, "vector_bandwidth_ps"},
             {&Counters::launch_ps, "vector_launch_ps"},
             {&Counters::simd_int, "vector_simd_int"},
             {&Counters::simd_loads, "vector_simd_loads"},
             {&Counters::simd_stores, "vector_simd_stores"},
             {&Counters::lanes_active, "vector_lanes_active"},
             {&Counters::lanes, "vector_lanes"},
             {&Counters::flops_f64, "vector_flops_f64"},
             {&Counters::tlb_lookups, "vector_tlb_lookups"},
             {&Counters::tlb_misses, "vector_tlb_misses"},
             {&Counters::tlb_walked, "vector_tlb_walked"}})
        EXPECT_EQ(sum(which, true), up(name)) << name;
    EXPECT_EQ(sum(&Counters::vram_read, true) + sum(&Counters::vram_written, true), up("vram_vector_bytes"));
    EXPECT_EQ(sum(&Counters::vram_read, false) + sum(&Counters::vram_written, false), up("vram_copy_bytes"));
    EXPECT_EQ(sum(&Counters::moved, false), up("copy_bytes"));
    EXPECT_EQ(sum(&Counters::busy_ps, false), up("copy_busy_ps"));
    // What the time of copies went into, of each and of the card.
    std::uint64_t waits = 0;
    for (const auto& [which, name] : std::initializer_list<std::pair<std::uint64_t Counters::*, const char*>>{
             {&Counters::copy_setup_ps, "copy_setup_ps"},
             {&Counters::copy_rows_ps, "copy_rows_ps"},
             {&Counters::copy_vram_ps, "copy_vram_ps"},
             {&Counters::copy_pcie_ps, "copy_pcie_ps"},
             {&Counters::copy_latency_ps, "copy_latency_ps"},
             {&Counters::copy_translation_ps, "copy_translation_ps"},
             {&Counters::copy_link_ps, "copy_link_ps"},
             {&Counters::copy_credit_ps, "copy_credit_ps"},
             {&Counters::copy_peer_ps, "copy_peer_ps"}}) {
        EXPECT_EQ(sum(which, false), up(name)) << name;
        waits += sum(which, false);
    }
    EXPECT_EQ(up("copy_busy_ps"), waits + up("copy_move_ps"));
    EXPECT_GT(up("copy_move_ps"), 0u);
    EXPECT_GT(up("vector_instructions"), 0u);
    // The library's catalogue, the driver and the card agree on which counters are the classes.
    std::uint64_t of_kernels = 0, of_core = 0;
    for (const char* const each : {"int", "muldiv", "fp", "loads", "stores", "jumps", "atomics", "system"})
        of_kernels += up(std::string("vector_scalar_") + each);
    for (const char* const each : {"int", "fp", "moves", "loads", "stores", "config"})
        of_kernels += up(std::string("vector_simd_") + each);
    for (const char* const each : {"int", "muldiv", "loads", "stores", "jumps", "atomics", "system"})
        of_core += up(std::string("core_") + each);
    EXPECT_EQ(of_kernels, up("vector_instructions"));
    EXPECT_EQ(of_core, up("core_instructions"));
    EXPECT_GT(up("vector_scalar_stores"), 0u);
}

// Of each kernel its cores' time, and what that was by the counters, to a period for each of its groups; of
// two kernels at once, each its own.
TEST_F(Profile, WhereCoresAreIsWhatTheirTimeWasCountedFor) {
    Card other(0);
    constexpr std::uint64_t kPeriodNs = 100, kPeriod = kPeriodNs * 1000;
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, kPeriodNs));
    const TestArgs small{static_cast<std::uint64_t*>(memory_), 1 << 14, 1};
    const TestArgs large{reinterpret_cast<std::uint64_t*>(at(memory_, 1 << 20)), 1 << 15, 1};
    for (int n = 0; n < 3; ++n) {
        ASSERT_OK(card_.launch("add_value", small, 4, 8));
        ASSERT_OK(other.launch("add_value", large, 16, 32));
    }
    ASSERT_OK(orrStreamSynchronize(card_.stream));
    ASSERT_OK(orrStreamSynchronize(other.stream));
    ASSERT_OK(stop_pcs());
    const std::lock_guard lock(mutex_);
    ASSERT_EQ(done_.size(), 6u);
    std::size_t told = 0;
    for (const Did& did : done_) {
        std::map<std::uint32_t, std::uint64_t> by;
        std::uint64_t all = 0;
        for (const At& each : pcs_) {
            if (each.sample.stream != did.work.stream || each.sample.index != did.work.index) continue;
            ++told;
            EXPECT_EQ(each.kernel, "add_value");
            EXPECT_EQ(each.function, "add_value");
            EXPECT_EQ(each.sample.lost, 0u);
            EXPECT_LT(each.sample.group, did.counters->groups);
            EXPECT_GE(each.sample.time_ps, did.work.begin_ps);
            EXPECT_LE(each.sample.time_ps + (each.sample.count - 1) * kPeriod, did.work.end_ps);
            all += each.sample.count;
            by[each.sample.stall] += each.sample.count;
        }
        ASSERT_TRUE(did.counters);
        const auto near = [&](std::uint64_t moments, std::uint64_t ps, double share) {
            EXPECT_NEAR(static_cast<double>(moments * kPeriod), static_cast<double>(ps),
                        static_cast<double>(did.counters->groups * kPeriod) +
                            share * static_cast<double>(did.counters->busy_ps));
        };
        near(all, did.counters->busy_ps, 0);
        near(by[orrProfStallLatency], did.counters->latency_ps, 0.1);
        near(by[orrProfStallBandwidth], did.counters->bandwidth_ps, 0.1);
        near(by[orrProfStallLaunch], did.counters->launch_ps, 0.1);
    }
    EXPECT_EQ(told, pcs_.size());
    EXPECT_GT(told, 100u);
}

// Another file of the card has been given the samples, and nothing of this process's kernels.
TEST_F(Profile, WhereCoresAreIsTheirProcessesAlone) {
    const int fd = ::open("/dev/accel/accel0", O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    drm_orr_pc_read read{};
    read.flags = ORR_WORK_START;
    read.period_ns = 100;
    ASSERT_EQ(::ioctl(fd, DRM_IOCTL_ORR_PC_READ, &read), 0);
    EXPECT_EQ(orrProfStartPcSampling(subscription_, 0, 100), orrErrorSystem) << "another has them";
    const TestArgs args{static_cast<std::uint64_t*>(memory_), 1 << 15, 1};
    ASSERT_OK(card_.launch("add_value", args, 16, 32));
    ASSERT_OK(orrStreamSynchronize(card_.stream));
    std::vector<drm_orr_pc_record> records(64);
    read = {};
    read.records = reinterpret_cast<std::uintptr_t>(records.data());
    read.count = static_cast<std::uint32_t>(records.size());
    EXPECT_EQ(::ioctl(fd, DRM_IOCTL_ORR_PC_READ, &read), 0);
    EXPECT_EQ(read.count, 0u);
    EXPECT_EQ(read.flags, 0u) << "it has looked at all there was";
    ::close(fd);
    ASSERT_OK(orrProfStartPcSampling(subscription_, 0, 100)) << "who goes has them no more";
    ASSERT_OK(stop_pcs());
}

// Without an end between them: the first ones are told as what they are, and the numbers begin anew. They are
// asked for before the card is used, so that a recorder finds them taken, and is told them.
TEST(ProfileOfOne, SamplesHaveTheirPeriod) {
    struct Told {
        std::mutex mutex;
        std::map<std::uint64_t, int> of;  // by their period
        std::uint64_t lost = 0;
    } told;
    const auto callback = [](void* user, const orrProfRecord* record) {
        auto& own = *static_cast<Told*>(user);
        const auto& sample = *static_cast<const orrProfSample*>(record->params);
        const std::lock_guard lock(own.mutex);
        ++own.of[sample.period_ns];
        own.lost += sample.lost;
    };
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want = orrProfWantSamples;
    orrProfSubscription_t subscription = nullptr;
    ASSERT_OK(orrProfSubscribe(&subscription, callback, &told, &options));
    orrCounter_t wanted[2] = {};
    ASSERT_OK(orrDeviceFindCounter(&wanted[0], 0, "copy_bytes"));
    ASSERT_OK(orrDeviceFindCounter(&wanted[1], 0, "time_ps"));
    ASSERT_OK(orrProfStartSamples(subscription, 0, 1'000, wanted, 2));
    {
        const Card card(0);
        constexpr std::size_t kBytes = 1 << 20;
        void* memory = nullptr;
        ASSERT_OK(orrMalloc(&memory, 2 * kBytes));
        for (const std::uint64_t period_ns : {1'000u, 5'000u}) {
            if (period_ns != 1'000) ASSERT_OK(orrProfStartSamples(subscription, 0, period_ns, wanted, 2));
            for (int n = 0; n < 10; ++n)
                ASSERT_OK(
                    orrMemcpyAsync(memory, at(memory, kBytes), kBytes, orrMemcpyDeviceToDevice, card.stream));
            ASSERT_OK(orrStreamSynchronize(card.stream));
        }
        ASSERT_OK(orrFree(memory));
    }
    ASSERT_OK(orrProfStopSamples(subscription, 0));
    ASSERT_OK(orrProfUnsubscribe(subscription));
    EXPECT_EQ(told.of.size(), 2u);
    EXPECT_GT(told.of[1'000], 6);
    EXPECT_GT(told.of[5'000], 2);
    EXPECT_EQ(told.lost, 0u);
}

TEST_F(Profile, SamplesFollowTheCounters) {
    orrCounter_t wanted[3] = {};
    ASSERT_OK(orrDeviceFindCounter(&wanted[0], 0, "copy_bytes"));
    ASSERT_OK(orrDeviceFindCounter(&wanted[1], 0, "time_ps"));
    ASSERT_OK(orrDeviceFindCounter(&wanted[2], 0, "vram_copy_bytes"));
    ASSERT_OK(orrProfStartSamples(subscription_, 0, 1000, wanted, 3));
    constexpr std::size_t kCopied = 1 << 20;
    for (int n = 0; n < 20; ++n)
        ASSERT_OK(
            orrMemcpyAsync(memory_, at(memory_, 4 << 20), kCopied, orrMemcpyDeviceToDevice, card_.stream));
    ASSERT_OK(orrStreamSynchronize(card_.stream));
    ASSERT_OK(orrProfStopSamples(subscription_, 0));
    after_ = read();
    const std::lock_guard lock(mutex_);
    ASSERT_GT(samples_.size(), 20u);
    for (std::size_t n = 0; n < samples_.size(); ++n) {
        const auto& [time, values] = samples_[n];
        ASSERT_EQ(values.size(), 3u);
        EXPECT_EQ(values[1], time);
        if (n == 0) continue;
        EXPECT_GT(time / 1'000'000, samples_[n - 1].first / 1'000'000);
        EXPECT_GE(values[0], samples_[n - 1].second[0]);
    }
    // All but what was moved before the first and behind the last one.
    const std::uint64_t seen = samples_.back().second[0] - samples_.front().second[0];
    EXPECT_LE(seen, up("copy_bytes"));
    EXPECT_GE(seen, 18 * kCopied);
    EXPECT_GE(samples_.back().second[2] - samples_.front().second[2], 2 * seen)
        << "each byte is read and written";
}

}  // namespace
}  // namespace orrery::umd::vm
