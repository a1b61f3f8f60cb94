#include "tools/smi/sku.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <orrery/hw/bar0.h>

namespace orrery::smi {
namespace {

using namespace cards;

struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

// The file is a card's own: no more than a card may say is read of it.
std::expected<std::string, std::string> read_table(const std::string& address) {
    const std::string path = fmt::format("/sys/bus/pci/devices/{}/sku_table", address);
    const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "re"));
    if (!file) {
        return std::unexpected(errno == ENOENT
                                   ? std::string("there is no sku_table: no driver, or one from before 1.3")
                                   : fmt::format("{}: {}", path, std::strerror(errno)));
    }
    std::string text(ORR_SKU_MAX_BYTES + 1, '\0');
    errno = 0;
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    if (std::ferror(file.get()) == 0) return text;
    if (errno == EOPNOTSUPP) return std::unexpected("the card's hardware is from before it said this");
    return std::unexpected(
        fmt::format("{}: {}; the kernel log (dmesg) may say more", path, std::strerror(errno)));
}

std::optional<std::uint64_t> number(const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
    return value;
}

}  // namespace

std::expected<std::vector<SkuLine>, std::string> parse_sku(std::string_view text) {
    if (text.empty() || text.size() > ORR_SKU_MAX_BYTES || text.back() != '\n')
        return std::unexpected("what the card says of its SKU is empty, too long or cut off");
    std::vector<SkuLine> lines;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(line.size() + 1);
        const bool printable =
            std::ranges::all_of(line, [](char c) { return c == '\t' || (c >= ' ' && c <= '~'); });
        if (!printable || std::ranges::count(line, '\t') != ORR_SKU_FIELDS - 1)
            return std::unexpected(fmt::format(
                "line {} of what the card says of its SKU is not six fields of text", lines.size() + 1));
        std::array<std::string, ORR_SKU_FIELDS> fields;
        std::size_t at = 0;
        for (std::string& field : fields) {
            field = line.substr(at, line.find('\t', at) - at);
            at += field.size() + 1;
        }
        lines.push_back({fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]});
    }
    return lines;
}

std::vector<CardSku> read_skus(const System& system) {
    std::vector<CardSku> all;
    for (const Card& card : system.cards) {
        CardSku& sku = all.emplace_back();
        sku.address = card.pci ? card.pci->address : card.prop.pci_address;
        const auto text = read_table(sku.address);
        auto lines = text ? parse_sku(*text) : std::unexpected(text.error());
        if (lines) {
            sku.lines = *std::move(lines);
        } else {
            sku.trouble = lines.error();
        }
    }
    return all;
}

void show_sku_table(const std::vector<CardSku>& cards, bool sources) {
    for (const CardSku& card : cards) {
        fmt::print("{}\n", card.address);
        if (!card.trouble.empty()) fmt::print("   problem    {}\n", card.trouble);
        std::size_t key = 0, value = 0, unit = 0, origin = 0;
        for (const SkuLine& line : card.lines) {
            key = std::max(key, line.key.size());
            value = std::max(value, line.value.size());
            unit = std::max(unit, line.unit.size());
            origin = std::max(origin, line.origin.size());
        }
        for (const SkuLine& line : card.lines) {
            fmt::print("   {:<{}} {:>{}} {:<{}} {:<{}} {}\n", line.key, key, line.value, value, line.unit,
                       unit, line.origin, origin, line.meaning);
            if (sources && !line.source.empty()) fmt::print("   {:<{}} {}\n", "", key, line.source);
        }
    }
}

void show_sku_json(const std::vector<CardSku>& cards) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const CardSku& card : cards) {
        nlohmann::ordered_json lines = nlohmann::ordered_json::array();
        for (const SkuLine& line : card.lines) {
            nlohmann::ordered_json each{{"key", line.key}};
            if (const auto value = number(line.value)) {
                each["value"] = *value;
            } else {
                each["value"] = line.value;
            }
            each["unit"] = line.unit;
            each["origin"] = line.origin;
            each["source"] = line.source;
            each["meaning"] = line.meaning;
            lines.push_back(std::move(each));
        }
        nlohmann::ordered_json one{{"pci_address", card.address}, {"sku", std::move(lines)}};
        if (!card.trouble.empty()) one["problem"] = card.trouble;
        all.push_back(std::move(one));
    }
    fmt::print("{}\n", nlohmann::ordered_json{{"cards", std::move(all)}}.dump(2));
}

}  // namespace orrery::smi
