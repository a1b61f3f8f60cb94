// Priorities, shares, names, statistics, quotas and deadlocks, down to the winsys.
#include <cstdlib>
#include <cstring>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

FakeCard::Queue& newest(FakeSystem& system) {
    const std::lock_guard lock(system.card().mutex());
    return system.card().queues.back();
}

TEST(Attributes, ReachTheQueue) {
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.priority = -1;
    attributes.weight = 128;
    attributes.slice_us = 500;
    attributes.limit_us = 2000;
    attributes.name = "physics step";
    ASSERT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
    EXPECT_EQ(newest(system).options.priority, ORR_QUEUE_PRIORITY_HIGH);
    EXPECT_EQ(newest(system).options.weight, 128u);
    EXPECT_EQ(newest(system).options.slice_us, 500u);
    EXPECT_EQ(newest(system).options.limit_us, 2000u);
    EXPECT_EQ(newest(system).options.name, "physics step");
    int priority = 9;
    ASSERT_OK(orrStreamGetPriority(&priority, stream));
    EXPECT_EQ(priority, -1);

    EXPECT_FAIL(orrStreamSetAttributes(stream, &attributes), orrErrorInvalidValue, "name");
    attributes.name = nullptr;
    EXPECT_FAIL(orrStreamSetAttributes(stream, &attributes), orrErrorInvalidValue, "limit");
    attributes.limit_us = 0;
    attributes.priority = 1;
    attributes.weight = 0;
    ASSERT_OK(orrStreamSetAttributes(stream, &attributes));
    EXPECT_EQ(newest(system).options.priority, ORR_QUEUE_PRIORITY_LOW);
    EXPECT_EQ(newest(system).options.weight, 0u);
    EXPECT_EQ(newest(system).options.name, "physics step");
    ASSERT_OK(orrStreamGetPriority(&priority, stream));
    EXPECT_EQ(priority, 1);
    ASSERT_OK(orrStreamDestroy(stream));
}

TEST(Attributes, PrioritiesAreClampedAsInCuda) {
    FakeSystem system(1);
    int least = 0, greatest = 0;
    ASSERT_OK(orrDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT_EQ(least, 1);
    EXPECT_TRUE(greatest == -1 || greatest == -2);
    ASSERT_OK(orrDeviceGetStreamPriorityRange(nullptr, nullptr));
    const std::pair<int, std::uint32_t> expected[] = {
        {99, ORR_QUEUE_PRIORITY_LOW},  {1, ORR_QUEUE_PRIORITY_LOW},       {0, ORR_QUEUE_PRIORITY_NORMAL},
        {-1, ORR_QUEUE_PRIORITY_HIGH}, {-2, ORR_QUEUE_PRIORITY_REALTIME}, {-99, ORR_QUEUE_PRIORITY_REALTIME},
    };
    for (const auto& [given, wanted] : expected) {
        orrStream_t stream = nullptr;
        ASSERT_OK(orrStreamCreateWithPriority(&stream, orrStreamNonBlocking, given));
        EXPECT_EQ(newest(system).options.priority, wanted) << given;
        ASSERT_OK(orrStreamDestroy(stream));
    }
}

TEST(Attributes, AreChecked) {
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    EXPECT_FAIL(orrStreamCreateWithAttributes(nullptr, &attributes), orrErrorInvalidValue, "stream");
    EXPECT_FAIL(orrStreamCreateWithPriority(&stream, 2, 0), orrErrorInvalidValue, "flags");
    attributes.weight = 1025;
    EXPECT_FAIL(orrStreamCreateWithAttributes(&stream, &attributes), orrErrorInvalidValue, "1025");
    attributes.weight = 0;
    attributes.reserved = 1;
    EXPECT_FAIL(orrStreamCreateWithAttributes(&stream, &attributes), orrErrorInvalidValue, "reserved");
    attributes.reserved = 0;
    attributes.name = "twenty-four characters!!";
    EXPECT_FAIL(orrStreamCreateWithAttributes(&stream, &attributes), orrErrorInvalidValue, "23");
    attributes.name = "\x1b[2J";
    EXPECT_FAIL(orrStreamCreateWithAttributes(&stream, &attributes), orrErrorInvalidValue, "printable");
    EXPECT_FAIL(orrStreamGetStats(nullptr, nullptr), orrErrorInvalidValue, "orrStreamStats");
    EXPECT_FAIL(orrStreamGetPriority(nullptr, nullptr), orrErrorInvalidValue, "priority");
}

TEST(Attributes, StatisticsOfAStream) {
    FakeSystem system(1);
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 8));
    ASSERT_OK(orrMemset(memory, 0, 8));
    orrStreamStats stats = ORR_INIT(orrStreamStats);
    ASSERT_OK(orrStreamGetStats(&stats, nullptr));
    EXPECT_GE(stats.jobs, 1u);
    ASSERT_OK(orrFree(memory));
}

