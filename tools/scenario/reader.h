// Tables of a scenario file, key by key: the first thing wrong is kept, with its line; keys that nobody asked
// for are wrong.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace orrery::scenario {

// What went wrong first; shared by all tables of a file.
class Problem {
  public:
    explicit Problem(std::string file) : file_(std::move(file)) {}
    void set(const toml::node& node, const std::string& what);
    bool any() const { return !text_.empty(); }
    const std::string& text() const { return text_; }

  private:
    std::string file_;
    std::string text_;
};

class TableReader {
  public:
    // `what` names the table in errors: "queue".
    TableReader(const toml::table& table, std::string what, Problem& problem)
        : table_(table), what_(std::move(what)), problem_(problem) {}
    // Says which keys nobody asked for.
    ~TableReader();
    TableReader(const TableReader&) = delete;
    TableReader& operator=(const TableReader&) = delete;

    bool has(const char* key) const { return table_.contains(key); }
    // A value, or what stands in `out` if the key is not there.
    template <class T>
    void integer(const char* key, T& out, std::uint64_t low, std::uint64_t high) {
        std::uint64_t value = static_cast<std::uint64_t>(out);
        if (read_integer(key, value, low, high)) out = static_cast<T>(value);
    }
    void boolean(const char* key, bool& out);
    void text(const char* key, std::string& out);
    void time(const char* key, std::uint64_t& out_ps);
    void size(const char* key, std::uint64_t& out_bytes);
    // One of the words.
    void choice(const char* key, std::uint32_t& out,
                const std::vector<std::pair<std::string_view, std::uint32_t>>& words);
    // The index of a name.
    void index(const char* key, std::uint32_t& out,
               const std::map<std::string, std::uint32_t, std::less<>>& names, const char* kind);
    void require(const char* key);
    const toml::node* node(const char* key);
    void fail(const char* key, const std::string& what);
    void fail(const std::string& what) { problem_.set(table_, what_ + ": " + what); }
    Problem& problem() { return problem_; }

  private:
    bool read_integer(const char* key, std::uint64_t& value, std::uint64_t low, std::uint64_t high);

    const toml::table& table_;
    std::string what_;
    Problem& problem_;
    std::set<std::string, std::less<>> known_;
};

}  // namespace orrery::scenario
