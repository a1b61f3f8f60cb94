// Failure travels with the semaphore, between processes and between cards: one waits for what another was to
// signal, and that one is killed, destroys its queue, aborts it, or does something wrong. The waiter learns
// of it, and who it was.
#include <gtest/gtest.h>
#include <orrery/fw/failure.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "tests/vm/kmod/device.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kRingVa = 0x10000000;
constexpr std::uint64_t kSharedVa = 0x40000000;
constexpr std::uint64_t kPrivateVa = 0x50000000;
constexpr std::uint64_t kNowhere = 0x60000000;
constexpr std::uint32_t kAttach = 1;  // of a signaller: declare it
constexpr std::uint32_t kIdle = 2;    // submit nothing

std::uint32_t node_of(unsigned card) {
    const File file = open_card(card);
    drm_orr_query_device device{};
    EXPECT_EQ(call(file.get(), DRM_IOCTL_ORR_QUERY_DEVICE, &device), 0);
    return device.uid & 0xff;
}

int abort_queue(int fd, std::uint32_t queue) {
    drm_orr_queue_abort args{.queue = queue, .flags = 0};
    return call(fd, DRM_IOCTL_ORR_QUEUE_ABORT, &args);
}

int attach(int fd, std::uint32_t queue, std::uint64_t va, std::uint32_t count = 1) {
    drm_orr_signaller args{.queue = queue, .flags = 0, .semaphore = va, .count = count, .pad = 0};
    return call(fd, DRM_IOCTL_ORR_SIGNALLER_ATTACH, &args);
}
int detach(int fd, std::uint32_t queue, std::uint64_t va, std::uint32_t count = 1) {
    drm_orr_signaller args{.queue = queue, .flags = 0, .semaphore = va, .count = count, .pad = 0};
    return call(fd, DRM_IOCTL_ORR_SIGNALLER_DETACH, &args);
}

// A process with a queue that is to signal the shared semaphore, and does not get so far. It does what it is
// told, a letter at a time: d destroys the queue, a aborts it, t lets it do something wrong, x detaches it.
class Signaller {
  public:
    Signaller(unsigned card, int dma_buf, std::uint32_t how) {
        int to[2], from[2];
        EXPECT_EQ(::pipe(to), 0);
        EXPECT_EQ(::pipe(from), 0);
        pid_ = ::fork();
        if (pid_ == 0) ::_exit(live(card, dma_buf, how, to[0], from[1]));
        ::close(to[0]);
        ::close(from[1]);
        orders_ = File(to[1]);
        answers_ = File(from[0]);
        EXPECT_EQ(answer(), 'r') << "the signaller did not get ready";
    }
    ~Signaller() { kill(); }
    Signaller(const Signaller&) = delete;
    Signaller& operator=(const Signaller&) = delete;
    void order(char what) {
        EXPECT_EQ(::write(orders_.get(), &what, 1), 1);
        EXPECT_EQ(answer(), what);
    }
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }

  private:
    char answer() const {
        char byte = 0;
        return ::read(answers_.get(), &byte, 1) == 1 ? byte : '?';
    }
    static int live(unsigned card, int dma_buf, std::uint32_t how, int orders, int answers) {
        const File file = open_card(card);
        std::uint32_t vm = 0, handle = 0;
        Buffer gate;
        if (!file || create_vm(file.get(), vm) != 0) return 1;
        if (import_bo(file.get(), dma_buf, handle) != 0) return 2;
        if (map(file.get(), vm, handle, kSharedVa, 4096, ORR_BIND_WRITE) != 0) return 3;
        if (make_buffer(file.get(), vm, kPrivateVa, 4096, ORR_BO_VRAM, gate) != 0) return 4;
        Queue queue(file.get(), vm, kRingVa), helper(file.get(), vm, kRingVa + (1 << 20));
        if (queue.error() != 0 || helper.error() != 0) return 5;
        if ((how & kAttach) != 0 && attach(file.get(), queue.number(), kSharedVa) != 0) return 6;
        const std::vector<orr_packet> packets{wait_for(kPrivateVa, 1), timestamp(kNowhere),
                                              signal(kSharedVa, 7)};
        if ((how & kIdle) == 0) queue.submit(packets);
        for (char what = 'r';;) {
            int done = 0;
            if (what == 'd') done = destroy_queue(file.get(), queue.number());
            if (what == 'd') queue.forget();
            if (what == 'a') done = abort_queue(file.get(), queue.number());
            if (what == 't') helper.submit(signal(kPrivateVa, 1));
            if (what == 'x') done = detach(file.get(), queue.number(), kSharedVa);
            if (done != 0) what = '!';
            if (::write(answers, &what, 1) != 1 || ::read(orders, &what, 1) != 1) return 7;
        }
    }
    pid_t pid_ = 0;
    File orders_, answers_;
};

