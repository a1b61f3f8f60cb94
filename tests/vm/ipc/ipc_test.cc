// Processes on one card.
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/vm/ipc/peer.h"

namespace orrery::umd::vm {
namespace {

constexpr std::size_t kBytes = 3 * 4096;

std::vector<std::uint8_t> read_back(void* memory, std::size_t bytes) {
    std::vector<std::uint8_t> back(bytes);
    EXPECT_OK(orrMemcpy(back.data(), memory, bytes, orrMemcpyDefault));
    return back;
}
bool all(const std::vector<std::uint8_t>& bytes, std::uint8_t value) {
    return std::ranges::all_of(bytes, [&](std::uint8_t byte) { return byte == value; });
}
int export_memory(void* memory) {
    int fd = -1;
    EXPECT_OK(orrIpcExportMemory(&fd, memory, 0));
    return fd;
}

TEST(Ipc, MemoryIsOneForBothAndOutlivesItsExporter) {
    Peer peer("memory");
    void* memory = nullptr;
    ASSERT_OK(orrIpcMalloc(&memory, kBytes, 0));
    EXPECT_TRUE(all(read_back(memory, kBytes), 0));
    const int fd = export_memory(memory);
    peer.say(0, {fd});
    ::close(fd);
    EXPECT_EQ(peer.hear().number, orrIpcReachDirect);
    ASSERT_OK(orrMemset(memory, 7, kBytes));
    peer.say(0);
    EXPECT_EQ(peer.hear().number, 7u);
    peer.say(9);
    EXPECT_EQ(peer.hear().number, 9u);
    EXPECT_TRUE(all(read_back(memory, kBytes), 9));
    ASSERT_OK(orrFree(memory));
    void* next = nullptr;  // not where the other still is
    ASSERT_OK(orrIpcMalloc(&next, kBytes, 0));
    ASSERT_OK(orrMemset(next, 1, kBytes));
    peer.say(0);
    EXPECT_EQ(peer.hear().number, 9u);
    ASSERT_OK(orrFree(next));
    peer.say(1000);
    EXPECT_EQ(peer.hear().number, 0u);
}

TEST(Ipc, MemoryStaysWhenTheImporterIsKilled) {
    void* memory = nullptr;
    ASSERT_OK(orrIpcMalloc(&memory, kBytes, 0));
    const int fd = export_memory(memory);
    std::size_t before = 0, after = 0, total = 0;
    ASSERT_OK(orrMemGetInfo(&before, &total));
    for (int i = 0; i < 3; ++i) {
        Peer peer("memory");
        peer.say(0, {fd});
        EXPECT_EQ(peer.hear().number, orrIpcReachDirect);
        peer.say(static_cast<std::uint64_t>(i) + 1);
        EXPECT_EQ(peer.hear().number, static_cast<std::uint64_t>(i) + 1);
    }
    EXPECT_TRUE(all(read_back(memory, kBytes), 3));
    ASSERT_OK(orrMemGetInfo(&after, &total));
    EXPECT_EQ(before, after);
    ::close(fd);
    ASSERT_OK(orrFree(memory));
}

TEST(Ipc, HostMemoryIsOneForBoth) {
    Peer peer("memory");
    void* memory = nullptr;
    ASSERT_OK(orrMallocHost(&memory, kBytes, 0));
    const int fd = export_memory(memory);
    peer.say(0, {fd});
    ::close(fd);
    EXPECT_EQ(peer.hear().number, orrIpcReachDirect);
    peer.say(5);
    EXPECT_EQ(peer.hear().number, 5u);
    for (std::size_t i = 0; i < kBytes; ++i)
        ASSERT_EQ(static_cast<std::uint8_t*>(memory)[i], 5) << i;
    peer.say(1000);
    EXPECT_EQ(peer.hear().number, 0u);
    ASSERT_OK(orrFreeHost(memory));
}

TEST(Ipc, AStreamWaitsForAnotherProcessesStream) {
    void *memory = nullptr, *host = nullptr;
    orrSemaphore_t semaphore = nullptr;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrIpcMalloc(&memory, kBytes, 0));
    ASSERT_OK(orrMallocHost(&host, kBytes, 0));
    ASSERT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    int fds[2] = {export_memory(memory), -1};
    ASSERT_OK(orrIpcExportSemaphore(&fds[1], semaphore, 0));
    std::memset(host, 0, kBytes);
    ASSERT_OK(orrStreamWaitSemaphore(stream, semaphore, 1, nullptr));
    ASSERT_OK(orrMemcpyAsync(host, memory, kBytes, orrMemcpyDeviceToHost, stream));
    EXPECT_EQ(orrStreamQuery(stream), orrErrorNotReady);
    Peer peer("copy");
    peer.say(1, {fds[0], fds[1]});
    ASSERT_OK(orrStreamSynchronize(stream));
    for (std::size_t i = 0; i < kBytes; ++i)
        ASSERT_EQ(static_cast<std::uint8_t*>(host)[i], 1) << i;
    EXPECT_OK(orrSemaphoreWait(semaphore, 1, kLongNs));
    EXPECT_EQ(peer.hear().number, orrIpcReachDirect);
    // Nobody else had said that he signals it.
    peer.kill();
    EXPECT_EQ(orrSemaphoreWait(semaphore, 2, kLongNs), orrErrorAbandoned) << orrGetLastErrorText();
    for (int fd : fds)
        ::close(fd);
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrFree(memory));
    ASSERT_OK(orrFreeHost(host));
}

