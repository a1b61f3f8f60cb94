// The keys of a SKU file: one row says all that is known about a number beside its value. The table is in
// emulator/skus/keys.cc; the parser, the text that a card publishes and docs/skus.md are made from it.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace orrery::emu {

struct Sku;

struct SkuKey {
    enum class Kind : std::uint8_t {
        kNumber,      // a whole number
        kPowerOfTwo,  // a whole number that is a power of two
        kSize,        // bytes of VRAM, written like "256M"
        kName,        // 1 to 31 characters of printable ASCII
    };
    using Field = std::variant<std::uint32_t Sku::*, std::uint64_t Sku::*, std::string Sku::*>;

    std::string_view section;
    std::string_view name;
    std::string_view unit;  // of the number in the file; empty: a count
    Field field;
    std::uint64_t low = 0, high = 0;  // of the number in the file
    std::uint64_t scale = 1;          // the field is the number times this
    std::string_view meaning;
    // Version of this table that brought the key. Recordings carry the text of their SKU: one that is older
    // than the key is as if it had `before` (in the file's unit), which is how cards behaved then.
    unsigned since = 1;
    std::uint64_t before = 0;
    Kind kind = Kind::kNumber;
};

// In the order of docs/skus.md: sections together.
std::span<const SkuKey> sku_keys();

// "section.name".
std::string full_name(const SkuKey& key);

// Where a number is from.
enum class SkuOrigin : std::uint8_t {
    kUnsaid,     // only in recordings from before SKU files said it
    kPublished,  // in a public document
    kMeasured,   // by us, on something real
    kDerived,    // calculated from other numbers
    kAssumed,    // a choice
};
inline constexpr SkuOrigin kLastSkuOrigin = SkuOrigin::kAssumed;

std::string_view name_of(SkuOrigin origin);

struct SkuSource {
    SkuOrigin origin = SkuOrigin::kUnsaid;
    std::string from;  // the document, the measurement, the formula, or why it was chosen: printable ASCII
};

}  // namespace orrery::emu
