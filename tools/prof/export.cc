#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <system_error>
#include <type_traits>
#include <vector>

#include "tools/prof/show.h"
#include "tools/prof/tables.h"

namespace orrery::prof {
namespace {

namespace fs = std::filesystem;
using text::fail;
using text::Result;

class CsvSink final : public TableSink {
  public:
    explicit CsvSink(fs::path folder) : folder_(std::move(folder)) {}

    Result<void> begin(const Table& table) override {
        path_ = folder_ / fmt::format("{}.csv", table.name);
        file_.reset(std::fopen(path_.c_str(), "wbe"));
        if (!file_) return fail("{}: {}", path_.string(), std::strerror(errno));
        line_.clear();
        for (const Column& column : table.columns)
            add(column.name);
        return write();
    }
    Result<void> row(std::span<const Value> values) override {
        line_.clear();
        for (const Value& value : values) {
            std::visit(
                [&](const auto& is) {
                    using Type = std::decay_t<decltype(is)>;
                    if constexpr (std::is_same_v<Type, std::string_view>) {
                        add(csv_cell(valid_utf8(is)));
                    } else if constexpr (std::is_same_v<Type, std::monostate>) {
                        add("");
                    } else {
                        add(std::to_string(is));
                    }
                },
                value);
        }
        return write();
    }
    Result<void> end() override {
        if (std::fclose(file_.release()) != 0) return fail("{}: {}", path_.string(), std::strerror(errno));
        return {};
    }

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    void add(std::string_view cell) {
        line_ += first_ ? "" : ",";
        first_ = false;
        line_ += cell;
    }
    Result<void> write() {
        line_ += "\r\n";
        first_ = true;
        if (std::fwrite(line_.data(), 1, line_.size(), file_.get()) == line_.size()) return {};
        return fail("{}: {}", path_.string(), std::strerror(errno));
    }

    const fs::path folder_;
    fs::path path_;
    std::unique_ptr<std::FILE, Close> file_;
    std::string line_;
    bool first_ = true;  // the next cell is of its line
};

// A database that is being made; what went wrong with it is asked of it.
class SqliteSink final : public TableSink {
  public:
    Result<void> open(const std::string& file) {
        sqlite3* made = nullptr;
        const int status = sqlite3_open_v2(
            file.c_str(), &made, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW, nullptr);
        database_.reset(made);
        if (status != SQLITE_OK) return trouble();
        // Nobody else has it, and it is thrown away if it is not whole.
        return run(
            fmt::format("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA application_id = {}; "
                        "PRAGMA user_version = {}; BEGIN",
                        kApplication, kSchemaVersion));
    }
    Result<void> begin(const Table& table) override {
        std::string columns, places;
        for (const Column& column : table.columns) {
            // The first column of these is the row's number.
            const bool key = columns.empty() && column.name == table.name;
            // Without a type, as INTEGER would make a double of what does not fit.
            columns += fmt::format("{}\"{}\"{}", columns.empty() ? "" : ", ", column.name,
                                   column.is_text ? " TEXT"
                                   : key          ? " INTEGER PRIMARY KEY"
                                                  : "");
            places += places.empty() ? "?" : ", ?";
        }
        if (auto good = run(fmt::format("CREATE TABLE \"{}\" ({})", table.name, columns)); !good) return good;
        const std::string insert = fmt::format("INSERT INTO \"{}\" VALUES ({})", table.name, places);
        sqlite3_stmt* made = nullptr;
        if (sqlite3_prepare_v2(database_.get(), insert.c_str(), -1, &made, nullptr) != SQLITE_OK)
            return trouble();
        insert_.reset(made);
        return {};
    }
    Result<void> row(std::span<const Value> values) override {
        int place = 0;
        for (const Value& value : values) {
            if (bind(++place, value) != SQLITE_OK) return trouble();
        }
        if (sqlite3_step(insert_.get()) != SQLITE_DONE || sqlite3_reset(insert_.get()) != SQLITE_OK)
            return trouble();
        return {};
    }
    Result<void> end() override {
        insert_.reset();
        return {};
    }
    Result<void> finish() {
        auto good = run(
            "CREATE INDEX work_by_time ON work (process, device, begin_ps);"
            "CREATE INDEX work_by_call ON work (call);"
            "CREATE INDEX call_by_correlation ON call (process, correlation);"
            // A run that was preempted is several rows.
            "CREATE VIEW kernel AS SELECT process, device, name, count(*) AS runs, sum(ps) AS total_ps, "
            "min(ps) AS shortest_ps, max(ps) AS longest_ps FROM (SELECT process, device, name, "
            "sum(end_ps - begin_ps) AS ps FROM work WHERE operation = 'kernel' "
            "GROUP BY process, device, name, stream, packet) GROUP BY process, device, name;"
            "CREATE VIEW copy AS SELECT process, device, direction, source, destination, count(*) AS copies, "
            "sum(bytes) AS bytes, sum(end_ps - begin_ps) AS total_ps, 1000.0 * sum(bytes) / sum(end_ps - "
            "begin_ps) AS gb_per_s, name FROM work WHERE operation = 'copy' GROUP BY process, device, "
            "direction, source, destination, name;"
            "COMMIT");
        if (!good) return good;
        if (sqlite3_close(database_.release()) != SQLITE_OK) return fail("it cannot be closed");
        return {};
    }

