#include "tools/step/commands/commands.h"

#include <algorithm>
#include <set>

#include "tools/step/commands/cards.h"

namespace orrery::step {
namespace {

constexpr std::string_view kConditionHelp =
    "A condition is an expression that is not 0:\n"
    "  until queue[3].state == stopped\n"
    "  until decision.queue == 3 && decision.rule == bound\n"
    "  until event.type == preempt\n"
    "  until pc == &Scheduler::turn && a0 != 0\n"
    "'help print' shows what expressions can be.\n";

std::vector<Command> make_commands() {
    return {
        {"step",
         "[N] [insn|event|decision]",
         "go forward: by instructions, trace events or decisions (an event)",
         "Goes forward to the N-th next event (a record that the firmware wrote to its trace port), "
         "decision, or\n"
         "instruction. At an event the position is the moment at which the firmware wrote it: at a decision, "
         "what\n"
         "'queues' shows is the state on which it was taken. Breakpoints and watches end it before.\n"
         "  step              the next event\n"
         "  step 3 decision   the third decision from here\n"
         "  step 100 insn     100 instructions\n",
         cmd_step,
         {"insn", "event", "decision"},
         true},
        {"back",
         "[N] [insn|event|decision] | until CONDITION",
         "the same, backward",
         "  back              the event before this position\n"
         "  back decision     the decision before\n"
         "  back 50 insn      50 instructions\n"
         "  back until queue[3].state == ready   the last moment before now at which that was so\n",
         cmd_back,
         {"insn", "event", "decision", "until"},
         true},
        {"continue",
         "",
         "go forward to the next breakpoint, or to the end",
         "  c     is enough\n",
         cmd_continue,
         {},
         true},
        {"reverse-continue",
         "",
         "go backward to the breakpoint before, or to the start",
         "  rc    is enough\n",
         cmd_reverse_continue,
         {},
         true},
        {"until", "CONDITION", "go forward to where a condition holds", kConditionHelp, cmd_until, {}, true},
        {"finish",
         "",
         "go forward to where the function at this position has returned",
         "Out of a function that the compiler inlined, too: to the first instruction behind it.\n",
         cmd_finish,
         {},
         true},
        {"goto",
         "TIME | STEP | start | end | event N | decision N",
         "go anywhere",
         "  goto 250us         the last step that begins at or before this model time\n"
         "  goto 1200300       that step\n"
         "  goto decision 17   events and decisions are numbered from 0\n"
         "  goto end\n",
         cmd_goto,
         {"start", "end", "event", "decision"},
         true},
        {"why", "[DECISION]", "why this queue, and why not each other one",
         "Explains the decision at this position, or else the last one before it (the first one, if there is "
         "none): every\n"
         "queue that wanted the resource, its state at that moment, and the rule that chose. vtime is the "
         "engine time\n"
         "that a queue has used, divided by its weight: what rule 'share' compares.\n"
         "  why      the decision just taken\n"
         "  why 17   decision 17\n",
         cmd_why},
        {"queues",
         "[all]",
         "the queues at this position",
         "written, next and done are packets: written by the process, next to start, finished. 'print "
         "queue[3]' shows all\n"
         "that the firmware keeps of one. With many queues, idle ones are shown with 'queues all' only.\n",
         cmd_queues,
         {"all"}},
        {"contexts", "", "the contexts and their quotas", "", cmd_contexts},
        {"engines", "", "the engines' ports and what they run", "", cmd_engines},
        {"waits", "", "who waits for which semaphore, and whose signal it is",
         "Each queue that waits at this position, and the queue that holds the signal: as the firmware's "
         "search for deadlocks\n"
         "found it, or as the rest of the recording shows it. A cycle is a deadlock, and marked with *.\n",
         cmd_waits},
        {"path", "[QUEUE]", "why a queue got no further sooner: back over all it waited for, and all cards",
         "From this position back: what the queue did, what it waited for before, who signalled that, what "
         "that "
         "queue did and\n"
         "waited for, over the links, until the host's doorbell. Of a queue that waits it begins with that "
         "wait, "
         "and says who\n"
         "raised the semaphore last if nobody ends it. Without a number: the queue that waits, or the one "
         "that the "
         "event here\n"
         "is about.\n"
         "  path 0\n",
         cmd_path},
        {"events", "[N]", "the trace events around this position (10)", "  events 30\n", cmd_events},
        {"timeline",
         "[FROM] [TO]",
         "engines, core and queues over time, as text",
         "From the first doorbell to the last event, or between two moments:\n"
         "  timeline 100us 250us\n"
         "  timeline now end\n",
         cmd_timeline,
         {"start", "now", "end"}},
        {"diff", "OTHER | A B", "the first decision in which two recordings differ, with both whys",
         "  diff other.otrace      this recording is A, the other B\n"
         "  diff a.otrace b.otrace\n",
         cmd_diff},
        {"print", "[/x] EXPRESSION", "registers, memory, symbols, fields of the firmware's tables",
         "  print queue[3]                      all fields of a row; tables are queue, context, port and "
         "what else the firmware has\n"
         "  print queue[3].vtime - queue[4].vtime\n"
         "  print a0 + 8                        registers by any name, also pc, mcause, mepc, mcycle ...\n"
         "  print /x u32(sp + 16)               memory: u8 u16 u32 u64; *a is u64(a)\n"
         "  print &Scheduler::turn              address of a symbol; without & its value\n"
         "  print time > 12.5us                 times have units; step is the position\n"
         "  print event.type, .queue, .a, .b    of the event at this position\n"
         "  print decision.queue, .rule, .resource, .candidates, .index\n"
         "Words stand for numbers: queue[3].state == ready, queue[3].priority == high, decision.rule == "
         "share.\n"
         "Operators are C's: || && | ^ & == != < <= > >= << >> + - * / % ! ~ ( )\n",
         cmd_print},
        {"break", "PLACE [if CONDITION] | CONDITION", "stop there when moving",
         "  break Scheduler::turn\n"
         "  break turn.cc:120 if a0 == 3\n"
         "  break 0x80000400\n"
         "  break decision.rule == preempt\n"
         "'info' lists them, 'delete' removes them, 'disable' keeps them for later. They end every move: "
         "'step', 'back', 'until',\n'goto', 'continue', 'reverse-continue' and 'finish'.\n",
         cmd_break},
        {"watch", "EXPRESSION", "stop when its value changes",
         "  watch queue[3].state\n"
         "  watch u64(0x80010000)\n",
         cmd_watch},
        {"delete", "[NUMBER ...]", "remove breakpoints and watches (all)", "", cmd_delete},
        {"disable", "[NUMBER ...]", "breakpoints and watches (all) that are to end no moves for now", "",
         cmd_disable},
        {"enable", "[NUMBER ...]", "and that are to end them again", "", cmd_enable},
        {"info",
         "[registers]",
         "about the recording, and the breakpoints; or the core's registers",
         "",
         cmd_info,
         {"registers"}},
        {"verify", "", "replay all of the recording, and hold it against every state hash",
         "A short recording was replayed when it was opened. Of a long one what has been replayed so far is "
         "checked\n"
         "('info' says how much).\n",
         cmd_verify},
        {"bt", "", "the functions that were called to come here, inlined ones too", "", cmd_bt},
        {"x", "[/COUNT FORMAT SIZE] ADDRESS", "memory, as gdb shows it",
         "  x/8gx sp       8 words of 8 bytes (b h w g: 1 2 4 8) in hexadecimal (x; also d u t)\n"
         "  x/4a sp        with the symbols that they point to\n"
         "  x/10i pc       instructions\n"
         "  x/s 0x80012d60 a text\n",
         cmd_x},
        {"display", "[/x] EXPRESSION", "show its value after every move; alone: all that is shown so",
         "  display queue[3].state\n"
         "  display /x mepc\n"
         "'undisplay 1' ends it.\n",
         cmd_display},
        {"undisplay", "[NUMBER ...]", "show them no more (all)", "", cmd_undisplay},
        {"where", "", "the position: step, time, source line, instruction, event", "", cmd_where},
        {"list", "[PLACE]", "source and disassembly here, or at a symbol or address",
         "  list\n  list Scheduler::turn\n  list mepc\n", cmd_list},
        {"export",
         "perfetto|csv FILE",
         "the recording for other tools",
         "  export perfetto run.perfetto-trace   for ui.perfetto.dev\n"
         "  export csv jobs.csv                  jobs, and decisions in jobs-decisions.csv\n",
         cmd_export,
         {"perfetto", "csv"}},
        {"summary", "", "figures by queue: jobs, shares, latencies, fairness, makespan", "", cmd_summary},
        {"whatif",
         "[--firmware IMAGE] [--policy NAME=VALUE ...] [--output FILE]",
         "the same arrivals with another firmware or policy",
         "  whatif --policy slice_us=50\n"
         "  whatif --policy flags=no_preemption,no_weights\n"
         "  whatif --policy slice_us=50 --output other.otrace   records what was played: then 'diff "
         "other.otrace'\n"
         "  whatif --firmware other/orrery-fw.bin\n",
         cmd_whatif,
         {"--firmware", "--policy", "--output"}},
        {"card", "[NUMBER]", "of several recordings: which one commands are about; alone: all of them",
         "  card       the cards, and where each one stands\n"
         "  card 1     from here on card 1\n"
         "'orrery-step card0.otrace card1.otrace' opens several.\n",
         cmd_card},
        {"together", "[FROM [TO]] [decisions] [+N]",
         "decisions of all cards, and what crosses their links, on one time line",
         "By system time: a card's own clock, and what it skipped to follow its peers.\n"
         "'decisions' leaves out what is on links, and +N the first N rows.\n"
         "  together 1200us 1300us\n",
         cmd_together},
        {"sync", "", "the other cards to this card's moment", "", cmd_sync},
        {"source", "FILE", "run the commands of a file, up to the first that fails", "", cmd_source},
        {"help", "[COMMAND]", "this list, or all about a command", "", cmd_help},
        {"quit", "", "leave", "", cmd_quit},
    };
}

Result<Args> split(std::string_view text) {
    Args args;
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r'))
        text.remove_suffix(1);
    args.all = text;
    std::string word;
    bool in_word = false;
    char quote = 0;
    for (const char c : text) {
        if (quote != 0) {
            if (c == quote)
                quote = 0;
            else
                word += c;
        } else if (c == '"' || c == '\'') {
            quote = c;
            in_word = true;
        } else if (c == ' ' || c == '\t') {
            if (in_word) args.words.push_back(word);
            word.clear();
            in_word = false;
        } else {
            word += c;
            in_word = true;
        }
    }
    if (quote != 0) return fail("a quotation mark ({}) opens and does not close", quote);
    if (in_word) args.words.push_back(word);
    return args;
}

// How many letters must change to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t before = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1 : 0)});
            diagonal = before;
        }
    }
    return row[b.size()];
}

}  // namespace

