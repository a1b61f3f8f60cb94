// Counters by perf: they count what the card does, exactly, for whoever may count all of a machine.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/vm/kmod/place.h"
#include "tests/vm/kmod/pmu.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;

TEST(Pmu, CountsWhatTheCardDoes) {
    Place place(0);
    place.make_memory(kBytes);
    const PmuEvent bytes(pmu_attributes(0, "copy_bytes")), jobs(pmu_attributes(0, "copy_jobs"));
    ASSERT_EQ(bytes.error, 0);
    ASSERT_EQ(jobs.error, 0);
    EXPECT_EQ(bytes.count(), 0u);
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
    EXPECT_EQ(place.queue->run(std::vector{fill(kVa, 4096, 9)}), 0);
    EXPECT_EQ(bytes.count(), kJobs * kBytes + 4096);
    EXPECT_EQ(jobs.count(), kJobs + 2);
}

TEST(Pmu, EachCardHasItsOwn) {
    const int second = static_cast<int>(pci_addresses().size()) > 1 ? node_of(pci_addresses()[1]) : -1;
    if (second < 0) GTEST_SKIP() << "needs two cards";
    const PmuEvent here(pmu_attributes(0, "copy_bytes")), there(pmu_attributes(second, "copy_bytes"));
    Place place(static_cast<unsigned>(second));
    place.make_memory(kBytes);
    EXPECT_EQ(place.queue->run(std::vector{fill(kVa, kBytes, 1)}), 0);
    EXPECT_EQ(here.count(), 0u);
    EXPECT_EQ(there.count(), kBytes);
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
