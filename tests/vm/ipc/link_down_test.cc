// A link goes down between two processes' cards, before, while and after one of them waits for what the other
// has: an event, and a semaphore that a stream over there was declared to signal. The first card and the
// last, with a link on the way that the driver resets.
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/vm/ipc/peer.h"

namespace orrery::umd::vm {
namespace {

enum class When { kBefore, kDuring, kAfter };

class IpcLinkDown : public ::testing::TestWithParam<When> {
  protected:
    void SetUp() override {
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        if (count < 2) GTEST_SKIP() << "there is no link";
        last_ = count - 1;
        ASSERT_OK(orrSetDevice(0));
        (void)orrDeviceEnablePeerAccess(last_, 0);  // it outlives the test before
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        ASSERT_OK(orrSemaphoreCreate(&gate_, 0));
    }
    void TearDown() override {
        if (gate_ == nullptr) return;
        EXPECT_OK(orrStreamDestroy(stream_));
        EXPECT_OK(orrSemaphoreDestroy(gate_));
    }
    // Of a chain one in the middle, of a switch the last card's; returns when there is a way again.
    void cut() const {
        for (const int device : {last_ / 2, last_}) {
            for (int port = 0; port < 8; ++port) {
                orrLinkInfo link = ORR_INIT(orrLinkInfo);
                if (orrDeviceGetLink(&link, device, port) != orrSuccess) break;
                const bool next = link.peer_device == device + 1;
                const bool to_switch = link.peer_device < 0 && device == last_;
                if (link.state != orrLinkStateUp || (!next && !to_switch)) continue;
                const std::string file = "/sys/class/accel/accel" + std::to_string(device) +
                                         "/device/links/" + std::to_string(port) + "/reset";
                ASSERT_TRUE(std::ofstream(file) << "1" << std::flush);
                const std::uint32_t before = link.losses;
                int can = 0;
                for (int tries = 0; tries < 12'000 && (link.losses == before || can == 0); ++tries) {
                    ::usleep(5'000);
                    ASSERT_OK(orrDeviceGetLink(&link, device, port));
                    can = 0;
                    if (link.state == orrLinkStateUp) ASSERT_OK(orrDeviceCanAccessPeer(&can, 0, last_));
                }
                ASSERT_NE(link.losses, before);
                ASSERT_EQ(can, 1) << "there is no way again";
                return;
            }
        }
        FAIL() << "there is no link to cut";
    }
    void close_gate() { ASSERT_OK(orrStreamWaitSemaphore(stream_, gate_, ++round_, nullptr)); }
    void open_gate() { ASSERT_OK(orrSemaphoreSignal(gate_, round_)); }

    int last_ = 0;
    orrStream_t stream_ = nullptr;
    orrSemaphore_t gate_ = nullptr;
    std::uint64_t round_ = 0;
};

// What is not recorded yet crosses when it is, by the link that is up then.
TEST_P(IpcLinkDown, AnEventOfAnotherProcess) {
    orrEvent_t event = nullptr;
    int fd = -1;
    ASSERT_OK(orrEventCreate(&event, orrEventInterprocess | orrEventDisableTiming));
    ASSERT_OK(orrIpcExportEvent(&fd, event, 0));
    const auto wait_once = [&](bool down) {
        ASSERT_NO_FATAL_FAILURE(close_gate());
        ASSERT_OK(orrEventRecord(event, stream_));
        Peer peer("event", last_);
        peer.say(0, {fd});
        EXPECT_EQ(peer.hear().number, orrErrorNotReady);
        if (down) ASSERT_NO_FATAL_FAILURE(cut());
        ASSERT_NO_FATAL_FAILURE(open_gate());
        peer.say(0);
        EXPECT_EQ(peer.hear().number, orrSuccess) << "its stream";
        if (!down && GetParam() == When::kAfter) ASSERT_NO_FATAL_FAILURE(cut());
        EXPECT_EQ(peer.hear().number, orrSuccess) << "its event";
        ASSERT_OK(orrStreamSynchronize(stream_));
    };
    if (GetParam() == When::kBefore) ASSERT_NO_FATAL_FAILURE(cut());
    ASSERT_NO_FATAL_FAILURE(wait_once(GetParam() == When::kDuring));
    if (GetParam() == When::kAfter) ASSERT_NO_FATAL_FAILURE(wait_once(false));
    ::close(fd);
    ASSERT_OK(orrEventDestroy(event));
}

// Who was declared, and has lost the way to it, may have lost a signal with it: who waits is told, and the
// semaphore is no use any more.
TEST_P(IpcLinkDown, ASignalThatAnotherProcessHasDeclared) {
    const auto wait_once = [&](bool down) {
        Peer peer("wait", last_);
        const Said theirs = peer.hear();
        orrSemaphore_t semaphore = nullptr;
        ASSERT_OK(orrIpcImportSemaphore(&semaphore, theirs.fds.at(0), 0));
        ::close(theirs.fds[0]);
        ASSERT_OK(orrSemaphoreAddSignaller(semaphore, stream_));
        ASSERT_NO_FATAL_FAILURE(close_gate());
        ASSERT_OK(orrStreamSignalSemaphore(stream_, semaphore, 1));
        peer.say(0);
        EXPECT_EQ(peer.hear().number, orrErrorNotReady);
        if (down) ASSERT_NO_FATAL_FAILURE(cut());
        if (!down) ASSERT_NO_FATAL_FAILURE(open_gate());
        EXPECT_EQ(peer.hear().number, down ? orrErrorPeerAccess : orrSuccess);
        if (down) ASSERT_NO_FATAL_FAILURE(open_gate());
        if (!down && GetParam() == When::kAfter) ASSERT_NO_FATAL_FAILURE(cut());
        // What this process's stream is told depends on whether it has sent it.
        const orrError_t told = orrStreamSynchronize(stream_);
        EXPECT_TRUE(told == orrSuccess || (down && told == orrErrorPeerAccess)) << orrGetLastErrorText();
        peer.say(0);
        EXPECT_EQ(peer.hear().number, orrSuccess) << "its next stream, and what is its own";
        ASSERT_OK(orrStreamDestroy(stream_));
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        ASSERT_OK(orrSemaphoreDestroy(semaphore));
    };
    if (GetParam() == When::kBefore) ASSERT_NO_FATAL_FAILURE(cut());
    ASSERT_NO_FATAL_FAILURE(wait_once(GetParam() == When::kDuring));
    if (GetParam() != When::kBefore) ASSERT_NO_FATAL_FAILURE(wait_once(false));
}

INSTANTIATE_TEST_SUITE_P(All, IpcLinkDown, ::testing::Values(When::kBefore, When::kDuring, When::kAfter),
                         [](const auto& when) {
                             return when.param == When::kBefore   ? "Before"
                                    : when.param == When::kDuring ? "During"
                                                                  : "After";
                         });

}  // namespace
}  // namespace orrery::umd::vm
