#include "emulator/api/sku.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "emulator/api/size.h"
#include "emulator/memory/vram.h"
#include "emulator/skus/built_in.h"

namespace orrery::emu {

std::expected<void, std::string> check_vram_size(std::uint64_t bytes) {
    if (!std::has_single_bit(bytes) || bytes < (std::uint64_t{1} << 20) || bytes > Vram::kMaxBytes) {
        return std::unexpected(
            fmt::format("VRAM of {} bytes: the size must be a power of two from 1M to 64G", bytes));
    }
    return {};
}

namespace {

constexpr std::size_t kMaxSource = 300;

bool printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

std::string origins() {
    std::string all;
    for (auto n = static_cast<unsigned>(SkuOrigin::kUnsaid) + 1; n <= static_cast<unsigned>(kLastSkuOrigin);
         ++n) {
        all += fmt::format("{}{}", all.empty() ? "" : ", ", name_of(static_cast<SkuOrigin>(n)));
    }
    return all;
}

// Reads the keys of the table out of a file, keeps the first error, and finds what is no key.
class Reader {
  public:
    Reader(const toml::table& root, std::string file, bool recorded)
        : root_(root), file_(std::move(file)), recorded_(recorded) {}

    void read(Sku& sku) {
        for (const SkuKey& key : sku_keys()) {
            SkuSource& source = sku.sources.emplace_back();
            const toml::node* node = root_[key.section][key.name].node();
            if (node != nullptr) {
                value(sku, key, take_source(key, *node, source));
            } else if (recorded_ && key.since > 1) {
                put(sku, key, key.before);
            } else if (error_.empty()) {
                error_ = fmt::format("{}: {} is missing; emulator/skus/orrery-1.toml has all keys", file_,
                                     full_name(key));
            }
        }
        refuse_unknown();
    }

    // Says what is wrong with a value that only other values can tell.
    void complain(std::string_view section, std::string_view name, const std::string& what) {
        if (const toml::node* node = root_[section][name].node()) {
            fail(*node, fmt::format("{}.{}: {}", section, name, what));
        }
    }

    const std::string& error() const { return error_; }

  private:
    // [value, "origin", "source"]: the node of the value.
    const toml::node& take_source(const SkuKey& key, const toml::node& node, SkuSource& source) {
        if (key.kind == SkuKey::Kind::kName) return node;
        const toml::array* parts = node.as_array();
        if (parts == nullptr) {
            if (!recorded_) {
                fail(node,
                     fmt::format("{} must say where it is from: [value, \"{}\", \"why, or the document\"]",
                                 full_name(key), name_of(SkuOrigin::kAssumed)));
            }
            return node;
        }
        const auto origin = parts->size() == 3 ? (*parts)[1].value_exact<std::string>() : std::nullopt;
        const auto from = parts->size() == 3 ? (*parts)[2].value_exact<std::string>() : std::nullopt;
        if (!origin || !from) {
            fail(node, fmt::format("{} must be [value, \"origin\", \"source\"]", full_name(key)));
            return parts->empty() ? node : (*parts)[0];
        }
        for (auto n = static_cast<unsigned>(SkuOrigin::kUnsaid) + 1;
             n <= static_cast<unsigned>(kLastSkuOrigin); ++n) {
            if (*origin == name_of(static_cast<SkuOrigin>(n))) source.origin = static_cast<SkuOrigin>(n);
        }
        source.from = *from;
        if (source.origin == SkuOrigin::kUnsaid) {
            fail(node, fmt::format("{}: '{}' is no origin: {}", full_name(key), *origin, origins()));
        } else if (from->empty() || from->size() > kMaxSource || !printable(*from)) {
            fail(node, fmt::format("{}: its source must be 1 to {} characters of printable ASCII",
                                   full_name(key), kMaxSource));
        }
        return (*parts)[0];
    }

    void value(Sku& sku, const SkuKey& key, const toml::node& node) {
        if (key.kind == SkuKey::Kind::kName || key.kind == SkuKey::Kind::kSize) {
            const auto text = node.value_exact<std::string>();
            if (!text) return fail(node, fmt::format("{} must be a text in quotes", full_name(key)));
            if (key.kind == SkuKey::Kind::kName) return name(sku, key, node, *text);
            return size(sku, key, node, *text);
        }
        const auto number = node.value_exact<std::int64_t>();
        const auto bits = static_cast<std::uint64_t>(number.value_or(-1));
        if (!number || *number < 0 || bits < key.low || bits > key.high) {
            return fail(node, fmt::format("{} must be a whole number from {} to {}", full_name(key), key.low,
                                          key.high));
        }
        if (key.kind == SkuKey::Kind::kPowerOfTwo && !std::has_single_bit(bits)) {
            return fail(node, fmt::format("{} must be a power of two", full_name(key)));
        }
        put(sku, key, bits);
    }

