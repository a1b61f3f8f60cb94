// Semaphores to which queues behind a link are attached, while its cable is out. For a VM of two cards under
// cable.sh, which has a hand at the cable.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "tests/system/runtime/hand.h"
#include "tests/vm/kmod/pci.h"
#include "tests/vm/kmod/place.h"

namespace orrery::kmod_test {
namespace {

class Cable : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::access("/share/cables", F_OK) != 0) GTEST_SKIP() << "nobody on the host pulls the cable";
        waiter_ = std::make_unique<Place>(0);
        behind_ = std::make_unique<Place>(1);
        waiter_->make_memory();
        behind_->share(*waiter_, ORR_BIND_WRITE);
    }
    void TearDown() override {
        if (out_) put_in();
        EXPECT_EQ(bad_keys(), 0u);
    }
    void pull() {
        out_ = true;
        ASSERT_EQ(ask_host("cable", "unplug", std::chrono::seconds(30)), "ok\n");
        wait_for_links(ORR_LINK_DOWN);
    }
    void put_in() {
        out_ = false;
        ASSERT_EQ(ask_host("cable", "plug", std::chrono::seconds(30)), "ok\n");
        wait_for_links(ORR_LINK_UP);
    }
    int attach_behind() const { return attach(behind_->fd(), behind_->queue->number(), kVa); }
    bool closed() const { return closed(0); }
    // Somebody waits for what the queue behind the link and this one may signal.
    void pull_with_one_left(const Queue& here) {
        ASSERT_EQ(attach_behind(), 0);
        ASSERT_EQ(attach(behind_->fd(), behind_->queue->number(), kVa + sizeof(orr_semaphore)), 0);
        ASSERT_EQ(attach(waiter_->fd(), here.number(), kVa), 0);
        waiter_->queue->submit(wait_for(kVa, 7));
        ASSERT_NO_FATAL_FAILURE(pull());
        // The driver has taken note of the link: what only the queue behind it could signal is closed.
        ASSERT_TRUE(comes_true([&] { return closed(1); }));
    }

    std::unique_ptr<Place> waiter_, behind_;

  private:
    bool closed(std::size_t semaphore) const {
        return (waiter_->memory.words()[2 * semaphore + 1] & ORR_SEM_CLOSED) != 0;
    }
    // And each loss counts, so that who did not look meanwhile knows of it.
    void wait_for_links(std::uint32_t state) {
        losses_ += state == ORR_LINK_DOWN ? 1 : 0;
        for (const Place* const place : {waiter_.get(), behind_.get()}) {
            drm_orr_query_link link{};
            for (int tries = 0; tries < 12000; ++tries) {
                ASSERT_EQ(call(place->fd(), DRM_IOCTL_ORR_QUERY_LINK, &link), 0);
                if (link.state == state) break;
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
            ASSERT_EQ(link.state, state);
            if (losses_ == 1 && state == ORR_LINK_DOWN) before_[place] = link.losses - 1;
            ASSERT_EQ(link.losses, before_[place] + losses_);
        }
    }
    std::map<const Place*, std::uint32_t> before_;
    std::uint32_t losses_ = 0;
    bool out_ = false;
};

