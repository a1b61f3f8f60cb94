#include "tools/topology/file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace orrery::topology {
namespace {

std::optional<unsigned> number(std::string_view text) {
    unsigned value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
    return value;
}

constexpr std::string_view kCard = "card";

// The N of "cardN".
std::optional<unsigned> card_of(std::string_view name) {
    if (!name.starts_with(kCard)) return std::nullopt;
    return number(name.substr(kCard.size()));
}

// "card2:0", "leaf1:3"
struct End {
    std::string_view name;
    unsigned port = 0;
};
std::optional<End> end_of(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    const auto port = number(text.substr(colon + 1));
    if (!port) return std::nullopt;
    return End{text.substr(0, colon), *port};
}

bool is_name(std::string_view name) {
    constexpr std::size_t kMost = 24;
    return !name.empty() && name.size() <= kMost && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_';
    });
}

std::string cards_text(unsigned cards) {
    return cards == 1 ? "there is 1 card" : fmt::format("there are {} cards", cards);
}

std::string too_few_ports(const Port& port, unsigned ports) {
    return fmt::format("card {} would need a port {}, and its SKU has {} (link.ports)", port.card, port.port,
                       ports);
}

class Reader {
  public:
    Reader(const std::string& name, const Limits& limits) : name_(name), limits_(limits) {}

    text::Result<Topology> read(const std::string& toml) {
        try {
            table_ = toml::parse(toml);
        } catch (const toml::parse_error& error) {
            return text::fail("{}:{}: {}", name_, error.source().begin.line, error.description());
        }
        if (auto good = keys(); !good) return std::unexpected(good.error());
        if (auto good = cards(); !good) return std::unexpected(good.error());
        if (auto good = switches(); !good) return std::unexpected(good.error());
        return table_.contains("links") ? listed() : shaped();
    }

  private:
    template <typename... Args>
    std::unexpected<text::Error> wrong(const toml::node& node, fmt::format_string<Args...> format,
                                       Args&&... args) const {
        return text::fail("{}:{}: {}", name_, node.source().begin.line,
                          fmt::format(format, std::forward<Args>(args)...));
    }

    // What there is, and what goes with what.
    text::Result<void> keys() const {
        static constexpr std::array<std::string_view, 6> kKeys = {"cards", "kind",   "links",
                                                                  "shape", "switch", "torus"};
        for (const auto& [key, node] : table_)
            if (std::ranges::find(kKeys, key.str()) == kKeys.end())
                return text::fail(
                    "{}:{}: unknown key '{}'; the keys are cards, kind, links, shape, switch and torus",
                    name_, key.source().begin.line, key.str());
        if (const toml::node* kind = table_.get("kind");
            kind != nullptr && kind->value_exact<std::string>() != "local")
            return wrong(*kind, "kind, that of the links, is \"local\": there is no other so far");
        const toml::node* links = table_.get("links");
        const toml::node* shape = table_.get("shape");
        if (links != nullptr && shape != nullptr)
            return wrong(*shape, "'shape' says which links there are, and so does 'links': leave one out");
        if (links == nullptr && shape == nullptr)
            return text::fail("{}: it has neither 'shape' ({}) nor 'links'", name_, shape_names());
        return {};
    }

    text::Result<void> cards() {
        cards_ = limits_.cards.value_or(1);
        counted_ = limits_.cards || table_.contains("cards");
        const toml::node* given = table_.get("cards");
        if (given == nullptr) return {};
        const auto* value = given->as_integer();
        if (value == nullptr || value->get() < 1 || value->get() > limits_.most_cards)
            return wrong(*given, "cards is a whole number from 1 to {}", limits_.most_cards);
        cards_ = static_cast<unsigned>(value->get());
        if (limits_.cards && *limits_.cards != cards_)
            return wrong(*given, "the file is for {} cards, and --cards says {}", cards_, *limits_.cards);
        return {};
    }