    void name(Sku& sku, const SkuKey& key, const toml::node& node, const std::string& text) {
        if (text.size() < key.low || text.size() > key.high || !printable(text)) {
            return fail(node, fmt::format("{}: must be {} to {} characters of printable ASCII",
                                          full_name(key), key.low, key.high));
        }
        sku.*std::get<std::string Sku::*>(key.field) = text;
    }

    void size(Sku& sku, const SkuKey& key, const toml::node& node, const std::string& text) {
        const auto bytes = parse_size(text);
        if (!bytes) return fail(node, fmt::format("{}: {}", full_name(key), bytes.error()));
        if (const auto good = check_vram_size(*bytes); !good) {
            return fail(node, fmt::format("{}: {}", full_name(key), good.error()));
        }
        put(sku, key, *bytes);
    }

    static void put(Sku& sku, const SkuKey& key, std::uint64_t number) {
        if (const auto* narrow = std::get_if<std::uint32_t Sku::*>(&key.field)) {
            sku.*(*narrow) = static_cast<std::uint32_t>(number * key.scale);
        } else {
            sku.*std::get<std::uint64_t Sku::*>(key.field) = number * key.scale;
        }
    }

    void refuse_unknown() {
        for (const auto& [section, node] : root_) {
            const toml::table* table = node.as_table();
            const auto in_section = [&](const SkuKey& key) { return key.section == section.str(); };
            if (table == nullptr || std::ranges::none_of(sku_keys(), in_section)) {
                fail(node, fmt::format("'{}' is no section of a SKU file", section.str()));
                continue;
            }
            for (const auto& [name, value] : *table) {
                const auto same = [&](const SkuKey& key) {
                    return in_section(key) && key.name == name.str();
                };
                if (std::ranges::none_of(sku_keys(), same)) {
                    fail(value, fmt::format("'{}.{}' is no key of a SKU file (docs/skus.md has all)",
                                            section.str(), name.str()));
                }
            }
        }
    }

    void fail(const toml::node& node, const std::string& what) {
        if (error_.empty()) error_ = fmt::format("{}:{}: {}", file_, node.source().begin.line, what);
    }

    const toml::table& root_;
    std::string file_;
    std::string error_;
    bool recorded_;
};

std::expected<Sku, std::string> read_text(std::string_view text, const std::string& file, bool recorded) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return std::unexpected(
            fmt::format("{}:{}: {}", file, error.source().begin.line, std::string_view(error.description())));
    }
    Reader in(parsed.table(), file, recorded);
    Sku sku;
    sku.text = text;
    in.read(sku);
    if (sku.core_hz != 0 && kPsPerSecond % sku.core_hz != 0) {
        in.complain("core", "hz", "must divide 10^12, so that a cycle is a whole number of picoseconds");
    }
    sku.cycle_ps = sku.core_hz != 0 ? kPsPerSecond / sku.core_hz : 0;
    if (!in.error().empty()) return std::unexpected(in.error());
    return sku;
}

}  // namespace

std::expected<Sku, std::string> Sku::parse(std::string_view text, const std::string& file) {
    return read_text(text, file, false);
}

std::expected<Sku, std::string> Sku::parse_recorded(std::string_view text, const std::string& file) {
    return read_text(text, file, true);
}

std::expected<Sku, std::string> Sku::load(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return std::unexpected(fmt::format("{}: this SKU file cannot be read", file.string()));
    constexpr std::size_t kMaxBytes = 1 << 20;
    std::string text(kMaxBytes + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (in.bad() || text.size() > kMaxBytes) {
        return std::unexpected(
            fmt::format("{}: this is no SKU file: it cannot be read, or is over 1 MiB", file.string()));
    }
    return parse(text, file.string());
}

const Sku& Sku::standard() {
    static const Sku sku = [] {
        const BuiltInSku& first = built_in_skus().front();
        auto parsed = parse(first.text, std::string(first.name));
        if (!parsed) {
            // Checked by tests/unit/card: a build with a bad file does not pass.
            std::fprintf(stderr, "orrery-card: the built-in SKU is not valid: %s\n", parsed.error().c_str());
            std::abort();
        }
        return *std::move(parsed);
    }();
    return sku;
}

std::span<const std::string_view> Sku::names() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> all;
        for (const BuiltInSku& sku : built_in_skus())
            all.push_back(sku.name);
        return all;
    }();
    return names;
}

std::expected<Sku, std::string> Sku::find(const std::string& name_or_file,
                                          const std::filesystem::path& folder) {
    for (const BuiltInSku& sku : built_in_skus()) {
        if (sku.name == name_or_file) return parse(sku.text, name_or_file);
    }
    const std::filesystem::path file = folder / name_or_file;
    std::error_code error;
    if (name_or_file.find('/') == std::string::npos && !std::filesystem::exists(file, error)) {
        return std::unexpected(fmt::format("{}: neither a SKU that comes with Orrery ({}) nor a file",
                                           name_or_file, fmt::join(names(), ", ")));
    }
    return load(file);
}

}  // namespace orrery::emu
