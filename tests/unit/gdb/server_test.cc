// A debugger that asks and does not read: the owner of the target is never held up, and no answer is lost.
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "emulator/gdb/packets.h"
#include "emulator/gdb/server.h"
#include "tests/unit/gdb/fake_target.h"
#include "tests/unit/gdb/loopback.h"

namespace orrery::emu::gdb {
namespace {

using test::connect_to;

TEST(GdbServer, ADebuggerThatDoesNotReadHoldsNobody) {
    FakeTarget target;
    auto server = Server::create(0);
    ASSERT_TRUE(server) << server.error();
    const UniqueFd client = connect_to((*server)->port());
    ASSERT_TRUE(client);
    while (!(*server)->attached())
        (*server)->service(target);
    // Memory, again and again: some thousand bytes each.
    const std::string request = frame("m80000000,7f0");
    std::size_t asked = 0;
    std::string rest;  // of a request that the socket has not taken yet
    for (int rounds = 0; rounds < 2'000'000 && (*server)->events() != POLLOUT; ++rounds) {
        if (rest.empty()) {
            rest = request;
            ++asked;
        }
        const ssize_t sent = ::send(client.get(), rest.data(), rest.size(), MSG_DONTWAIT);
        if (sent > 0) rest.erase(0, static_cast<std::size_t>(sent));
        (*server)->service(target);
    }
    ASSERT_TRUE((*server)->attached()) << asked << " asked";
    ASSERT_EQ((*server)->events(), POLLOUT) << "its answers wait, " << asked << " asked";
    ASSERT_TRUE((*server)->attached());
    for (int i = 0; i < 100; ++i)
        EXPECT_FALSE((*server)->service(target));
    // It reads at last, and says the rest.
    std::size_t answers = 0;
    std::array<char, 65536> bytes;
    for (int quiet = 0; quiet < 1000 && answers < asked;) {
        const ssize_t sent = ::send(client.get(), rest.data(), rest.size(), MSG_DONTWAIT);
        if (sent > 0) rest.erase(0, static_cast<std::size_t>(sent));
        const bool did = (*server)->service(target);
        const ssize_t got = ::recv(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        for (ssize_t i = 0; i < got; ++i)
            answers += bytes[static_cast<std::size_t>(i)] == '$' ? 1 : 0;
        quiet = did || got > 0 ? 0 : quiet + 1;
        if (quiet > 0) ::usleep(1000);
    }
    EXPECT_EQ(answers, asked);
    EXPECT_TRUE((*server)->attached());
}

}  // namespace
}  // namespace orrery::emu::gdb