    text::Result<std::optional<Sides>> sides(bool wanted) const {
        const toml::node* given = table_.get("torus");
        if (given == nullptr) return std::optional<Sides>();
        if (!wanted) return wrong(*given, "'torus' belongs to shape = \"torus\"");
        const toml::array* pair = given->as_array();
        if (pair == nullptr || pair->size() != 2) return wrong(*given, "torus is a pair such as [4, 3]");
        unsigned side[2];
        for (std::size_t i = 0; i < 2; ++i) {
            const auto* value = pair->get(i)->as_integer();
            if (value == nullptr || value->get() < 1 || value->get() > limits_.most_cards)
                return wrong(*given, "a side of a torus is a whole number from 3 to {}",
                             limits_.most_cards / 3);
            side[i] = static_cast<unsigned>(value->get());
        }
        return std::optional(Sides{side[0], side[1]});
    }

    text::Result<Topology> shaped() {
        const toml::node& given = *table_.get("shape");
        const auto name = given.value_exact<std::string>();
        const auto shape = name ? shape_named(*name) : std::nullopt;
        if (!shape) return wrong(given, "shape is {}", shape_names());
        const auto sides = this->sides(shape == Shape::kTorus);
        if (!sides) return std::unexpected(sides.error());
        if (!counted_ && *shape == Shape::kPair) cards_ = 2;
        if (!counted_ && *sides) cards_ = (*sides)->columns * (*sides)->rows;
        const bool told = counted_ || *shape == Shape::kPair || *sides;
        if (!told && *shape == Shape::kTorus)
            return wrong(given, "how many cards? 'cards' or --cards says it, or the sides (torus = [4, 3])");
        const toml::node& blamed = *sides                           ? *table_.get("torus")
                                   : table_.get("cards") != nullptr ? *table_.get("cards")
                                                                    : given;
        if (cards_ > limits_.most_cards)
            return wrong(blamed, "these are {} cards, and there can be {}", cards_, limits_.most_cards);
        auto made = make(*shape, cards_, *sides);
        if (!made)
            return wrong(blamed, "{}{}", made.error().text,
                         told ? "" : " ('cards' or --cards says how many there are)");
        if (const auto port = port_beyond(*made, limits_.ports))
            return wrong(given, "{}", too_few_ports(*port, limits_.ports));
        return made;
    }

    text::Result<void> switches() {
        const toml::node* given = table_.get("switch");
        if (given == nullptr) return {};
        if (table_.contains("shape"))
            return wrong(*given, "'shape' says which switches there are; those of a file go with 'links'");
        const toml::array* tables = given->as_array();
        if (tables == nullptr || !tables->is_array_of_tables())
            return wrong(*given, "a switch is a table [[switch]] with a name");
        for (const auto& node : *tables) {
            const toml::table& each = *node.as_table();
            for (const auto& [key, value] : each)
                if (key.str() != "name" && key.str() != "ports" && key.str() != "level")
                    return wrong(value, "unknown key '{}' of a switch; the keys are name, ports and level",
                                 key.str());
            const auto name = each["name"].value_exact<std::string>();
            if (!name || !is_name(*name) || card_of(*name))
                return wrong(node,
                             "a switch has a name of up to 24 letters, digits, - and _, which is no "
                             "card's (name = \"leaf0\")");
            for (const SwitchPlace& other : switches_)
                if (other.name == *name) return wrong(node, "two switches have the name '{}'", *name);
            const auto ports = whole(each, "ports", 2, kMaxSwitchPorts);
            if (!ports) return std::unexpected(ports.error());
            const auto level = whole(each, "level", 0, 255);
            if (!level) return std::unexpected(level.error());
            switches_.push_back({*name, ports->value_or(kMaxSwitchPorts), level->value_or(kUnsaid)});
            switch_nodes_.push_back(&node);
        }
        if (switches_.size() > kMaxSwitches)
            return wrong(*given, "these are {} switches, and there can be {}", switches_.size(),
                         kMaxSwitches);
        return {};
    }

