// A member of a group: its semaphore on its card, which its streams signal, those of the others, and the page
// in which the members meet on the host.
//
// Where the cards have barrier units (hardware 2.3), and one has a slot, one member a device arrives there
// with k in the k-th barrier, when those of its device have come, and waits for the unit to say that all
// cards have. Else barriers in streams go up and down a tree of members: each waits for those below it,
// signals that all of them have come (2k-1 of the k-th barrier), waits for the one above and signals that it
// may go on (2k). So a member has one semaphore, which one stream after the other signals, and needs links to
// its neighbours only.
//
// Where members are on several machines, the first of each machine is its leader: top of the machine's tree,
// in no barrier unit, and its bridge joins the machine to others (group_bridge.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "umd/prof/steps.h"
#include "umd/runtime/fleet.h"
#include "umd/runtime/group_bridge.h"
#include "umd/runtime/group_page.h"
#include "umd/runtime/group_token.h"
#include "umd/runtime/semaphore.h"
#include "umd/winsys/unique_fd.h"

namespace orrery::umd {

class Context;
class Runtime;
class Stream;

// By rank, who is above; -1: nobody, which rank 0 has. Over as few links as can be: of each device one member
// has the others of it below it. devices: of the members, by rank; linked: of two devices.
Result<std::vector<int>> plan_group(const std::vector<int>& devices,
                                    const std::function<Result<bool>(int, int)>& linked);

// How the members meet in streams. unit: by the cards' barrier units; then those who have nobody above are
// the members of a device that the others of it are below.
struct GroupPlan {
    std::vector<int> above;
    bool unit = false;
    std::vector<UniqueFd> pages{};  // of these, by rank; else none
};

struct GroupMember {
    std::shared_ptr<SemaphoreSlot> slot;  // null: on another machine
    UniqueFd process;                     // pidfd; none: of this process
    int above = -1;
};

// Thread safe.
class Group final : public Fleet::Watched {
  public:
    static Result<std::shared_ptr<Group>> join(Runtime& runtime, const GroupToken& token, int rank,
                                               int members, std::uint64_t limit_ns);
    static Result<std::vector<std::shared_ptr<Group>>> create_all(Runtime& runtime,
                                                                  const std::vector<int>& devices);
    ~Group() override;
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

    int rank() const { return rank_; }
    int size() const { return static_cast<int>(members_.size()); }
    // Cards meet by their barrier units, not by the tree.
    bool by_units() const { return unit_; }
    Context& context() const { return context_; }

    // See orrery/group.h. give and take: of broadcasts and gathers.
    Status barrier(std::uint64_t limit_ns);
    Status broadcast(std::span<std::byte> data, int root, std::uint64_t limit_ns);
    Status all_gather(std::span<std::byte> all, std::span<const std::byte> own, std::uint64_t limit_ns);
    Status barrier(const std::shared_ptr<Stream>& stream, std::uint64_t limit_ns);
    void abort(const std::string& why);
    // The first; looks at once.
    std::optional<GroupCause> cause();
    // Of the cause's rank, -1: of nobody, or of another machine.
    int device(int rank) const;
    // Its handle is gone.
    void leave();

    // How the others are. Tells the first cause, and fails the semaphores of a group that has one.
    void look() override;
    std::optional<Error> lost_way(std::uint64_t va, std::uint64_t word) const override;

  private:
    // Between two cards that are to meet by their units: Context::way_to(), before they did.
    struct Way {
        Context* from = nullptr;
        Context* to = nullptr;
        std::uint64_t number = 0;
    };
    static std::vector<Way> ways_between(const std::vector<Context*>& contexts);

    // What a member brings along before the others are there.
    struct Seat {
        std::shared_ptr<Semaphore> own;
        std::shared_ptr<Stream> guard;  // is said to signal it: it goes with the process
    };
    static Result<Seat> take_seat(Context& context, int rank);
    // memory: dma-bufs of the members' semaphores, by rank. by_units: if it can be.
    static Result<GroupPlan> plan(Runtime& runtime, const std::vector<Context*>& contexts,
                                  const std::vector<int>& memory, bool by_units);
    Group(Context& context, int rank, Seat seat, std::vector<GroupMember> members,
          std::shared_ptr<GroupPage> page, bool unit);
    // It signals the page of its card's unit.
    bool at_unit(int rank) const { return unit_ && members_[static_cast<std::size_t>(rank)].above < 0; }
    // Who has gone and leaves this member waiting.
    std::optional<GroupCause> left_behind();
    void name(int rank, const std::string& name) const;
    static std::shared_ptr<Group> enter(std::shared_ptr<Group> group);

