#include "emulator/api/sku.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#define TOML_EXCEPTIONS 0
#include <fmt/format.h>
#include <toml++/toml.h>

#include <orrery/hw/link.h>
#include <orrery/hw/soc.h>

#include "emulator/api/size.h"
#include "emulator/memory/vram.h"
#include "emulator/skus/standard_sku.h"

namespace orrery::emu {

std::expected<void, std::string> check_vram_size(std::uint64_t bytes) {
    if (!std::has_single_bit(bytes) || bytes < (std::uint64_t{1} << 20) || bytes > Vram::kMaxBytes) {
        return std::unexpected(
            fmt::format("VRAM of {} bytes: the size must be a power of two from 1M to 64G", bytes));
    }
    return {};
}

namespace {

// Reads the keys of a file one by one, keeps the first error, and finds keys that nobody asked for.
class Reader {
  public:
    Reader(const toml::table& root, std::string file) : root_(root), file_(std::move(file)) {}

    template <class T>
    void integer(const char* section, const char* key, T& out, std::uint64_t low, std::uint64_t high,
                 std::uint64_t scale = 1) {
        const toml::node* node = find(section, key);
        if (node == nullptr) return;
        const auto value = node->value_exact<std::int64_t>();
        if (!value || *value < 0 || static_cast<std::uint64_t>(*value) < low ||
            static_cast<std::uint64_t>(*value) > high) {
            fail(*node, fmt::format("{}.{} must be a whole number from {} to {}", section, key, low, high));
            return;
        }
        out = static_cast<T>(static_cast<std::uint64_t>(*value) * scale);
    }

    // A key that came later: files without it, in older recordings, are as good as ever.
    template <class T>
    void later_integer(const char* section, const char* key, T& out, std::uint64_t low, std::uint64_t high,
                       std::uint64_t scale = 1) {
        keys_.insert(fmt::format("{}.{}", section, key));
        if (root_[section][key].node() != nullptr) integer(section, key, out, low, high, scale);
    }

    std::string text(const char* section, const char* key) {
        const toml::node* node = find(section, key);
        if (node == nullptr) return {};
        const auto value = node->value_exact<std::string>();
        if (!value) fail(*node, fmt::format("{}.{} must be a text in quotes", section, key));
        return value.value_or("");
    }

    void complain(const char* section, const char* key, const std::string& what) {
        if (const toml::node* node = find(section, key)) {
            fail(*node, fmt::format("{}.{}: {}", section, key, what));
        }
    }

    void refuse_unknown() {
        for (const auto& [section, node] : root_) {
            const toml::table* table = node.as_table();
            if (table == nullptr || !sections_.contains(std::string(section.str()))) {
                fail(node, fmt::format("'{}' is no section of a SKU file", section.str()));
                continue;
            }
            for (const auto& [key, value] : *table) {
                const std::string name = fmt::format("{}.{}", section.str(), key.str());
                if (!keys_.contains(name)) fail(value, fmt::format("'{}' is no key of a SKU file", name));
            }
        }
    }

    const std::string& error() const { return error_; }

  private:
    const toml::node* find(const char* section, const char* key) {
        sections_.insert(section);
        keys_.insert(fmt::format("{}.{}", section, key));
        const toml::node* node = root_[section][key].node();
        if (node == nullptr && error_.empty()) {
            error_ = fmt::format("{}: {}.{} is missing; emulator/skus/orrery-1.toml has all keys", file_,
                                 section, key);
        }
        return node;
    }

    void fail(const toml::node& node, const std::string& what) {
        if (error_.empty()) error_ = fmt::format("{}:{}: {}", file_, node.source().begin.line, what);
    }