    text::Result<std::optional<unsigned>> whole(const toml::table& table, std::string_view key, unsigned low,
                                                unsigned high) const {
        const toml::node* node = table.get(key);
        if (node == nullptr) return std::optional<unsigned>();
        const auto* value = node->as_integer();
        if (value == nullptr || value->get() < low || value->get() > high)
            return wrong(*node, "{} of a switch is a whole number from {} to {}", key, low, high);
        return std::optional(static_cast<unsigned>(value->get()));
    }

    text::Result<Port> end(const toml::node& node) {
        const auto value = node.value_exact<std::string>();
        const auto named = value ? end_of(*value) : std::nullopt;
        for (unsigned s = 0; named && s < switches_.size(); ++s) {
            if (switches_[s].name != named->name) continue;
            if (named->port >= switches_[s].ports)
                return wrong(node, "'{}': this switch has ports 0 to {}", *value, switches_[s].ports - 1);
            const Port port{cards_ + s, named->port};
            if (!used_.insert(port).second) return wrong(node, "'{}' is in two links", *value);
            return port;
        }
        const auto card = named ? card_of(named->name) : std::nullopt;
        if (named && !card && !switches_.empty())
            return wrong(node, "'{}': there is no card and no [[switch]] of this name", *value);
        const auto port = card ? std::optional(Port{*card, named->port}) : std::nullopt;
        if (!port) return wrong(node, "an end of a link is written \"card0:0\" (card and port)");
        if (port->card >= cards_ && !counted_)
            return wrong(node, "'{}': say how many cards there are: cards = N, or --cards", *value);
        if (port->card >= cards_)
            return wrong(node, "'{}': {} ('cards' or --cards), numbered from 0", *value, cards_text(cards_));
        if (port->port >= kMaxPorts)
            return wrong(node, "'{}': a card has ports 0 to {}", *value, kMaxPorts - 1);
        if (port->port >= limits_.ports)
            return wrong(node, "'{}': {}", *value, too_few_ports(*port, limits_.ports));
        if (!used_.insert(*port).second) return wrong(node, "'{}' is in two links", *value);
        return *port;
    }

    text::Result<Topology> listed() {
        const toml::array* entries = table_.get("links")->as_array();
        if (entries == nullptr)
            return wrong(*table_.get("links"), "links is a list of pairs such as [\"card0:0\", \"card1:0\"]");
        if (table_.contains("torus"))
            return wrong(*table_.get("torus"), "'torus' belongs to shape = \"torus\"");
        Topology topology{Shape::kListed, cards_, {}, {}, {}};
        std::set<std::pair<unsigned, unsigned>> joined;
        for (const auto& entry : *entries) {
            const toml::array* pair = entry.as_array();
            if (pair == nullptr || pair->size() != 2)
                return wrong(entry, "a link is a pair such as [\"card0:0\", \"card1:0\"]");
            const auto one = end(*pair->get(0));
            if (!one) return std::unexpected(one.error());
            const auto other = end(*pair->get(1));
            if (!other) return std::unexpected(other.error());
            if (one->card == other->card)
                return wrong(entry, "a link joins two different cards, not {} with itself",
                             name_of(one->card));
            const auto [first, second] = std::minmax(*one, *other);
            if (!joined.emplace(first.card, second.card).second)
                return second.card < cards_
                           ? wrong(entry, "cards {} and {} are joined twice", first.card, second.card)
                           : wrong(entry, "{} and {} are joined twice", name_of(first.card),
                                   name_of(second.card));
            topology.links.push_back({first, second});
        }
        return with_levels(std::move(topology));
    }

    std::string name_of(unsigned place) const {
        return place < cards_ ? fmt::format("card {}", place) : switches_[place - cards_].name;
    }

