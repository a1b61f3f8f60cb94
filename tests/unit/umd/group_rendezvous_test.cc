// How processes of a group find each other, with processes of their own and no card: what they hand on are
// any descriptors.
#include "umd/runtime/group_rendezvous.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "umd/runtime/fd_message.h"
#include "umd/runtime/group_page.h"

namespace orrery::umd {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kLongNs = 60'000'000'000, kShortNs = 50'000'000;

// Runs in a child; its exit status is what `body` gives, 99 if it was killed.
class Child {
  public:
    explicit Child(const std::function<int()>& body) : pid_(::fork()) {
        if (pid_ == 0) ::_exit(body());
    }
    ~Child() {
        if (pid_ > 0) join();
    }
    Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
    Child& operator=(Child&&) = delete;
    int join() {
        int status = 0;
        ::waitpid(std::exchange(pid_, -1), &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    }
    void kill() const { ::kill(pid_, SIGKILL); }
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_;
};

Rendezvous meeting(const GroupToken& token, int rank, int members, std::uint64_t limit_ns = kLongNs) {
    Rendezvous one;
    one.token = token;
    one.rank = rank;
    one.members = members;
    one.limit_ns = limit_ns;
    one.semaphore = STDERR_FILENO;
    one.plan = [](Gathering& gathering) -> Status {
        gathering.page = UniqueFd(::memfd_create("page", MFD_CLOEXEC));
        for (std::size_t i = 1; i < gathering.all.size(); ++i)
            gathering.all[i].above = static_cast<int>(i) - 1;
        return {};
    };
    one.admit = [](Gathering&) -> Status { return {}; };
    return one;
}

// The code as exit status.
int code_of(const Status& status) {
    return status ? 0 : static_cast<int>(status.error().code);
}

class Meetings : public ::testing::Test {
  protected:
    Child comes(int rank, int members, std::uint64_t limit_ns = kLongNs) const {
        return Child([=, this] { return code_of(meeting(token_, rank, members, limit_ns).meet()); });
    }
    const GroupToken token_ = *GroupToken::make();
};

TEST_F(Meetings, AllLearnWhoAllAre) {
    for (const int members : {1, 2, 4, 8, 64}) {
        const GroupToken token = *GroupToken::make();
        std::vector<Child> others;
        for (int rank = 1; rank < members; ++rank) {
            others.emplace_back([&, rank] {
                Rendezvous one = meeting(token, rank, members);
                one.admit = [&](Gathering& gathering) -> Status {
                    if (gathering.page.get() < 0 || static_cast<int>(gathering.all.size()) != members)
                        return fail(orrErrorInternal, "not all");
                    for (int i = 0; i < members; ++i) {
                        const Comer& comer = gathering.all[static_cast<std::size_t>(i)];
                        if (comer.above != i - 1 || comer.semaphore.get() < 0 || comer.process.get() < 0)
                            return fail(orrErrorInternal, "rank {} is wrong", i);
                    }
                    return {};
                };
                return code_of(one.meet());
            });
        }
        const Status met = meeting(token, 0, members).meet();
        EXPECT_TRUE(met) << met.error().text;
        for (Child& other : others)
            EXPECT_EQ(other.join(), 0);
    }
}

TEST_F(Meetings, WhoHasAnotherSecretIsRefusedAndNobodyElse) {
    // The right one comes when the wrong one has been refused, or has ended.
    int refused[2];
    ASSERT_EQ(::pipe(refused), 0);
    Child wrong([&] {
        GroupToken token = token_;
        std::ranges::fill(token.secret, '0');
        const Status met = meeting(token, 1, 2).meet();
        ::close(refused[1]);
        return !met && met.error().text.find("secret") != std::string::npos ? code_of(met) : 98;
    });
    Child right([&] {
        ::close(refused[1]);
        char byte;
        (void)!::read(refused[0], &byte, 1);
        return code_of(meeting(token_, 1, 2).meet());
    });
    ::close(refused[1]);
    EXPECT_TRUE(meeting(token_, 0, 2).meet());
    ::close(refused[0]);
    EXPECT_EQ(wrong.join(), orrErrorInvalidValue);
    EXPECT_EQ(right.join(), 0);
}

TEST_F(Meetings, WhoSaysSomethingElseKeepsAllOut) {
    {
        Child one = comes(1, 3), two = comes(2, 4);
        const Status met = meeting(token_, 0, 3).meet();
        ASSERT_FALSE(met);
        EXPECT_EQ(met.error().code, orrErrorInvalidValue);
        EXPECT_THAT(met.error().text, HasSubstr("rank 2 joined a group of 4 members, and rank 0 one of 3"));
        EXPECT_EQ(two.join(), orrErrorInvalidValue);
        one.kill();  // it may not have come yet
    }
    {
        const GroupToken token = *GroupToken::make();
        const auto come = [&] { return code_of(meeting(token, 1, 3).meet()); };
        Child one(come), two(come);
        const Status met = meeting(token, 0, 3).meet();
        ASSERT_FALSE(met);
        EXPECT_THAT(met.error().text, HasSubstr("two joined as rank 1"));
        EXPECT_EQ(one.join(), orrErrorInvalidValue);
        EXPECT_EQ(two.join(), orrErrorInvalidValue);
    }
}

TEST_F(Meetings, WhoCannotTakeTheOthersInKeepsAllOut) {
    Child one = comes(1, 3);
    Child two([&] {
        Rendezvous meets = meeting(token_, 2, 3);
        meets.admit = [](Gathering&) -> Status { return fail(orrErrorPeerAccess, "no link"); };
        return code_of(meets.meet());
    });
    const Status met = meeting(token_, 0, 3).meet();
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, orrErrorPeerAccess);
    EXPECT_THAT(met.error().text, HasSubstr("rank 2: no link"));
    EXPECT_EQ(one.join(), orrErrorPeerAccess);
    EXPECT_EQ(two.join(), orrErrorPeerAccess);
}

TEST_F(Meetings, RankZeroCannot) {
    Child one = comes(1, 2);
    Rendezvous host = meeting(token_, 0, 2);
    host.plan = [](Gathering&) -> Status { return fail(orrErrorPeerAccess, "no link"); };
    EXPECT_EQ(code_of(host.meet()), orrErrorPeerAccess);
    EXPECT_EQ(one.join(), orrErrorPeerAccess);
}

TEST_F(Meetings, WhoDoesNotComeIsNamed) {
    // A slow host needs longer until rank 1 has come.
    for (std::uint64_t limit = 4 * kShortNs;; limit *= 4) {
        const GroupToken token = *GroupToken::make();
        Child one([&] { return code_of(meeting(token, 1, 4).meet()); });
        const Status met = meeting(token, 0, 4, limit).meet();
        ASSERT_FALSE(met);
        EXPECT_EQ(met.error().code, orrErrorTimeout);
        if (limit < kLongNs && met.error().text.find("rank 1, 2, 3 did not") != std::string::npos) {
            one.kill();
            continue;
        }
        EXPECT_THAT(met.error().text, HasSubstr("rank 2, 3 did not"));
        EXPECT_EQ(one.join(), orrErrorTimeout);
        break;
    }
}

TEST_F(Meetings, RankZeroDoesNotCome) {
    const Status met = meeting(token_, 1, 2, kShortNs).meet();
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, orrErrorTimeout);
    EXPECT_THAT(met.error().text, HasSubstr("rank 0 was not"));
}