// Streams and the host wait for more; then the other process is killed.
void wait_for_killed(const char* role, std::uint64_t value, orrError_t expected) {
    Peer peer(role);
    const Said said = peer.hear();
    orrSemaphore_t semaphore = nullptr;
    orrStream_t stream = nullptr, other = nullptr;
    ASSERT_OK(orrIpcImportSemaphore(&semaphore, said.fds.at(0), 0));
    ::close(said.fds[0]);
    ASSERT_OK(orrSemaphoreSetName(semaphore, "theirs"));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrStreamCreate(&other, 0));
    void* memory = nullptr;
    ASSERT_OK(orrMalloc(&memory, 64));
    ASSERT_OK(orrMemset(memory, 0, 64));
    ASSERT_OK(orrStreamWaitSemaphore(stream, semaphore, value, nullptr));
    ASSERT_OK(orrMemsetAsync(memory, 1, 64, stream));
    EXPECT_EQ(orrStreamQuery(stream), orrErrorNotReady);
    peer.kill();
    EXPECT_EQ(orrStreamSynchronize(stream), expected) << orrGetLastErrorText();
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("theirs"));
    EXPECT_EQ(orrSemaphoreWait(semaphore, value, kLongNs), expected) << orrGetLastErrorText();
    // Who comes later is told too, and nothing else of ours is hurt.
    orrStream_t late = nullptr;
    ASSERT_OK(orrStreamCreate(&late, 0));
    if (orrStreamWaitSemaphore(late, semaphore, value, nullptr) == orrSuccess)
        EXPECT_NE(orrStreamSynchronize(late), orrSuccess);
    ASSERT_OK(orrMemsetAsync(memory, 2, 64, other));
    ASSERT_OK(orrStreamSynchronize(other));
    EXPECT_TRUE(all(read_back(memory, 64), 2));
    for (orrStream_t each : {stream, other, late})
        ASSERT_OK(orrStreamDestroy(each));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrFree(memory));
}

TEST(Ipc, AKilledProcessFailsWhatItHadToSignal) {
    wait_for_killed("pending", 2, orrErrorAborted);
}
TEST(Ipc, AKilledProcessLeavesWhatItSaidItWouldSignal) {
    wait_for_killed("declared", 2, orrErrorAbandoned);
}

TEST(Ipc, AnEventIsWaitedForByAnotherProcess) {
    orrEvent_t event = nullptr;
    orrStream_t stream = nullptr, second = nullptr;
    orrSemaphore_t gate = nullptr;
    int fd = -1;
    EXPECT_FAIL(orrEventCreate(&event, orrEventInterprocess), orrErrorInvalidValue, "orrEventDisableTiming");
    ASSERT_OK(orrEventCreate(&event, orrEventInterprocess | orrEventDisableTiming));
    ASSERT_OK(orrIpcExportEvent(&fd, event, 0));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrStreamCreate(&second, 0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    EXPECT_OK(orrEventQuery(event));  // never recorded
    ASSERT_OK(orrEventRecord(event, stream));
    ASSERT_OK(orrEventSynchronize(event));
    ASSERT_OK(orrStreamWaitSemaphore(stream, gate, 1, nullptr));
    ASSERT_OK(orrEventRecord(event, stream));
    EXPECT_EQ(orrEventQuery(event), orrErrorNotReady);
    EXPECT_FAIL(orrEventRecord(event, second), orrErrorNotReady, "one stream");
    Peer peer("event");
    peer.say(0, {fd});
    EXPECT_EQ(peer.hear().number, orrErrorNotReady);
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    peer.say(0);
    EXPECT_EQ(peer.hear().number, orrSuccess);
    EXPECT_EQ(peer.hear().number, orrSuccess);
    ::close(fd);
    ASSERT_OK(orrEventRecord(event, second));
    ASSERT_OK(orrEventSynchronize(event));
    for (orrStream_t each : {stream, second})
        ASSERT_OK(orrStreamDestroy(each));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrSemaphoreDestroy(gate));
}