    // A switch has level 0 unless it joins switches alone: then it is above them.
    text::Result<Topology> with_levels(Topology topology) {
        for (const Link& link : topology.links)
            if (link.first.card < cards_ && link.second.card >= cards_) {
                unsigned& level = switches_[link.second.card - cards_].level;
                if (level == kUnsaid) level = 0;
            }
        for (unsigned round = 0; round < switches_.size(); ++round) {
            const auto before = switches_;
            for (const Link& link : topology.links) {
                if (link.first.card < cards_) continue;
                for (const auto& [from, to] : {std::pair(link.first.card, link.second.card),
                                               std::pair(link.second.card, link.first.card)}) {
                    const unsigned below = before[from - cards_].level;
                    if (before[to - cards_].level == kUnsaid && below != kUnsaid)
                        switches_[to - cards_].level = below + 1;
                }
            }
        }
        for (std::size_t s = 0; s < switches_.size(); ++s) {
            const auto links = std::ranges::count_if(topology.links, [&](const Link& link) {
                return link.first.card == cards_ + s || link.second.card == cards_ + s;
            });
            if (links < 2)
                return wrong(*switch_nodes_[s], "switch {} joins nothing: it has {} link{}, and 2 or more do",
                             switches_[s].name, links, links == 1 ? "" : "s");
            if (switches_[s].level == kUnsaid)
                return wrong(*switch_nodes_[s], "no links lead from switch {} to a card", switches_[s].name);
        }
        const toml::array& entries = *table_.get("links")->as_array();
        for (std::size_t n = 0; n < topology.links.size(); ++n) {
            const Link& link = topology.links[n];
            if (link.first.card < cards_) continue;
            const SwitchPlace& one = switches_[link.first.card - cards_];
            const SwitchPlace& other = switches_[link.second.card - cards_];
            if (one.level == other.level)
                return wrong(*entries.get(n),
                             "switches {} and {} are both of level {}: say which is above "
                             "the other (level = {})",
                             one.name, other.name, one.level, one.level + 1);
        }
        topology.switches = switches_;
        return topology;
    }

    const std::string& name_;
    const Limits& limits_;
    toml::table table_;
    unsigned cards_ = 1;
    bool counted_ = false;  // 'cards' or --cards says how many there are
    std::set<Port> used_;
    static constexpr unsigned kUnsaid = ~0u;  // level
    std::vector<SwitchPlace> switches_;
    std::vector<const toml::node*> switch_nodes_;
};

}  // namespace

text::Result<Topology> parse(const std::string& toml, const std::string& name, const Limits& limits) {
    auto topology = Reader(name, limits).read(toml);
    // Errors quote the file, and go to terminals.
    if (!topology)
        std::ranges::replace_if(
            topology.error().text, [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; }, '?');
    return topology;
}

std::string text_of(const Topology& topology) {
    const auto name_of = [&](unsigned number) {
        std::string name = topology.switches[number].name;
        std::erase(name, ' ');
        return name;
    };
    const auto end_of = [&](const Port& port) {
        return port.card < topology.cards
                   ? fmt::format("card{}:{}", port.card, port.port)
                   : fmt::format("{}:{}", name_of(port.card - topology.cards), port.port);
    };
    std::string text = fmt::format("cards = {}\nlinks = [\n", topology.cards);
    for (const Link& link : topology.links)
        text += fmt::format("    [\"{}\", \"{}\"],\n", end_of(link.first), end_of(link.second));
    text += "]\n";
    for (unsigned number = 0; number < topology.switches.size(); ++number) {
        const SwitchPlace& place = topology.switches[number];
        text += fmt::format("[[switch]]\nname = \"{}\"\nports = {}\nlevel = {}\n", name_of(number),
                            place.ports, place.level);
    }
    return text;
}

text::Result<Topology> named(Shape shape, const Limits& limits) {
    if (shape == Shape::kTorus && !limits.cards)
        return text::fail("torus: how many cards? --cards says it, or a file that has the sides");
    auto made = make(shape, limits.cards.value_or(shape == Shape::kPair ? 2 : 1));
    if (!made)
        return text::fail("{}: {}{}", shape_name(shape), made.error().text,
                          limits.cards ? "" : " (--cards says how many there are)");
    if (const auto port = port_beyond(*made, limits.ports))
        return text::fail("{}: {}", shape_name(shape), too_few_ports(*port, limits.ports));
    return made;
}

}  // namespace orrery::topology
