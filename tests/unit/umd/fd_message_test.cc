// Messages with descriptors, from another end that means well or not.
#include "umd/runtime/fd_message.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <orrery/orrery.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

namespace orrery::umd {
namespace {

constexpr std::uint64_t kLongNs = 100'000'000'000;
#ifndef SO_PASSPIDFD
constexpr int kPassPidfd = 76;
#else
constexpr int kPassPidfd = SO_PASSPIDFD;
#endif

std::size_t open_fds() {
    std::size_t count = 0;
    DIR* const all = ::opendir("/proc/self/fd");
    while (::readdir(all) != nullptr)
        ++count;
    ::closedir(all);
    return count;
}

class FdMessages : public ::testing::TestWithParam<int> {
  protected:
    void SetUp() override {
        before_ = open_fds();
        ASSERT_EQ(::socketpair(AF_UNIX, GetParam() | SOCK_CLOEXEC, 0, ends_.data()), 0);
    }
    void TearDown() override {
        for (int end : ends_)
            ::close(end);
        EXPECT_EQ(open_fds(), before_) << "descriptors leaked";
    }
    int here() const { return ends_[0]; }
    int there() const { return ends_[1]; }
    // Raw bytes with descriptors, as somebody who does not use the library may send them.
    void send_raw(std::span<const std::byte> bytes, std::size_t fds) const {
        std::array<std::byte, CMSG_SPACE(64 * sizeof(int))> control{};
        const std::vector<int> all(fds, there());
        iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(fds * sizeof(int));
        cmsghdr* const c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(fds * sizeof(int));
        std::memcpy(CMSG_DATA(c), all.data(), fds * sizeof(int));
        ASSERT_EQ(::sendmsg(there(), &message, 0), static_cast<ssize_t>(bytes.size()));
    }
    static std::vector<std::byte> text(std::size_t bytes) { return std::vector(bytes, std::byte{7}); }
    orrError_t receive(std::size_t fds, std::size_t bytes, std::uint64_t limit_ns) const {
        const auto got = receive_message(here(), fds, bytes, limit_ns);
        return got ? orrSuccess : got.error().code;
    }

    std::array<int, 2> ends_{-1, -1};
    std::size_t before_ = 0;
};

TEST_P(FdMessages, GoWhole) {
    const std::vector<int> fds(kMaxMessageFds, here());
    const auto bytes = text(kMaxMessageBytes);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kMaxMessageFds}) {
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kMaxMessageBytes}) {
            ASSERT_TRUE(send_message(there(), std::span(fds).first(count), std::span(bytes).first(size), 0));
            auto got = receive_message(here(), count, size, 0);
            ASSERT_TRUE(got) << got.error().text;
            EXPECT_EQ(got->fds.size(), count);
            EXPECT_EQ(got->bytes, text(size));
        }
    }
}

TEST_P(FdMessages, ASocketThatGetsPidfds) {
    const int on = 1;
    if (::setsockopt(here(), SOL_SOCKET, kPassPidfd, &on, sizeof on) != 0)
        GTEST_SKIP() << "not with this kernel";
    const std::vector<int> fds(kMaxMessageFds, here());
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(send_message(there(), fds, text(8), kLongNs));
        auto got = receive_message(here(), kMaxMessageFds, 8, kLongNs);
        ASSERT_TRUE(got) << got.error().text;
        EXPECT_EQ(got->fds.size(), kMaxMessageFds);
    }
}

// What is there at the limit counts if it is there whole.
TEST_P(FdMessages, ByteByByteTakesNoLongerThanTheLimit) {
    struct {
        std::uint32_t magic, fds;
        std::uint64_t bytes;
    } const head{0x3149524f, 0, 0};
    for (const std::byte& byte : std::as_bytes(std::span(&head, 1))) {
        ASSERT_EQ(::send(there(), &byte, 1, 0), 1);
        // On a socket of bytes they come together unless one is taken out before the next.
        if (GetParam() == SOCK_STREAM) break;
    }
    EXPECT_EQ(receive(0, 0, 0), orrErrorTimeout);
}

TEST_P(FdMessages, NothingCame) {
    EXPECT_EQ(receive(1, 1, 0), orrErrorTimeout);
    EXPECT_EQ(receive(1, 1, 1'000'000), orrErrorTimeout);
}

