// Structs of shorter and of longer headers than the library's, at the C API.
#include <orrery/graph.h>
#include <orrery/task.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

// Without holes and without a tail: what a later version adds is in nobody's padding today.
template <typename Struct>
constexpr bool kWhole = std::has_unique_object_representations_v<Struct> && offsetof(Struct, size) == 0 &&
                        sizeof(Struct) % sizeof(std::size_t) == 0;
static_assert(kWhole<orrDeviceProp> && kWhole<orrDeviceVersion> && kWhole<orrLinkInfo> &&
              kWhole<orrCounterInfo> && kWhole<orrMetricInfo> && kWhole<orrStreamAttributes> &&
              kWhole<orrStreamStats> && kWhole<orrWaitOptions> && kWhole<orrKernelNodeParams> &&
              kWhole<orrGraphExecInfo> && kWhole<orrTaskGraphOptions> && kWhole<orrLaunchParams>);
// Those with doubles, by their last members.
static_assert(offsetof(orrTaskDesc, reserved) + sizeof(std::uint32_t) == sizeof(orrTaskDesc));
static_assert(offsetof(orrTaskInfo, end_ns) + sizeof(double) == sizeof(orrTaskInfo));
static_assert(offsetof(orrTaskStats, end_ns) + sizeof(double) == sizeof(orrTaskStats));
// What programs of 0.2 were built with: these never shrink, and nothing in them moves.
static_assert(offsetof(orrDeviceProp, state) == 8 + 32 + 16 + 32 + 5 * 8 + 4 * 4);
static_assert(offsetof(orrStreamAttributes, name) == 32 && offsetof(orrTaskDesc, priority) == 136);

template <typename Struct>
struct Later {
    Struct known = ORR_INIT(Struct);
    std::array<std::uint64_t, 3> more{};
    Later() { known.size = sizeof(*this); }
};

FakeCard::Queue& newest(FakeSystem& system) {
    const std::lock_guard lock(system.card().mutex());
    return system.card().queues.back();
}

TEST(Structs, AShorterOneHasDefaultsForWhatItLacks) {
    FakeSystem system(1);
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.priority = -1;
    attributes.weight = 9;  // behind the end of what is given
    attributes.slice_us = 77;
    attributes.size = offsetof(orrStreamAttributes, weight);
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
    EXPECT_EQ(newest(system).options.priority, ORR_QUEUE_PRIORITY_HIGH);
    EXPECT_EQ(newest(system).options.weight, 0u);
    EXPECT_EQ(newest(system).options.slice_us, 0u);
    ASSERT_OK(orrStreamDestroy(stream));
    attributes.size = sizeof(std::size_t);
    ASSERT_OK(orrStreamCreateWithAttributes(&stream, &attributes));
    EXPECT_EQ(newest(system).options.priority, ORR_QUEUE_PRIORITY_NORMAL);
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrStreamCreateWithAttributes(&stream, nullptr));
    ASSERT_OK(orrStreamDestroy(stream));
}

TEST(Structs, ALongerOneIsTakenIfItAsksForNothingNew) {
    FakeSystem system(1);
    Later<orrStreamAttributes> later;
    later.known.weight = 5;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrStreamCreateWithAttributes(&stream, &later.known));
    EXPECT_EQ(newest(system).options.weight, 5u);
    ASSERT_OK(orrStreamDestroy(stream));
    later.more[2] = 1;
    EXPECT_FAIL(orrStreamCreateWithAttributes(&stream, &later.known), orrErrorNotSupported, "newer library");
}

