#include "umd/runtime/group_rendezvous.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <thread>
#include <type_traits>

#include "umd/runtime/clock.h"
#include "umd/runtime/fd_message.h"
#include "umd/runtime/group_page.h"

namespace orrery::umd {
namespace {

constexpr std::uint32_t kVersion = 2;
// Who has begun to say who he is says it at once; this is for those who do not.
constexpr std::uint64_t kHelloNs = 5'000'000'000;
constexpr std::size_t kMostPending = 2 * kMaxGroupMembers;

// The same in all processes, whichever version of the library they have.
struct Hello {
    std::uint32_t version;
    std::int32_t rank, members;
    std::uint32_t unused;
    char secret[GroupToken::kSecretChars];
};
struct Answer {
    std::int32_t code;  // orrSuccess: go on
    char text[300];
};
struct Other {
    std::int32_t rank, above, unit;
};

Answer answer_of(const Status& status) {
    Answer answer{};
    if (status) return answer;
    answer.code = static_cast<std::int32_t>(status.error().code);
    status.error().text.copy(answer.text, sizeof answer.text - 1);
    return answer;
}
Status status_of(const Answer& answer) {
    if (answer.code == orrSuccess) return {};
    std::string text(answer.text, ::strnlen(answer.text, sizeof answer.text));
    std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
    const bool known = answer.code > 0 && answer.code <= orrErrorAbandoned;
    return std::unexpected(Error{known ? static_cast<orrError_t>(answer.code) : orrErrorAborted, text});
}

template <typename Message>
Status send(int socket, const Message& message, std::span<const int> fds, std::uint64_t limit_ns) {
    return send_message(socket, fds, std::as_bytes(std::span(&message, 1)), limit_ns);
}

template <typename Message>
struct Received {
    Message message;
    std::vector<UniqueFd> fds;
};
template <typename Message>
Result<Received<Message>> receive(int socket, std::size_t fds, std::uint64_t limit_ns) {
    ORR_TRY(got, receive_message(socket, fds, std::max(sizeof(Message), sizeof(Answer)), limit_ns));
    if constexpr (!std::is_same_v<Message, Answer>) {
        // It was given up meanwhile.
        if (Answer answer{}; got->bytes.size() == sizeof answer) {
            std::memcpy(&answer, got->bytes.data(), sizeof answer);
            if (auto why = status_of(answer); !why) return std::unexpected(why.error());
        }
    }
    if (got->bytes.size() != sizeof(Message) || (got->fds.size() != fds && !got->fds.empty()))
        return fail(orrErrorInvalidValue, "what came is no message of a group: are both of one library?");
    Received<Message> received;
    std::memcpy(&received.message, got->bytes.data(), sizeof(Message));
    received.fds = std::move(got->fds);
    return received;
}

struct Address {
    sockaddr_un name{};
    socklen_t length = 0;
};
Address address_of(const GroupToken& token) {
    Address address;
    address.name.sun_family = AF_UNIX;
    const std::string text = "orrery-group-" + token.name;
    text.copy(address.name.sun_path + 1, sizeof address.name.sun_path - 1);  // behind a zero: abstract
    address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    return address;
}

Result<UniqueFd> make_socket(int flags) {
    UniqueFd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
    if (made.get() < 0) return fail_errno(errno, "making a socket for a group");
    return made;
}

// The process at the other end, if it is this user's, or root's.
Result<pid_t> peer_of(int socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return fail_errno(errno, "asking who is at the other end of a group's socket");
    if (peer.uid != ::geteuid() && peer.uid != 0) {
        return fail(orrErrorInvalidValue,
                    "process {} at the token's address is user {}'s: a group's members are one user's",
                    peer.pid, peer.uid);
    }
    return peer.pid;
}

Result<UniqueFd> open_process(int socket, pid_t pid) {
    constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD, which older headers do not have
    int number = -1;
    socklen_t size = sizeof number;
    if (socket >= 0 && ::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &number, &size) == 0)
        return UniqueFd(number);
    // It waits for an answer, so the number is still its own.
    UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (process.get() < 0) return fail_errno(errno, "pidfd_open of a member of a group");
    return process;
}

// --- rank 0 ---

class Host {
  public:
    Host(const Rendezvous& meeting, Gathering& gathering)
        : meeting_(meeting),
          gathering_(gathering),
          until_(meeting.limit_ns),
          members_(static_cast<std::size_t>(meeting.members)) {
        guests_.resize(members_);
        gathering_.all.resize(members_);
    }

