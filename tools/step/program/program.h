// The firmware as its ELF files tell it: symbols, and source lines if there is debug information.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/step/program/call_frames.h"
#include "tools/step/program/debug_info.h"
#include "tools/step/words.h"
#include "tools/text/result.h"

namespace orrery::step {

struct Symbol {
    std::string name;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    bool code = false;
};

// A function as found by its name.
struct Place {
    std::string name;                    // in full
    std::vector<std::uint64_t> entries;  // more than one: it was inlined, or has overloads
    std::optional<Line> declared;
};

class Program {
  public:
    Program() = default;  // knows nothing
    // From the bytes of an ELF file. `name` is for errors and show.
    static Result<Program> parse(std::vector<std::uint8_t> elf, std::string name);
    static Result<Program> load(const std::string& file);
    // The symbols that belong to the ELF `loaded` (usually without): those of the file `wanted` if it is not
    // empty, else those in the recording (`pack`), else of the firmware of the build that this program is
    // part of. Without any that fit: what `loaded` itself has. `note` gets what people should know about the
    // choice.
    static Result<Program> find(std::span<const std::uint8_t> loaded, std::span<const std::uint8_t> pack,
                                const std::string& wanted, std::string& note);

    const std::string& name() const { return name_; }
    // What it was read from as elf_for_debugger() gives it, if a debugger can use that: nothing that its
    // debug information refers to is left out, and it names something. Else empty.
    const std::vector<std::uint8_t>& elf() const { return elf_; }
    const std::vector<Symbol>& symbols() const { return symbols_; }  // by address
    const DebugInfo& debug() const { return debug_; }
    const CallFrames& calls() const { return calls_; }
    // A few lines of a source file around `line`, with a mark: from the recording, else below one of the
    // folders;
    // "" if it is not there.
    std::string source_text(const std::string& file, unsigned line, unsigned around,
                            const std::vector<std::string>& folders) const;

    // Names can leave out what stands in front of "::" if that makes no doubt. Data, and code with a symbol.
    const Symbol* symbol(std::string_view name) const;
    const Symbol* symbol_at(std::uint64_t address) const;  // that covers the address
    std::string where(std::uint64_t address) const;        // "Scheduler::turn+12", "" if not known
    // Functions also where they were inlined. Nothing: there is none of this name; an error: there are
    // several.
    Result<std::optional<Place>> function(std::string_view name) const;
    std::vector<std::string> function_names() const;  // all that function() finds

    // Do both load the same bytes to the same addresses?
    static bool same_code(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b);

  private:
    std::string name_;
    std::vector<std::uint8_t> elf_;
    std::vector<Symbol> symbols_;
    std::map<std::string, std::size_t, std::less<>> by_name_;
    DebugInfo debug_;
    CallFrames calls_;
    std::map<std::string, std::string> sources_;  // that came with the recording
};

}  // namespace orrery::step