    const toml::table& root_;
    std::string file_;
    std::string error_;
    std::set<std::string> sections_;
    std::set<std::string> keys_;
};

constexpr std::uint64_t kMaxHz = 100'000'000'000;
constexpr std::uint64_t kMaxPs = kPsPerSecond;  // a latency of a second is a mistake
constexpr std::uint64_t kMaxGb = 1'000'000;
constexpr std::uint64_t kGb = 1'000'000'000;
constexpr std::uint64_t kMb = 1'000'000;

}  // namespace

std::expected<Sku, std::string> Sku::parse(std::string_view text, const std::string& file) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return std::unexpected(
            fmt::format("{}:{}: {}", file, error.source().begin.line, std::string_view(error.description())));
    }
    Reader in(parsed.table(), file);
    Sku sku;
    sku.text = text;
    sku.name = in.text("card", "name");
    if (sku.name.empty() || sku.name.size() > 31 ||
        !std::all_of(sku.name.begin(), sku.name.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
        in.complain("card", "name", "must be 1 to 31 characters of printable ASCII");
    }
    const auto vram = parse_size(in.text("card", "vram"));
    if (!vram) {
        in.complain("card", "vram", vram.error());
    } else if (const auto good = check_vram_size(*vram); !good) {
        in.complain("card", "vram", good.error());
    } else {
        sku.vram_bytes = *vram;
    }

    in.integer("core", "hz", sku.core_hz, 1, kMaxHz);
    if (sku.core_hz != 0 && kPsPerSecond % sku.core_hz != 0) {
        in.complain("core", "hz", "must divide 10^12, so that a cycle is a whole number of picoseconds");
    }
    sku.cycle_ps = sku.core_hz != 0 ? kPsPerSecond / sku.core_hz : 0;
    in.integer("core", "register_ps", sku.register_ps, 0, kMaxPs);
    in.integer("core", "vram_load_ps", sku.vram_load_ps, 0, kMaxPs);
    in.integer("core", "vram_store_ps", sku.vram_store_ps, 0, kMaxPs);
    in.integer("core", "host_load_ps", sku.host_load_ps, 0, kMaxPs);
    in.integer("core", "host_store_ps", sku.host_store_ps, 0, kMaxPs);
    in.integer("core", "boot_ps", sku.boot_ps, 0, kMaxPs);
    in.later_integer("core", "boot_mb_per_s", sku.boot_bytes_per_s, 0, kMaxGb, kMb);

    in.integer("copy", "engines", sku.copy_engines, 1, 16);
    in.integer("copy", "setup_ps", sku.copy_setup_ps, 0, kMaxPs);
    in.integer("copy", "engine_gb_per_s", sku.copy_engine_bytes_per_s, 1, kMaxGb, kGb);
    in.integer("copy", "vram_gb_per_s", sku.copy_vram_bytes_per_s, 1, kMaxGb, kGb);
    in.integer("copy", "host_gb_per_s", sku.copy_host_bytes_per_s, 1, kMaxGb, kGb);

    in.integer("vector", "ports", sku.vector_ports, 1, 32);
    in.integer("vector", "cores", sku.vector_cores, 1, 256);
    in.integer("vector", "hz", sku.vector_hz, 1, kMaxHz);
    in.integer("vector", "launch_ps", sku.vector_launch_ps, 0, kMaxPs);
    in.integer("vector", "group_ps", sku.vector_group_ps, 0, kMaxPs);
    in.integer("vector", "item_cycles", sku.vector_item_cycles, 0, 1'000'000);
    in.integer("vector", "save_core_ps", sku.vector_save_core_ps, 0, kMaxPs);
    static_assert(16 + 32 <= SOC_ENGINES_MAX);

    in.integer("link", "ports", sku.link_ports, 0, ORR_LINK_MAX_PORTS);
    in.integer("link", "lanes", sku.link_lanes, 1, 64);
    in.integer("link", "gbit_per_s", sku.link_gbps, 1, 100'000);
    in.integer("link", "latency_ns", sku.link_latency_ns, 0, 1'000'000'000);

    in.refuse_unknown();
    if (!in.error().empty()) return std::unexpected(in.error());
    return sku;
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
        auto parsed = parse(kStandardSku, "orrery-1.toml");
        if (!parsed) {
            // Checked by tests/unit/card: a build with a bad file does not pass.
            std::fprintf(stderr, "orrery-card: the built-in SKU is not valid: %s\n", parsed.error().c_str());
            std::abort();
        }
        return *std::move(parsed);
    }();
    return sku;
}

}  // namespace orrery::emu
