// What processes share, with both of them played by this one: the card lets it import what it has exported.
#include <orrery/fw/failure.h>
#include <orrery/graph.h>

#include <atomic>
#include <cstring>

#include "tests/unit/umd/ipc_fixture.h"
#include "umd/runtime/runtime.h"
#include "umd/runtime/shared_event.h"

namespace orrery::umd::test {
namespace {

TEST_F(IpcTest, MemoryIsTheSameAndStays) {
    void* memory = nullptr;
    orrIpcMemory other = ORR_INIT(orrIpcMemory);
    ASSERT_OK(orrIpcMalloc(&memory, 5000, 0));
    ASSERT_OK(orrMemset(memory, 3, 5000));
    ASSERT_OK(orrIpcImportMemory(&other, exported(memory), 0));
    EXPECT_EQ(other.bytes, 8192u);
    EXPECT_EQ(other.device, 0);
    EXPECT_EQ(other.reach, orrIpcReachDirect);
    EXPECT_NE(other.ptr, memory);
    ASSERT_OK(orrFree(memory));
    std::vector<std::uint8_t> back(8192);
    ASSERT_OK(orrMemcpy(back.data(), other.ptr, 8192, orrMemcpyDeviceToHost));
    EXPECT_EQ(back[4999], 3);
    EXPECT_EQ(back[5000], 0);
    EXPECT_FAIL(orrMemset(other.ptr, 0, 8193), orrErrorInvalidValue, "runs past");
    EXPECT_FAIL(orrFreeHost(other.ptr), orrErrorInvalidValue, "orrMallocHost");
    ASSERT_OK(orrFree(other.ptr));
}

TEST_F(IpcTest, MemoryOfALinkedCard) {
    void* memory = nullptr;
    orrIpcMemory other = ORR_INIT(orrIpcMemory);
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrIpcMalloc(&memory, 4096, 0));
    const int fd = exported(memory);
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrIpcImportMemory(&other, fd, 0));
    EXPECT_EQ(other.device, 1);
    EXPECT_EQ(other.reach, orrIpcReachLink);
    void* source = nullptr;
    ASSERT_OK(orrMalloc(&source, 4096));
    ASSERT_OK(orrMemset(source, 8, 4096));
    EXPECT_FAIL(orrMemcpy(other.ptr, source, 4096, orrMemcpyDeviceToDevice), orrErrorPeerAccess,
                "orrDeviceEnablePeerAccess");
    ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
    ASSERT_OK(orrMemcpy(other.ptr, source, 4096, orrMemcpyDeviceToDevice));
    std::uint8_t byte = 0;
    ASSERT_OK(orrMemcpy(&byte, at(memory, 4095), 1, orrMemcpyDeviceToHost));
    EXPECT_EQ(byte, 8);
    ASSERT_OK(orrFree(other.ptr));
    system_.card(0).cut_link();
    ASSERT_OK(orrIpcImportMemory(&other, fd, 0));
    EXPECT_EQ(other.reach, orrIpcReachHost);
    ASSERT_OK(orrMemset(source, 9, 4096));
    ASSERT_OK(orrMemcpy(other.ptr, source, 4096, orrMemcpyDeviceToDevice));
    ASSERT_OK(orrMemcpy(&byte, at(memory, 4095), 1, orrMemcpyDeviceToHost));
    EXPECT_EQ(byte, 9);
    for (void* each : {other.ptr, source, memory})
        ASSERT_OK(orrFree(each));
}

TEST_F(IpcTest, HostMemory) {
    void* memory = nullptr;
    orrIpcMemory other = ORR_INIT(orrIpcMemory);
    ASSERT_OK(orrMallocHost(&memory, 100, 0));
    // The fake maps it where it is, so a second card has no room for it.
    system_.card(0).as_another_process = false;
    EXPECT_FAIL(orrIpcImportMemory(&other, exported(memory), 0), orrErrorInvalidValue, "already");
    ASSERT_OK(orrFreeHost(memory));
}

