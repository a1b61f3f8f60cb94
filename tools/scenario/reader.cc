#include "tools/scenario/reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "emulator/api/size.h"
#include "tools/scenario/scenario.h"

namespace orrery::scenario {

void Problem::set(const toml::node& node, const std::string& what) {
    if (text_.empty()) text_ = fmt::format("{}:{}: {}", file_, node.source().begin.line, what);
}

TableReader::~TableReader() {
    for (const auto& [key, value] : table_) {
        if (known_.contains(key.str())) continue;
        std::string all;
        for (const std::string& known : known_)
            all += (all.empty() ? "" : ", ") + known;
        problem_.set(value, fmt::format("{}: '{}' is no key here; there are {}", what_, key.str(), all));
    }
}

const toml::node* TableReader::node(const char* key) {
    known_.insert(key);
    return table_.get(key);
}

void TableReader::fail(const char* key, const std::string& what) {
    const toml::node* at = table_.get(key);
    problem_.set(at != nullptr ? *at : static_cast<const toml::node&>(table_),
                 fmt::format("{}.{}: {}", what_, key, what));
}

void TableReader::require(const char* key) {
    if (!has(key)) fail(key, "is missing: every " + what_ + " needs it");
}

bool TableReader::read_integer(const char* key, std::uint64_t& value, std::uint64_t low, std::uint64_t high) {
    const toml::node* at = node(key);
    if (at == nullptr) return false;
    const auto number = at->value_exact<std::int64_t>();
    if (!number || *number < 0 || static_cast<std::uint64_t>(*number) < low ||
        static_cast<std::uint64_t>(*number) > high) {
        fail(key, fmt::format("must be a whole number from {} to {}", low, high));
        return false;
    }
    value = static_cast<std::uint64_t>(*number);
    return true;
}

void TableReader::boolean(const char* key, bool& out) {
    const toml::node* at = node(key);
    if (at == nullptr) return;
    const auto value = at->value_exact<bool>();
    if (!value) return fail(key, "must be true or false");
    out = *value;
}

void TableReader::text(const char* key, std::string& out) {
    const toml::node* at = node(key);
    if (at == nullptr) return;
    const auto value = at->value_exact<std::string>();
    if (!value) return fail(key, "must be a text in quotes");
    out = *value;
}

void TableReader::time(const char* key, std::uint64_t& out_ps) {
    std::string written;
    text(key, written);
    if (!has(key) || problem_.any()) return;
    const auto time = parse_time(written);
    if (!time) return fail(key, time.error());
    out_ps = *time;
}

void TableReader::size(const char* key, std::uint64_t& out_bytes) {
    const toml::node* at = node(key);
    if (at == nullptr) return;
    if (const auto number = at->value_exact<std::int64_t>()) {
        if (*number <= 0) return fail(key, "must be more than 0 bytes");
        out_bytes = static_cast<std::uint64_t>(*number);
        return;
    }
    const auto written = at->value_exact<std::string>();
    if (!written) return fail(key, "must be a number of bytes, or a text such as \"64K\"");
    const auto bytes = emu::parse_size(*written);
    if (!bytes) return fail(key, bytes.error());
    if (*bytes == 0) return fail(key, "must be more than 0 bytes");
    out_bytes = *bytes;
}

void TableReader::choice(const char* key, std::uint32_t& out,
                         const std::vector<std::pair<std::string_view, std::uint32_t>>& words) {
    std::string written;
    text(key, written);
    if (!has(key) || problem_.any()) return;
    std::string all;
    for (const auto& [word, value] : words) {
        if (word == written) {
            out = value;
            return;
        }
        all += fmt::format("{}\"{}\"", all.empty() ? "" : ", ", word);
    }
    fail(key, fmt::format("'{}' is none of {}", written, all));
}

void TableReader::index(const char* key, std::uint32_t& out,
                        const std::map<std::string, std::uint32_t, std::less<>>& names, const char* kind) {
    std::string written;
    text(key, written);
    if (!has(key) || problem_.any()) return;
    const auto found = names.find(written);
    if (found == names.end()) {
        return fail(key, fmt::format("there is no {} '{}': make one with [[{}]] and that name above", kind,
                                     written, kind));
    }
    out = found->second;
}

}  // namespace orrery::scenario
