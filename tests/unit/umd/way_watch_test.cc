// What was on a link that went down is lost when it cannot come any more, however long that takes, and what
// comes late is not.
#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

using std::chrono::steady_clock;

class WayWatch : public ::testing::Test {
  protected:
    void SetUp() override {
        for (std::size_t card = 0; card < 2; ++card)
            system_.card(card).driver_version = ORR_MAKE_VERSION(1, 17, 0);
        ASSERT_OK(orrSetDevice(1));
        ASSERT_OK(orrMalloc(&there_, 4096));
        ASSERT_OK(orrMemset(there_, 0, 4096));
        ASSERT_OK(orrSetDevice(0));
        ASSERT_OK(orrMalloc(&here_, 4096));
        ASSERT_OK(orrMemset(here_, 0x42, 4096));
        ASSERT_OK(orrDeviceEnablePeerAccess(1, 0));
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        // What its first use takes.
        ASSERT_OK(orrMemcpyAsync(there_, here_, 64, orrMemcpyDefault, stream_));
        ASSERT_OK(orrStreamSynchronize(stream_));
    }
    FakeCard& owner() { return system_.card(1); }
    // It is on the link when this returns, and its card is done with it.
    void send() {
        owner().hold_arrivals(true);
        const std::uint64_t before = system_.card(0).packets();
        ASSERT_OK(orrMemcpyAsync(there_, here_, 4096, orrMemcpyDefault, stream_));
        while (owner().arrivals() < 2 || system_.card(0).packets() < before + 2)
            std::this_thread::yield();
    }
    // Asks as often as anybody does in that time.
    orrError_t ask_for(std::chrono::milliseconds time) {
        const auto end = steady_clock::now() + time;
        orrError_t answer = orrErrorNotReady;
        while (answer == orrErrorNotReady && steady_clock::now() < end)
            answer = orrStreamQuery(stream_);
        return answer;
    }
    orrError_t ask() { return ask_for(std::chrono::minutes(1)); }
    std::uint8_t last_byte() {
        std::uint8_t byte = 0;
        EXPECT_OK(orrMemcpy(&byte, at(there_, 4095), 1, orrMemcpyDefault));
        return byte;
    }

    static constexpr std::chrono::milliseconds kLong{700};  // of what was once taken for lost after 250
    FakeSystem system_{2};
    void* here_ = nullptr;
    void* there_ = nullptr;
    orrStream_t stream_ = nullptr;
};

TEST_F(WayWatch, WhatMayStillComeIsNotLost) {
    send();
    for (std::size_t card = 0; card < 2; ++card)
        system_.card(card).settled_losses = 0;
    owner().cut_link(false);
    EXPECT_EQ(ask_for(kLong), orrErrorNotReady);
    owner().hold_arrivals(false);
    EXPECT_EQ(ask(), orrSuccess);
    owner().mend_link();
    EXPECT_EQ(last_byte(), 0x42);
}

TEST_F(WayWatch, WhatNeverComesIsLostWhenTheDriverSaysSo) {
    send();
    for (std::size_t card = 0; card < 2; ++card)
        system_.card(card).settled_losses = 0;
    owner().cut_link();
    EXPECT_EQ(ask_for(kLong), orrErrorNotReady);
    for (std::size_t card = 0; card < 2; ++card)
        system_.card(card).settled_losses = 1;
    EXPECT_EQ(ask(), orrErrorPeerAccess);
}

// The card is lost after it was asked and before its way is looked at: no link is the cause.
TEST_F(WayWatch, WhoFindsNoWayAsksTheCardBeforeItBlamesALink) {
    send();
    system_.card(0).on_link = [&] { owner().lose(); };
    EXPECT_EQ(ask(), orrErrorDeviceLost);
    EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("device 1 did not arrive there: "));
    EXPECT_THAT(orrGetLastErrorText(), ::testing::Not(::testing::HasSubstr("link")));
    system_.card(0).on_link = nullptr;
}

// Nobody had looked since before the loss, so it may have been sent behind that.
TEST_F(WayWatch, WhatWentByTheWayThatIsThereComesBeforeAProbe) {
    owner().cut_link();
    owner().mend_link();
    send();
    EXPECT_EQ(ask_for(kLong), orrErrorNotReady);
    owner().hold_arrivals(false);
    EXPECT_EQ(ask(), orrSuccess);
    EXPECT_EQ(last_byte(), 0x42);
}

TEST_F(WayWatch, WhatDoesNotComeBeforeAProbeIsLost) {
    send();
    owner().cut_link();
    owner().mend_link();
    EXPECT_EQ(ask_for(kLong), orrErrorNotReady) << "nothing comes at all";
    owner().hold_arrivals(false);
    EXPECT_EQ(ask(), orrErrorPeerAccess);
}

// Its own loss takes the probe along, too.
TEST_F(WayWatch, AProbeThatIsLostIsSentAgain) {
    send();
    owner().cut_link();
    owner().mend_link();
    while (owner().arrivals() == 0)
        EXPECT_EQ(orrStreamQuery(stream_), orrErrorNotReady);
    owner().cut_link();
    owner().mend_link();
    owner().hold_arrivals(false);
    EXPECT_EQ(ask(), orrErrorPeerAccess);
}

// A probe that stops takes nothing along of what the host signals on its own card.
TEST_F(WayWatch, AProbeThatFailsTakesNobodyAlong) {
    orrSemaphore_t own = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&own, 0));
    send();
    owner().cut_link();
    owner().mend_link();
    system_.card(0).pause(true);
    for (int looks = 0; looks < 200; ++looks) {
        EXPECT_EQ(orrStreamQuery(stream_), orrErrorNotReady);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::thread signals([&] { EXPECT_OK(orrSemaphoreSignal(own, 1)); });
    owner().cut_link();
    system_.card(0).pause(false);
    signals.join();
    std::uint64_t value = 0;
    EXPECT_OK(orrSemaphoreGetValue(&value, own));
    EXPECT_EQ(value, 1u);
    owner().hold_arrivals(false);
    EXPECT_EQ(ask(), orrErrorPeerAccess);
    EXPECT_OK(orrSemaphoreDestroy(own));
}

// Who has gone takes nobody's answer along: what is settled is asked of the one that is there.
TEST_F(WayWatch, WhatADestroyedStreamHadSentIsSettledToo) {
    send();
    for (std::size_t card = 0; card < 2; ++card)
        system_.card(card).settled_losses = 0;
    owner().cut_link();
    std::thread frees([&] { EXPECT_OK(orrStreamDestroy(stream_)); });
    for (std::size_t card = 0; card < 2; ++card)
        system_.card(card).settled_losses = 1;
    frees.join();
    EXPECT_OK(orrFree(there_));
}

}  // namespace
}  // namespace orrery::umd::test