    // take: is called with the step when all have come, before the next call.
    Status exchange(GroupPage::Call call, const std::function<void(std::uint64_t)>& take);
    // What is told of this member's part in what all do.
    StepNote step_of(GroupPage::Op op, std::uint64_t round, int device) const;
    std::unexpected<Error> failed() const;
    // What ended the group, if something has.
    std::optional<GroupCause> find_cause();
    // slot: what the member's streams signal here.
    std::optional<GroupCause> cause_of_failure(int rank, const SemaphoreSlot& slot);
    // Nobody signals its semaphore any more, and it has not left.
    bool lost_hold(int rank) const;
    // A stream of this process in which it had a barrier has stopped, and the others do not know yet.
    bool will_fail(int rank, const SemaphoreSlot& slot) const;
    // Others have had their time to tell why it failed.
    bool waited_enough(int rank, std::int64_t patience_ns);
    // How much that is: for the failure of `word`, of a stream of this rank's or, -1, of nobody's.
    std::int64_t patience_ns(int origin, std::uint64_t word) const;
    // This member's call has failed for good: the others cannot meet it any more.
    std::unexpected<Error> give_up(Error error);
    // A stream of this process whose failure the word is, and no other stream's before it: why.
    std::optional<Error> stopped_here(std::uint64_t word) const;
    void fail_all(const GroupCause& cause);
    // The semaphore that the stream's card waits for.
    static Result<SemaphorePoint> point(const SemaphoreSlot& slot, std::uint64_t value,
                                        const std::shared_ptr<Stream>& stream, const std::string& name);
    Result<SemaphorePoint> point(int rank, std::uint64_t value, const std::shared_ptr<Stream>& stream);
    // To leaders of other machines, of those above or those below: the stream's signal of the k-th barrier.
    // Where another card has the link, that one signals when this member's semaphore has `value`.
    Status signal_edges(bool up, std::uint64_t k, std::uint64_t value, std::vector<orr_packet>& packets);
    Status await_edges(bool up, std::uint64_t k, std::uint64_t limit_ns,
                       const std::shared_ptr<Stream>& stream, std::vector<orr_packet>& packets);
    std::span<const std::unique_ptr<GroupEdge>> edges() const;
    const SemaphoreSlot& own() const { return *seat_.own->slot; }

    Context& context_;
    const int rank_;
    std::uint64_t owner_ = 0;  // the same one for all members, see orrProfStep
    Seat seat_;
    const std::vector<GroupMember> members_;
    const bool unit_;
    std::vector<Way> ways_;           // by units: of each two cards; does not change once it is in the fleet
    const int leader_;                // of this machine
    const std::uint64_t barrier_va_;  // the page of the card's unit; 0: this member meets the others by none
    std::vector<int> below_;
    const std::shared_ptr<GroupPage> page_;
    std::atomic<bool> gone_{false};

    std::mutex calls_mutex_;  // one call of the host at a time
    std::uint64_t step_ = 0;

    std::mutex barriers_mutex_;  // of the next two
    std::uint64_t barriers_ = 0;
    std::shared_ptr<Stream> last_stream_;

    std::mutex look_mutex_;  // of the next two
    // By rank: since then it is seen that somebody may know better why it failed; 0: never.
    std::vector<std::int64_t> doubted_ns_;
    bool all_failed_ = false;
    std::int64_t proposed_ns_ = 0;  // since when there is a cause that is not decided; 0: there is none

    std::unique_ptr<GroupFolder> folder_;  // rank 0's
    std::unique_ptr<GroupBridge> bridge_;  // a leader's, where there are several machines; its thread looks
};

}  // namespace orrery::umd
