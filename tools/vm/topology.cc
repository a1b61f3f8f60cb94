#include "tools/vm/topology.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <charconv>
#include <optional>
#include <set>

#include "tools/vm/modules.h"

namespace orrery::vm {

namespace {

std::optional<unsigned> number(std::string_view text) {
    unsigned value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<PortName> port_name(std::string_view text) {
    constexpr std::string_view kPrefix = "card";
    const auto colon = text.find(':');
    if (!text.starts_with(kPrefix) || colon == std::string_view::npos) return std::nullopt;
    const auto card = number(text.substr(kPrefix.size(), colon - kPrefix.size()));
    const auto port = number(text.substr(colon + 1));
    if (!card || !port) return std::nullopt;
    return PortName{*card, *port};
}

}  // namespace

std::vector<Link> chain(unsigned cards) {
    std::vector<Link> links;
    for (unsigned i = 0; i + 1 < cards; ++i)
        links.push_back({{i, i == 0 ? 0U : 1U}, {i + 1, 0}});
    return links;
}

Result<std::vector<Link>> parse_topology(const std::string& text, const std::string& name, unsigned cards) {
    const auto wrong = [&](const std::string& what) {
        return fail(fmt::format("{}: {}", name, what), kExitUsage);
    };
    toml::table table;
    try {
        table = toml::parse(text);
    } catch (const toml::parse_error& error) {
        return wrong(fmt::format("line {}: {}", error.source().begin.line, error.description()));
    }
    const toml::array* entries = table["links"].as_array();
    if (entries == nullptr) return wrong("it has no array 'links'");
    std::vector<Link> links;
    std::set<PortName> used;
    for (const auto& entry : *entries) {
        const toml::array* pair = entry.as_array();
        if (pair == nullptr || pair->size() != 2)
            return wrong("a link is a pair such as [\"card0:0\", \"card1:0\"]");
        PortName ends[2];
        for (std::size_t i = 0; i < 2; ++i) {
            const auto value = pair->get(i)->value<std::string>();
            const auto port = value ? port_name(*value) : std::nullopt;
            if (!port) return wrong("an end of a link is written \"card0:0\" (card and port)");
            if (port->card >= cards)
                return wrong(
                    fmt::format("'{}': there are {} cards (--cards), numbered from 0", *value, cards));
            if (port->port >= kPortsPerCard)
                return wrong(fmt::format("'{}': a card has ports 0 to {}", *value, kPortsPerCard - 1));
            if (!used.insert(*port).second) return wrong(fmt::format("'{}' is in two links", *value));
            ends[i] = *port;
        }
        if (ends[0].card == ends[1].card) return wrong("a link joins two different cards");
        if (ends[1] < ends[0]) std::swap(ends[0], ends[1]);
        links.push_back({ends[0], ends[1]});
    }
    return links;
}

Result<std::vector<Link>> load_topology(const std::filesystem::path& file, unsigned cards) {
    auto text = read_file(file);
    if (!text) return std::unexpected(text.error());
    return parse_topology(*text, file.string(), cards);
}

}  // namespace orrery::vm