TEST(Quota, OfTheEnvironmentAndOfTheApi) {
    const auto quota_with = [](const char* text) {
        ::setenv("ORR_QUOTA", text, 1);
        FakeSystem system(1);
        void* memory = nullptr;
        const orrError_t error = orrMalloc(&memory, 8);
        if (error == orrSuccess) EXPECT_OK(orrFree(memory));
        ::unsetenv("ORR_QUOTA");
        return std::pair(error, system.card().quota);
    };
    EXPECT_EQ(quota_with("250").second.permille, 250u);
    EXPECT_EQ(quota_with("250").second.period_us, 10'000u);
    EXPECT_EQ(quota_with("1000/100").second.period_us, 100u);
    EXPECT_EQ(quota_with("").second.permille, 0u);
    for (const char* bad :
         {"x", "250/", "250/x", "0/100", "1001", "250/99", "250/1000001", "250/100 ", "-1"}) {
        EXPECT_EQ(quota_with(bad).first, orrErrorInvalidValue) << bad;
        EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("ORR_QUOTA"));
    }

    FakeSystem system(1);
    EXPECT_FAIL(orrDeviceSetQuota(0, 1001, 100), orrErrorInvalidValue, "1001");
    EXPECT_FAIL(orrDeviceSetQuota(1, 100, 100), orrErrorInvalidDevice, "1");
    ASSERT_OK(orrDeviceSetQuota(0, 100, 2000));
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 8));
    EXPECT_EQ(system.card().quota.permille, 100u);
    EXPECT_EQ(system.card().quota.period_us, 2000u);
    EXPECT_FAIL(orrDeviceSetQuota(0, 200, 2000), orrErrorInvalidValue, "in use");
    ASSERT_OK(orrFree(memory));
}

TEST(Deadlock, IsToldByNamesAndDoesNotStopTheStream) {
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrSemaphore_t semaphore = nullptr;
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.name = "left";
    ASSERT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, 0));
    EXPECT_FAIL(orrSemaphoreSetName(semaphore, std::string(64, 'x').c_str()), orrErrorInvalidValue, "64");
    ASSERT_OK(orrSemaphoreSetName(semaphore, "halo ready"));
    ASSERT_OK(orrStreamWaitSemaphore(stream, semaphore, 2, nullptr));

    drm_orr_wait_edge edge{};
    edge.queue = 1;
    edge.signaller = 0;
    edge.wanted = 2;
    std::strcpy(reinterpret_cast<char*>(edge.queue_name), "left");
    std::strcpy(reinterpret_cast<char*>(edge.signaller_name), "right");
    drm_orr_wait_edge back{};
    back.signaller = 1;
    std::strcpy(reinterpret_cast<char*>(back.signaller_name), "left");
    {
        const std::lock_guard lock(system.card().mutex());
        std::uint64_t fault = 0;
        auto* ring = reinterpret_cast<orr_ring*>(
            system.card().translate(newest(system).ring_va, sizeof(orr_ring) + 64, ORR_BIND_READ, &fault));
        edge.semaphore = reinterpret_cast<const orr_packet*>(ring + 1)->word[0];
        system.card().deadlock = {edge, back};
    }
    EXPECT_FAIL(
        orrStreamSynchronize(stream), orrErrorDeadlock,
        "stream 'left' waits for semaphore 'halo ready' to reach 2 (it is 0), which stream 'right' of "
        "another process would signal");
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("a stream of another user waits for"));
    EXPECT_FAIL(orrStreamSynchronize(stream), orrErrorDeadlock, "halo ready");  // still so
    {
        const std::lock_guard lock(system.card().mutex());
        system.card().deadlock.clear();
    }
    ASSERT_OK(orrSemaphoreSignal(semaphore, 2));
    ASSERT_OK(orrStreamSynchronize(stream));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrStreamDestroy(stream));
}

}  // namespace
}  // namespace orrery::umd::test
