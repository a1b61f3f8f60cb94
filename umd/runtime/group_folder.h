// How the members of a group on several machines find each other: by files in a folder that all see. Each
// file is written once or anew as a whole, and begins with the token's secret. What the machines tell each
// other so is what it takes to join them over links; then the files go.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "umd/runtime/clock.h"
#include "umd/runtime/group_token.h"
#include "umd/winsys/error.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

// A card of a machine, and its number for others.
struct GroupCard {
    std::uint64_t uid = 0;
    std::uint32_t node = 0, unused = 0;
};

// How a card of a machine reaches another's: a link that is up, or a way over switches.
struct GroupLink {
    static constexpr std::uint32_t kBehindSwitch = 0xffffffff;
    std::uint64_t uid = 0, peer_uid = 0;  // of the cards at its ends
    std::uint32_t port = 0;
    std::uint32_t peer_port = 0;  // kBehindSwitch: of a way over switches only its own end is known
    bool operator==(const GroupLink&) const = default;
    bool is_link() const { return peer_port != kBehindSwitch; }
};

// How two machines of a group are joined.
struct GroupJoint {
    int above = 0,
        below = 0;   // the leaders of both: their lowest ranks; that of rank 0's machine is above all
    GroupLink link;  // its first end is above; both ports are known
};

// Of the leaders, each with its machine's links; the first is above all, and each other one has one above.
// orrErrorPeerAccess: one is not reached, and `lost` is it.
Result<std::vector<GroupJoint>> plan_machines(const std::vector<int>& leaders,
                                              const std::vector<std::vector<GroupLink>>& links);

class GroupFolder {
  public:
    // machine: the same for all members of a machine, and for no others.
    GroupFolder(const GroupToken& token, int rank, int members, std::uint64_t limit_ns,
                std::array<std::byte, 16> machine);
    // Its own files go; without all_in() not those that tell others why they cannot meet it: these go with
    // the last member of a join that failed. Rank 0's last word stays until all leaders have read it, as
    // their files tell, but for no more than some seconds.
    ~GroupFolder();
    GroupFolder(const GroupFolder&) = delete;
    GroupFolder& operator=(const GroupFolder&) = delete;

    static Result<std::array<std::byte, 16>> this_machine();

    // Says that it is there, and waits until all are. By rank, the leader of its machine.
    Result<std::vector<int>> introduce();
    const Until& until() const { return until_; }
    // Nobody needs what this one wrote, but for rank 0's last word, which goes with the object.
    void all_in() { in_ = true; }

    // All from here on is for leaders.
    // Rank 0's: the plan, as soon as `links` of all make one; the others': takes it. `cards`: of this
    // machine; `links`: from them to others, of which those are known.
    using LinksTo = std::function<Result<std::vector<GroupLink>>(const std::vector<GroupCard>& others)>;
    Result<std::vector<GroupJoint>> plan(const std::vector<int>& leaders, const std::vector<GroupCard>& cards,
                                         const LinksTo& links);
    // What joins two machines, from one to the other.
    Status give(int to, const FabricKey& key);
    Result<FabricKey> take(int from);
    // Says that all of its machine are in, and waits until all machines have. Rank 0 says so.
    Status agree(const std::vector<int>& leaders);

    // This member cannot go on, nor can the others then, who are told.
    void give_up(const Error& error);

  private:
    std::string path(std::string_view name) const { return folder_ + "/" + std::string(name); }
    Status write(std::string_view name, const void* bytes, std::size_t size);
    // Nothing: it is not there yet.
    Result<std::optional<std::vector<std::byte>>> read(std::string_view name) const;
    template <typename Message>
    Result<std::optional<Message>> read_as(std::string_view name) const;
    // Of those leaders' machines that have said it.
    Result<std::vector<GroupCard>> cards_of(const std::vector<int>& leaders) const;
    bool has_introduced() const;
    void leave_failed();
    // Until `look` gives true; fails if somebody has given up.
    Status wait(const std::function<Result<bool>()>& look, const std::function<std::string()>& missing);

    const GroupToken token_;
    const int rank_, members_;
    const Until until_;
    const std::array<std::byte, 16> machine_;
    const std::string folder_;
    std::vector<std::string> own_;
    std::vector<int> told_;  // rank 0's: the leaders for whom its last word is
    bool in_ = false, gave_up_ = false;
};

}  // namespace orrery::umd