class Failure : public ::testing::TestWithParam<unsigned> {
  protected:
    void SetUp() override {
        if (GetParam() >= count_cards()) GTEST_SKIP() << "needs two cards";
        file_ = open_card();
        ASSERT_TRUE(file_);
        ASSERT_EQ(create_vm(fd(), vm_), 0);
        ASSERT_EQ(make_buffer(fd(), vm_, kSharedVa, 4096, ORR_BO_VRAM, shared_), 0);
        ASSERT_EQ(export_bo(fd(), shared_.handle, dma_buf_), 0);
        queue_ = std::make_unique<Queue>(fd(), vm_, kRingVa);
        ASSERT_EQ(queue_->error(), 0);
        node_ = node_of(GetParam());
    }
    int fd() const { return file_.get(); }
    // The waiter's queue has stopped with the cause that the other gave.
    void expect_poisoned(std::uint32_t code) {
        drm_orr_queue_wait out{};
        EXPECT_EQ(wait(fd(), queue_->number(), queue_->ring().producer, kLong, out), 0);
        EXPECT_EQ(out.error, ORR_QERR_POISON);
        EXPECT_EQ(out.error_address, kSharedVa);
        EXPECT_EQ(ORR_FAILURE_CODE(out.error_detail), code);
        EXPECT_EQ(ORR_FAILURE_NODE(out.error_detail), node_);
        // Nobody else notices.
        Queue bystander(fd(), vm_, kRingVa + (2 << 20));
        EXPECT_EQ(bystander.error(), 0);
        const orr_packet packet = nop();
        EXPECT_EQ(bystander.run(std::span(&packet, 1)), 0);
    }
    void waits() { queue_->submit(wait_for(kSharedVa, 7)); }
    bool still_waits() {
        drm_orr_queue_wait out{};
        return wait(fd(), queue_->number(), queue_->ring().producer, 0.05, out) == ETIME && out.error == 0;
    }
    File file_, dma_buf_;
    std::uint32_t vm_ = 0, node_ = 0;
    Buffer shared_;
    std::unique_ptr<Queue> queue_;
};

TEST_P(Failure, OfAKilledProcess) {
    Signaller other(GetParam(), dma_buf_.get(), 0);
    waits();
    EXPECT_TRUE(still_waits());
    other.kill();
    expect_poisoned(ORR_QERR_ABORTED);
}

TEST_P(Failure, OfADestroyedQueue) {
    Signaller other(GetParam(), dma_buf_.get(), 0);
    waits();
    other.order('d');
    expect_poisoned(ORR_QERR_ABORTED);
}

TEST_P(Failure, OfAnAbortedQueue) {
    Signaller other(GetParam(), dma_buf_.get(), 0);
    waits();
    other.order('a');
    expect_poisoned(ORR_QERR_ABORTED);
}

TEST_P(Failure, OfAQueueThatDoesSomethingWrong) {
    Signaller other(GetParam(), dma_buf_.get(), 0);
    waits();
    other.order('t');
    expect_poisoned(ORR_QERR_FAULT);
}

TEST_P(Failure, IsThereForAWaitThatComesLater) {
    Signaller other(GetParam(), dma_buf_.get(), 0);
    other.kill();
    waits();
    expect_poisoned(ORR_QERR_ABORTED);
    EXPECT_TRUE(ORR_SEM_HAS_FAILED(shared_.words()[0]));
}

TEST_P(Failure, OfTheOnlyOneWhoMightHaveSignalled) {
    Signaller other(GetParam(), dma_buf_.get(), kAttach | kIdle);
    waits();
    EXPECT_TRUE(still_waits());
    other.kill();
    expect_poisoned(ORR_QERR_ABANDONED);
    EXPECT_EQ(shared_.words()[0], 0u);
    EXPECT_EQ(shared_.words()[1] & ORR_SEM_CLOSED, ORR_SEM_CLOSED);
}

TEST_P(Failure, NotWhileAnotherMaySignal) {
    Signaller one(GetParam(), dma_buf_.get(), kAttach | kIdle), two(0, dma_buf_.get(), kAttach | kIdle);
    waits();
    one.kill();
    EXPECT_TRUE(still_waits());
    two.order('x');
    node_ = node_of(0);
    expect_poisoned(ORR_QERR_ABANDONED);
}

TEST_P(Failure, OfAnAbortedQueueThatWasAttached) {
    Signaller other(GetParam(), dma_buf_.get(), kAttach | kIdle);
    waits();
    other.order('a');
    expect_poisoned(ORR_QERR_ABANDONED);
}

INSTANTIATE_TEST_SUITE_P(Cards, Failure, ::testing::Values(0u, 1u),
                         [](const auto& each) { return each.param == 0 ? "OneCard" : "OverALink"; });

class Abort : public ::testing::Test {
  protected:
    void SetUp() override {
        file_ = open_card();
        ASSERT_TRUE(file_);
        ASSERT_EQ(create_vm(fd(), vm_), 0);
        ASSERT_EQ(make_buffer(fd(), vm_, kSharedVa, 4096, ORR_BO_VRAM, shared_), 0);
    }
    int fd() const { return file_.get(); }
    File file_;
    std::uint32_t vm_ = 0;
    Buffer shared_;
};

