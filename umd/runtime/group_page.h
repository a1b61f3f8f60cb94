// What the members of a group tell each other on the host: a piece of memory that all have, in which each
// writes its own part. What another member wrote is looked at as a value, never as a size or an address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "umd/winsys/error.h"
#include "umd/winsys/unique_fd.h"

namespace orrery::umd {

constexpr std::size_t kMaxGroupMembers = 64, kMaxGroupBytes = 4096;
// A machine that is there decides on a cause in milliseconds, unless it stands still for a while.
constexpr std::int64_t kGroupDecideNs = 10'000'000'000;

// Of whom the group's failure was, and what.
struct GroupCause {
    orrError_t code = orrErrorAborted;
    int rank = -1;
    std::string text;
};

// Thread safe. The same layout in all processes, whichever version of the library they have.
class GroupPage {
  public:
    enum class Op : std::uint32_t { kBarrier = 1, kBroadcast = 2, kAllGather = 3 };

    // asks: another machine says what the first cause is, see tell().
    static Result<std::shared_ptr<GroupPage>> create(int members, bool asks = false);
    // What another process made: it cannot be cut short.
    static Result<std::shared_ptr<GroupPage>> open(UniqueFd fd, int members);
    ~GroupPage();
    GroupPage(const GroupPage&) = delete;
    GroupPage& operator=(const GroupPage&) = delete;

    int fd() const { return fd_.get(); }
    int members() const { return members_; }

    // The first that any member told; the first that was seen here stays.
    std::optional<GroupCause> cause() const;
    // Nothing if there is one already. Where another machine is asked it is proposed only, until that one has
    // decided.
    void tell(int teller, const GroupCause& cause);
    // Whether there is a cause; if one is proposed, waits until it is decided, and not for ever. look: is
    // called now and then meanwhile, and may find that nobody is there who could decide.
    bool settle(const std::function<void()>& look = {});
    std::optional<GroupCause> proposed() const;
    // What another machine has decided, as it came to this one by the machine of `teller`.
    void decide(int teller, const GroupCause& cause);
    // Nobody is there any more who could be asked.
    void ask_nobody();

    // This member takes part in nothing any more.
    void leave(int rank);
    bool left(int rank) const;
    // The queue in which its last barrier went, and that of its guard, as failure words name them; 0: none.
    enum class Queue : std::uint8_t { kBarriers, kGuard };
    void set_queue(int rank, Queue which, std::uint64_t name);
    std::uint64_t queue(int rank, Queue which) const;

    // Of one member at a time, in its own thread's turn: `step` counts from 1.
    struct Call {
        int rank = 0;
        std::uint64_t step = 0;
        Op op = Op::kBarrier;
        int root = 0;
        std::size_t bytes = 0;
        std::span<const std::byte> give{};  // nothing, or `bytes` of them
        std::uint64_t limit_ns = 0;
    };
    // What a member says of its call, each word looked at once.
    struct Said {
        std::uint32_t op, root;
        std::uint64_t bytes;
        bool operator==(const Said&) const = default;
    };
    enum class Outcome : std::uint8_t { kDone, kFailed, kGone };
    // Returns when all members have come to the same step, or the group has failed. look: is called now and
    // then, to see how the others are. gone: nobody wants to know any more.
    Outcome exchange(const Call& call, const std::function<void()>& look, const std::atomic<bool>& gone);
    // What a member gave at the last step that was exchanged, until the one after the next.
    void read(int rank, std::uint64_t step, std::span<std::byte> to) const;
    // For those who sleep in exchange(): something has happened.
    void wake();

    // For pages of one group on several machines. What stands there of a member beside its offers.
    struct Part {
        std::uint64_t step = 0, left = 0, queues[2] = {};
        bool operator==(const Part&) const = default;
    };
    Part part(int rank) const;
    Said said(int rank, std::uint64_t step) const;
    std::span<const std::byte, kMaxGroupBytes> given(int rank, std::uint64_t step) const;
    // Of a member of another machine, for whom nobody else writes here: what it says and gives at a step, at
    // most kMaxGroupBytes, and then that it has come there. It may be two steps further than was put last.
    void put_offer(int rank, std::uint64_t step, const Said& said, std::span<const std::byte> data);
    void put(int rank, const Part& part);
    // Somebody has come to a step to which another has not.
    bool apart() const;
    // The first that has left before it said anything of a step; -1: none has.
    int first_left(std::uint64_t step) const;
    // Sleeps until somebody wakes those who sleep, after woken() was asked; so long at most.
    std::uint32_t woken() const;
    void sleep(std::uint32_t woken, std::int64_t ns);

  private:
    struct Offer;
    struct Slot;
    struct Head;
    static Said said_of(const Call& call);
    GroupCause read_cause(std::uint64_t word) const;
    void write_text(int rank, const std::string& text);

    GroupPage(UniqueFd fd, void* memory, std::size_t bytes, int members);
    static Result<std::shared_ptr<GroupPage>> map(UniqueFd fd, int members);
    Slot& slot(int rank) const;
    Offer& offer(int rank, std::uint64_t step) const;
    // False: the group has failed, or `gone`.
    bool await(const Call& call, int rank, std::int64_t start, const std::function<void()>& look,
               const std::atomic<bool>& gone);
    void compare(const Call& call);

    const UniqueFd fd_;
    void* const memory_;
    const std::size_t bytes_;
    const int members_;
    Head& head_;
    mutable std::mutex mutex_;
    mutable std::optional<GroupCause> seen_;
};

}  // namespace orrery::umd