  private:
    static constexpr int kApplication = 0x4f525250;  // "ORRP"
    struct Close {
        void operator()(sqlite3* database) const { sqlite3_close(database); }
        void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    int bind(int place, const Value& value) {
        sqlite3_stmt* const to = insert_.get();
        if (const auto* number = std::get_if<std::int64_t>(&value))
            return sqlite3_bind_int64(to, place, *number);
        if (const auto* number = std::get_if<std::uint64_t>(&value)) {
            if (*number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
                return sqlite3_bind_int64(to, place, static_cast<std::int64_t>(*number));
            return bind_text(place, std::to_string(*number));
        }
        if (const auto* text = std::get_if<std::string_view>(&value))
            return bind_text(place, valid_utf8(*text));
        return sqlite3_bind_null(to, place);
    }
    int bind_text(int place, const std::string& text) {
        return sqlite3_bind_text64(insert_.get(), place, text.data(), text.size(), SQLITE_TRANSIENT,
                                   SQLITE_UTF8);
    }
    Result<void> run(const std::string& statements) {
        if (sqlite3_exec(database_.get(), statements.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
            return trouble();
        return {};
    }
    std::unexpected<text::Error> trouble() const {
        return fail("{}", database_ ? sqlite3_errmsg(database_.get()) : "there is no memory");
    }

    std::unique_ptr<sqlite3, Close> database_;
    std::unique_ptr<sqlite3_stmt, Close> insert_;
};

}  // namespace

std::string valid_utf8(std::string_view text) {
    std::string good;
    for (std::size_t i = 0; i < text.size();) {
        const auto first = static_cast<unsigned char>(text[i]);
        const std::size_t length = first < 0x80                    ? 1
                                   : first >= 0xc2 && first < 0xe0 ? 2
                                   : first >= 0xe0 && first < 0xf0 ? 3
                                   : first >= 0xf0 && first < 0xf5 ? 4
                                                                   : 0;
        bool whole = length != 0 && length <= text.size() - i;
        for (std::size_t k = 1; whole && k < length; ++k)
            whole = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
        const auto second = whole && length > 2 ? static_cast<unsigned char>(text[i + 1]) : 0x90u;
        // Longer than need be, surrogates, beyond the last one.
        if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
            (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90))
            whole = false;
        good += whole ? text.substr(i, length) : "?";
        i += whole ? length : 1;
    }
    return good;
}

std::string csv_cell(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string quoted = "\"";
    for (const char c : text)
        quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
}

Result<void> export_sqlite(const Model& model, const std::string& file) {
    const std::string part = file + ".part";
    std::error_code error;
    fs::remove(part, error);
    const auto made = [&]() -> Result<void> {
        SqliteSink sink;
        if (auto good = sink.open(part); !good) return good;
        if (auto good = write_tables(model, sink); !good) return good;
        return sink.finish();
    }();
    if (made) fs::rename(part, file, error);
    if (made && !error) return {};
    const std::string why = made ? error.message() : made.error().text;
    fs::remove(part, error);
    return fail("{} cannot be written: {}", file, why);
}

Result<void> export_csv(const Model& model, const std::string& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return fail("{} cannot be made: {}", folder, error.message());
    CsvSink sink(folder);
    return write_tables(model, sink);
}

}  // namespace orrery::prof