TEST_F(Abort, TheQueueCanStillBeAsked) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    const std::vector<orr_packet> packets{nop(), wait_for(kSharedVa, 7), nop()};
    queue.submit(packets);
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(fd(), queue.number(), 1, kLong, out), 0);
    EXPECT_EQ(abort_queue(fd(), queue.number()), 0);
    EXPECT_EQ(wait(fd(), queue.number(), 3, kLong, out), 0);
    EXPECT_EQ(out.completed, 1u);
    EXPECT_EQ(out.error, ORR_QERR_ABORTED);
    EXPECT_EQ(out.error_index, 1u);
    EXPECT_EQ(abort_queue(fd(), queue.number()), 0) << "once more";
    EXPECT_EQ(attach(fd(), queue.number(), kSharedVa), EIO);
    EXPECT_EQ(destroy_queue(fd(), queue.number()), 0);
    EXPECT_EQ(abort_queue(fd(), queue.number()), ENOENT);
    queue.forget();
}

TEST_F(Abort, AWaitComesToItsLimitOnAnIdleCard) {
    Queue queue(fd(), vm_, kRingVa), signaller(fd(), vm_, kRingVa + (1 << 20));
    orr_packet_semaphore limited{};
    limited.header.opcode = ORR_PKT_WAIT;
    limited.semaphore = kSharedVa;
    limited.value = 7;
    limited.limit_ns = 300'000'000'000;
    orr_packet packet;
    static_assert(sizeof(packet) == sizeof(limited));
    std::memcpy(&packet, &limited, sizeof(packet));
    drm_orr_queue_wait out{};
    const std::uint64_t first = queue.submit(packet);
    signaller.submit(signal(kSharedVa, 7));
    EXPECT_EQ(wait(fd(), queue.number(), first, kLong, out), 0);
    EXPECT_EQ(out.error, 0u) << "in time";
    limited.value = 8;
    limited.limit_ns = 3'000'000'000;
    std::memcpy(&packet, &limited, sizeof(packet));
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t second = queue.submit(packet);
    EXPECT_EQ(wait(fd(), queue.number(), second, kLong, out), 0);
    EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2))
        << "no faster than the host's time";
    EXPECT_EQ(out.error, ORR_QERR_WAIT_LIMIT);
    EXPECT_EQ(out.error_address, kSharedVa);
    EXPECT_EQ(out.error_detail, 7u);
}

TEST_F(Abort, ArgumentsAreChecked) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    drm_orr_queue_abort flagged{.queue = queue.number(), .flags = 1};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUEUE_ABORT, &flagged), EINVAL);
    EXPECT_EQ(abort_queue(fd(), queue.number() + 1), ENOENT);
    const std::uint32_t n = queue.number();
    EXPECT_EQ(attach(fd(), n + 1, kSharedVa), ENOENT);
    EXPECT_EQ(attach(fd(), n, kSharedVa + 8), EINVAL);
    EXPECT_EQ(attach(fd(), n, kNowhere), EFAULT);
    EXPECT_EQ(attach(fd(), n, kSharedVa + 4096 - 16, 2), EFAULT);
    EXPECT_EQ(attach(fd(), n, kSharedVa, 0), EINVAL);
    EXPECT_EQ(attach(fd(), n, kSharedVa, 257), EINVAL);
    drm_orr_signaller bad{.queue = n, .flags = 1, .semaphore = kSharedVa, .count = 1, .pad = 0};
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_SIGNALLER_ATTACH, &bad), EINVAL);
    bad.flags = 0;
    bad.pad = 1;
    EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_SIGNALLER_DETACH, &bad), EINVAL);
}

TEST_F(Abort, ASemaphoreIsUsedAgainAfterItWasClosed) {
    Queue one(fd(), vm_, kRingVa), two(fd(), vm_, kRingVa + (1 << 20)),
        waiter(fd(), vm_, kRingVa + (2 << 20));
    EXPECT_EQ(attach(fd(), one.number(), kSharedVa, 256), 0);
    EXPECT_EQ(attach(fd(), one.number(), kSharedVa, 256), 0) << "twice is once";
    EXPECT_EQ(detach(fd(), one.number(), kSharedVa, 256), 0);
    for (unsigned n = 0; n < 256; ++n)
        ASSERT_EQ(shared_.words()[2 * n + 1] & ORR_SEM_CLOSED, ORR_SEM_CLOSED) << n;
    EXPECT_EQ(detach(fd(), one.number(), kSharedVa, 256), 0) << "nothing to detach";
    shared_.words()[0] = shared_.words()[1] = 0;
    EXPECT_EQ(attach(fd(), two.number(), kSharedVa), 0);
    const std::uint64_t index = waiter.submit(wait_for(kSharedVa, 7));
    two.submit(signal(kSharedVa, 7));
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(fd(), waiter.number(), index, kLong, out), 0);
    EXPECT_EQ(out.error, 0u);
    EXPECT_EQ(out.completed, index);
}

}  // namespace
}  // namespace orrery::kmod_test
