// Counters by perf: they count what the card does, exactly, for whoever may count all of a machine.
#include <gtest/gtest.h>
#include <orrery/hw/counters.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/system/runtime/hand.h"
#include "tests/vm/kmod/place.h"
#include "tests/vm/kmod/pmu.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;

drm_orr_query_device query(const Place& place) {
    drm_orr_query_device card{};
    EXPECT_EQ(call(place.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &card), 0);
    return card;
}

TEST(Pmu, CountsWhatTheCardDoes) {
    Place place(0);
    place.make_memory(kBytes);
    const PmuEvent bytes(pmu_attributes(0, "copy_bytes")), jobs(pmu_attributes(0, "copy_jobs"));
    ASSERT_EQ(bytes.error, 0);
    ASSERT_EQ(jobs.error, 0);
    EXPECT_EQ(bytes.count(), 0u);
    EXPECT_EQ(jobs.count(), 0u);
    constexpr unsigned kJobs = 5;
    for (unsigned n = 0; n < kJobs; ++n)
        EXPECT_EQ(place.queue->run(std::vector{fill(kVa, kBytes, n)}), 0);
    EXPECT_EQ(bytes.count(), kJobs * kBytes);
    EXPECT_EQ(jobs.count(), kJobs);
    // Not while it is stopped.
    ASSERT_EQ(::ioctl(bytes.file.get(), PERF_EVENT_IOC_DISABLE, 0), 0);
    EXPECT_EQ(place.queue->run(std::vector{fill(kVa, kBytes, 9)}), 0);
    EXPECT_EQ(bytes.count(), kJobs * kBytes);
    ASSERT_EQ(::ioctl(bytes.file.get(), PERF_EVENT_IOC_ENABLE, 0), 0);
    EXPECT_EQ(bytes.count(), kJobs * kBytes);
    EXPECT_EQ(place.queue->run(std::vector{fill(kVa, 4096, 9)}), 0);
    EXPECT_EQ(bytes.count(), kJobs * kBytes + 4096);
    EXPECT_EQ(jobs.count(), kJobs + 2);
}

// Busy and idle time of copy engines are the time of all of them, while copies run: only if the three are of
// one moment, at each reading and where they began.
TEST(Pmu, AGroupIsOfOneMoment) {
    Place place(0);
    place.make_memory(kBytes);
    const drm_orr_query_device card = query(place);
    perf_event_attr attributes = pmu_attributes(0, "time_ps");
    attributes.read_format = PERF_FORMAT_GROUP;
    attributes.disabled = 1;
    const PmuEvent time(attributes);
    ASSERT_EQ(time.error, 0);
    const PmuEvent busy(pmu_attributes(0, "copy_busy_ps"), 0, -1, &time);
    const PmuEvent idle(pmu_attributes(0, "copy_idle_ps"), 0, -1, &time);
    ASSERT_EQ(busy.error, 0);
    ASSERT_EQ(idle.error, 0);
    std::uint64_t last = 0;
    for (unsigned round = 0; round < 20; ++round) {
        if (round % 5 == 0) ASSERT_EQ(::ioctl(time.file.get(), PERF_EVENT_IOC_ENABLE, 0), 0);
        place.queue->submit(std::vector{fill(kVa, kBytes, round), fill(kVa, kBytes, round)});
        std::uint64_t values[4] = {};
        ASSERT_EQ(::read(time.file.get(), values, sizeof values), static_cast<ssize_t>(sizeof values));
        EXPECT_EQ(values[0], 3u);
        EXPECT_EQ(values[2] + values[3], values[1] * card.copy_engines) << round;
        EXPECT_GE(values[1], last);
        last = values[1];
        if (round % 5 == 4) ASSERT_EQ(::ioctl(time.file.get(), PERF_EVENT_IOC_DISABLE, 0), 0);
        EXPECT_EQ(place.outcome().error, 0u);
    }
    EXPECT_GT(last, 0u);
}

