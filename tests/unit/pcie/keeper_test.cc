// What a client sees of a card that is gone: never a broken connection.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <array>
#include <csignal>

#include "emulator/pcie/keeper.h"
#include "emulator/pcie/socket.h"
#include "tests/unit/pcie/server_fixture.h"

namespace orrery::test {
namespace {

using emu::Keeper;
using emu::UniqueFd;

std::vector<std::byte> read_request(uint16_t id, uint32_t count = 4) {
    return message(wire::kRegionRead, bytes_of(wire::RegionAccess{0, 0, count}), id);
}

// A process with a keeper that holds one end of a connection; the test has the other.
class DeadCard : public testing::Test {
  protected:
    void start() {
        std::array<int, 2> pair{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
        std::array<int, 2> ready{};
        ASSERT_EQ(::pipe(ready.data()), 0);
        card_ = ::fork();
        ASSERT_GE(card_, 0);
        if (card_ == 0) {
            ::close(pair[0]);
            std::FILE* log = ::fopen("/dev/null", "w");
            const auto keeper = Keeper::start(log);
            if (!keeper) ::_exit(1);
            keeper->hold(pair[1]);
            static_cast<void>(::write(ready[1], "", 1) < 0);
            for (;;)
                ::pause();
        }
        ::close(pair[1]);
        ::close(ready[1]);
        client_ = Client(UniqueFd(pair[0]));
        char byte = 0;
        ASSERT_EQ(::read(ready[0], &byte, 1), 1);
        ::close(ready[0]);
    }
    void kill_card() {
        ASSERT_EQ(::kill(card_, SIGKILL), 0);
        ASSERT_EQ(::waitpid(card_, nullptr, 0), card_);
    }

    pid_t card_ = -1;
    Client client_{UniqueFd()};
};

TEST_F(DeadCard, AnswersWhatWasUnreadAndWhatComes) {
    start();
    ASSERT_TRUE(client_.send(read_request(7)));
    kill_card();
    // The first one may have been answered, so it gets an error: a header and no more.
    const auto first = client_.receive();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->header.id, 7);
    EXPECT_EQ(first->error(), ENODEV);
    EXPECT_EQ(first->header.size, sizeof(wire::Header));
    // All-ones to what comes after.
    EXPECT_EQ(client_.read<uint32_t>(0, 0), 0xffffffffu);
    const auto second = client_.call(wire::kRegionRead, bytes_of(wire::RegionAccess{8, 7, 8}));
    ASSERT_TRUE(second && second->ok());
    EXPECT_EQ(second->as<uint64_t>(sizeof(wire::RegionAccess)), ~uint64_t{0});
    // Writes, maps and interrupts are acknowledged; questions are not answered.
    EXPECT_EQ(client_.write<uint32_t>(0, 0, 5), 0);
    const UniqueFd memory(::memfd_create("guest", MFD_CLOEXEC));
    EXPECT_TRUE(client_.map(0, 4096, memory.get()));
    EXPECT_EQ(client_.error_of(wire::kDeviceReset, {}), 0);
    EXPECT_EQ(client_.error_of(wire::kDeviceGetInfo, bytes_of(wire::DeviceInfo{})), ENODEV);
    // A read that no CPU makes.
    EXPECT_EQ(client_.error_of(wire::kRegionRead, bytes_of(wire::RegionAccess{0, 0, 1 << 20})), ENODEV);
    // A posted write gets no reply.
    ASSERT_TRUE(client_.send(message(wire::kRegionWrite,
                                     bytes_of(wire::RegionAccess{0, 0, 4}) + bytes_of(uint32_t{1}), 9,
                                     wire::kFlagNoReply)));
    EXPECT_EQ(client_.read<uint32_t>(0, 0), 0xffffffffu);
}

TEST_F(DeadCard, KeeperEndsWithItsClient) {
    start();
    kill_card();
    EXPECT_EQ(client_.read<uint32_t>(0, 0), 0xffffffffu);
    // The keeper's end closes: with SHUT_WR it sees the end of the stream, and goes.
    ASSERT_EQ(::shutdown(client_.fd(), SHUT_WR), 0);
    EXPECT_FALSE(client_.receive());
}

TEST(KeeperAlone, NonsenseEndsTheConnection) {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    const UniqueFd ours(pair[0]);
    const UniqueFd theirs(pair[1]);
    const wire::Header header{.id = 1, .command = wire::kRegionRead, .size = 3, .flags = 0, .error = 0};
    ASSERT_EQ(::send(ours.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
    emu::answer_for_the_dead(theirs.get());  // returns
}

class HangUp : public ServerFixture {};

// With bytes left unread the client would get ECONNRESET, and stock QEMU abort.
TEST_F(HangUp, IsTheEndOfTheStreamAndNoReset) {
    start();
    auto client = Client::connect(path_);
    ASSERT_TRUE(client);
    // The first makes the server hang up, the others are never read.
    std::vector<std::byte> all = message(wire::kDeviceReset, {}, 1);
    for (uint16_t id = 2; id < 200; id++)
        all = all + read_request(id);
    ASSERT_TRUE(client->send(all));
    ASSERT_TRUE(client->receive());
    std::byte byte{};
    pollfd polled{client->fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&polled, 1, -1), 1);
    EXPECT_EQ(::recv(client->fd(), &byte, 1, 0), 0) << std::strerror(errno);
}

// A request stays in the socket until its answer is on its way.
TEST_F(HangUp, ARequestStaysUntilItIsAnswered) {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    Client client{UniqueFd(pair[0])};
    const UniqueFd second(::fcntl(pair[1], F_DUPFD_CLOEXEC, 0));
    emu::Connection connection(UniqueFd(pair[1]), [](int fd, short events) {
        pollfd polled{fd, events, 0};
        return ::poll(&polled, 1, -1) > 0;
    });
    const UniqueFd memory(::memfd_create("guest", MFD_CLOEXEC));
    const std::array fds{memory.get()};
    ASSERT_TRUE(client.send(message(wire::kDmaMap, bytes_of(wire::DmaMap{}), 3), fds));
    ASSERT_TRUE(client.send(read_request(4)));
    emu::Message got;
    const auto left = [&second] {
        std::array<std::byte, 256> bytes;
        return ::recv(second.get(), bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    };
    const ssize_t both = left();
    ASSERT_EQ(connection.receive(got), emu::Connection::Status::kOk);
    EXPECT_EQ(got.header.id, 3);
    EXPECT_EQ(got.fds.size(), 1u);
    EXPECT_EQ(left(), both);
    ASSERT_EQ(connection.receive(got), emu::Connection::Status::kOk);
    EXPECT_EQ(got.header.id, 4);
    EXPECT_TRUE(got.fds.empty());
    EXPECT_EQ(left(), static_cast<ssize_t>(read_request(4).size()));
}

// A look at a command that has none must not bring the descriptors of the next one, which is there already.
TEST_F(HangUp, DescriptorsBelongToTheirOwnRequest) {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    Client client{UniqueFd(pair[0])};
    emu::Connection connection(UniqueFd(pair[1]), [](int fd, short events) {
        pollfd polled{fd, events, 0};
        return ::poll(&polled, 1, -1) > 0;
    });
    const UniqueFd memory(::memfd_create("guest", MFD_CLOEXEC));
    const std::array fds{memory.get()};
    ASSERT_TRUE(client.send(read_request(3)));
    ASSERT_TRUE(client.send(read_request(4)));
    ASSERT_TRUE(client.send(message(wire::kDmaMap, bytes_of(wire::DmaMap{}), 5), fds));
    ASSERT_TRUE(client.send(message(wire::kDmaMap, bytes_of(wire::DmaMap{}), 6), fds));
    for (uint16_t id = 3; id <= 6; id++) {
        emu::Message got;
        ASSERT_EQ(connection.receive(got), emu::Connection::Status::kOk);
        EXPECT_EQ(got.header.id, id);
        EXPECT_EQ(got.fds.size(), id < 5 ? 0u : 1u) << id;
    }
}

}  // namespace
}  // namespace orrery::test
