// The driver under a firmware that lies, one lie after the other, each on a card started anew. What it tells
// of itself may be nonsense; the driver neither crashes nor hangs, ends what waits, and works with the next
// firmware.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/vm/kmod/device.h"
#include "tests/vm/kmod/pci.h"
#include "tests/vm/liar/lies.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kRingVa = 0x10000000;
constexpr std::uint64_t kNever = 1'000'000;

// How long a lie may keep a call busy: the time that the firmware has for an answer, three times, and its
// restarts.
constexpr double kHang = 60;

enum class Outcome {
    kGoesOn,  // as if nothing had been said
    kLost,    // the driver gives the card up
    kEither,  // as it happens: a restart of the firmware may make it forgotten
};

struct Case {
    Lie lie;
    Outcome outcome;
    const char* name;
};

constexpr Case kCases[] = {
    {Lie::kCircles, Outcome::kGoesOn, "Circles"},
    {Lie::kIndices, Outcome::kGoesOn, "Indices"},
    {Lie::kUnknownEvents, Outcome::kGoesOn, "UnknownEvents"},
    {Lie::kFlood, Outcome::kGoesOn, "Flood"},
    {Lie::kInterrupts, Outcome::kGoesOn, "Interrupts"},
    {Lie::kProducerAhead, Outcome::kLost, "ProducerAhead"},
    {Lie::kProducerBack, Outcome::kLost, "ProducerBack"},
    {Lie::kConsumerAhead, Outcome::kEither, "ConsumerAhead"},
    {Lie::kReplyToNobody, Outcome::kLost, "ReplyToNobody"},
    {Lie::kReplyTwice, Outcome::kLost, "ReplyTwice"},
    {Lie::kReplyOtherCommand, Outcome::kLost, "ReplyOtherCommand"},
    {Lie::kReplyOtherSequence, Outcome::kLost, "ReplyOtherSequence"},
    {Lie::kReplyUnknownStatus, Outcome::kLost, "ReplyUnknownStatus"},
    {Lie::kReplyNonsense, Outcome::kGoesOn, "ReplyNonsense"},
};

std::string sysfs_state(const std::string& card) {
    return read_file("/sys/bus/pci/devices/" + card + "/state");
}

// How often the firmware was restarted since the driver was bound.
std::string restarts(const std::string& card) {
    return read_file("/sys/kernel/debug/accel/" + card + "/restarts");
}

class Liar : public ::testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        const auto cards = pci_addresses();
        ASSERT_EQ(cards.size(), 1u);
        card_ = cards[0];
        start_anew();
    }

    // Nor has the firmware been restarted yet then.
    void start_anew() {
        if (node_of(card_) >= 0) {
            ASSERT_TRUE(unbind_driver(card_));
        }
        ASSERT_TRUE(bind_driver(card_));
        ASSERT_GE(node_of(card_), 0);
        drm_orr_query_device device{};
        const File file = open_card(static_cast<unsigned>(node_of(card_)));
        ASSERT_EQ(call(file.get(), DRM_IOCTL_ORR_QUERY_DEVICE, &device), 0);
        ASSERT_EQ(device.fw_version, kLiarVersion) << "this is not the lying firmware";
    }

    // A file with an address space and memory for a ring.
    struct Client {
        File file;
        std::uint32_t vm = 0;
        Buffer ring;
    };
    int open(Client& client) const {
        client.file = open_card(static_cast<unsigned>(node_of(card_)));
        const int error = create_vm(client.file.get(), client.vm);
        if (error != 0) return error;
        return make_buffer(client.file.get(), client.vm, kRingVa, 64 * 1024, ORR_BO_SYSTEM, client.ring);
    }
    // A queue whose ring nobody reads.
    int make_queue(int fd, std::uint32_t vm, const std::string& name, drm_orr_queue_create& args) const {
        args = {};
        args.vm = vm;
        args.entries = 64;
        args.ring_va = kRingVa;
        args.priority = ORR_QUEUE_PRIORITY_NORMAL;
        std::memcpy(args.name, name.data(), std::min(name.size(), sizeof args.name - 1));
        return call(fd, DRM_IOCTL_ORR_QUEUE_CREATE, &args);
    }

    // A lie is told and judged, unless a restart of the firmware has made it forgotten.
    void tell(const Case& test, bool& forgotten);

    std::string card_;
};