TEST(Structs, ResultsAreWrittenAsFarAsTheCallerHasRoom) {
    FakeSystem system(1);
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    std::memset(&prop, 0x5a, sizeof(prop));
    prop.size = offsetof(orrDeviceProp, pci_address);
    ASSERT_OK(orrGetDeviceProperties(&prop, 0));
    EXPECT_STREQ(prop.name, "fake");
    EXPECT_EQ(prop.size, offsetof(orrDeviceProp, pci_address));
    EXPECT_EQ(prop.pci_address[0], 0x5a);
    EXPECT_EQ(prop.reserved, 0x5a5a5a5au);

    Later<orrStreamStats> later;
    later.more = {1, 2, 3};
    ASSERT_OK(orrStreamGetStats(&later.known, nullptr));
    EXPECT_EQ(later.known.size, sizeof(later));
    EXPECT_EQ(later.more, (std::array<std::uint64_t, 3>{})) << "this library knows nothing of it";
}

// Of 0.2 a program has the first 40 bytes; a driver before 1.17 does not count, one of a card of 2.1 less.
TEST(Structs, ALinksCountersAreWrittenToWhoHasRoomForThem) {
    FakeSystem system(2);
    orrLinkInfo old{};
    std::memset(&old, 0x5a, sizeof(old));
    old.size = offsetof(orrLinkInfo, tx_messages);
    ASSERT_EQ(old.size, 40u);
    ASSERT_OK(orrDeviceGetLink(&old, 0, 0));
    EXPECT_EQ(old.latency_ns, 300u);
    EXPECT_EQ(old.tx_messages, 0x5a5a5a5a5a5a5a5au);

    orrLinkInfo link = ORR_INIT(orrLinkInfo);
    ASSERT_OK(orrDeviceGetLink(&link, 0, 0));
    EXPECT_EQ(link.known, orrLinkKnowsCounts | orrLinkKnowsDenials | orrLinkKnowsDriver);
    EXPECT_EQ((std::array{link.tx_messages, link.tx_bytes, link.rx_messages, link.rx_bytes}),
              (std::array<std::uint64_t, 4>{101, 102, 103, 104}));
    EXPECT_EQ((std::array{link.crc_errors, link.retries, link.retrains, link.changes, link.denied,
                          link.bad_keys, link.refused, link.forged, link.built_lanes}),
              (std::array{105u, 106u, 107u, 108u, 109u, 110u, 111u, 112u, 113u}));
    EXPECT_EQ(link.losses, 0u);

    system.card().link_known = ORR_LINK_KNOWS_COUNTS | ORR_LINK_KNOWS_FORGED;
    ASSERT_OK(orrDeviceGetLink(&link, 0, 0));
    EXPECT_EQ(link.known, orrLinkKnowsCounts | orrLinkKnowsDriver);
    EXPECT_EQ(link.retries, 106u);
    EXPECT_EQ(link.denied, 0u);
    system.card().link_known = 0;
    ASSERT_OK(orrDeviceGetLink(&link, 0, 0));
    EXPECT_EQ(link.known, 0u);
    EXPECT_EQ(link.tx_messages, 0u);
    EXPECT_EQ(link.latency_ns, 300u);

    Later<orrLinkInfo> later;
    later.more = {1, 2, 3};
    ASSERT_OK(orrDeviceGetLink(&later.known, 0, 0));
    EXPECT_EQ(later.more, (std::array<std::uint64_t, 3>{}));
}

