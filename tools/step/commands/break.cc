// break, watch, delete, enable, disable
#include <algorithm>
#include <cctype>

#include "tools/records/names.h"
#include "tools/step/commands/commands.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

// A function, file:line or address; empty: it is none of these.
Result<std::vector<std::uint64_t>> parse_place(const Debugger& debugger, const std::string& text) {
    if (const auto address = parse_number(text)) return std::vector{*address};
    const Program& program = debugger.program();
    const std::size_t colon = text.rfind(':');
    if (colon != std::string::npos && colon > 0 && text[colon - 1] != ':') {
        if (const auto line = parse_number(text.substr(colon + 1))) {
            if (!program.debug().has_lines())
                return fail(
                    "there is no debug information for source lines: name the firmware's ELF file with "
                    "--elf");
            auto addresses =
                program.debug().addresses_of_line(text.substr(0, colon), static_cast<unsigned>(*line));
            if (addresses.empty()) return fail("there is no code at {}", text);
            return addresses;
        }
    }
    auto function = program.function(text);
    if (!function) return std::unexpected(function.error());
    if (*function) return std::move((*function)->entries);
    return std::vector<std::uint64_t>{};
}

// Of a function, and nothing else.
bool is_name(std::string_view text) {
    return std::ranges::all_of(
        text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == ':' || c == '~'; });
}

Json breakpoint_json(const Breakpoint& b) {
    Json json = {{"number", b.number},
                 {"kind", b.watch          ? "watch"
                          : !b.pcs.empty() ? "place"
                                           : "condition"},
                 {"text", b.text},
                 {"enabled", b.enabled}};
    if (!b.pcs.empty()) json["pcs"] = b.pcs;
    return json;
}

std::string places(const Debugger& debugger, const Breakpoint& b) {
    if (b.pcs.empty()) return "";
    if (b.pcs.size() > 1) return fmt::format(" at {} places (it is inlined)", b.pcs.size());
    const auto line = debugger.program().debug().line_at(b.pcs.front());
    return fmt::format(" at {}{}", debugger.place(b.pcs.front()),
                       line ? fmt::format(", {}:{}", line->file, line->line) : "");
}

Reply added(Debugger& debugger, Breakpoint breakpoint) {
    Reply reply;
    reply.data = breakpoint_json(breakpoint);
    reply.text = fmt::format("{} {}: {}{}\n", breakpoint.watch ? "watch" : "breakpoint", breakpoint.number,
                             breakpoint.text, places(debugger, breakpoint));
    debugger.breakpoints().push_back(std::move(breakpoint));
    return reply;
}

}  // namespace

Result<Reply> cmd_break(Debugger& debugger, const Args& args) {
    if (args.words.empty())
        return fail(
            "break where? 'break Scheduler::turn', 'break turn.cc:120', 'break decision.rule == bound'");
    Breakpoint b;
    b.text = std::string(args.all);
    auto place = parse_place(debugger, args.words.front());
    if (!place) return std::unexpected(place.error());
    b.pcs = std::move(*place);
    std::string_view condition = args.all;
    if (!b.pcs.empty()) {
        condition = "";
        const std::size_t at = args.all.find(" if ");
        if (at != std::string_view::npos) {
            condition = args.all.substr(at + 4);
        } else if (args.words.size() > 1) {
            return fail("'{}' cannot stand behind a place; a condition begins with if", args.words[1]);
        }
    } else if (args.words.front() == "if") {
        condition.remove_prefix(2);
        if (args.words.size() == 1) return fail("if what? 'break if decision.rule == bound'");
    }
    if (!condition.empty()) {
        auto expression = Expression::parse(condition, debugger.meanings());
        if (!expression && b.pcs.empty() && is_name(args.all)) {
            return fail("there is no function '{}'{}", args.all,
                        debugger.program().symbols().empty()
                            ? ": without symbols only addresses and conditions can be given"
                            : "; Tab completes names, and 'break turn.cc:120' takes a line");
        }
        if (!expression) return std::unexpected(expression.error());
        b.condition = std::move(*expression);
    }
    b.number = debugger.next_breakpoint();
    return added(debugger, std::move(b));
}

Result<Reply> cmd_watch(Debugger& debugger, const Args& args) {
    if (args.all.empty()) return fail("watch what? 'watch queue[3].state', 'watch u64(0x80010000)'");
    auto expression = Expression::parse(args.all, debugger.meanings());
    if (!expression) return std::unexpected(expression.error());
    if (expression->uses_event())
        return fail("records come and go: use 'break {}' with a condition", args.all);
    if (const auto value = expression->evaluate(debugger.moment()); !value)
        return std::unexpected(value.error());
    Breakpoint b;
    b.number = debugger.next_breakpoint();
    b.watch = true;
    b.text = std::string(args.all);
    b.condition = std::move(*expression);
    return added(debugger, std::move(b));
}

Result<Reply> cmd_delete(Debugger& debugger, const Args& args) {
    auto& all = debugger.breakpoints();
    Reply reply;
    if (args.words.empty()) {
        reply.data["deleted"] = all.size();
        reply.text = fmt::format("{} deleted\n", all.size());
        all.clear();
        return reply;
    }
    for (const std::string& word : args.words) {
        const auto number = parse_number(word);
        if (!number) return std::unexpected(number.error());
        if (std::erase_if(all, [&](const Breakpoint& b) { return b.number == *number; }) == 0)
            return fail("there is no breakpoint {}; 'info' lists them", *number);
    }
    reply.data["deleted"] = args.words.size();
    reply.text = fmt::format("{} deleted\n", args.words.size());
    return reply;
}

namespace {

Result<Reply> set_enabled(Debugger& debugger, const Args& args, bool enabled) {
    auto& all = debugger.breakpoints();
    std::vector<Breakpoint*> meant;
    for (const std::string& word : args.words) {
        const auto number = parse_number(word);
        if (!number) return std::unexpected(number.error());
        const auto found = std::ranges::find(all, *number, &Breakpoint::number);
        if (found == all.end()) return fail("there is no breakpoint {}; 'info' lists them", *number);
        meant.push_back(&*found);
    }
    if (args.words.empty())
        for (Breakpoint& b : all)
            meant.push_back(&b);
    for (Breakpoint* b : meant)
        b->enabled = enabled;
    Reply reply;
    const char* word = enabled ? "enabled" : "disabled";
    reply.data[word] = meant.size();
    reply.text = fmt::format("{} {}\n", meant.size(), word);
    return reply;
}

}  // namespace

Result<Reply> cmd_enable(Debugger& debugger, const Args& args) {
    return set_enabled(debugger, args, true);
}

Result<Reply> cmd_disable(Debugger& debugger, const Args& args) {
    return set_enabled(debugger, args, false);
}

Json breakpoints_json(const Debugger& debugger) {
    Json list = Json::array();
    for (const Breakpoint& b : debugger.breakpoints())
        list.push_back(breakpoint_json(b));
    return list;
}

}  // namespace orrery::step
