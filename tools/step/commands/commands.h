// The commands: how they are called, what they do, what `help` says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/records/why.h"
#include "tools/step/commands/debugger.h"
#include "tools/step/commands/run.h"
#include "tools/step/program/disassemble.h"
#include "tools/step/words.h"

namespace orrery::step {

// What follows the command's name: all of it, and in words. Quotes hold words together.
struct Args {
    std::string_view all;
    std::vector<std::string> words;
};

struct Command {
    std::string_view name;
    std::string_view usage;    // behind the name
    std::string_view summary;  // one line
    std::string_view help;     // more lines: what it shows, examples
    Result<Reply> (*run)(Debugger&, const Args&);
    std::vector<std::string_view> words = {};  // that can follow, for completion
    bool moves = false;                        // the position; then what `display` was given is shown
};

const std::vector<Command>& commands();
// By its name, or an unambiguous beginning of it.
Result<const Command*> find_command(std::string_view name);
Result<Reply> run_command(Debugger& debugger, std::string_view line);

Result<Reply> cmd_step(Debugger& debugger, const Args& args);
Result<Reply> cmd_back(Debugger& debugger, const Args& args);
Result<Reply> cmd_until(Debugger& debugger, const Args& args);
Result<Reply> cmd_goto(Debugger& debugger, const Args& args);
Result<Reply> cmd_continue(Debugger& debugger, const Args& args);
Result<Reply> cmd_reverse_continue(Debugger& debugger, const Args& args);
Result<Reply> cmd_finish(Debugger& debugger, const Args& args);
Result<Reply> cmd_bt(Debugger& debugger, const Args& args);
Result<Reply> cmd_x(Debugger& debugger, const Args& args);
Result<Reply> cmd_display(Debugger& debugger, const Args& args);
Result<Reply> cmd_undisplay(Debugger& debugger, const Args& args);
Result<Reply> cmd_source(Debugger& debugger, const Args& args);
Result<Reply> cmd_break(Debugger& debugger, const Args& args);
Result<Reply> cmd_watch(Debugger& debugger, const Args& args);
Result<Reply> cmd_delete(Debugger& debugger, const Args& args);
Result<Reply> cmd_enable(Debugger& debugger, const Args& args);
Result<Reply> cmd_disable(Debugger& debugger, const Args& args);
Result<Reply> cmd_info(Debugger& debugger, const Args& args);
Result<Reply> cmd_verify(Debugger& debugger, const Args& args);
Result<Reply> cmd_why(Debugger& debugger, const Args& args);
Result<Reply> cmd_queues(Debugger& debugger, const Args& args);
Result<Reply> cmd_contexts(Debugger& debugger, const Args& args);
Result<Reply> cmd_engines(Debugger& debugger, const Args& args);
Result<Reply> cmd_waits(Debugger& debugger, const Args& args);
Result<Reply> cmd_path(Debugger& debugger, const Args& args);
Result<Reply> cmd_events(Debugger& debugger, const Args& args);
Result<Reply> cmd_timeline(Debugger& debugger, const Args& args);
Result<Reply> cmd_diff(Debugger& debugger, const Args& args);
Result<Reply> cmd_print(Debugger& debugger, const Args& args);
Result<Reply> cmd_list(Debugger& debugger, const Args& args);
Result<Reply> cmd_where(Debugger& debugger, const Args& args);
Result<Reply> cmd_export(Debugger& debugger, const Args& args);
Result<Reply> cmd_summary(Debugger& debugger, const Args& args);
Result<Reply> cmd_whatif(Debugger& debugger, const Args& args);
Result<Reply> cmd_card(Debugger& debugger, const Args& args);
Result<Reply> cmd_together(Debugger& debugger, const Args& args);
Result<Reply> cmd_sync(Debugger& debugger, const Args& args);
Result<Reply> cmd_help(Debugger& debugger, const Args& args);
Result<Reply> cmd_quit(Debugger& debugger, const Args& args);

// --- shared by several ---
Json record_json(const Record& record, const Labels& labels);
// A time with its unit, start, end or now.
Result<Time> parse_moment(const Debugger& debugger, std::string_view text);
std::string moment_text(Time time);
std::vector<std::string> engine_names(Debugger& debugger);  // by port: "vector 2"
// `bytes`: its code in hexadecimal; empty: it is not in the recording.
Instruction instruction_at(const Debugger& debugger, std::uint64_t pc, std::string& bytes);
Json breakpoints_json(const Debugger& debugger);
Reply registers_reply(const Debugger& debugger);
// Where a move ended, and what ended it; `note`: said if nothing else did.
Reply arrived(Debugger& debugger, const RunEnd& end, const std::string& note);
// Behind a move's reply: what `display` was given.
void append_displays(const Debugger& debugger, Reply& reply);
// Takes "/x" and spaces off the beginning; true: it was there.
bool take_hex(std::string_view& text);
Reply why_reply(const Why& why, const History& history, const Style& style);

}  // namespace orrery::step
