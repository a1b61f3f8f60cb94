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

TEST(Error, PropertiesLinksAndCounters) {
    FakeSystem system(2);
    orrDeviceProp prop{};
    ASSERT_OK(orrGetDeviceProperties(&prop, 1));
    EXPECT_STREQ(prop.name, "fake");
    EXPECT_STREQ(prop.node, "/dev/accel/accel1");
    EXPECT_STREQ(prop.pci_address, "0000:02:00.0");
    EXPECT_FAIL(orrGetDeviceProperties(nullptr, 0), orrErrorInvalidValue, "prop");
    EXPECT_FAIL(orrGetDeviceProperties(&prop, 2), orrErrorInvalidDevice, "0 to 1");
    orrLinkInfo link{};
    ASSERT_OK(orrDeviceGetLink(&link, 0, 0));
    EXPECT_EQ(link.peer_device, 1);
    EXPECT_FAIL(orrDeviceGetLink(&link, 0, 1), orrErrorInvalidValue, "no link port 1");
    std::uint64_t values[8] = {};
    std::size_t count = 3;
    ASSERT_OK(orrDeviceGetCounters(values, &count, 0));
    EXPECT_EQ(count, 3u);
    count = 8;
    ASSERT_OK(orrDeviceGetCounters(values, &count, 0));
    EXPECT_EQ(count, 4u);
    EXPECT_EQ(values[3], 4u);
    int version = 0;
    EXPECT_OK(orrRuntimeGetVersion(&version));
    EXPECT_EQ(version, 100);
}

TEST(Error, NullAndWrongHandles) {
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrEvent_t event = nullptr;
    ASSERT_OK(orrStreamCreate(&stream));
    ASSERT_OK(orrEventCreate(&event));
    EXPECT_FAIL(orrStreamCreate(nullptr), orrErrorInvalidValue, "stream");
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