    Status run() {
        auto done = gather();
        if (done) done = introduce();
        if (done && meeting_.settle) done = meeting_.settle();
        // Those who are there learn why, or that all are in.
        const Answer answer = answer_of(done);
        Status told;
        for (Guest& guest : guests_) {
            if (guest.socket.get() < 0) continue;
            auto sent = send(guest.socket.get(), answer, {}, done ? until_.left_ns() + kHelloNs : kHelloNs);
            if (!sent && told) told = std::move(sent);
        }
        // One who has gone meanwhile is found gone by all.
        return done;
    }

  private:
    struct Guest {
        UniqueFd socket;
        pid_t pid = 0;
    };
    // It has said nothing yet, or not all.
    struct Pending {
        UniqueFd socket;
        std::int64_t since_ns = 0;
    };

    Status gather() {
        ORR_TRY(listener, listen());
        ORR_TRY(self, open_process(-1, ::getpid()));
        Comer& own = gathering_.all[0];
        own.semaphore = UniqueFd(::fcntl(meeting_.semaphore, F_DUPFD_CLOEXEC, 0));
        own.process = std::move(*self);
        while (count_ + 1 < members_) {
            ORR_TRY(gone, wait(listener->get()));
        }
        return {};
    }

    Result<UniqueFd> listen() const {
        ORR_TRY(listener, make_socket(0));
        const Address address = address_of(meeting_.token);
        if (::bind(listener->get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) != 0) {
            return fail_errno(errno, errno == EADDRINUSE
                                         ? "rank 0 of this token waits already: make a token for each group"
                                         : "binding a group's socket");
        }
        if (::listen(listener->get(), static_cast<int>(kMostPending)) != 0)
            return fail_errno(errno, "listening at a group's socket");
        return listener;
    }

