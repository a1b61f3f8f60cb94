// Joins the page of a group's members on one machine to those on others, over links: in the first member's
// process of each machine, its leader. To each machine next to it in a tree of machines it tells what the
// members on this side of the link have said, by writes to card memory over there, and reads what came from
// there. So all pages come to say the same. Beside that a semaphore in both directions, by which streams
// meet, and by whose end each learns that the other is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "umd/runtime/group_folder.h"
#include "umd/runtime/group_page.h"
#include "umd/runtime/pinned_buffer.h"
#include "umd/runtime/semaphore.h"

namespace orrery::umd {

class Context;
class Runtime;
class Stream;

// The link to a machine.
class GroupEdge {
  public:
    // joint: of this member, `rank`. leaders: of each rank's machine.
    static Result<std::unique_ptr<GroupEdge>> create(Runtime& runtime, Context& home, const GroupJoint& joint,
                                                     int rank, std::vector<bool> behind);
    ~GroupEdge();
    GroupEdge(const GroupEdge&) = delete;
    GroupEdge& operator=(const GroupEdge&) = delete;

    // What the other side is to import; and imports what that made, as soon as there is a way.
    Result<FabricKey> key() const;
    Status import(const FabricKey& key, const Until& until);

    int peer() const { return peer_; }
    bool up() const { return up_; }
    Context& context() const { return context_; }
    // Signalled by the other's streams, and by ours.
    const std::shared_ptr<SemaphoreSlot>& own() const { return own_; }
    std::uint64_t theirs() const { return theirs_->va; }
    // Signals for streams of other cards; null: those of the group are on this one.
    const std::shared_ptr<Stream>& signals() const { return signals_; }

    // What came; whether anything did.
    bool receive(GroupPage& page);
    // What is new here; whether anything was. quiet(): all of it has been sent.
    bool send(const GroupPage& page);
    bool quiet() const;
    // The other side is gone: the group's cause, once.
    std::optional<GroupCause> lost(GroupPage& page);
    bool over() const { return over_; }

  private:
    struct Image;
    GroupEdge(Context& context, int rank, int peer, bool up, std::uint32_t port, std::vector<bool> behind);
    static std::size_t image_bytes(std::size_t members);
    const Image& in() const;
    Image& out() const;
    // Of the way to that node, if it goes over switches: this card's own port, and how often that has lost
    // its link.
    struct Port {
        std::uint32_t number, losses;
    };
    std::optional<Port> switch_port(std::uint32_t node) const;
    std::optional<GroupCause> lost_switch() const;
    GroupCause why_closed() const;

    Context& context_;
    const int rank_, peer_;
    const bool up_;  // nearer to rank 0
    const std::uint32_t port_;
    const std::vector<bool> behind_;  // by rank: comes from there
    std::shared_ptr<SemaphoreSlot> own_, theirs_;
    std::shared_ptr<Stream> signals_;
    std::shared_ptr<Stream> stream_;  // what is written there
    PinnedBuffer staging_;            // and from where
    std::vector<GroupPage::Part> sent_;
    std::uint64_t seen_ = 0, index_ = 0;
    std::optional<Error> cut_;  // nothing goes there any more
    std::int64_t cut_ns_ = 0;
    std::uint32_t peer_node_ = 0;
    std::optional<Port> began_at_;  // the way to it, when it was there
    std::atomic<bool> over_{false};
};

class GroupBridge {
  public:
    // All edges of this member in the tree of machines. leaders: of each rank's machine.
    static Result<std::unique_ptr<GroupBridge>> connect(Runtime& runtime, Context& home, GroupFolder& folder,
                                                        const std::vector<GroupJoint>& joints, int rank,
                                                        const std::vector<int>& leaders);
    ~GroupBridge() { stop(); }
    GroupBridge(const GroupBridge&) = delete;
    GroupBridge& operator=(const GroupBridge&) = delete;

    const std::vector<std::unique_ptr<GroupEdge>>& edges() const { return edges_; }
    // From now on, in a thread of its own. look: how the members here are.
    void start(std::shared_ptr<GroupPage> page, std::function<void()> look);
    // The thread ends.
    void stop();
    // This member leaves: what was said here and signalled gets out, if the others live.
    void flush();

  private:
    GroupBridge() = default;
    // Whether anything moved.
    bool pump();
    void run(const std::stop_token& stop);

    std::vector<std::unique_ptr<GroupEdge>> edges_;
    std::shared_ptr<GroupPage> page_;
    std::function<void()> look_;
    std::mutex mutex_;  // of what edges do
    std::jthread thread_;
};

// The cards that this process sees.
Result<std::vector<GroupCard>> own_cards(Runtime& runtime);
// Of all of them, those that lead to cards of other machines, and to these over switches.
Result<std::vector<GroupLink>> links_to_others(Runtime& runtime, const std::vector<GroupCard>& others);

}  // namespace orrery::umd
