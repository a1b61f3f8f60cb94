#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

TEST(Error, EveryCodeHasItsOwnNameAndSentence) {
    std::set<std::string> names, sentences;
    for (int code = orrSuccess; code <= orrErrorFirmware; ++code) {
        names.insert(orrGetErrorName(static_cast<orrError_t>(code)));
        sentences.insert(orrGetErrorString(static_cast<orrError_t>(code)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(orrErrorFirmware) + 1);
    EXPECT_EQ(sentences.size(), names.size());
    EXPECT_STREQ(orrGetErrorName(orrErrorInvalidValue), "orrErrorInvalidValue");
    EXPECT_STREQ(orrGetErrorName(static_cast<orrError_t>(31)), "orrErrorUnknown");
    EXPECT_NE(orrGetErrorString(static_cast<orrError_t>(30)), nullptr);
}

// A tool's own work at the end of a process, say.
TEST(Error, CallsFailInHandlersOfExitToo) {
    const auto ends = [] {
        orrSetDevice(-1);  // a text that is allocated
        std::atexit([] {
            if (orrSetDevice(-1) == orrSuccess || *orrGetLastErrorText() != '\0') ::_exit(9);
        });
        std::exit(0);  // NOLINT(concurrency-mt-unsafe)
    };
    EXPECT_EXIT(ends(), ::testing::ExitedWithCode(0), "");
}

TEST(Error, TextAndDeviceBelongToTheThread) {
    FakeSystem system(2);
    ASSERT_OK(orrSetDevice(1));
    EXPECT_FAIL(orrSetDevice(5), orrErrorInvalidDevice, "no device 5");
    std::thread([] {
        EXPECT_STREQ(orrGetLastErrorText(), "");
        int device = -1;
        EXPECT_OK(orrGetDevice(&device));
        EXPECT_EQ(device, 0);
    }).join();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("no device 5"));
    int device = -1;
    EXPECT_OK(orrGetDevice(&device));
    EXPECT_EQ(device, 1);
}

TEST(Error, NoCardIsACountOfZeroAndAClearErrorElsewhere) {
    FakeSystem system(0);
    int count = -1;
    EXPECT_OK(orrGetDeviceCount(&count));
    EXPECT_EQ(count, 0);
    void* memory = nullptr;
    EXPECT_FAIL(orrMalloc(&memory, 64), orrErrorNoDevice, "modprobe orrery");
    EXPECT_FAIL(orrSetDevice(0), orrErrorNoDevice, "module");
}

TEST(Error, PropertiesLinksAndVersions) {
    FakeSystem system(2);
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    ASSERT_OK(orrGetDeviceProperties(&prop, 1));
    EXPECT_STREQ(prop.name, "fake");
    EXPECT_STREQ(prop.node, "/dev/accel/accel1");
    EXPECT_STREQ(prop.pci_address, "0000:02:00.0");
    EXPECT_FAIL(orrGetDeviceProperties(nullptr, 0), orrErrorInvalidValue, "orrDeviceProp");
    EXPECT_FAIL(orrGetDeviceProperties(&prop, 2), orrErrorInvalidDevice, "0 to 1");
    orrLinkInfo link = ORR_INIT(orrLinkInfo);
    ASSERT_OK(orrDeviceGetLink(&link, 0, 0));
    EXPECT_EQ(link.peer_device, 1);
    EXPECT_EQ(link.state, orrLinkStateUp);
    EXPECT_FAIL(orrDeviceGetLink(&link, 0, 1), orrErrorInvalidValue, "no link port 1");
    std::uint32_t version = 0;
    EXPECT_OK(orrGetVersion(&version));
    EXPECT_EQ(version, static_cast<std::uint32_t>(ORR_VERSION));
    orrDeviceVersion below = ORR_INIT(orrDeviceVersion);
    ASSERT_OK(orrDeviceGetVersion(&below, 0));
    EXPECT_EQ(below.driver, static_cast<std::uint32_t>(ORR_MAKE_VERSION(1, 4, 3)));
    EXPECT_FAIL(orrDeviceGetVersion(nullptr, 0), orrErrorInvalidValue, "orrDeviceVersion");
}

// A driver before 1.4 does not say it, as it does not switch them on.
TEST(Error, AtomicsOnHostMemoryAreOffUnlessTheDriverSaysThatTheyAreOn) {
    FakeSystem system(3);
    system.card(0).driver_version = ORR_MAKE_VERSION(1, 3, 9);
    system.card(0).host_atomics = system.card(2).host_atomics = false;
    for (const auto& [device, on] : {std::pair(0, 0u), std::pair(1, 1u), std::pair(2, 0u)}) {
        orrDeviceProp prop = ORR_INIT(orrDeviceProp);
        ASSERT_OK(orrGetDeviceProperties(&prop, device));
        EXPECT_EQ(prop.host_atomics, on) << device;
    }
}

// Of a device that has not all that a formula asks for there is no value.
TEST(Error, MetricsFollowFromCounters) {
    FakeSystem system(1);
    std::size_t count = 0;
    ASSERT_OK(orrGetMetricCount(&count));
    ASSERT_GT(count, 20u);
    std::vector<orrMetric_t> all;
    for (std::size_t i = 0; i < count; ++i) {
        orrMetricInfo info = ORR_INIT(orrMetricInfo);
        ASSERT_OK(orrGetMetricInfo(&info, i));
        orrMetric_t found = 0;
        ASSERT_OK(orrFindMetric(&found, info.name));
        EXPECT_EQ(found, info.metric);
        for (const char* text : {info.unit, info.formula, info.meaning, info.high, info.low})
            EXPECT_NE(std::string(text), "") << info.name;
        all.push_back(info.metric);
    }
    orrCounter_t counters[4] = {};
    for (std::size_t i = 0; i < 4; ++i) {
        orrCounterInfo info = ORR_INIT(orrCounterInfo);
        ASSERT_OK(orrDeviceGetCounterInfo(&info, 0, i));
        EXPECT_NE(std::string(info.engine), "");
        counters[i] = info.counter;
    }
    const std::uint64_t before[4] = {1, 2, 3, 4}, after[4] = {5, 1, 3, 4};
    std::vector<double> values(count, 1.0);
    ASSERT_OK(orrDeviceComputeMetrics(values.data(), 0, all.data(), count, counters, before, after, 4));
    for (const double value : values)
        EXPECT_TRUE(std::isnan(value)) << "none can be had from instructions alone, and one has gone down";
    ASSERT_OK(orrDeviceComputeMetrics(nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr, 0));
    orrMetric_t metric = 7;
    EXPECT_FAIL(orrDeviceComputeMetrics(values.data(), 0, &metric, 1, counters, nullptr, after, 4),
                orrErrorInvalidValue, "which is no metric");
    const orrCounter_t no_counter = 3;
    EXPECT_FAIL(orrDeviceComputeMetrics(values.data(), 0, all.data(), 1, &no_counter, nullptr, after, 1),
                orrErrorInvalidValue, "which is no counter");
    EXPECT_FAIL(orrDeviceComputeMetrics(nullptr, 0, all.data(), 1, counters, nullptr, after, 4),
                orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrDeviceComputeMetrics(values.data(), 0, all.data(), 1, counters, nullptr, nullptr, 4),
                orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrFindMetric(&metric, "teapots"), orrErrorNotFound, "'teapots'");
    orrMetricInfo info = ORR_INIT(orrMetricInfo);
    EXPECT_FAIL(orrGetMetricInfo(&info, count), orrErrorInvalidValue, "there are");
}

// The fake card has four counters, whose values are 1 to 4.
TEST(Error, CountersByTheCatalogue) {
    FakeSystem system(1);
    std::size_t count = 0;
    ASSERT_OK(orrDeviceGetCounterCount(&count, 0));
    ASSERT_EQ(count, 4u);
    std::vector<orrCounter_t> all;
    for (std::size_t i = 0; i < count; ++i) {
        orrCounterInfo info = ORR_INIT(orrCounterInfo);
        ASSERT_OK(orrDeviceGetCounterInfo(&info, 0, i));
        EXPECT_STRNE(info.unit, "") << info.name;
        EXPECT_STRNE(info.meaning, "") << info.name;
        orrCounter_t found = 0;
        ASSERT_OK(orrDeviceFindCounter(&found, 0, info.name));
        EXPECT_EQ(found, info.counter);
        all.push_back(found);
    }
    std::uint64_t values[4] = {};
    std::ranges::reverse(all);
    ASSERT_OK(orrDeviceReadCounters(values, 0, all.data(), all.size()));
    EXPECT_EQ(values[0], 4u);
    EXPECT_EQ(values[3], 1u);
    orrCounterInfo info = ORR_INIT(orrCounterInfo);
    orrCounter_t counter = 0;
    EXPECT_FAIL(orrDeviceGetCounterInfo(&info, 0, count), orrErrorInvalidValue, "has 4");
    EXPECT_FAIL(orrDeviceFindCounter(&counter, 0, "teapots"), orrErrorNotFound, "'teapots'");
    // The library knows it, this card does not have it.
    EXPECT_FAIL(orrDeviceFindCounter(&counter, 0, "vector_busy_ps"), orrErrorNotFound, "'vector_busy_ps'");
    counter = 1;
    EXPECT_FAIL(orrDeviceReadCounters(values, 0, &counter, 1), orrErrorInvalidValue, "no counter");
}

TEST(Error, NullAndWrongHandles) {
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrEventCreate(&event, 0));
    EXPECT_FAIL(orrStreamCreate(nullptr, 0), orrErrorInvalidValue, "stream");
    EXPECT_FAIL(orrEventRecord(reinterpret_cast<orrEvent_t>(stream), stream), orrErrorInvalidHandle, "event");
    EXPECT_FAIL(orrStreamSynchronize(reinterpret_cast<orrStream_t>(event)), orrErrorInvalidHandle, "stream");
    EXPECT_FAIL(orrEventDestroy(nullptr), orrErrorInvalidHandle, "event");
    EXPECT_FAIL(orrSemaphoreDestroy(nullptr), orrErrorInvalidHandle, "semaphore");
    EXPECT_FAIL(orrStreamDestroy(reinterpret_cast<orrStream_t>(0x1234)), orrErrorInvalidHandle, "stream");
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrStreamDestroy(stream));
}

}  // namespace
}  // namespace orrery::umd::test