TEST_F(Meetings, WhoComesLateIsTooLate) {
    Child one = comes(1, 2);
    EXPECT_TRUE(meeting(token_, 0, 2).meet());
    EXPECT_EQ(one.join(), 0);
    EXPECT_EQ(comes(1, 2, kShortNs).join(), orrErrorTimeout);
}

TEST_F(Meetings, WhoDiesMeanwhileIsNamed) {
    // As soon as it has said who it is: it waits for no answer.
    Child one([&] {
        while (meeting(token_, 1, 3, 1).meet().error().text.find("was not at") != std::string::npos)
            ::usleep(1'000);
        return 0;
    });
    const Status met = meeting(token_, 0, 3).meet();
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, orrErrorAborted) << met.error().text;
    EXPECT_THAT(met.error().text, HasSubstr("rank 1 went away"));
}

TEST_F(Meetings, RankZeroDiesMeanwhile) {
    Child host([&] {
        Rendezvous meets = meeting(token_, 0, 2);
        meets.plan = [](Gathering&) -> Status { ::_exit(0); };
        return code_of(meets.meet());
    });
    const Status met = meeting(token_, 1, 2).meet();
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, orrErrorAborted) << met.error().text;
    EXPECT_THAT(met.error().text, HasSubstr("rank 0 went away"));
}