TEST_F(IpcTest, ASemaphoreCarriesValuesAndFailures) {
    orrSemaphore_t semaphore = nullptr, other = nullptr;
    orrStream_t stream = nullptr, signals = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    ASSERT_OK(orrIpcImportSemaphore(&other, exported(semaphore), 0));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrStreamCreate(&signals, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream, other, 1, nullptr));
    EXPECT_EQ(orrStreamQuery(stream), orrErrorNotReady);
    ASSERT_OK(orrStreamSignalSemaphore(signals, semaphore, 1));
    ASSERT_OK(orrStreamSynchronize(stream));
    ASSERT_OK(orrSemaphoreSignal(semaphore, 4));
    EXPECT_OK(orrSemaphoreWait(other, 4, kLongNs));
    // The last that said it would signal goes.
    ASSERT_OK(orrSemaphoreAddSignaller(semaphore, signals));
    ASSERT_OK(orrStreamWaitSemaphore(stream, other, 9, nullptr));
    ASSERT_OK(orrStreamDestroy(signals));
    EXPECT_EQ(orrStreamSynchronize(stream), orrErrorAbandoned) << orrGetLastErrorText();
    EXPECT_EQ(orrSemaphoreWait(other, 9, kLongNs), orrErrorAbandoned);
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrSemaphoreDestroy(other));
}

// Its page stays while a stream may look at it, and goes then.
TEST_F(IpcTest, ASemaphoreIsDestroyedUnderAWait) {
    orrSemaphore_t semaphore = nullptr, other = nullptr, next = nullptr;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    ASSERT_OK(orrIpcImportSemaphore(&other, exported(semaphore), 0));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream, other, 2, nullptr));
    ASSERT_OK(orrSemaphoreDestroy(other));
    ASSERT_OK(orrSemaphoreCreate(&next, orrSemaphoreInterprocess));
    EXPECT_EQ(orrStreamQuery(stream), orrErrorNotReady);
    ASSERT_OK(orrSemaphoreSignal(semaphore, 2));
    ASSERT_OK(orrStreamSynchronize(stream));
    const std::uint64_t used = system_.card().vram_used;
    ASSERT_OK(orrSemaphoreDestroy(next));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    EXPECT_EQ(system_.card().vram_used, used - 2 * 4096) << "all pages are free but none too early";
    ASSERT_OK(orrStreamDestroy(stream));
}

