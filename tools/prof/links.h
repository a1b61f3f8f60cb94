// What links of cards carried.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tools/prof/intervals.h"
#include "tools/prof/model.h"

namespace orrery::prof {

struct LinkSums {
    // One; or all that lead to the same peer, if it is not told of each copy which one of them it took.
    std::vector<const LinkRecord*> ports;
    double gb_per_s = 0;  // one direction, all of them together; 0: not known
    // Copies of either card between the two, for any process of the profile, with the time in which at least
    // one of them ran: where the cards have no time in common, at least one of each card's.
    struct Way {
        std::uint64_t bytes = 0, ps = 0;
        double gb_per_s() const {
            return ps == 0 ? 0 : 1e3 * static_cast<double>(bytes) / static_cast<double>(ps);
        }
    };
    Way sent, received;
    bool known = true;  // false: the peer is another machine's, and no copy says to which card it went

    const LinkRecord& first() const { return *ports.front(); }
    double share(const Way& way) const { return gb_per_s == 0 ? 0 : way.gb_per_s() / gb_per_s; }
};

// The copies of a profile by the two cards between which they went. Cards are told apart by machine and uid,
// as processes number them as they like. The model outlives it.
class LinkTraffic {
  public:
    explicit LinkTraffic(const Model& model);

    // By port where that is known, else by peer, in the order of their first ports.
    std::vector<LinkSums> of(const Activity& activity, const DeviceModel& device) const;
    // Copies between the card and those of its machine to which no link of its own leads: switches and other
    // cards pass them on, and which of its ports they took is not told.
    struct Beyond {
        std::uint64_t uid = 0;
        LinkSums::Way sent, received;
    };
    std::vector<Beyond> beyond(const Activity& activity, const DeviceModel& device) const;
    // What the card copied to and from other machines' cards, or to several at once.
    std::pair<LinkSums::Way, LinkSums::Way> elsewhere(const Activity& activity,
                                                      const DeviceModel& device) const;

  private:
    struct Card {
        std::size_t machine = 0;
        std::uint64_t uid = 0;
        auto operator<=>(const Card&) const = default;
    };
    struct Key {
        Card card;           // whose engines copied
        std::uint64_t peer;  // the other's uid; 0: elsewhere
        Direction direction;
        std::uint64_t ports;  // of the card, that it took: bit n is port n; 0: not known
        auto operator<=>(const Key&) const = default;
    };
    struct Carried {
        std::uint64_t bytes = 0;
        Intervals times;
    };
    static std::optional<Card> card_of(const Activity& activity, std::uint32_t device);
    // By any ports, or by one alone.
    Carried carried(const Card& card, std::uint64_t peer, Direction direction,
                    std::optional<std::uint32_t> port = std::nullopt) const;
    // All that was copied between the two went through one of these ports alone.
    bool by_port(const Card& card, const Card& peer, const std::vector<const LinkRecord*>& ports) const;
    LinkSums::Way way(const Card& card, const Card& peer, Direction own, Direction peers,
                      const LinkRecord* port = nullptr) const;

    std::map<Key, Carried> copies_;
    std::set<Card> cards_, in_step_;
};

// Whether the card keeps step with others: such cards have one time.
bool in_step(const Activity& activity, std::uint32_t device);

// What all ports of the card carried for anybody, between the first and the last sample of these counters.
struct LinkCounts {
    std::uint64_t ps = 0, sent = 0, received = 0;  // bytes of payload
    std::uint64_t retries = 0, messages = 0;       // frames that were sent again; messages that were sent
    std::uint64_t credit_ps = 0;                   // in which a port had no room at the other end
};
std::optional<LinkCounts> link_counts(const Activity& activity, const DeviceModel& device);

}  // namespace orrery::prof
