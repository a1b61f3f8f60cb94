// One recording under the eyes of a person or a script: position, names, breakpoints. Commands (commands.h)
// work on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/records/history.h"
#include "tools/records/inspect.h"
#include "tools/records/snapshot.h"
#include "tools/step/program/program.h"
#include "tools/step/session/expression.h"
#include "tools/step/session/session.h"
#include "tools/step/words.h"
#include "tools/text/table.h"

namespace orrery::step {

using Json = nlohmann::ordered_json;

// What a command answers: the same for people and for programs. `text` ends in a newline or is empty.
struct Reply {
    std::string text;
    Json data = Json::object();
    std::string failure{};  // what was asked for is answered, but did not end well; empty: it did
};

// Ends a move on its way.
struct Breakpoint {
    unsigned number = 0;
    bool enabled = true;
    bool watch = false;                   // stops when the value changes; else when the place is reached
    std::string text;                     // as typed
    std::vector<std::uint64_t> pcs;       // a place: everywhere that its code is; empty: none
    std::optional<Expression> condition;  // of a place; of events; or the watched value
};

// Shown after every move.
struct Display {
    unsigned number = 0;
    bool hex = false;
    Expression expression;
};

struct Cards;

class Debugger {
  public:
    struct Options {
        std::string elf;  // with debug information; empty: sought
        Style style;
        std::vector<std::string> source_folders;
        // Opens the other recording of a diff.
        std::function<Result<std::unique_ptr<Session>>(const std::string&)> open;
    };
    // Goes to the first record. Fails if --elf does not fit.
    static Result<std::unique_ptr<Debugger>> make(std::unique_ptr<Session> session, Options options);

    // Runs a line as typed. An error leaves the position as it was, or where the trouble is.
    Result<Reply> execute(std::string_view line);

    Session& session() { return *session_; }
    const Session& session() const { return *session_; }
    const History& history() const { return *history_; }
    const Program& program() const { return program_; }
    const Options& options() const { return options_; }
    const Style& style() const { return options_.style; }
    const std::vector<std::string>& notes() const { return notes_; }  // for the greeting
    // What to say of a divergence that a move has found since this was asked last; empty: none has. The
    // history ends before it from then on.
    std::string take_divergence();
    Meanings meanings() const { return {inspect_ ? &*inspect_ : nullptr, &program_}; }

    // The firmware's tables; an error if there are none at this position.
    Result<const Inspect*> inspect() const;
    Result<Snapshot> snapshot() const;
    // The record at the position (index in history().records()), or none.
    std::optional<std::size_t> record_here() const;
    Moment moment() const;

    // Where we are, in a line or two.
    Reply here() const;
    std::string place(std::uint64_t pc) const;  // "0x80001234 <Scheduler::turn+12>"
    // The source line of the code there, or of who inlined it, if it only reaches for the hardware.
    std::optional<Line> telling_line(std::uint64_t pc) const;

    std::vector<Breakpoint>& breakpoints() { return breakpoints_; }
    const std::vector<Breakpoint>& breakpoints() const { return breakpoints_; }
    bool has_breakpoints() const;  // that are enabled
    std::vector<Display>& displays() { return displays_; }
    const std::vector<Display>& displays() const { return displays_; }
    unsigned next_display() { return ++last_display_; }
    unsigned next_breakpoint() { return ++last_breakpoint_; }
    bool quit = false;
    Cards* cards = nullptr;  // it is one of several; null: it is alone
    unsigned sourcing = 0;   // files of commands that are being run, one out of the other

    // Ends a long move; from a signal handler.
    static void interrupt();
    static bool take_interrupt();

  private:
    Debugger() = default;
    void find_beginning();
    void make_history();
    void find_inspect();
    void go_to_first();

    std::unique_ptr<Session> session_;
    std::optional<Beginning> beginning_;
    std::unique_ptr<History> history_;
    std::optional<Inspect> inspect_;
    std::string no_inspect_;  // why there is none
    Program program_;
    Options options_;
    std::vector<std::string> notes_;
    std::vector<Breakpoint> breakpoints_;
    unsigned last_breakpoint_ = 0;
    std::vector<Display> displays_;
    unsigned last_display_ = 0;
};

}  // namespace orrery::step
