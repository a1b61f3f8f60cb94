#include "tools/scenario/sku_text.h"

#include <sstream>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace orrery::scenario {

std::string sku_text(const emu::Sku& sku) {
    const auto was = emu::Sku::parse_recorded(sku.text, "SKU");
    if (was && was->copy_engines == sku.copy_engines && was->vector_ports == sku.vector_ports &&
        was->vector_cores == sku.vector_cores)
        return sku.text;
    toml::parse_result parsed = toml::parse(sku.text);
    if (!parsed) return sku.text;
    toml::table& table = parsed.table();
    const auto set = [&](const char* section, const char* key, std::uint32_t value) {
        if (toml::table* in = table[section].as_table())
            in->insert_or_assign(key, toml::array{std::int64_t{value}, "assumed", "set by the scenario"});
    };
    set("copy", "engines", sku.copy_engines);
    set("vector", "ports", sku.vector_ports);
    set("vector", "cores", sku.vector_cores);
    std::ostringstream out;
    out << table << '\n';
    return out.str();
}

}  // namespace orrery::scenario
