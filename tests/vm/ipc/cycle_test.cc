// Waits that go round over processes and their cards.
#include <unistd.h>

#include <string>

#include "tests/vm/ipc/peer.h"

namespace orrery::umd::vm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// `ours` of device 0 waits for 'ours' there and would then signal 'theirs', which lies on the peer's card.
// The peer's stream waits for that, and signals 'ours' once it is told to queue that.
class Cycle {
  public:
    explicit Cycle(int device) : peer_("cycle", device) {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.name = "ours";
        EXPECT_OK(orrSetDevice(0));
        (void)orrDeviceEnablePeerAccess(device, 0);  // maybe it is already
        EXPECT_OK(orrStreamCreateWithAttributes(&stream_, &attributes));
        EXPECT_OK(orrSemaphoreCreate(&ours_, orrSemaphoreInterprocess));
        EXPECT_OK(orrSemaphoreSetName(ours_, "our turn"));
        int fd = -1;
        EXPECT_OK(orrIpcExportSemaphore(&fd, ours_, 0));
        peer_.say(0, {fd});
        ::close(fd);
        const Said said = peer_.hear();
        EXPECT_OK(orrIpcImportSemaphore(&theirs_, said.fds.at(0), 0));
        EXPECT_OK(orrSemaphoreSetName(theirs_, "their turn"));
        ::close(said.fds.at(0));
        EXPECT_OK(orrStreamWaitSemaphore(stream_, ours_, 1, nullptr));
        EXPECT_OK(orrStreamSignalSemaphore(stream_, theirs_, 1));
    }
    ~Cycle() {
        EXPECT_OK(orrStreamDestroy(stream_));
        EXPECT_OK(orrSemaphoreDestroy(ours_));
        EXPECT_OK(orrSemaphoreDestroy(theirs_));
    }
    // Tells the peer; what it answers.
    std::uint64_t tell(std::uint64_t number) const {
        peer_.say(number);
        return peer_.hear().number;
    }
    orrStream_t stream() const { return stream_; }
    orrSemaphore_t ours() const { return ours_; }
    std::string process() const { return "process " + std::to_string(peer_.process()); }

  private:
    Peer peer_;
    orrStream_t stream_ = nullptr;
    orrSemaphore_t ours_ = nullptr, theirs_ = nullptr;
};

void expect_both_are_told(int device) {
    Cycle cycle(device);
    // Nobody's packets hold the signal: a process may still give it.
    EXPECT_EQ(orrSemaphoreWait(cycle.ours(), 1, 200'000'000), orrErrorTimeout) << orrGetLastErrorText();
    ASSERT_EQ(cycle.tell(kCycleClose), orrSuccess);
    // One that has stopped at such a wait is not in anybody's way.
    orrStream_t stopped = nullptr;
    ASSERT_OK(orrStreamCreate(&stopped, 0));
    ASSERT_OK(orrStreamWaitSemaphore(stopped, cycle.ours(), 1, nullptr));
    ASSERT_OK(orrStreamAbort(stopped));

    EXPECT_EQ(orrStreamSynchronize(cycle.stream()), orrErrorDeadlock);
    const std::string text = orrGetLastErrorText();
    EXPECT_THAT(text, AllOf(HasSubstr("deadlock of 2 streams of several processes"),
                            HasSubstr("stream 'ours' on device 0 waits for semaphore 'our turn' to reach 1, "
                                      "which stream 'theirs' of " +
                                      cycle.process() + " on device " + std::to_string(device) +
                                      " would signal later"),
                            HasSubstr("waits for semaphore 'their turn' to reach 1, which stream 'ours' on "
                                      "device 0 would signal later")));
    EXPECT_EQ(orrSemaphoreWait(cycle.ours(), 1, kLongNs), orrErrorDeadlock);
    EXPECT_THAT(orrGetLastErrorText(),
                HasSubstr("only who waits in a circle would bring semaphore 'our turn' to 1: deadlock of 2 "
                          "streams of several processes: "));
    EXPECT_EQ(cycle.tell(kCycleSync), orrErrorDeadlock);
    EXPECT_OK(orrStreamDestroy(stopped));
    // Nothing was stopped.
    ASSERT_OK(orrSemaphoreSignal(cycle.ours(), 1));
    EXPECT_OK(orrStreamSynchronize(cycle.stream()));
    EXPECT_EQ(cycle.tell(kCycleSync), orrSuccess);
}

// A third stream would signal it, too, and waits for what a process may signal.
TEST(TwoCardsIpc, WaitsThatSomebodyElseCanEndAreNoCycle) {
    Cycle cycle(1);
    ASSERT_EQ(cycle.tell(kCycleHelp), orrSuccess);
    ASSERT_EQ(cycle.tell(kCycleClose), orrSuccess);
    EXPECT_EQ(orrSemaphoreWait(cycle.ours(), 1, 300'000'000), orrErrorTimeout) << orrGetLastErrorText();
    ASSERT_EQ(cycle.tell(kCycleFree), orrSuccess);
    EXPECT_OK(orrStreamSynchronize(cycle.stream()));
    EXPECT_EQ(cycle.tell(kCycleSync), orrSuccess);
}

TEST(TwoCardsIpc, WaitsThatGoRoundOverProcessesAreToldToBoth) {
    expect_both_are_told(1);
}

TEST(FourCardsIpc, WaitsThatGoRoundOverProcessesAndAFarCard) {
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    if (count < 3) GTEST_SKIP() << "all cards are neighbours";
    expect_both_are_told(2);
}

}  // namespace
}  // namespace orrery::umd::vm