void Liar::tell(const Case& test, bool& forgotten) {
    const std::string before = restarts(card_);
    Client client;
    ASSERT_EQ(open(client), 0);
    const int fd = client.file.get();
    const std::uint32_t vm = client.vm;
    drm_orr_queue_create queue{};
    // Two others, for what is said about several.
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(make_queue(fd, vm, "bystander", queue), 0);
    const std::uint32_t bystander = queue.queue;
    int result = -1;
    std::thread sleeper([&] {
        drm_orr_queue_wait out{};
        result = wait(fd, bystander, kNever, kHang, out);
    });
    // Its creation is answered before its name arrives: the lie meets what comes next.
    ASSERT_EQ(make_queue(fd, vm, std::string("lie ") + static_cast<char>(test.lie), queue), 0);
    std::vector<int> errors;
    for (int i = 0; i < 5; i++) {
        drm_orr_queue_stats stats{};
        stats.queue = queue.queue;
        errors.push_back(call(fd, DRM_IOCTL_ORR_QUEUE_STATS, &stats));
        drm_orr_queue_wait out{};
        wait(fd, queue.queue, kNever, 0, out);
        std::vector<drm_orr_wait_edge> edges(16);
        drm_orr_query_deadlock deadlock{};
        deadlock.edges = reinterpret_cast<std::uintptr_t>(edges.data());
        deadlock.count = static_cast<std::uint32_t>(edges.size());
        call(fd, DRM_IOCTL_ORR_QUERY_DEADLOCK, &deadlock);
    }
    const std::string state = sysfs_state(card_);
    const bool lost = state.starts_with("lost");
    // One that has no CPU for a while is restarted, and has nothing more to say.
    forgotten = !lost && test.outcome == Outcome::kLost && restarts(card_) != before;
    if (test.outcome != Outcome::kEither && !forgotten) {
        EXPECT_EQ(lost, test.outcome == Outcome::kLost);
    }
    // The driver ends the wait, or the end of its queue does.
    if (lost) {
        EXPECT_EQ(state, "lost: the firmware breaks the mailbox protocol")
            << "it was not the lie that was seen";
        EXPECT_EQ(errors.back(), ENODEV);
        sleeper.join();
        EXPECT_EQ(result, ENODEV);
    } else {
        for (const int error : errors)
            EXPECT_EQ(error, 0);
        EXPECT_EQ(destroy_queue(fd, queue.queue), 0);
        EXPECT_EQ(destroy_queue(fd, bystander), 0);
        sleeper.join();
        // ENOENT: on a slow host the sleeper may come after the end of its queue.
        EXPECT_TRUE(result == ECANCELED || result == EDEADLK || result == ENOENT || result == 0)
            << std::strerror(result);
        EXPECT_EQ(sysfs_state(card_), "running");
    }
}

TEST_P(Liar, NeitherCrashesNorHangs) {
    constexpr int kTries = 20;
    for (int n = 0; n < kTries; n++) {
        bool forgotten = false;
        // A few restarts that count make it lost without a lie.
        if (n > 0) ASSERT_NO_FATAL_FAILURE(start_anew());
        ASSERT_NO_FATAL_FAILURE(tell(GetParam(), forgotten));
        if (!forgotten) return;
    }
    FAIL() << "the driver does not see the lie, or has restarted the firmware before each";
}

