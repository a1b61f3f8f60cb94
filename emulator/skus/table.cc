#include <fmt/format.h>

#include "emulator/api/sku.h"

namespace orrery::emu {

std::string Sku::table() const {
    std::string out;
    const std::span<const SkuKey> keys = sku_keys();
    for (std::size_t n = 0; n < keys.size(); ++n) {
        const SkuKey& key = keys[n];
        std::string value;
        if (const auto* words = std::get_if<std::string Sku::*>(&key.field)) {
            value = this->*(*words);
        } else if (const auto* narrow = std::get_if<std::uint32_t Sku::*>(&key.field)) {
            value = fmt::format("{}", this->*(*narrow) / key.scale);
        } else {
            value = fmt::format("{}", this->*std::get<std::uint64_t Sku::*>(key.field) / key.scale);
        }
        // A SKU that was put together by a program has no sources.
        const SkuSource source = n < sources.size() ? sources[n] : SkuSource{};
        const bool from = key.kind != SkuKey::Kind::kName;
        out += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", full_name(key), value, key.unit,
                           from ? name_of(source.origin) : "", source.from, key.meaning);
    }
    return out;
}

}  // namespace orrery::emu