const std::vector<Command>& commands() {
    static const std::vector<Command> list = make_commands();
    return list;
}

Result<const Command*> find_command(std::string_view name) {
    std::vector<const Command*> fits;
    for (const Command& command : commands()) {
        if (command.name == name) return &command;
        if (command.name.starts_with(name)) fits.push_back(&command);
    }
    // The ones that are used most have a letter for themselves.
    for (const auto& [letter, full] : {std::pair{"s", "step"},
                                       {"b", "back"},
                                       {"c", "continue"},
                                       {"rc", "reverse-continue"},
                                       {"w", "why"},
                                       {"p", "print"},
                                       {"u", "until"},
                                       {"q", "quit"},
                                       {"l", "list"}})
        if (name == letter) return find_command(full);
    if (fits.size() == 1) return fits.front();
    if (fits.size() > 1) {
        std::string names;
        for (const Command* command : fits)
            names += (names.empty() ? "" : ", ") + std::string(command->name);
        return fail("'{}' could be {}", name, names);
    }
    const Command* nearest = nullptr;
    std::size_t best = std::min<std::size_t>(3, name.size() / 2 + 1);
    for (const Command& command : commands()) {
        if (distance(name, command.name) >= best) continue;
        best = distance(name, command.name);
        nearest = &command;
    }
    if (nearest != nullptr) return fail("there is no command '{}'; did you mean '{}'?", name, nearest->name);
    return fail("there is no command '{}'; 'help' lists them", name);
}