INSTANTIATE_TEST_SUITE_P(Lies, Liar, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

// A firmware that dies or says nothing is restarted, until it has been too often.
TEST_F(Liar, HaltsAndSilenceEnd) {
    for (const Lie lie : {Lie::kTrap, Lie::kSilence}) {
        Client client;
        ASSERT_EQ(open(client), 0);
        const auto& [file, vm, ring] = client;
        int rounds = 0;
        int error = 0;
        for (; error == 0 && rounds < 100; rounds++) {
            drm_orr_queue_create queue{};
            error = make_queue(file.get(), vm, std::string("lie ") + static_cast<char>(lie), queue);
            if (error == 0) error = destroy_queue(file.get(), queue.queue);
        }
        EXPECT_EQ(error, ENODEV) << rounds;
        EXPECT_GT(rounds, 1);
        EXPECT_EQ(sysfs_state(card_).substr(0, 4), "lost");
        ASSERT_TRUE(unbind_driver(card_));
        ASSERT_TRUE(bind_driver(card_));
    }
}

// One that has much to do and says so by its heartbeat is neither restarted nor given up.
TEST_F(Liar, ASlowAnswerIsWaitedFor) {
    // Nor if its card has no CPU for a while.
    const TimeOut longer("mailbox_timeout_ms", "60000"), silent("silence_timeout_ms", "60000");
    Client client;
    ASSERT_EQ(open(client), 0);
    const auto& [file, vm, ring] = client;
    drm_orr_queue_create queue{};
    ASSERT_EQ(make_queue(file.get(), vm, "lie q", queue), 0);
    drm_orr_queue_stats stats{};
    stats.queue = queue.queue;
    EXPECT_EQ(call(file.get(), DRM_IOCTL_ORR_QUEUE_STATS, &stats), 0);
    EXPECT_EQ(restarts(card_), "0");
    EXPECT_EQ(sysfs_state(card_), "running");
}

// Commands that may take long, and whose callers were killed, leave room for others.
TEST_F(Liar, AbortsWithoutAnAnswerHoldUpNobody) {
    const TimeOut longer("mailbox_timeout_ms", "20000"), silent("silence_timeout_ms", "60000");
    Client client;
    ASSERT_EQ(open(client), 0);
    const auto& [file, vm, ring] = client;
    drm_orr_queue_create queue{};
    ASSERT_EQ(make_queue(file.get(), vm, "lie r", queue), 0);
    int ready[2], go[2];
    ASSERT_EQ(::pipe(ready), 0);
    ASSERT_EQ(::pipe(go), 0);
    std::vector<pid_t> children;
    for (int n = 0; n < 64; n++) {
        children.push_back(::fork());
        if (children.back() != 0) continue;
        ::close(go[1]);
        Client mine;
        drm_orr_queue_create made{};
        char none = 0;
        if (open(mine) != 0 || make_queue(mine.file.get(), mine.vm, "killed", made) != 0 ||
            ::write(ready[1], "", 1) != 1 || ::close(ready[1]) != 0 || ::read(go[0], &none, 1) != 0)
            ::_exit(1);
        drm_orr_queue_abort abort{.queue = made.queue, .flags = 0};
        call(mine.file.get(), DRM_IOCTL_ORR_QUEUE_ABORT, &abort);
        ::_exit(0);
    }
    ::close(ready[1]);
    char byte = 0;
    std::size_t waiting = 0;
    while (waiting < children.size() && ::read(ready[0], &byte, 1) == 1)
        waiting++;
    EXPECT_EQ(waiting, children.size()) << "the others have no queue";
    // All at once, so that the time which the first has is that of all.
    ::close(go[1]);
    ::usleep(300'000);
    for (const pid_t child : children)
        ::kill(child, SIGKILL);
    drm_orr_queue_stats stats{};
    stats.queue = queue.queue;
    EXPECT_EQ(call(file.get(), DRM_IOCTL_ORR_QUEUE_STATS, &stats), 0);
    EXPECT_EQ(restarts(card_), "0") << "it was answered only when the aborts had ended";
    ::close(ready[0]);
    ::close(go[0]);
    // It ends by a restart, after which the firmware has forgotten its lie.
    for (const pid_t child : children)
        ::waitpid(child, nullptr, 0);
    EXPECT_EQ(sysfs_state(card_), "running");
}

// With an honest firmware the card is as good as ever. Run it last, and put that firmware there first.
TEST(Honest, FirmwareFollows) {
    const auto cards = pci_addresses();
    ASSERT_EQ(cards.size(), 1u);
    if (node_of(cards[0]) >= 0) {
        ASSERT_TRUE(unbind_driver(cards[0]));
    }
    ASSERT_TRUE(bind_driver(cards[0]));
    const File file = open_card(static_cast<unsigned>(node_of(cards[0])));
    std::uint32_t vm = 0;
    ASSERT_EQ(create_vm(file.get(), vm), 0);
    Queue queue(file.get(), vm, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    EXPECT_EQ(queue.run(std::vector{nop(), nop()}), 0);
}

}  // namespace
}  // namespace orrery::kmod_test
