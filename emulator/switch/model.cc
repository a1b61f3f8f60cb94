#include "emulator/switch/model.h"

#include <array>
#include <fstream>
#include <iterator>

#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include "emulator/api/sku_key.h"
#include "emulator/link/wire.h"
#include "emulator/switch/built_in_switch.h"

namespace orrery::emu {

namespace {

struct Key {
    std::string_view section, name;
    std::uint32_t SwitchModel::* field;
    std::uint32_t low, high;
};

// docs/switch.md has what they mean.
constexpr auto kKeys = std::to_array<Key>({
    {"switch", "ports", &SwitchModel::ports, 2, link::kMostSwitchPorts},
    {"switch", "forward_ns", &SwitchModel::forward_ns, 1, 1'000'000},
    {"link", "lanes", &SwitchModel::lanes, 1, link::kMostLanes},
    {"link", "gbit_per_s", &SwitchModel::gbps, 1, 100'000},
    {"link", "latency_ns", &SwitchModel::latency_ns, 1, 1'000'000'000},
    {"link", "retries", &SwitchModel::retries, 0, 16},
    {"link", "retrain_ns", &SwitchModel::retrain_ns, 0, 1'000'000'000},
});

bool is_origin(std::string_view text) {
    for (auto n = static_cast<unsigned>(SkuOrigin::kUnsaid) + 1; n <= static_cast<unsigned>(kLastSkuOrigin);
         ++n)
        if (text == name_of(static_cast<SkuOrigin>(n))) return true;
    return false;
}

std::expected<void, std::string> read(const toml::table& root, const Key& key, SwitchModel& model,
                                      const std::string& file) {
    const toml::node* node = root[key.section][key.name].node();
    if (node == nullptr)
        return std::unexpected(fmt::format("{}: {}.{} is missing; emulator/switch/switch-1.toml has all keys",
                                           file, key.section, key.name));
    const auto wrong = [&](const std::string& what) {
        return std::unexpected(
            fmt::format("{}:{}: {}.{} {}", file, node->source().begin.line, key.section, key.name, what));
    };
    const toml::array* parts = node->as_array();
    if (parts == nullptr || parts->size() != 3) return wrong("must be [value, \"origin\", \"source\"]");
    const auto number = (*parts)[0].value_exact<std::int64_t>();
    const auto origin = (*parts)[1].value_exact<std::string>();
    const auto source = (*parts)[2].value_exact<std::string>();
    if (!number || *number < key.low || *number > key.high)
        return wrong(fmt::format("must be a whole number from {} to {}", key.low, key.high));
    if (!origin || !is_origin(*origin))
        return wrong("must say where it is from: published, measured, derived or assumed");
    if (!source || source->empty()) return wrong("must say its source");
    model.*key.field = static_cast<std::uint32_t>(*number);
    return {};
}

std::expected<void, std::string> refuse_unknown(const toml::table& root, const std::string& file) {
    for (const auto& [section, node] : root) {
        const toml::table* table = node.as_table();
        if (table == nullptr)
            return std::unexpected(fmt::format("{}:{}: '{}' is no section of a switch's file", file,
                                               node.source().begin.line, section.str()));
        for (const auto& [name, value] : *table) {
            bool known = section.str() == "switch" && name.str() == "name";
            for (const Key& key : kKeys)
                known |= key.section == section.str() && key.name == name.str();
            if (!known)
                return std::unexpected(fmt::format("{}:{}: '{}.{}' is no key of a switch's file", file,
                                                   value.source().begin.line, section.str(), name.str()));
        }
    }
    return {};
}

}  // namespace

std::expected<SwitchModel, std::string> SwitchModel::parse(std::string_view text, const std::string& file) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed)
        return std::unexpected(fmt::format("{}:{}: {}", file, parsed.error().source().begin.line,
                                           std::string_view(parsed.error().description())));
    SwitchModel model;
    for (const Key& key : kKeys)
        if (auto good = read(parsed.table(), key, model, file); !good) return std::unexpected(good.error());
    if (auto good = refuse_unknown(parsed.table(), file); !good) return std::unexpected(good.error());
    const auto name = parsed.table()["switch"]["name"].value_exact<std::string>();
    if (!name || name->empty() || name->size() > 31)
        return std::unexpected(fmt::format("{}: switch.name is a text of 1 to 31 characters", file));
    model.name = *name;
    return model;
}

std::expected<SwitchModel, std::string> SwitchModel::find(const std::string& name) {
    if (name == "switch-1") return parse(kSwitch1, "switch-1");
    std::ifstream in(name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in || text.empty())
        return std::unexpected(
            fmt::format("{}: there is no switch of this name (switch-1), nor a file that can be read", name));
    return parse(text, name);
}

}  // namespace orrery::emu