    // For something to happen, and sees to it.
    Status wait(int listener) {
        std::vector<pollfd> polls;
        for (const Guest& guest : guests_)
            polls.push_back({guest.socket.get(), POLLIN, 0});  // none: is passed over
        drop_silent();
        for (const Pending& one : pending_)
            polls.push_back({one.socket.get(), POLLIN, 0});
        polls.push_back({pending_.size() < kMostPending ? listener : -1, POLLIN, 0});
        if (until_.left_ns() == 0) return late();
        const int ready = ::poll(polls.data(), polls.size(), until_.left_ms());
        if (ready < 0 && errno != EINTR) return fail_errno(errno, "waiting for the members of a group");
        if (ready <= 0) return {};
        for (std::size_t rank = 0; rank < members_; ++rank) {
            // They have nothing to say now.
            if (polls[rank].revents != 0)
                return fail(orrErrorAborted, "rank {} went away while others joined", meeting_.name(rank));
        }
        std::vector<Pending> left;
        bool begun = false;
        for (std::size_t i = 0; i < pending_.size(); ++i) {
            const short happened = polls[members_ + i].revents;
            const Has has = happened == 0 ? Has::kNothing : look_at(pending_[i].socket.get());
            if (has == Has::kAll) {
                ORR_TRY(heard, hear(std::move(pending_[i].socket)));
            } else if (has != Has::kNonsense && (happened & (POLLHUP | POLLERR)) == 0) {
                begun |= has == Has::kBeginning;
                left.push_back(std::move(pending_[i]));
            }
        }
        pending_ = std::move(left);
        // poll() does not wait for the rest.
        if (begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (polls.back().revents != 0) {
            UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
            if (socket.get() < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
                return fail_errno(errno,
                                  "rank 0 could not accept a member (too many open files: see ulimit -n)");
            }
            if (socket.get() >= 0 && peer_of(socket.get())) pending_.push_back({std::move(socket), now_ns()});
        }
        return {};
    }

    // Who is silent may be slow, so it goes only when its place is needed.
    void drop_silent() {
        if (pending_.size() < kMostPending) return;
        std::erase_if(pending_, [now = now_ns()](const Pending& one) {
            return static_cast<std::uint64_t>(now - one.since_ns) >= kHelloNs;
        });
    }

    // Of a hello, which nobody waits for piece by piece.
    enum class Has : std::uint8_t { kNothing, kBeginning, kAll, kNonsense };
    static Has look_at(int socket) {
        // Of the first packet, and of all that are there.
        const ssize_t first = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
        if (first < 0 && (errno == EAGAIN || errno == EINTR)) return Has::kNothing;
        int all = 0;
        if (first != ssize_t{kMessageHeadBytes} || ::ioctl(socket, FIONREAD, &all) != 0)
            return Has::kNonsense;
        return static_cast<std::size_t>(all) < kMessageHeadBytes + sizeof(Hello) ? Has::kBeginning
                                                                                 : Has::kAll;
    }

    Status late() const {
        std::string missing;
        for (std::size_t rank = 1; rank < members_; ++rank) {
            if (guests_[rank].socket.get() < 0)
                missing += fmt::format("{}{}", missing.empty() ? "" : ", ", meeting_.name(rank));
        }
        return fail(orrErrorTimeout, "not all members came within {} ns: rank {} did not", until_.limit_ns(),
                    missing);
    }

    // A failure is everybody's: it comes from one who knows the secret.
    Status hear(UniqueFd socket) {
        auto hello = receive<Hello>(socket.get(), 1, 0);  // it is there
        if (!hello) return {};
        const Hello& who = hello->message;
        const auto refuse = [&](orrError_t code, const char* why) {
            (void)send(socket.get(), answer_of(fail(code, "{}", why)), {}, 0);
        };
        if (!same_secret({who.secret, sizeof who.secret}, meeting_.token.secret)) {
            refuse(orrErrorInvalidValue, "the token's secret is not that of rank 0: give all the same token");
            return {};
        }
        if (who.version != kVersion || hello->fds.size() != 1) {
            refuse(orrErrorNotSupported, "rank 0 has another version of the library");
            return {};
        }
        auto good = check(who, socket.get());
        if (!good) {
            // The others are told the same.
            refuse(good.error().code, good.error().text.c_str());
            return good;
        }
        ORR_TRY(pid, peer_of(socket.get()));
        ORR_TRY(process, open_process(socket.get(), *pid));
        const auto rank = static_cast<std::size_t>(who.rank);
        Comer& comer = gathering_.all[rank];
        comer.semaphore = std::move(hello->fds[0]);
        comer.process = std::move(*process);
        guests_[rank] = {std::move(socket), *pid};
        ++count_;
        return {};
    }

    Status check(const Hello& who, int socket) const {
        if (who.members != meeting_.members) {
            return fail(orrErrorInvalidValue, "rank {} joined a group of {} members, and rank 0 one of {}",
                        who.rank, who.members, meeting_.members);
        }
        if (who.rank < 1 || who.rank >= meeting_.members)
            return fail(orrErrorInvalidValue, "somebody joined as rank {} of {}", who.rank, meeting_.members);
        if (guests_[static_cast<std::size_t>(who.rank)].socket.get() >= 0)
            return fail(orrErrorInvalidValue, "two joined as rank {}",
                        meeting_.name(static_cast<std::size_t>(who.rank)));
        ORR_TRY(pid, peer_of(socket));
        const bool twice = *pid == ::getpid() || std::ranges::any_of(guests_, [&](const Guest& guest) {
            return guest.socket.get() >= 0 && guest.pid == *pid;
        });
        if (!twice) return {};
        return fail(orrErrorNotSupported,
                    "process {} joined twice, as rank {} too: members of one process are made by "
                    "orrGroupCreateAll",
                    *pid, meeting_.name(static_cast<std::size_t>(who.rank)));
    }

    // Tells all who all are, and hears from each whether it could take them in.
    Status introduce() {
        ORR_TRY(planned, meeting_.plan(gathering_));
        for (std::size_t to = 1; to < members_; ++to) {
            const int socket = guests_[to].socket.get();
            const int page = gathering_.page.get();
            ORR_TRY(welcomed, with_rank(to, send(socket, Answer{}, {&page, 1}, until_.left_ns())));
            for (std::size_t rank = 0; rank < members_; ++rank) {
                const Comer& comer = gathering_.all[rank];
                // Its own semaphore it has.
                const bool own = rank == to && comer.barrier.get() >= 0;
                const int fds[] = {own ? comer.barrier.get() : comer.semaphore.get(), comer.process.get()};
                const Other other{static_cast<std::int32_t>(rank), comer.above, gathering_.unit ? 1 : 0};
                ORR_TRY(told, with_rank(to, send(socket, other, fds, until_.left_ns())));
            }
        }
        ORR_TRY(admitted, meeting_.admit(gathering_));
        for (std::size_t from = 1; from < members_; ++from) {
            auto answer = receive<Answer>(guests_[from].socket.get(), 0, until_.left_ns());
            ORR_TRY(heard, with_rank(from, answer ? status_of(answer->message)
                                                  : Status(std::unexpected(answer.error()))));
        }
        return {};
    }

    Status with_rank(std::size_t rank, Status status) const {
        if (status) return status;
        return fail(status.error().code, "rank {}: {}", meeting_.name(rank), status.error().text);
    }

    const Rendezvous& meeting_;
    Gathering& gathering_;
    const Until until_;
    const std::size_t members_;
    std::vector<Guest> guests_;  // by rank; none of rank 0
    std::vector<Pending> pending_;
    std::size_t count_ = 0;
};

// --- the others ---

Result<UniqueFd> connect(const GroupToken& token, const Until& until) {
    const Address address = address_of(token);
    while (true) {
        ORR_TRY(socket, make_socket(SOCK_NONBLOCK));  // a full queue is waited for below, with the limit
        if (::connect(socket->get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0) {
            // It learns the secret.
            ORR_TRY(peer, peer_of(socket->get()));
            return socket;
        }
        if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
            return fail_errno(errno, "connecting to rank 0 of a group");
        if (until.left_ns() == 0) {
            return fail(
                orrErrorTimeout,
                "rank 0 was not at the token's address within {} ns: it has not called orrGroupJoin, its "
                "group is complete, or it has another token",
                until.limit_ns());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

Error by_host(Error error) {
    if (error.code == orrErrorTimeout)
        error.text = "not all members came within this one's limit: " + error.text;
    if (error.code == orrErrorAborted) error.text = "rank 0 went away while others joined: " + error.text;
    return error;
}

Status come(const Rendezvous& meeting, Gathering& gathering) {
    const Until until(meeting.limit_ns);
    ORR_TRY(socket, connect(meeting.token, until));
    Hello hello{kVersion, meeting.rank, meeting.members, 0, {}};
    meeting.token.secret.copy(hello.secret, sizeof hello.secret);
    if (auto sent = send(socket->get(), hello, {&meeting.semaphore, 1}, until.left_ns()); !sent)
        return std::unexpected(by_host(sent.error()));
    auto welcome = receive<Answer>(socket->get(), 1, until.left_ns());
    if (!welcome) return std::unexpected(by_host(welcome.error()));
    ORR_TRY(welcomed, status_of(welcome->message));
    if (welcome->fds.size() != 1) return fail(orrErrorInvalidValue, "rank 0 sent no page");
    gathering.page = std::move(welcome->fds[0]);
    gathering.all.resize(static_cast<std::size_t>(meeting.members));
    for (int rank = 0; rank < meeting.members; ++rank) {
        auto other = receive<Other>(socket->get(), 2, until.left_ns());
        if (!other) return std::unexpected(by_host(other.error()));
        const int above = other->message.above;
        if (other->message.rank != rank || other->fds.size() != 2 || above < -1 || above >= meeting.members)
            return fail(orrErrorInvalidValue, "rank 0 said nonsense about rank {}", rank);
        Comer& comer = gathering.all[static_cast<std::size_t>(rank)];
        comer.above = above;
        gathering.unit = other->message.unit != 0;
        if (gathering.unit && rank == meeting.rank && above < 0) {
            comer.barrier = std::move(other->fds[0]);
            comer.process = std::move(other->fds[1]);
            continue;
        }
        comer.semaphore = std::move(other->fds[0]);
        comer.process = std::move(other->fds[1]);
    }
    const auto admitted = meeting.admit(gathering);
    if (auto sent = send(socket->get(), answer_of(admitted), {}, until.left_ns()); !sent)
        return std::unexpected(by_host(sent.error()));
    if (!admitted) return admitted;
    // Rank 0 hears from all first, within its own limit.
    auto all = receive<Answer>(socket->get(), 0, until.left_ns());
    if (!all) return std::unexpected(by_host(all.error()));
    return status_of(all->message);
}

}  // namespace

Status Rendezvous::meet() const {
    Gathering gathering;
    if (rank == 0) return Host(*this, gathering).run();
    return come(*this, gathering);
}

}  // namespace orrery::umd