namespace {

// What the moves since found; some commands move all the cards.
std::string divergences(Debugger& debugger) {
    if (debugger.cards == nullptr) return debugger.take_divergence();
    std::string all;
    for (std::size_t n = 0; n < debugger.cards->all.size(); ++n) {
        const std::string one = debugger.cards->all[n]->take_divergence();
        if (one.empty()) continue;
        all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", card_name(n), one);
    }
    return all;
}

}  // namespace

Result<Reply> run_command(Debugger& debugger, std::string_view line) {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t'))
        line.remove_prefix(1);
    if (line.empty() || line.front() == '#' || line.front() == '\n') return Reply{};
    // "x/4i pc" and "print/x a0", as gdb takes them.
    const std::size_t end = std::min(line.find_first_of(" \t\r\n/"), line.size());
    const auto command = find_command(line.substr(0, end));
    if (!command) return std::unexpected(command.error());
    const auto args = split(line.substr(end));
    if (!args) return std::unexpected(args.error());
    if ((*command)->usage.empty() && !args->words.empty())
        return fail("'{}' stands alone: there is nothing to add to it", (*command)->name);
    // gdb may have moved since, and it shows what it found in its own way.
    (void)divergences(debugger);
    auto reply = (*command)->run(debugger, *args);
    // A move that ended before its goal makes any answer one about another moment.
    if (const std::string found = divergences(debugger); !found.empty()) return fail("{}", found);
    if (reply && (*command)->moves) append_displays(debugger, *reply);
    // Whoever computes with the answer must know that nobody has checked it.
    if (reply && !debugger.session().about().verified) reply->data["verified"] = false;
    return reply;
}

Result<Reply> cmd_help(Debugger&, const Args& args) {
    Reply reply;
    if (args.words.empty()) {
        Table table({{"command"}, {""}});
        Json list = Json::array();
        for (const Command& command : commands()) {
            table.row(
                {std::string(command.name) + (command.usage.empty() ? "" : " " + std::string(command.usage)),
                 std::string(command.summary)});
            list.push_back(
                {{"command", command.name}, {"usage", command.usage}, {"summary", command.summary}});
        }
        reply.text =
            table.text() +
            "'help COMMAND' shows examples. A beginning of a command is enough if it is the only one.\n";
        reply.data["commands"] = std::move(list);
        return reply;
    }
    const auto command = find_command(args.words.front());
    if (!command) return std::unexpected(command.error());
    const Command& c = **command;
    reply.text =
        fmt::format("{}{}{}\n{}\n{}", c.name, c.usage.empty() ? "" : " ", c.usage, c.summary, c.help);
    reply.data = {{"command", c.name}, {"usage", c.usage}, {"summary", c.summary}, {"help", c.help}};
    return reply;
}

Result<Reply> cmd_quit(Debugger& debugger, const Args&) {
    debugger.quit = true;
    return Reply{};
}

}  // namespace orrery::step