TEST_F(IpcTest, AnEventIsWaitedForUpToItsLastRecord) {
    orrEvent_t event = nullptr, other = nullptr;
    orrStream_t stream = nullptr, waits = nullptr;
    orrSemaphore_t gate = nullptr;
    int fd = -1;
    ASSERT_OK(orrEventCreate(&event, orrEventInterprocess | orrEventDisableTiming));
    ASSERT_OK(orrIpcExportEvent(&fd, event, 0));
    ASSERT_OK(orrIpcImportEvent(&other, keep(fd), 0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrStreamCreate(&waits, 0));
    EXPECT_OK(orrEventQuery(other));
    ASSERT_OK(orrStreamWaitSemaphore(stream, gate, 1, nullptr));
    ASSERT_OK(orrEventRecord(event, stream));
    ASSERT_OK(orrStreamWaitEvent(waits, other, nullptr));
    ASSERT_OK(orrStreamWaitSemaphore(stream, gate, 2, nullptr));
    ASSERT_OK(orrEventRecord(event, stream));
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    ASSERT_OK(orrStreamSynchronize(waits));
    EXPECT_EQ(orrEventQuery(other), orrErrorNotReady);
    EXPECT_EQ(orrStreamQuery(stream), orrErrorNotReady);
    EXPECT_FAIL(orrEventRecord(other, waits), orrErrorInvalidValue, "another process's");
    EXPECT_FAIL(orrEventRecord(event, waits), orrErrorNotReady, "one stream");
    ASSERT_OK(orrStreamBeginCapture(waits, 0));
    EXPECT_EQ(orrStreamWaitEvent(waits, other, nullptr), orrErrorStreamCapture);
    orrGraph_t graph = nullptr;
    EXPECT_EQ(orrStreamEndCapture(&graph, waits), orrErrorStreamCapture);
    // It stops before it came to the record.
    ASSERT_OK(orrStreamWaitEvent(waits, other, nullptr));
    ASSERT_OK(orrStreamAbort(stream));
    EXPECT_EQ(orrEventSynchronize(other), orrErrorAborted) << orrGetLastErrorText();
    EXPECT_EQ(orrStreamSynchronize(waits), orrErrorAborted) << orrGetLastErrorText();
    EXPECT_EQ(orrEventQuery(event), orrErrorAborted);
    for (orrStream_t each : {stream, waits})
        ASSERT_OK(orrStreamDestroy(each));
    for (orrEvent_t each : {event, other})
        ASSERT_OK(orrEventDestroy(each));
    ASSERT_OK(orrSemaphoreDestroy(gate));
}

// What the other process writes there is a value and no more.
TEST_F(IpcTest, APageThatWasScribbledOver) {
    orrEvent_t event = nullptr, other = nullptr;
    orrStream_t stream = nullptr;
    int fd = -1;
    ASSERT_OK(orrEventCreate(&event, orrEventInterprocess | orrEventDisableTiming));
    ASSERT_OK(orrIpcExportEvent(&fd, event, 0));
    ASSERT_OK(orrIpcImportEvent(&other, keep(fd), 0));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    SharedPage& page = SharedSemaphores::page(Runtime::usable()->events.find(event)->shared()->slot());
    std::atomic_ref(page.recorded).store(~0ull);
    EXPECT_FAIL(orrEventQuery(other), orrErrorInvalidValue, "nonsense");
    EXPECT_FAIL(orrStreamWaitEvent(stream, other, nullptr), orrErrorInvalidValue, "nonsense");
    std::atomic_ref(page.recorded).store(1);
    std::atomic_ref(page.semaphore.value).store(ORR_SEM_FAILED | 0x123456789abc);
    EXPECT_NE(orrEventQuery(other), orrSuccess);
    EXPECT_NE(orrEventSynchronize(other), orrSuccess);
    ASSERT_OK(orrStreamWaitEvent(stream, other, nullptr));
    EXPECT_NE(orrStreamSynchronize(stream), orrSuccess);
    std::memset(static_cast<void*>(&page), 0, sizeof page);
    orrEvent_t third = nullptr;
    EXPECT_FAIL(orrIpcImportEvent(&third, fd, 0), orrErrorInvalidValue, "is memory, not an event");
    ASSERT_OK(orrStreamDestroy(stream));
    for (orrEvent_t each : {event, other})
        ASSERT_OK(orrEventDestroy(each));
}

TEST_F(IpcTest, WhatIsWrongIsRefused) {
    void *small = nullptr, *memory = nullptr;
    int fd = -1, local = 0;
    orrSemaphore_t plain = nullptr, semaphore = nullptr;
    orrIpcMemory other = ORR_INIT(orrIpcMemory), none{};
    ASSERT_OK(orrMalloc(&small, 4096));
    ASSERT_OK(orrIpcMalloc(&memory, 8192, 0));
    EXPECT_FAIL(orrIpcExportMemory(&fd, small, 0), orrErrorInvalidValue, "orrIpcMalloc");
    EXPECT_FAIL(orrIpcExportMemory(&fd, &local, 0), orrErrorInvalidValue, "no start");
    EXPECT_FAIL(orrIpcExportMemory(&fd, at(memory, 256), 0), orrErrorInvalidValue, "no start");
    EXPECT_FAIL(orrIpcExportMemory(&fd, memory, 1), orrErrorInvalidValue, "flags");
    EXPECT_FAIL(orrIpcMalloc(&memory, 0, 0), orrErrorInvalidValue, "0 bytes");
    ASSERT_OK(orrSemaphoreCreate(&plain, 0));
    EXPECT_FAIL(orrIpcExportSemaphore(&fd, plain, 0), orrErrorInvalidValue, "orrSemaphoreInterprocess");
    EXPECT_FAIL(orrSemaphoreCreate(&semaphore, 2), orrErrorInvalidValue, "flags");
    const int of_memory = exported(memory);
    EXPECT_FAIL(orrIpcImportMemory(&none, of_memory, 0), orrErrorInvalidValue, "ORR_INIT");
    EXPECT_FAIL(orrIpcImportMemory(&other, 0, 0), orrErrorInvalidValue, "no memory");
    EXPECT_FAIL(orrIpcImportMemory(&other, -1, 0), orrErrorInvalidValue, "no memory");
    EXPECT_FAIL(orrIpcImportSemaphore(&semaphore, of_memory, 0), orrErrorInvalidValue,
                "memory of 8192 bytes");
    EXPECT_EQ(fd, -1);
    system_.card().lose();
    EXPECT_EQ(orrIpcImportMemory(&other, of_memory, 0), orrErrorDeviceLost) << orrGetLastErrorText();
    for (void* each : {small, memory})
        ASSERT_OK(orrFree(each));
    ASSERT_OK(orrSemaphoreDestroy(plain));
}

}  // namespace
}  // namespace orrery::umd::test