TEST(Ipc, AnEventOfAKilledProcessFails) {
    Peer peer("record");
    const Said said = peer.hear();
    orrEvent_t event = nullptr;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrIpcImportEvent(&event, said.fds.at(0), 0));
    ::close(said.fds[0]);
    ASSERT_OK(orrStreamCreate(&stream, 0));
    EXPECT_FAIL(orrEventRecord(event, stream), orrErrorInvalidValue, "another process's");
    ASSERT_OK(orrStreamWaitEvent(stream, event, nullptr));
    EXPECT_EQ(orrEventQuery(event), orrErrorNotReady);
    peer.kill();
    EXPECT_EQ(orrStreamSynchronize(stream), orrErrorAborted) << orrGetLastErrorText();
    EXPECT_EQ(orrEventSynchronize(event), orrErrorAborted) << orrGetLastErrorText();
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrEventDestroy(event));
}

// A semaphore goes while a stream waits for it: nothing of it is touched by what comes after it.
TEST(Ipc, ASemaphoreIsDestroyedWhileItIsWaitedFor) {
    Peer peer("pending");
    const Said said = peer.hear();
    orrSemaphore_t semaphore = nullptr, next = nullptr;
    orrStream_t stream = nullptr;
    ASSERT_OK(orrIpcImportSemaphore(&semaphore, said.fds.at(0), 0));
    ::close(said.fds[0]);
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream, semaphore, 2, nullptr));
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrSemaphoreCreate(&next, orrSemaphoreInterprocess));
    ASSERT_OK(orrSemaphoreSignal(next, 5));
    EXPECT_EQ(orrStreamQuery(stream), orrErrorNotReady);
    peer.kill();
    EXPECT_EQ(orrStreamSynchronize(stream), orrErrorAborted) << orrGetLastErrorText();
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrSemaphoreDestroy(next));
}

TEST(Ipc, WhatIsWrongIsRefused) {
    void *small = nullptr, *memory = nullptr;
    int fd = -1, local = 0;
    orrIpcMemory got = ORR_INIT(orrIpcMemory);
    orrSemaphore_t semaphore = nullptr, plain = nullptr;
    orrEvent_t event = nullptr, theirs = nullptr;
    ASSERT_OK(orrMalloc(&small, 4096));
    ASSERT_OK(orrIpcMalloc(&memory, 1, 0));
    EXPECT_FAIL(orrIpcExportMemory(&fd, small, 0), orrErrorInvalidValue, "orrIpcMalloc");
    EXPECT_FAIL(orrIpcExportMemory(&fd, &local, 0), orrErrorInvalidValue, "no start");
    EXPECT_FAIL(orrIpcExportMemory(&fd, static_cast<std::byte*>(memory) + 4, 0), orrErrorInvalidValue,
                "no start");
    EXPECT_FAIL(orrIpcExportMemory(nullptr, memory, 0), orrErrorInvalidValue, "null");
    EXPECT_FAIL(orrIpcMalloc(&memory, 4096, 1), orrErrorInvalidValue, "flags");
    ASSERT_OK(orrSemaphoreCreate(&plain, 0));
    EXPECT_FAIL(orrIpcExportSemaphore(&fd, plain, 0), orrErrorInvalidValue, "orrSemaphoreInterprocess");
    ASSERT_OK(orrEventCreate(&event, orrEventDisableTiming));
    EXPECT_FAIL(orrIpcExportEvent(&fd, event, 0), orrErrorInvalidValue, "orrEventInterprocess");

    for (const int wrong : {-1, 9999, 0}) {
        EXPECT_FAIL(orrIpcImportMemory(&got, wrong, 0), orrErrorInvalidValue, "no memory");
        EXPECT_FAIL(orrIpcImportSemaphore(&semaphore, wrong, 0), orrErrorInvalidValue, "no memory");
        EXPECT_FAIL(orrIpcImportEvent(&theirs, wrong, 0), orrErrorInvalidValue, "no memory");
    }
    // What we have ourselves, and what another driver has.
    const int own = export_memory(memory);
    EXPECT_FAIL(orrIpcImportMemory(&got, own, 0), orrErrorInvalidValue, "already");
    EXPECT_FAIL(orrIpcImportSemaphore(&semaphore, own, 0), orrErrorInvalidValue, "already");
    ::close(own);
    const int dev = ::open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    if (dev >= 0) {
        const int pages = ::memfd_create("pages", MFD_ALLOW_SEALING | MFD_CLOEXEC);
        ASSERT_EQ(::ftruncate(pages, 4096), 0);
        ASSERT_EQ(::fcntl(pages, F_ADD_SEALS, F_SEAL_SHRINK), 0);
        udmabuf_create create{};
        create.memfd = static_cast<std::uint32_t>(pages);
        create.flags = UDMABUF_FLAGS_CLOEXEC;
        create.size = 4096;
        const int foreign = ::ioctl(dev, UDMABUF_CREATE, &create);
        ASSERT_GE(foreign, 0);
        EXPECT_FAIL(orrIpcImportMemory(&got, foreign, 0), orrErrorInvalidValue, "another driver");
        EXPECT_FAIL(orrIpcImportSemaphore(&semaphore, foreign, 0), orrErrorInvalidValue, "another driver");
        for (int each : {foreign, pages, dev})
            ::close(each);
    } else {
        std::printf("no /dev/udmabuf: memory of another driver was not tried\n");
    }
    // Memory is whole after all that.
    ASSERT_OK(orrMemset(memory, 3, 1));
    for (void* each : {small, memory})
        ASSERT_OK(orrFree(each));
    ASSERT_OK(orrSemaphoreDestroy(plain));
    ASSERT_OK(orrEventDestroy(event));
}

