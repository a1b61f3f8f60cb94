// Launches over several cards: all parts start together or none does, and none outlives another's failure.
//
// The firmware brings the parts together (orr_packet_gang): each card tells the others on their boards what
// it has come to. What it cannot know is that a part has failed after the start; whoever waits looks after
// that.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <orrery/fw/packet.h>

#include "umd/winsys/error.h"

namespace orrery::umd {

class Context;
class Stream;
struct Block;
struct Function;

struct GangPart {
    std::shared_ptr<Stream> stream;
    const Function* kernel = nullptr;
    orr_packet dispatch{};  // RESIDENT
    std::span<const std::byte> args;
};

// Thread safe.
class Gangs {
  public:
    // At most ORR_GANG_MAX_CARDS, each in a stream of a card of its own. When it fails nothing runs of it; a
    // stream that had its part already has stopped then, with the cause.
    Status launch(std::vector<GangPart> parts);
    // Stops the parts of which another one has failed.
    void watch();
    // Why a part did not start, of whose failure the card tells no more than that the others did not come.
    // missing: number of the card that lacked.
    Error cause(const Stream& stream, std::uint64_t missing) const;
    // Before the contexts go.
    void clear();

  private:
    // A page on each card: what the cards say to each other, of some gangs one after the other.
    struct Boards {
        std::vector<Context*> cards;
        std::vector<Block*> blocks;
        std::uint32_t taken = 0;
    };
    struct Place {
        Boards* boards = nullptr;
        std::uint32_t number = 0;
        std::uint64_t round = 0;
    };
    struct Member {
        std::shared_ptr<Stream> stream;
        std::uint64_t end = 0;  // behind its dispatch; ~0: not given yet
    };
    struct Gang {
        std::vector<Member> members;
        Place place;
    };

    Result<Place> take(const std::vector<Context*>& cards);
    Result<Boards*> make_boards(const std::vector<Context*>& cards);
    // Gangs that are over, which go when the caller has let go of mutex_, which he holds.
    [[nodiscard]] std::vector<std::shared_ptr<Gang>> retire();

    std::mutex launching_;  // gangs come to all their streams in one order
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<Gang>> gangs_;
    std::vector<std::unique_ptr<Boards>> boards_;
    std::vector<Place> free_;
};

}  // namespace orrery::umd
