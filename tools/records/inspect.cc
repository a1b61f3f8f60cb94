#include "tools/records/inspect.h"

#include <orrery/fw/inspect.h>
#include <orrery/hw/soc.h>

#include <algorithm>
#include <cstring>

#include "tools/records/names.h"
#include "tools/text/units.h"

namespace orrery::records {
namespace {

constexpr std::uint32_t kMostTables = 64, kMostFields = 256, kMostRows = 65536;

bool inside(Sram sram, std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t offset = address - ORR_SRAM_BASE;
    return offset <= sram.size() && bytes <= sram.size() - offset;
}

template <typename T>
bool copy_out(Sram sram, std::uint64_t address, T& to) {
    if (!inside(sram, address, sizeof to)) return false;
    std::memcpy(&to, sram.data() + (address - ORR_SRAM_BASE), sizeof to);
    return true;
}

template <std::size_t N>
std::string text_of(const char (&text)[N]) {
    return {text, std::find(text, text + N, '\0')};
}

}  // namespace

Result<std::uint64_t> read_sram(Sram sram, std::uint64_t address, unsigned bytes) {
    if (!inside(sram, address, bytes)) {
        return fail("{:#x} is not in the core's SRAM ({:#x} to {:#x}); a recording holds no other memory",
                    address, ORR_SRAM_BASE, ORR_SRAM_BASE + ORR_SRAM_SIZE - 1);
    }
    std::uint64_t value = 0;
    std::memcpy(&value, sram.data() + (address - ORR_SRAM_BASE), bytes);
    return value;
}

std::string show(const Cell& cell) {
    const unsigned unused = 64 - 8u * std::min<unsigned>(cell.bytes, 8);
    switch (cell.format) {
        case ORR_FORMAT_SIGNED:
            return fmt::format("{}", static_cast<std::int64_t>(cell.bits << unused) >> unused);
        case ORR_FORMAT_HEX:
            return fmt::format("{:#x}", cell.bits);
        case ORR_FORMAT_BOOL:
            return cell.bits != 0 ? "true" : "false";
        case ORR_FORMAT_TEXT:
            return cell.text;
        case ORR_FORMAT_TIME:
            return duration(cell.bits);
        case ORR_FORMAT_STATE:
            return state_name(cell.bits);
        default:
            return fmt::format("{}", cell.bits);
    }
}

const Inspect::Field* Inspect::Table::field(std::string_view field_name) const {
    const auto found = std::ranges::find(fields, field_name, &Field::name);
    return found == fields.end() ? nullptr : &*found;
}

const Inspect::Table* Inspect::table(std::string_view name) const {
    const auto found = std::ranges::find(tables_, name, &Table::name);
    return found == tables_.end() ? nullptr : &*found;
}

Result<Inspect> Inspect::read(Sram sram, std::uint64_t address) {
    orr_inspect head{};
    if (!copy_out(sram, address, head) || head.magic != ORR_INSPECT_MAGIC || head.version != 1) {
        return fail(
            "there is no description of the firmware's tables at {:#x}, where the firmware said that it "
            "would be: was it built from a tree that has fw/inspect.h version 1?",
            address);
    }
    if (head.table_count > kMostTables) return fail("the firmware describes {} tables", head.table_count);
    Inspect inspect;
    for (std::uint32_t t = 0; t < head.table_count; ++t) {
        orr_inspect_table from{};
        if (!copy_out(sram, head.tables + t * sizeof from, from)) {
            return fail("the description of the firmware's table {} lies outside SRAM", t);
        }
        Table table{text_of(from.name), from.base, from.stride, from.rows, {}};
        if (from.rows > kMostRows || from.field_count > kMostFields ||
            !inside(sram, from.base, std::uint64_t{from.stride} * from.rows)) {
            return fail("the firmware's table \"{}\" lies outside SRAM", table.name);
        }
        for (std::uint32_t f = 0; f < from.field_count; ++f) {
            orr_inspect_field field{};
            if (!copy_out(sram, from.fields + f * sizeof field, field) || field.offset > from.stride ||
                field.bytes > from.stride - field.offset ||
                (field.format != ORR_FORMAT_TEXT && (field.bytes == 0 || field.bytes > 8))) {
                return fail("field {} of the firmware's table \"{}\" lies outside its row", f, table.name);
            }
            table.fields.push_back({text_of(field.name), field.offset, field.bytes, field.format});
        }
        inspect.tables_.push_back(std::move(table));
    }
    return inspect;
}

std::optional<std::uint64_t> Inspect::find(Sram sram) {
    for (std::uint64_t at = 0; at + sizeof(orr_inspect) <= sram.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t magic = 0;
        std::memcpy(&magic, sram.data() + at, sizeof magic);
        if (magic != ORR_INSPECT_MAGIC) continue;
        const auto inspect = read(sram, ORR_SRAM_BASE + at);
        if (inspect && inspect->table("queue") != nullptr) return ORR_SRAM_BASE + at;
    }
    return std::nullopt;
}

std::uint64_t address_of(const Inspect::Table& table, std::uint64_t row, const Inspect::Field& field) {
    return table.base + row * table.stride + field.offset;
}

Cell read_cell(Sram sram, const Inspect::Table& table, std::uint64_t row, const Inspect::Field& field) {
    Cell cell;
    cell.format = field.format;
    cell.bytes = field.bytes;
    // In range: Inspect::read() has checked the table and the field, the caller the row.
    const std::uint64_t offset = address_of(table, row, field) - ORR_SRAM_BASE;
    if (field.format == ORR_FORMAT_TEXT) {
        const auto* text = reinterpret_cast<const char*>(sram.data() + offset);
        for (unsigned i = 0; i < field.bytes && text[i] != '\0'; ++i) {
            cell.text += text[i] >= ' ' && text[i] < 127 ? text[i] : '?';
        }
    } else {
        std::memcpy(&cell.bits, sram.data() + offset, field.bytes);
    }
    return cell;
}

}  // namespace orrery::records
