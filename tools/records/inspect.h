// The firmware's tables in SRAM, as orrery/fw/inspect.h describes them. Everything read here comes from a
// recording, and is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/text/result.h"

namespace orrery::records {

using namespace text;

using Sram = std::span<const std::uint8_t>;  // all of it, from ORR_SRAM_BASE

// `bytes` (1 to 8) little-endian bytes at a core address; fails outside SRAM.
Result<std::uint64_t> read_sram(Sram sram, std::uint64_t address, unsigned bytes);

struct Cell {
    std::uint64_t bits = 0;
    std::uint16_t format = 0;  // ORR_FORMAT_*
    std::uint16_t bytes = 0;
    std::string text;  // of ORR_FORMAT_TEXT
};
// As people read it: by the format.
std::string show(const Cell& cell);

class Inspect {
  public:
    struct Field {
        std::string name;
        std::uint32_t offset = 0;
        std::uint16_t bytes = 0;
        std::uint16_t format = 0;
    };
    struct Table {
        std::string name;
        std::uint64_t base = 0;
        std::uint32_t stride = 0;
        std::uint32_t rows = 0;
        std::vector<Field> fields;
        const Field* field(std::string_view field_name) const;
    };

    // `address` of struct orr_inspect, as ORR_TRACE_START gives it.
    static Result<Inspect> read(Sram sram, std::uint64_t address);

    // The address at which it can be read, of a firmware that has said so before the recording began.
    static std::optional<std::uint64_t> find(Sram sram);

    const std::vector<Table>& tables() const { return tables_; }
    const Table* table(std::string_view name) const;

  private:
    std::vector<Table> tables_;
};

std::uint64_t address_of(const Inspect::Table& table, std::uint64_t row, const Inspect::Field& field);
// `row` below table.rows.
Cell read_cell(Sram sram, const Inspect::Table& table, std::uint64_t row, const Inspect::Field& field);

}  // namespace orrery::records
