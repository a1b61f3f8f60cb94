// Ports, and what is at their other ends.
#pragma once

#include <orrery/orrery.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/smi/switches.h"
#include "tools/topology/system.h"

namespace orrery::smi {

// What a port has counted since its card's power-on; the driver's files have these names.
enum PortCount : std::uint8_t {
    kPortSentMessages,
    kPortSentBytes,
    kPortGotMessages,
    kPortGotBytes,
    kPortDamaged,  // frames that came with a wrong CRC
    kPortRetries,  // frames sent again
    kPortRetrains,
    kPortCounts
};
inline constexpr std::array<const char*, kPortCounts> kPortCountNames = {
    "tx_messages", "tx_bytes", "rx_messages", "rx_bytes", "crc_errors", "retries", "retrains"};

// What it has refused, and what was refused of its card; the library tells.
enum PortDenial : std::uint8_t { kPortDenied, kPortBadKeys, kPortRefused, kPortForged, kPortDenials };
inline constexpr std::array<const char*, kPortDenials> kPortDenialNames = {"denied", "bad_keys", "refused",
                                                                           "forged"};

struct LinkPort {
    orrLinkInfo link{};
    std::optional<std::uint64_t> losses;  // nothing: an older driver does not say
    // Nothing: an older driver or card does not say.
    std::optional<std::array<std::uint64_t, kPortCounts>> counts{};
    std::string width{};  // lanes in use and those that there are: "2/4"
    std::string rate{};   // of those in use, in Gbit/s: "200"
    bool to_switch = false;
};
// Nothing: an older driver or card does not say.
std::optional<std::uint64_t> denial_of(const LinkPort& port, PortDenial which);

// A card counts what crosses its links for all ports together.
enum LinkCounter : std::uint8_t {
    kSentMessages,
    kSentBytes,
    kGotMessages,
    kGotBytes,
    kDenied,
    kLate,
    kLinkCounters
};
inline constexpr std::array<const char*, kLinkCounters> kLinkCounterNames = {
    "link_tx_messages", "link_tx_bytes", "link_rx_messages",
    "link_rx_bytes",    "link_denied",   "link_stragglers"};

struct LinkedCard {
    int device = 0;
    std::string name;  // "card 0"
    std::string address, sku;
    std::uint64_t uid = 0;
    std::vector<LinkPort> ports;
    std::array<std::uint64_t, kLinkCounters> counters{};
    std::string trouble;  // why something is missing
};

// One for each device, in their order.
std::vector<LinkedCard> read_links();

// A card of the system that is no device: it has no number, and those behind it move up.
struct MissingCard {
    std::string address, reason;
};

using topology::is_up;
// "to card 1 port 0"; empty if nothing is there.
std::string peer_text(const orrLinkInfo& link);
std::string peer_text(const LinkPort& port);

// "once", "3 times"
std::string times(std::uint64_t count);

// The switches that cards tell of, whose ports are up; what could not be read is in the card's trouble.
std::vector<Switch> switches_behind(std::vector<LinkedCard>& cards);
// Of a switch that only a card's port names there is what that says.
topology::Picture picture_of(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches);

// This card in another look: by its PCI address, as numbers may move on; by its number where an address is
// not known. Null: it is not there.
const LinkedCard* same_card(const std::vector<LinkedCard>& cards, const LinkedCard& card);

// What it has counted since another look; nothing if that cannot be told, as after the card began anew.
std::optional<std::uint64_t> counted_since(const std::vector<LinkedCard>& before, const LinkedCard& now,
                                           LinkCounter counter);

// What differs between two looks, a line each: "card 0 port 1: up -> down".
std::vector<std::string> changes(const std::vector<LinkedCard>& before, const std::vector<LinkedCard>& now);

// orrery-smi topo: the matrix; JSON; an SVG file, whose error is a sentence.
void show_topology(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches);
void show_topology_json(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches,
                        const std::vector<MissingCard>& missing);
nlohmann::ordered_json switches_json(const std::vector<LinkedCard>& cards,
                                     const std::vector<Switch>& switches);
text::Result<void> draw_topology(const std::vector<LinkedCard>& cards, const std::vector<Switch>& switches,
                                 const std::string& file);

// orrery-smi links: a table of ports; JSON; and a table again and again, until nobody reads it any more.
std::string links_text(const std::vector<LinkedCard>& cards);
void show_links_json(const std::vector<LinkedCard>& cards, const std::vector<MissingCard>& missing);
// A line for each; and for JSON, behind the cards.
std::string missing_text(const std::vector<MissingCard>& missing);
nlohmann::ordered_json missing_json(const std::vector<MissingCard>& missing);
void watch_links();
// SIGINT and SIGTERM end the program with 0 from now on, whatever it waits for. To be called before there are
// other threads.
void end_when_told();

}  // namespace orrery::smi