TEST(Structs, EachCallChecksTheSize) {
    FakeSystem system(1);
    orrStream_t stream = nullptr;
    orrGraph_t graph = nullptr;
    ASSERT_OK(orrGraphCreate(&graph, 0));
    orrTaskGraph_t tasks = nullptr;
    ASSERT_OK(orrTaskGraphCreate(&tasks, nullptr));
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, 0));
    const auto refused = [](auto value, auto&& call) {
        for (const std::size_t wrong : {std::size_t{0}, std::size_t{12}, std::size_t{1} << 40}) {
            value.size = wrong;
            EXPECT_FAIL(call(&value), orrErrorInvalidValue, "set it with ORR_INIT(");
        }
    };
    refused(orrDeviceProp{}, [](auto* p) { return orrGetDeviceProperties(p, 0); });
    refused(orrDeviceVersion{}, [](auto* p) { return orrDeviceGetVersion(p, 0); });
    refused(orrLinkInfo{}, [](auto* p) { return orrDeviceGetLink(p, 0, 0); });
    refused(orrCounterInfo{}, [](auto* p) { return orrDeviceGetCounterInfo(p, 0, 0); });
    refused(orrStreamAttributes{}, [&](auto* p) { return orrStreamCreateWithAttributes(&stream, p); });
    refused(orrStreamAttributes{}, [&](auto* p) { return orrStreamSetAttributes(nullptr, p); });
    refused(orrStreamStats{}, [](auto* p) { return orrStreamGetStats(p, nullptr); });
    refused(orrWaitOptions{}, [&](auto* p) { return orrStreamWaitEvent(nullptr, event, p); });
    refused(orrLaunchParams{}, [](auto* p) { return orrLaunchKernelEx(p); });
    refused(orrKernelNodeParams{},
            [&](auto* p) { return orrGraphAddKernelNode(nullptr, graph, nullptr, 0, p); });
    refused(orrGraphExecInfo{}, [](auto* p) { return orrGraphExecGetInfo(p, nullptr); });
    refused(orrTaskGraphOptions{}, [&](auto* p) {
        orrTaskGraph_t made = nullptr;
        return orrTaskGraphCreate(&made, p);
    });
    refused(orrTaskDesc{}, [&](auto* p) { return orrTaskSubmit(nullptr, tasks, p); });
    refused(orrTaskInfo{}, [&](auto* p) { return orrTaskGetInfo(p, tasks, 0); });
    refused(orrTaskStats{}, [&](auto* p) { return orrTaskGraphGetStats(p, tasks); });
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrTaskGraphDestroy(tasks));
    ASSERT_OK(orrGraphDestroy(graph));
}

TEST(Structs, FlagsThatNobodyKnowsAreRefused) {
    FakeSystem system(2);
    constexpr unsigned kNew = 1u << 30;
    orrStream_t stream = nullptr;
    EXPECT_FAIL(orrStreamCreate(&stream, kNew), orrErrorInvalidValue, "flags 0x40000000");
    orrEvent_t event = nullptr;
    EXPECT_FAIL(orrEventCreate(&event, kNew), orrErrorInvalidValue, "flags 0x40000000");
    orrSemaphore_t semaphore = nullptr;
    EXPECT_FAIL(orrSemaphoreCreate(&semaphore, kNew), orrErrorInvalidValue, "flags 0x40000000");
    void* memory = nullptr;
    EXPECT_FAIL(orrMallocHost(&memory, 64, kNew), orrErrorInvalidValue, "flags 0x40000000");
    EXPECT_FAIL(orrDeviceEnablePeerAccess(1, kNew), orrErrorInvalidValue, "flags 0x40000000");
    orrGraph_t graph = nullptr;
    EXPECT_FAIL(orrGraphCreate(&graph, kNew), orrErrorInvalidValue, "flags 0x40000000");
    orrGraphExec_t exec = nullptr;
    EXPECT_FAIL(orrGraphInstantiate(&exec, graph, kNew), orrErrorInvalidValue, "flags 0x40000000");
    EXPECT_FAIL(orrStreamBeginCapture(stream, kNew), orrErrorInvalidValue, "flags 0x40000000");
}

TEST(Structs, AnEventWithoutTimesHasNone) {
    FakeSystem system(1);
    orrEvent_t event = nullptr;
    ASSERT_OK(orrEventCreate(&event, orrEventDisableTiming));
    ASSERT_OK(orrEventRecord(event, nullptr));
    ASSERT_OK(orrEventSynchronize(event));
    std::uint64_t ps = 0;
    EXPECT_FAIL(orrEventGetModelTime(&ps, event), orrErrorInvalidValue, "orrEventDisableTiming");
    ASSERT_OK(orrEventDestroy(event));
}

}  // namespace
}  // namespace orrery::umd::test
