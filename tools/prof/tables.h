// A profile as tables: the same ones for SQLite and CSV. docs/profile-format.md describes them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tools/prof/model.h"
#include "tools/text/result.h"

namespace orrery::prof {

inline constexpr int kSchemaVersion = 1;  // grows when a table or column changes its meaning or goes

using Value = std::variant<std::monostate, std::int64_t, std::uint64_t, std::string_view>;

struct Column {
    std::string_view name;
    bool is_text = false;
};
struct Table {
    std::string_view name;
    std::span<const Column> columns;
};

// Where tables go, one after the other.
class TableSink {
  public:
    TableSink() = default;
    virtual ~TableSink() = default;
    TableSink(const TableSink&) = delete;
    TableSink& operator=(const TableSink&) = delete;
    virtual text::Result<void> begin(const Table& table) = 0;
    virtual text::Result<void> row(std::span<const Value> values) = 0;  // as many as the table has columns
    virtual text::Result<void> end() = 0;                               // of the table
};

text::Result<void> write_tables(const Model& model, TableSink& sink);

// Replaces the file, once all is in it.
text::Result<void> export_sqlite(const Model& model, const std::string& file);
// A file for each table, in a folder that is made if it is not there; files of these names are replaced.
text::Result<void> export_csv(const Model& model, const std::string& folder);

}  // namespace orrery::prof
