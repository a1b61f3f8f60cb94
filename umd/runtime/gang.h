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
    // Lets go of gangs that are over, and so of their streams.
    void retire();
    // Why a part did not start, of whose failure the card tells no more than that the others did not come.
    // detail: of ORR_QERR_GANG, but not ORR_GANG_NO_PLACE.
    Error cause(const Stream& stream, std::uint64_t detail);
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
        bool told = false;      // it stopped because of this gang, so what it says is no cause
    };
    // Between two of the cards, when the parts were given.
    struct Way {
        Context *from = nullptr, *to = nullptr;
        std::uint64_t number = 0;
    };
    struct Gang {
        std::vector<Member> members;  // as many as at first; what is in them changes
        std::vector<Way> ways;        // constant
        Place place;
        std::optional<Error> apart;  // the parts did not come together, though none had failed
    };

    Result<Place> take(const std::vector<Context*>& cards);
    Result<Boards*> make_boards(const std::vector<Context*>& cards);
    // With mutex_ held: the cards have places for them.
    Status check_places(const std::vector<GangPart>& parts) const;
    // The first failure of a part, with its name; nothing: none has failed.
    std::optional<Error> first_cause(const Gang& gang) const;
    // An error: two have none.
    static Result<std::vector<Way>> ways_between(const std::vector<Context*>& cards);
    // A way that the cards told each other by was lost since the parts were given; nothing: none was.
    static std::optional<Error> way_lost(const Gang& gang, std::uint64_t detail);
    static Error not_together(const Gang& gang, const Stream& stream, std::uint64_t detail);

    std::mutex launching_;      // gangs come to all their streams in one order
    mutable std::mutex mutex_;  // also of what is in gangs; no stream is asked for its error under it
    std::vector<std::shared_ptr<Gang>> gangs_;
    std::vector<std::unique_ptr<Boards>> boards_;
    std::vector<Place> free_;
};

}  // namespace orrery::umd