TEST_F(Meetings, OneProcessCannotBeTwo) {
    Child both([&] {
        std::vector<std::thread> threads;
        std::atomic<int> refused{0};
        for (int rank : {1, 2}) {
            threads.emplace_back([&, rank] {
                if (code_of(meeting(token_, rank, 3).meet()) == orrErrorNotSupported) ++refused;
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        return refused.load();
    });
    const Status met = meeting(token_, 0, 3).meet();
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, orrErrorNotSupported);
    EXPECT_THAT(met.error().text, HasSubstr("orrGroupCreateAll"));
    EXPECT_EQ(both.join(), 2);
}

// A socket at the token's address, connected or not.
struct Stranger {
    explicit Stranger(const GroupToken& token, int flags = 0)
        : socket(::socket(AF_UNIX, SOCK_SEQPACKET | flags, 0)) {
        name.sun_family = AF_UNIX;
        const std::string text = "orrery-group-" + token.name;
        text.copy(name.sun_path + 1, sizeof name.sun_path - 1);
        length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    }
    int connect() const { return ::connect(socket, reinterpret_cast<const sockaddr*>(&name), length); }
    int connected() const {
        while (connect() != 0)
            ::usleep(1'000);
        return socket;
    }
    const int socket;
    sockaddr_un name{};
    socklen_t length = 0;
};

// Others that find the address: silent ones, ones that say nonsense, ones that go at once.
TEST_F(Meetings, StrangersHoldNobodyUp) {
    const auto connect = [&] { return Stranger(token_).connected(); };
    int begun[2];
    ASSERT_EQ(::pipe(begun), 0);
    Child strangers([&] {
        const int silent = connect(), nonsense = connect(), small = connect(), gone = connect();
        ::close(gone);
        (void)!::send(nonsense, "orrg1", 5, MSG_NOSIGNAL);
        (void)send_message(small, {}, std::vector(9, std::byte{1}), kLongNs);
        (void)!::write(begun[1], "", 1);
        char byte = 0;
        (void)!::read(silent, &byte, 1);  // until rank 0 has done
        return 0;
    });
    Child one([&] {
        char byte = 0;
        (void)!::read(begun[0], &byte, 1);
        return code_of(meeting(token_, 1, 2).meet());
    });
    const Status met = meeting(token_, 0, 2).meet();
    EXPECT_TRUE(met) << met.error().text;
    EXPECT_EQ(one.join(), 0);
    EXPECT_EQ(strangers.join(), 0);
    for (int end : begun)
        ::close(end);
}

// Such as begin as members do: nobody waits for the rest.
TEST_F(Meetings, HalfAHelloHoldsNobodyUp) {
    int begun[2];
    ASSERT_EQ(::pipe(begun), 0);
    Child strangers([&] {
        int last = -1;
        const std::uint64_t head[] = {0x3149524f, 64};
        static_assert(sizeof head == kMessageHeadBytes);
        for (int i = 0; i < 20; ++i) {
            last = Stranger(token_).connected();
            (void)!::send(last, head, sizeof head, MSG_NOSIGNAL);
        }
        (void)!::write(begun[1], "", 1);
        char byte = 0;
        (void)!::read(last, &byte, 1);  // until rank 0 has done
        return 0;
    });
    Child one([&] {
        char byte = 0;
        (void)!::read(begun[0], &byte, 1);
        return code_of(meeting(token_, 1, 2).meet());
    });
    const Status met = meeting(token_, 0, 2).meet();
    EXPECT_TRUE(met) << met.error().text;
    EXPECT_EQ(one.join(), 0);
    EXPECT_EQ(strangers.join(), 0);
    for (int end : begun)
        ::close(end);
}

TEST_F(Meetings, AFullQueueIsWaitedForUpToTheLimit) {
    const Stranger listener(token_);
    ASSERT_EQ(::bind(listener.socket, reinterpret_cast<const sockaddr*>(&listener.name), listener.length), 0);
    ASSERT_EQ(::listen(listener.socket, 1), 0);
    std::vector<int> others;
    do {
        others.push_back(Stranger(token_, SOCK_NONBLOCK).socket);
    } while (::connect(others.back(), reinterpret_cast<const sockaddr*>(&listener.name), listener.length) ==
             0);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(code_of(meeting(token_, 1, 2, kShortNs).meet()), orrErrorTimeout);
    for (int other : others)
        ::close(other);
    ::close(listener.socket);
}

TEST_F(Meetings, RankZeroWithoutRoomForAMemberSaysSo) {
    Child host([&] {
        const rlimit few{64, 64};
        ::setrlimit(RLIMIT_NOFILE, &few);
        int last = ::dup(0);
        for (int next = last; next >= 0; next = ::dup(0))
            last = next;
        // Its address, itself and its semaphore.
        for (int i = 0; i < 3; ++i)
            ::close(last - i);
        const Status met = meeting(token_, 0, 2).meet();
        return !met && met.error().text.find("ulimit") != std::string::npos ? 0 : 1;
    });
    Child one = comes(1, 2);
    EXPECT_EQ(host.join(), 0);
    EXPECT_EQ(one.join(), orrErrorAborted);
}

TEST_F(Meetings, AnAddressIsForOneGroup) {
    const Stranger first(token_);
    ASSERT_EQ(::bind(first.socket, reinterpret_cast<const sockaddr*>(&first.name), first.length), 0);
    const Status met = meeting(token_, 0, 2, kShortNs).meet();
    ASSERT_FALSE(met);
    EXPECT_THAT(met.error().text, HasSubstr("a token for each group"));
    ::close(first.socket);
}

TEST(GroupTokens, AreReadBack) {
    const GroupToken token = *GroupToken::make();
    const auto again = GroupToken::parse(token.text());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->name, token.name);
    EXPECT_EQ(again->secret, token.secret);
    EXPECT_NE(GroupToken::make()->text(), token.text());
    EXPECT_TRUE(same_secret(token.secret, again->secret));
    EXPECT_FALSE(same_secret(token.secret, token.name));
    EXPECT_FALSE(same_secret(token.secret, ""));
}

TEST(GroupTokens, OfSeveralMachinesHaveAFolder) {
    const GroupToken token = *GroupToken::make("/share/a-b");
    const auto again = GroupToken::parse(token.text());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->name, token.name);
    EXPECT_EQ(again->secret, token.secret);
    EXPECT_EQ(again->folder, "/share/a-b");
    EXPECT_FALSE(GroupToken::make("share"));
    EXPECT_FALSE(GroupToken::make("/a folder"));
    const std::string longest = "/" + std::string(50, 'x');
    EXPECT_EQ(GroupToken::make(longest)->text().size(), GroupToken::kMaxText);
    const auto longer = GroupToken::make(longest + "x");
    ASSERT_FALSE(longer);
    EXPECT_THAT(longer.error().text, HasSubstr("1 characters too long"));
    for (std::size_t length = 0; length < token.text().size() - token.folder.size() + 1; ++length)
        EXPECT_FALSE(GroupToken::parse(std::string_view(token.text()).substr(0, length)));
}

TEST(GroupTokens, WhatIsWrongIsSaid) {
    const std::string good = GroupToken::make()->text();
    const auto text_of = [](const std::string& text) {
        const auto token = GroupToken::parse(text);
        return token ? std::string() : token.error().text;
    };
    EXPECT_THAT(text_of(""), HasSubstr("no token"));
    EXPECT_THAT(text_of("hello"), HasSubstr("no token"));
    EXPECT_THAT(text_of("orrg2" + good.substr(5)), HasSubstr("another version"));
    EXPECT_THAT(text_of("orrg1-vsock-3-1234-00"), HasSubstr("another kind"));
    EXPECT_THAT(text_of(good.substr(0, good.size() - 1)), HasSubstr("not whole"));
    EXPECT_THAT(text_of(good + "0"), HasSubstr("not whole"));
    EXPECT_THAT(text_of(good + "-"), HasSubstr("not whole"));
    std::string odd = good;
    odd.back() = 'X';
    EXPECT_THAT(text_of(odd), HasSubstr("not whole"));
    for (std::size_t length = 0; length < good.size(); ++length)
        EXPECT_FALSE(GroupToken::parse(std::string_view(good).substr(0, length)));
}

}  // namespace
}  // namespace orrery::umd