// Whoever reads at the same time: a process by the driver's call, and others by perf and sysfs.
TEST(Pmu, ReadersDoNotSpoilEachOthers) {
    Place place(0);
    place.make_memory(kBytes);
    const drm_orr_query_device card = query(place);
    ASSERT_NE(card.features & ORR_FEATURE_SNAPSHOTS, 0u);
    const PmuEvent event(pmu_attributes(0, "time_ps"));
    std::atomic<bool> done{false};
    std::thread other([&] {
        std::uint64_t last = 0;
        while (!done) {
            const std::uint64_t now = event.count();
            EXPECT_GE(now, last);
            last = now;
            EXPECT_NE(read_file("/sys/class/accel/accel0/device/counters/copy_idle_ps"), "");
        }
    });
    std::vector<std::uint64_t> values(card.counters), before(card.counters);
    for (unsigned round = 0; round < 50; ++round) {
        place.queue->submit(std::vector{fill(kVa, kBytes, round)});
        drm_orr_query_counters counters{};
        counters.values = reinterpret_cast<std::uintptr_t>(values.data());
        counters.count = card.counters;
        ASSERT_EQ(call(place.fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters), 0);
        const std::uint64_t now = values[ORR_CTR_TIME_PS];
        EXPECT_EQ(values[ORR_CTR_COPY_BUSY_PS] + values[ORR_CTR_COPY_IDLE_PS], now * card.copy_engines);
        EXPECT_EQ(values[ORR_CTR_VECTOR_BUSY_PS] + values[ORR_CTR_VECTOR_IDLE_PS], now * card.vector_cores);
        EXPECT_EQ(values[ORR_CTR_CORE_BUSY_PS] + values[ORR_CTR_CORE_IDLE_PS], now);
        EXPECT_EQ(values[ORR_CTR_VRAM_CORE_BYTES] + values[ORR_CTR_VRAM_COPY_BYTES] +
                      values[ORR_CTR_VRAM_VECTOR_BYTES] + values[ORR_CTR_VRAM_LINK_BYTES],
                  values[ORR_CTR_VRAM_BYTES]);
        for (std::uint32_t i = 0; i < card.counters; ++i)
            EXPECT_GE(values[i], before[i]) << i;
        before = values;
        EXPECT_EQ(place.outcome().error, 0u);
    }
    done = true;
    other.join();
}

TEST(Pmu, EachCardHasItsOwn) {
    const int second = static_cast<int>(pci_addresses().size()) > 1 ? node_of(pci_addresses()[1]) : -1;
    if (second < 0) GTEST_SKIP() << "needs two cards";
    const PmuEvent here(pmu_attributes(0, "copy_bytes")), there(pmu_attributes(second, "copy_bytes"));
    EXPECT_EQ(here.count() + there.count(), 0u);
    Place place(static_cast<unsigned>(second));
    place.make_memory(kBytes);
    EXPECT_EQ(place.queue->run(std::vector{fill(kVa, kBytes, 1)}), 0);
    EXPECT_EQ(here.count(), 0u);
    EXPECT_EQ(there.count(), kBytes);
}

// A card that has no CPU for a moment answers perf too late. What it tells then, of a moment when nobody
// waited for it any more, is not told to who asks next. For a VM under stopped.sh.
TEST(LatePmu, NoOldMomentIsTold) {
    if (::access("/share/stops", F_OK) != 0) GTEST_SKIP() << "nobody on the host stops the card";
    Place place(0);
    place.make_memory(kBytes);
    const PmuEvent bytes(pmu_attributes(0, "copy_bytes"));
    ASSERT_EQ(bytes.error, 0);
    EXPECT_EQ(bytes.count(), 0u);
    const std::uint64_t late = late_snapshots();
    ASSERT_EQ(ask_host("stop", "on", std::chrono::minutes(1)), "ok\n");
    std::uint64_t value = 0;
    EXPECT_EQ(::read(bytes.file.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
    ASSERT_EQ(ask_host("stop", "off", std::chrono::minutes(1)), "ok\n");
    EXPECT_GT(late_snapshots(), late) << "it answers though it is stopped";
    EXPECT_EQ(value, 0u);
    EXPECT_EQ(place.queue->run(std::vector{fill(kVa, kBytes, 1)}), 0);
    EXPECT_EQ(bytes.count(), kBytes);
}

TEST(Pmu, TellsPerfWhatThereIs) {
    EXPECT_EQ(read_file(pmu_path(0) + "/format/event"), "config:0-7");
    EXPECT_EQ(read_file(pmu_path(0) + "/events/copy_bytes.unit"), "bytes");
    EXPECT_NE(read_file(pmu_path(0) + "/cpumask"), "");
    // One event a counter, as in the card's own folder.
    for (const char* counter : {"core_instructions", "vector_groups", "vram_bytes", "barrier_releases"})
        EXPECT_NE(read_file(pmu_path(0) + "/events/" + counter), "") << counter;
}

TEST(Pmu, RefusesWhatItCannotCount) {
    perf_event_attr good = pmu_attributes(0, "doorbells"), attributes = good;
    attributes.config = 200;
    EXPECT_EQ(PmuEvent(attributes).error, EINVAL) << "no such counter";
    attributes.config = good.config | 1ull << 40;
    EXPECT_EQ(PmuEvent(attributes).error, EINVAL);
    attributes = good;
    attributes.config1 = 1;
    EXPECT_EQ(PmuEvent(attributes).error, EINVAL);
    attributes = good;
    attributes.sample_period = 1000;
    EXPECT_EQ(PmuEvent(attributes).error, EINVAL) << "there is no interrupt to sample by";
    attributes = good;
    attributes.exclude_kernel = 1;
    EXPECT_EQ(PmuEvent(attributes).error, EINVAL) << "it counts whatever is done";
    EXPECT_EQ(PmuEvent(good, -1, 0).error, EINVAL) << "not of one process";
    EXPECT_EQ(PmuEvent(good).error, 0);
}

// Also of those who may use the card.
TEST(Pmu, NobodyElseCounts) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may";
    EXPECT_EQ(PmuEvent(pmu_attributes(0, "doorbells")).error, EACCES);
}

}  // namespace
}  // namespace orrery::kmod_test
