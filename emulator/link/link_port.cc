#include "emulator/link/link_port.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "emulator/link/reach.h"

namespace orrery::emu {

std::expected<LinkConfig, std::string> LinkConfig::parse(std::string_view text, std::uint32_t ports) {
    const auto usage = [&] {
        return std::unexpected(fmt::format(
            "link \"{}\": write PORT:listen:PATH or PORT:connect:PATH, PORT from 0 to {}", text, ports - 1));
    };
    LinkConfig config;
    const auto first = text.find(':');
    if (first == std::string_view::npos) return usage();
    auto second = text.find(':', first + 1);
    if (second == std::string_view::npos || second + 1 == text.size()) return usage();
    const std::string_view number = text.substr(0, first);
    std::string_view role = text.substr(first + 1, second - first - 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), config.port);
    if (error != std::errc{} || end != number.data() + number.size() || config.port >= ports) {
        return usage();
    }
    if (role != "listen" && role != "connect") {
        if (role != kLocalLink.name)
            return std::unexpected(
                fmt::format("{}; there is no kind of link '{}' ('{}' is the only one that can be named)",
                            usage().error(), role, kLocalLink.name));
        const auto third = text.find(':', second + 1);
        if (third == std::string_view::npos || third + 1 == text.size()) return usage();
        role = text.substr(second + 1, third - second - 1);
        second = third;
        if (role != "listen" && role != "connect") return usage();
    }
    config.listen = role == "listen";
    config.path = text.substr(second + 1);
    return config;
}

std::expected<std::unique_ptr<LinkPort>, std::string> LinkPort::create(LinkConfig config, EventQueue& events,
                                                                       Vram& vram, Counters& counters,
                                                                       Errors& errors, LinkHooks hooks) {
    const LinkKind& kind = *config.kind;
    return kind.create(std::move(config), events, vram, counters, errors, std::move(hooks));
}

link::Reach LinkPort::peer_reach(std::uint32_t) const {
    return {};
}

}  // namespace orrery::emu
