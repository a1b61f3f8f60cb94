// The other process is on another card.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/vm/ipc/peer.h"

namespace orrery::umd::vm {
namespace {

constexpr std::size_t kBytes = 2 << 20;

struct Shared {
    Shared() {
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrIpcMalloc(&memory, kBytes, 0));
        EXPECT_OK(orrMemset(memory, 0, kBytes));
        EXPECT_OK(orrMallocHost(&host, kBytes, 0));
        EXPECT_OK(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
        EXPECT_OK(orrStreamCreate(&stream, 0));
        EXPECT_OK(orrIpcExportMemory(&fds[0], memory, 0));
        EXPECT_OK(orrIpcExportSemaphore(&fds[1], semaphore, 0));
        EXPECT_OK(orrStreamWaitSemaphore(stream, semaphore, 1, nullptr));
        EXPECT_OK(orrMemcpyAsync(host, memory, kBytes, orrMemcpyDeviceToHost, stream));
    }
    ~Shared() {
        EXPECT_OK(orrStreamDestroy(stream));
        EXPECT_OK(orrSemaphoreDestroy(semaphore));
        EXPECT_OK(orrFree(memory));
        EXPECT_OK(orrFreeHost(host));
        for (int fd : fds)
            ::close(fd);
    }
    void *memory = nullptr, *host = nullptr;
    orrSemaphore_t semaphore = nullptr;
    orrStream_t stream = nullptr;
    int fds[2] = {-1, -1};
};

// A process on that card fills the memory and signals, over links.
void expect_copied_by(int device) {
    Shared shared;
    Peer peer("copy", device);
    peer.say(1, {shared.fds[0], shared.fds[1]});
    ASSERT_OK(orrStreamSynchronize(shared.stream));
    for (std::size_t i = 0; i < kBytes; ++i)
        ASSERT_EQ(static_cast<std::uint8_t*>(shared.host)[i], 1) << i;
    EXPECT_EQ(peer.hear().number, orrIpcReachLink);
}

TEST(TwoCardsIpc, ANeighbourWritesOverTheLinkAndSignals) {
    expect_copied_by(1);
}

TEST(TwoCardsIpc, ANeighbourThatIsKilledFailsTheWait) {
    Shared shared;
    Peer peer("copy", 1);
    peer.say(0, {shared.fds[0], shared.fds[1]});
    EXPECT_EQ(peer.hear().number, orrIpcReachLink);
    EXPECT_EQ(orrStreamQuery(shared.stream), orrErrorNotReady);
    peer.kill();
    EXPECT_EQ(orrStreamSynchronize(shared.stream), orrErrorAborted) << orrGetLastErrorText();
}

TEST(TwoCardsIpc, AnEventOfANeighbour) {
    ASSERT_EQ(orrSetDevice(0), orrSuccess);
    orrEvent_t event = nullptr;
    orrStream_t stream = nullptr;
    orrSemaphore_t gate = nullptr;
    int fd = -1;
    ASSERT_OK(orrEventCreate(&event, orrEventInterprocess | orrEventDisableTiming));
    ASSERT_OK(orrIpcExportEvent(&fd, event, 0));
    ASSERT_OK(orrStreamCreate(&stream, 0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stream, gate, 1, nullptr));
    ASSERT_OK(orrEventRecord(event, stream));
    Peer peer("event", 1);
    peer.say(0, {fd});
    ::close(fd);
    EXPECT_EQ(peer.hear().number, orrErrorNotReady);
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    peer.say(0);
    EXPECT_EQ(peer.hear().number, orrSuccess);
    EXPECT_EQ(peer.hear().number, orrSuccess);
    // Of its own device only.
    orrStream_t far = nullptr;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrStreamCreate(&far, 0));
    EXPECT_FAIL(orrEventRecord(event, far), orrErrorInvalidValue, "device 0");
    ASSERT_OK(orrStreamDestroy(far));
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrEventDestroy(event));
    ASSERT_OK(orrSemaphoreDestroy(gate));
}

TEST(TwoCardsIpc, HostMemoryIsSeenByBothCards) {
    void* host = nullptr;
    int fd = -1;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMallocHost(&host, 8192, 0));
    ASSERT_OK(orrIpcExportMemory(&fd, host, 0));
    Peer peer("memory", 0);
    peer.say(0, {fd});
    ::close(fd);
    EXPECT_EQ(peer.hear().number, orrIpcReachDirect);
    peer.say(6);
    EXPECT_EQ(peer.hear().number, 6u);
    EXPECT_EQ(static_cast<std::uint8_t*>(host)[8191], 6);
    ASSERT_OK(orrFreeHost(host));
}

// A process stands from before the first card begins: each card goes on behind the event of the one before.
TEST(TwoCardsIpc, EventsOfNeighboursNeedNoHost) {
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    ASSERT_GE(count, 2);
    orrSemaphore_t gate = nullptr, done = nullptr;
    int fds[2] = {-1, -1};
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrSemaphoreCreate(&gate, orrSemaphoreInterprocess));
    ASSERT_OK(orrSetDevice(count - 1));
    ASSERT_OK(orrSemaphoreCreate(&done, orrSemaphoreInterprocess));
    ASSERT_OK(orrIpcExportSemaphore(&fds[0], gate, 0));
    ASSERT_OK(orrIpcExportSemaphore(&fds[1], done, 0));
    Peer peer("cards");
    peer.say(0, {fds[0], fds[1]});
    EXPECT_EQ(peer.hear().number, 0u);
    ASSERT_EQ(::kill(peer.process(), SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(peer.process(), &status, WUNTRACED), peer.process());
    ASSERT_TRUE(WIFSTOPPED(status));
    std::uint64_t value = 1;
    ASSERT_OK(orrSemaphoreGetValue(&value, done));
    EXPECT_EQ(value, 0u) << "it does not wait for the gate";
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    EXPECT_OK(orrSemaphoreWait(done, 1, kLongNs / 4));
    ASSERT_EQ(::waitpid(peer.process(), &status, WNOHANG | WCONTINUED), 0) << "it has not stood";
    ASSERT_EQ(::kill(peer.process(), SIGCONT), 0);
    peer.say(0);
    ASSERT_OK(orrSemaphoreDestroy(gate));
    ASSERT_OK(orrSemaphoreDestroy(done));
    for (const int fd : fds)
        ::close(fd);
}

// On a chain: over the card between them.
TEST(FourCardsIpc, AFarCardWritesOverWhatIsBetweenAndSignals) {
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    if (count < 3) GTEST_SKIP() << "all cards are neighbours";
    expect_copied_by(2);
}

}  // namespace
}  // namespace orrery::umd::vm