TEST_P(FdMessages, TheOtherEndGoesInTheMiddle) {
    ASSERT_TRUE(send_message(there(), {}, {}, 0));
    const std::uint64_t head[2] = {0x3149524f, 100};
    ASSERT_EQ(::send(there(), head, sizeof head, 0), static_cast<ssize_t>(sizeof head));
    ::shutdown(there(), SHUT_WR);
    EXPECT_EQ(receive(0, 0, kLongNs), orrSuccess);
    EXPECT_EQ(receive(0, 100, kLongNs), orrErrorAborted);
}

TEST_P(FdMessages, ThatAreNoneAreRefusedAndTheirDescriptorsClosed) {
    struct Head {
        std::uint32_t magic, fds;
        std::uint64_t bytes;
    };
    const auto send_head = [&](Head head, std::size_t fds) {
        send_raw(std::as_bytes(std::span(&head, 1)), fds);
    };
    send_head({1, 1, 0}, 1);
    EXPECT_EQ(receive(16, 0, kLongNs), orrErrorInvalidValue);
    send_head({0x3149524f, 2, 0}, 1);
    EXPECT_EQ(receive(16, 0, kLongNs), orrErrorInvalidValue);
    send_head({0x3149524f, 0, 0}, 1);
    EXPECT_EQ(receive(16, 0, kLongNs), orrErrorInvalidValue);
    send_head({0x3149524f, 1, kMaxMessageBytes + 1}, 1);
    EXPECT_EQ(receive(16, kMaxMessageBytes, kLongNs), orrErrorInvalidValue);
    send_head({0x3149524f, 1, ~std::uint64_t{0}}, 1);
    EXPECT_EQ(receive(16, kMaxMessageBytes, kLongNs), orrErrorInvalidValue);
    // More than any message has.
    send_head({0x3149524f, 60, 0}, 60);
    EXPECT_EQ(receive(16, 0, kLongNs), orrErrorInvalidValue);
}

// With the bytes, which have none; the socket is no use after that.
TEST_P(FdMessages, DescriptorsInTheWrongPlace) {
    const struct {
        std::uint32_t magic, fds;
        std::uint64_t bytes;
    } head{0x3149524f, 1, 4};
    send_raw(std::as_bytes(std::span(&head, 1)), 1);
    send_raw(text(4), 1);
    EXPECT_EQ(receive(16, 4, kLongNs), orrErrorInvalidValue);
}

// The other end takes nothing.
TEST_P(FdMessages, ASenderHasALimitToo) {
    const auto bytes = text(kMaxMessageBytes);
    Status sent;
    while (sent)
        sent = send_message(there(), {}, bytes, 1'000'000);
    EXPECT_EQ(sent.error().code, orrErrorTimeout) << sent.error().text;
}

// A user may have only so many under way, in all sockets: one who sends waits until some have arrived.
TEST_P(FdMessages, TooManyDescriptorsUnderWayAreWaitedFor) {
    const pid_t child = ::fork();
    if (child == 0) {
        // Root may have any number; another run has another user's.
        const uid_t own = 20'000 + static_cast<uid_t>(::getpid()) % 40'000;
        if (::geteuid() == 0 && ::setresuid(own, own, own) != 0) ::_exit(2);
        const rlimit few{40, 40};
        ::setrlimit(RLIMIT_NOFILE, &few);
        const std::vector<int> all(kMaxMessageFds, there());
        // What cannot be sent at once fails, and nothing of it goes. The first waits: in another container
        // the same user may have some under way.
        int sent = send_message(there(), all, {}, kLongNs) ? 1 : 0;
        while (sent > 0 && sent < 8 && send_message(there(), all, {}, 0))
            ++sent;
        if (sent == 0 || sent == 8) ::_exit(3);
        std::thread receives([&] {
            ::usleep(50'000);
            for (int i = 0; i <= sent; ++i) {
                if (receive(kMaxMessageFds, 0, kLongNs) != orrSuccess) ::_exit(4);
            }
        });
        const Status last = send_message(there(), all, {}, kLongNs);
        if (!last) ::_exit(5);
        receives.join();
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FdMessages, ::testing::Values(SOCK_STREAM, SOCK_SEQPACKET));

}  // namespace
}  // namespace orrery::umd
