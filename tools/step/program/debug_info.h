// What the firmware's debug information says: source lines, functions, and where each of them was inlined.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct Dwarf;

namespace orrery::step {

struct Line {
    std::string file;  // from the root of the source tree
    unsigned line = 0;
};

// A function whose code is executed at an address: itself, or inlined into the next one.
struct Frame {
    std::string function;
    std::optional<Line> line;
};

// A function of the source, however the compiler arranged its code.
struct Function {
    std::string name;
    std::optional<Line> declared;
    std::vector<std::uint64_t> entries;  // its own code and everywhere that it was inlined, by address
};

class DebugInfo {
  public:
    DebugInfo() = default;  // knows nothing
    explicit DebugInfo(Dwarf* dwarf);

    bool has_lines() const { return !lines_.empty(); }
    const std::vector<Function>& functions() const { return functions_; }  // that have code, by name
    std::optional<Line> line_at(std::uint64_t address) const;
    // Innermost first. Callers are not among them, only what was inlined.
    std::vector<Frame> frames(std::uint64_t address) const;
    // The code of the innermost function that was inlined there, as ranges from and to; empty: none was.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> inlined_at(std::uint64_t address) const;
    // Where a source line ("turn.cc", 120; also with part of the path) begins, once for every copy of the
    // function that it is in. Empty: no code there.
    std::vector<std::uint64_t> addresses_of_line(std::string_view file, unsigned line) const;

  private:
    struct Row {
        std::uint64_t address = 0;
        unsigned file = 0, line = 0;  // line 0: no code from here
        unsigned order = 0;           // in the debug information
        bool statement = false;       // a good place to stop at
    };
    // Code of a function in one place.
    struct Copy {
        std::size_t function = 0;
        unsigned depth = 0;  // how deep it was inlined
        std::optional<Line> call;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  // from, to
    };
    class Reader;

    std::vector<const Copy*> copies_at(std::uint64_t address) const;  // outermost first

    std::vector<std::string> files_;
    std::vector<Row> lines_;  // by address
    std::vector<Function> functions_;
    std::vector<Copy> copies_;
};

// C++ names as people write them, without arguments and namespaces of ours.
std::string readable_name(const char* linkage_name);

}  // namespace orrery::step