// links/0/state of a card, for who waits until it changes.
class PolledState {
  public:
    explicit PolledState(unsigned card)
        : file_(::open(("/sys/class/accel/accel" + std::to_string(card) + "/device/links/0/state").c_str(),
                       O_RDONLY | O_CLOEXEC)) {
        EXPECT_GE(file_.get(), 0);
        EXPECT_EQ(read(), "up\n");
    }
    // What it says, each change by a wake-up.
    void expect_to_become(const std::string& state) const {
        std::string said;
        do {
            pollfd woken{file_.get(), POLLPRI, 0};
            ASSERT_EQ(::poll(&woken, 1, 60'000), 1) << "nobody is woken; it says " << said;
            said = read();
        } while (said != state);
    }

  private:
    std::string read() const {
        std::array<char, 32> text{};
        const ssize_t bytes = ::pread(file_.get(), text.data(), text.size(), 0);
        return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
    }
    File file_;
};

// What udev hears.
class KernelEvents {
  public:
    KernelEvents() : socket_(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT)) {
        sockaddr_nl all{};
        all.nl_family = AF_NETLINK;
        all.nl_groups = 1;
        EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&all), sizeof all), 0);
    }
    // One from each of so many cards, that its first link is in this state.
    void expect(std::size_t cards, const std::string& state) const {
        std::map<std::string, bool> told;
        while (told.size() < cards) {
            pollfd heard{socket_.get(), POLLIN, 0};
            ASSERT_EQ(::poll(&heard, 1, 60'000), 1) << "told by " << told.size() << " cards only";
            std::array<char, 8192> text{};
            const ssize_t bytes = ::recv(socket_.get(), text.data(), text.size(), 0);
            ASSERT_GT(bytes, 0);
            const std::string_view event(text.data(), static_cast<std::size_t>(bytes));
            const auto has = [&](std::string_view word) {
                return event.find(std::string("\0", 1).append(word).append(1, '\0')) != event.npos;
            };
            if (has("ORRERY_LINK=0") && has("ORRERY_LINK_STATE=" + state) && has("ACTION=change"))
                told[text.data()] = true;
        }
    }

  private:
    File socket_;
};

TEST_F(Cable, IsToldToWhoPollsAndToUdev) {
    const PolledState here(0), there(1);
    const KernelEvents events;
    ASSERT_NO_FATAL_FAILURE(pull());
    for (const PolledState* card : {&here, &there})
        ASSERT_NO_FATAL_FAILURE(card->expect_to_become("down\n"));
    ASSERT_NO_FATAL_FAILURE(events.expect(2, "down"));
    ASSERT_NO_FATAL_FAILURE(put_in());
    for (const PolledState* card : {&here, &there})
        ASSERT_NO_FATAL_FAILURE(card->expect_to_become("up\n"));
    ASSERT_NO_FATAL_FAILURE(events.expect(2, "up"));
}

// Nobody could signal: it is taken, and closed at once. When the cable is in again all begins anew.
TEST_F(Cable, AttachingBehindALinkThatIsDown) {
    waiter_->queue->submit(wait_for(kVa, 7));
    ASSERT_NO_FATAL_FAILURE(pull());
    ASSERT_EQ(attach_behind(), 0);
    waiter_->expect_poisoned(ORR_QERR_PEER_LOST);
    EXPECT_TRUE(closed());
    ASSERT_NO_FATAL_FAILURE(put_in());
    EXPECT_TRUE(closed()) << "it was opened again";
    waiter_->memory.words()[0] = waiter_->memory.words()[1] = 0;
    ASSERT_EQ(attach_behind(), 0);
    behind_->queue->submit(signal(kVa, 7));
    Queue again(waiter_->fd(), waiter_->vm, kRingVa + (1 << 20));
    EXPECT_EQ(again.run(std::vector{wait_for(kVa, 7)}), 0);
    EXPECT_FALSE(closed());
}

// Who has seen that the link was down attaches again before the driver has worked on it: that is not closed
// for the loss before.
TEST_F(Cable, AttachingAgainAtOnce) {
    for (std::uint64_t round = 1; round <= 5; ++round) {
        waiter_->memory.words()[0] = waiter_->memory.words()[1] = 0;
        ASSERT_EQ(attach_behind(), 0);
        ASSERT_NO_FATAL_FAILURE(pull());
        ASSERT_NO_FATAL_FAILURE(put_in());
        ASSERT_EQ(attach_behind(), 0);
        EXPECT_TRUE(closed()) << "for what was lost";
        waiter_->memory.words()[0] = waiter_->memory.words()[1] = 0;
        Queue later(waiter_->fd(), waiter_->vm, kRingVa + (round << 20));
        later.submit(wait_for(kVa, 7));
        drm_orr_queue_wait state{};
        EXPECT_EQ(wait(waiter_->fd(), later.number(), 1, 0.2, state), ETIME);
        EXPECT_FALSE(closed());
        ASSERT_EQ(detach(behind_->fd(), behind_->queue->number(), kVa), 0);
    }
}

// What had been signalled by then is there; for what comes later there is nobody. Who asks later still finds
// it closed, which does not say why.
TEST_F(Cable, WhatCrossedBefore) {
    ASSERT_EQ(attach_behind(), 0);
    ASSERT_EQ(behind_->queue->run(std::vector{signal(kVa, 1)}), 0);
    const orr_packet packets[] = {wait_for(kVa, 1), wait_for(kVa, 2)};
    waiter_->queue->submit(packets);
    // The queue was done when it was on the link.
    ASSERT_TRUE(comes_true([&] { return waiter_->memory.words()[0] == 1; }));
    ASSERT_NO_FATAL_FAILURE(pull());
    waiter_->expect_poisoned(ORR_QERR_PEER_LOST);
    EXPECT_EQ(waiter_->queue->ring().error_index, 1u);
    waiter_->queue = std::make_unique<Queue>(waiter_->fd(), waiter_->vm, kRingVa + (1 << 20));
    waiter_->queue->submit(packets);
    waiter_->expect_poisoned(ORR_QERR_ABANDONED);
    EXPECT_EQ(waiter_->queue->ring().error_index, 1u);
}

// The queue that was to signal stops, and its failure cannot cross: those who wait are told by their own
// card.
TEST_F(Cable, AQueueThatStopsBehindALinkThatIsDown) {
    Queue here(waiter_->fd(), waiter_->vm, kRingVa + (1 << 20));
    ASSERT_NO_FATAL_FAILURE(pull_with_one_left(here));
    orr_packet bad = nop();
    bad.header.opcode = 1234;
    const orr_packet packets[] = {bad, signal(kVa, 7)};
    behind_->queue->submit(packets);
    EXPECT_EQ(behind_->outcome().error, ORR_QERR_BAD_OPCODE);
    EXPECT_FALSE(closed()) << "one is left who may";
    here.submit(timestamp(kNowhere));
    waiter_->expect_poisoned(ORR_QERR_ABANDONED);
}

// The one that is left when all others have stopped is behind the link: he cannot signal either, though he
// lives.
TEST_F(Cable, TheLastOneIsBehindALinkThatIsDown) {
    Queue here(waiter_->fd(), waiter_->vm, kRingVa + (1 << 20));
    ASSERT_NO_FATAL_FAILURE(pull_with_one_left(here));
    EXPECT_FALSE(closed()) << "one is left who may";
    here.submit(timestamp(kNowhere));
    waiter_->expect_poisoned(ORR_QERR_ABANDONED);
}

}  // namespace
}  // namespace orrery::kmod_test
