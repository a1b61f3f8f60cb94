// Runs on one segment, each with a socket in the place of its QEMU.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "tools/vm/net/switch.h"

namespace orrery::vm {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

struct Member {
    explicit Member(Segment segment, std::pair<Fd, Fd> pair)
        : guest(std::move(pair.first)), ports(std::move(segment), std::move(pair.second)) {}
    Fd guest;
    Switch ports;
};

class NetTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = "/tmp/orrery-net-test-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        base_ = name;
        ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", name.c_str(), 1), 0);
        told_ = socket_pair().value();
        stop_ = told_.first.get();
        ASSERT_EQ(::write(told_.second.get(), "!", 1), 1);
    }
    void TearDown() override {
        members_.clear();
        EXPECT_TRUE(fs::is_empty(base_)) << "the last member leaves nothing";
        fs::remove_all(base_);
    }

    Member& join(const std::string& place) {
        auto segment = Segment::join(parse_place(place).value());
        EXPECT_TRUE(segment) << segment.error().text;
        members_.push_back(std::make_unique<Member>(std::move(*segment), socket_pair().value()));
        return *members_.back();
    }

    // Until nobody has anything to do.
    void settle() {
        for (bool busy = true; busy;) {
            busy = false;
            for (const auto& member : members_) {
                auto fds = member->ports.wanted();
                if (::poll(fds.data(), fds.size(), 0) <= 0) continue;
                for (const auto& fd : fds)
                    if (fd.revents != 0) {
                        member->ports.handle(fd.fd);
                        busy = true;
                    }
            }
        }
    }

    static std::string frame(const std::string& text) {
        return std::string(3, '\0') + static_cast<char>(text.size()) + text;
    }
    static void say(const Member& member, const std::string& bytes) {
        ASSERT_EQ(::write(member.guest.get(), bytes.data(), bytes.size()),
                  static_cast<ssize_t>(bytes.size()));
    }
    static std::string heard(const Member& member) {
        char buffer[4096];
        const ssize_t n = ::recv(member.guest.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : "";
    }

    fs::path base_;
    std::pair<Fd, Fd> told_;
    int stop_ = -1;  // is readable
    std::vector<std::unique_ptr<Member>> members_;
};

TEST_F(NetTest, AFrameReachesAllOthersOfTheName) {
    Member& one = join("a");
    Member& two = join("a");
    Member& three = join("a");
    Member& elsewhere = join("b");
    EXPECT_EQ(one.ports.number(), 1U);
    EXPECT_EQ(two.ports.number(), 2U);
    EXPECT_EQ(three.ports.number(), 3U);
    EXPECT_EQ(elsewhere.ports.number(), 1U);
    settle();
    say(two, frame("hello") + frame("again").substr(0, 6));  // a frame and a half
    settle();
    EXPECT_EQ(heard(one), frame("hello"));
    EXPECT_EQ(heard(three), frame("hello"));
    EXPECT_THAT(heard(two), IsEmpty()) << "nobody hears himself";
    EXPECT_THAT(heard(elsewhere), IsEmpty());
    say(two, frame("again").substr(6));
    settle();
    EXPECT_EQ(heard(one), frame("again"));
}

TEST_F(NetTest, NumbersAreFreeAgainAndAKilledMembersSocketIsInNobodysWay) {
    join("a:7");
    EXPECT_EQ(join("a").ports.number(), 1U);
    EXPECT_THAT(Segment::join(parse_place("a:7").value()).error().text,
                HasSubstr("another run has this number"));
    members_.clear();
    // As a killed run leaves it: the file is there, and nobody listens.
    const fs::path directory = base_ / ("orrery-net-" + std::to_string(::getuid()) + "-a");
    fs::create_directory(directory);
    fs::permissions(directory, fs::perms::owner_all);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (directory / "1.sock").c_str());
    {
        const Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
        ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    EXPECT_EQ(join("a").ports.number(), 1U);
}

TEST_F(NetTest, AMemberThatSpeaksNonsenseIsLeftOut) {
    Member& one = join("a");
    Member& two = join("a");
    settle();
    say(two, "\xff\xff\xff\xff");
    settle();
    say(one, frame("still here"));
    settle();
    EXPECT_THAT(heard(one), IsEmpty());
}

TEST_F(NetTest, AMemberWithoutRoomIsWaitedForAndNotLeftOut) {
    join("a");
    const fs::path directory = base_ / ("orrery-net-" + std::to_string(::getuid()) + "-a");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (directory / "2.sock").c_str());
    std::vector<Fd> waiting;
    {
        const Fd full(::socket(AF_UNIX, SOCK_STREAM, 0));
        ASSERT_EQ(::bind(full.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        ASSERT_EQ(::listen(full.get(), 1), 0);
        for (;;) {
            waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
            if (::connect(waiting.back().get(), reinterpret_cast<const sockaddr*>(&address),
                          sizeof address) != 0)
                break;
        }
        for (const char* place : {"a", "a:7"}) {
            const auto refused = Segment::join(parse_place(place).value(), -1, std::chrono::milliseconds(1));
            ASSERT_FALSE(refused);
            EXPECT_THAT(refused.error().text, HasSubstr("run 2 of this name answers nobody"));
            // Not after its patience, but when it is told to.
            const auto told = Segment::join(parse_place(place).value(), stop_, std::chrono::hours(1));
            ASSERT_FALSE(told);
            EXPECT_THAT(told.error().text, HasSubstr("stopped before the run was on the network"));
        }
        std::thread member([&] {
            std::vector<Fd> accepted;
            do
                accepted.emplace_back(::accept(full.get(), nullptr, nullptr));
            while (accepted.back());
        });
        EXPECT_EQ(join("a").ports.number(), 3U);
        ::shutdown(full.get(), SHUT_RDWR);
        member.join();
    }
    fs::remove(directory / "2.sock");
}

// One that joins holds the lock as long as it waits for a member.
TEST_F(NetTest, WhoWaitsForAnotherOneToJoinCanBeStopped) {
    const fs::path directory = base_ / ("orrery-net-" + std::to_string(::getuid()) + "-a");
    fs::create_directory(directory);
    fs::permissions(directory, fs::perms::owner_all);
    const Fd locked(::open(directory.c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_EQ(::flock(locked.get(), LOCK_EX), 0);
    const auto told = Segment::join(parse_place("a").value(), stop_);
    ASSERT_FALSE(told);
    EXPECT_THAT(told.error().text, HasSubstr("stopped before the run was on the network"));
    ASSERT_EQ(::flock(locked.get(), LOCK_UN), 0);
    EXPECT_EQ(join("a").ports.number(), 1U);
}

TEST_F(NetTest, ADirectoryOfSomebodyElseIsRefused) {
    const fs::path path = base_ / ("orrery-net-" + std::to_string(::getuid()) + "-a");
    fs::create_directory(path);
    fs::permissions(path, fs::perms::all);
    EXPECT_THAT(Segment::join(parse_place("a").value()).error().text,
                HasSubstr("not a directory of yours alone"));
    fs::remove(path);
}

TEST(Net, Places) {
    EXPECT_EQ(parse_place("lab")->number, 0U);
    EXPECT_EQ(parse_place("lab:254")->number, 254U);
    for (const char* wrong : {"", ":1", "lab:", "lab:0", "lab:255", "lab:x", "lab:1x", "a/b", "../x", "a.b",
                              "longer-than-15-letters"})
        EXPECT_FALSE(parse_place(wrong)) << wrong;
}

}  // namespace
}  // namespace orrery::vm