TEST(Ipc, KindsAreNotMixedUpAndNothingIsImportedTwice) {
    Peer peer("pending"), recorder("record");
    const int semaphore_fd = peer.hear().fds.at(0), event_fd = recorder.hear().fds.at(0);
    orrSemaphore_t semaphore = nullptr, again = nullptr;
    orrEvent_t event = nullptr;
    orrIpcMemory memory = ORR_INIT(orrIpcMemory);
    EXPECT_FAIL(orrIpcImportEvent(&event, semaphore_fd, 0), orrErrorInvalidValue,
                "is a semaphore, not an event");
    EXPECT_FAIL(orrIpcImportSemaphore(&semaphore, event_fd, 0), orrErrorInvalidValue,
                "is an event, not a semaphore");
    ASSERT_OK(orrIpcImportSemaphore(&semaphore, semaphore_fd, 0));
    EXPECT_FAIL(orrIpcImportSemaphore(&again, semaphore_fd, 0), orrErrorInvalidValue, "already");
    EXPECT_FAIL(orrIpcImportMemory(&memory, semaphore_fd, 0), orrErrorInvalidValue, "already");
    // Let go of, it can be had again.
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ASSERT_OK(orrIpcImportSemaphore(&semaphore, semaphore_fd, 0));
    std::uint64_t value = 1;
    EXPECT_OK(orrSemaphoreGetValue(&value, semaphore));
    EXPECT_EQ(value, 0u);
    ASSERT_OK(orrSemaphoreDestroy(semaphore));
    ::close(semaphore_fd);
    ::close(event_fd);
}

TEST(Ipc, MessagesOfOthersAreRefused) {
    int ends[2];
    std::uint64_t number = 0;
    int fds[2];
    const auto receive = [&](std::size_t room, std::size_t bytes, std::uint64_t limit) {
        return orrIpcReceive(fds, &room, &bytes, &number, ends[0], limit);
    };
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
        ASSERT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
        EXPECT_FAIL(receive(2, 8, 1'000'000), orrErrorTimeout, "did nothing");
        const int in[3] = {ends[1], ends[1], ends[1]};
        number = 77;
        ASSERT_OK(orrIpcSend(ends[1], in, 2, &number, 8, kLongNs));
        number = 0;
        ASSERT_OK(receive(2, 8, kLongNs));
        EXPECT_EQ(number, 77u);
        ::close(fds[0]);
        ::close(fds[1]);
        const int next = ::dup(0);
        ASSERT_OK(orrIpcSend(ends[1], in, 3, &number, 8, kLongNs));
        EXPECT_FAIL(receive(2, 8, kLongNs), orrErrorInvalidValue, "room for 2");
        ASSERT_OK(orrIpcSend(ends[1], nullptr, 0, &number, 8, kLongNs));
        EXPECT_FAIL(receive(2, 4, kLongNs), orrErrorInvalidValue, "room for");
        ASSERT_EQ(::send(ends[1], "sixteen bytes...", 16, 0), 16);
        EXPECT_FAIL(receive(2, 8, kLongNs), orrErrorInvalidValue, "no message");
        const int after = ::dup(0);
        EXPECT_EQ(after, next + 1) << "descriptors leaked";
        ::close(after);
        ::close(next);
        EXPECT_FAIL(orrIpcSend(ends[1], in, 17, nullptr, 0, 0), orrErrorInvalidValue, "at most 16");
        ::close(ends[1]);
        EXPECT_FAIL(receive(2, 8, kLongNs), orrErrorAborted, "closed the socket");
        EXPECT_FAIL(orrIpcSend(ends[0], nullptr, 0, &number, 8, kLongNs), orrErrorAborted, "closed");
        ::close(ends[0]);
    }
}

}  // namespace
}  // namespace orrery::umd::vm
