// step, back, until, goto, continue, reverse-continue
#include <algorithm>
#include <optional>

#include "tools/step/commands/commands.h"
#include "tools/step/commands/run.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

enum class Unit : std::uint8_t { kInstruction, kEvent, kDecision };

struct Distance {
    std::uint64_t count = 1;
    Unit unit = Unit::kEvent;
};

std::optional<Unit> unit_of(std::string_view word) {
    if (word == "insn" || word == "insns" || word == "instruction" || word == "instructions")
        return Unit::kInstruction;
    if (word == "event" || word == "events") return Unit::kEvent;
    if (word == "decision" || word == "decisions") return Unit::kDecision;
    return std::nullopt;
}

Result<Distance> parse_distance(const Args& args) {
    Distance distance;
    bool counted = false, named = false;
    for (const std::string& word : args.words) {
        const auto number = parse_number(word);
        if (number && *number > 0 && !counted && !named) {
            distance.count = *number;
            counted = true;
        } else if (const auto unit = number ? std::nullopt : unit_of(word); unit && !named) {
            distance.unit = *unit;
            named = true;
        } else {
            return fail(
                "'{}' is no distance: write a number and insn, event or decision, as in 'step 3 decision'",
                word);
        }
    }
    return distance;
}

// Steps of the records that a unit counts.
std::uint64_t record_step(const History& history, Unit unit, std::size_t i) {
    return unit == Unit::kEvent ? history.records()[i].step : history.records()[history.decisions()[i]].step;
}
std::size_t record_count(const History& history, Unit unit) {
    return unit == Unit::kEvent ? history.records().size() : history.decisions().size();
}
// First of them at or after a step.
std::size_t first_from(const History& history, Unit unit, std::uint64_t step) {
    std::size_t low = 0, high = record_count(history, unit);
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (record_step(history, unit, middle) < step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const char* unit_name(Unit unit) {
    return unit == Unit::kEvent ? "event" : "decision";
}

// What a move did that may end at an end of the recording.
Result<Reply> continued(Debugger& debugger, Result<RunEnd> end) {
    if (!end) return std::unexpected(end.error());
    std::string note;
    if (end->why == RunEnd::Why::kTarget && !debugger.has_breakpoints())
        note = "no breakpoint is set: 'break decision.rule == preempt', 'watch queue[3].state'";
    return arrived(debugger, *end, note);
}

// A recording's last position that is not after a moment; without going there if a breakpoint may be on the
// way.
std::uint64_t position_at(Debugger& debugger, Time time) {
    Session& session = debugger.session();
    const std::uint64_t here = session.position();
    session.seek_time(time);
    const std::uint64_t there = session.position();
    if (debugger.has_breakpoints()) session.seek(here);
    return there;
}

}  // namespace

Reply arrived(Debugger& debugger, const RunEnd& end, const std::string& note) {
    Reply reply = debugger.here();
    std::string said = end.text;
    if (said.empty()) said = note;
    if (!said.empty()) {
        reply.text = said + '\n' + reply.text;
        reply.data["stopped_by"] = said;
    }
    if (end.breakpoint != 0) reply.data["breakpoint"] = end.breakpoint;
    return reply;
}

Result<Reply> cmd_step(Debugger& debugger, const Args& args) {
    const auto distance = parse_distance(args);
    if (!distance) return std::unexpected(distance.error());
    Session& session = debugger.session();
    const std::uint64_t here = session.position();
    if (here == session.end())
        return fail("this is the end of the recording: only 'back' and 'goto' lead away");
    std::uint64_t target = session.end();
    std::string note;
    if (distance->unit == Unit::kInstruction) {
        if (distance->count <= session.end() - here)
            target = here + distance->count;
        else
            note = fmt::format("only {} instructions were left", session.end() - here);
    } else {
        const std::size_t first = first_from(debugger.history(), distance->unit, here + 1);
        const std::size_t left = record_count(debugger.history(), distance->unit) - first;
        if (left == 0)
            return fail("there is no {} behind this position; 'goto end' goes to the end",
                        unit_name(distance->unit));
        if (distance->count > left)
            note = fmt::format("only {} {}{} left", left, unit_name(distance->unit),
                               left == 1 ? " was" : "s were");
        target = record_step(debugger.history(), distance->unit,
                             first + std::min<std::uint64_t>(distance->count, left) - 1);
    }
    const auto end = run_forward(debugger, target, {});
    if (!end) return std::unexpected(end.error());
    return arrived(debugger, *end, end->why == RunEnd::Why::kTarget ? note : "");
}

Result<Reply> cmd_back(Debugger& debugger, const Args& args) {
    Session& session = debugger.session();
    const std::uint64_t here = session.position();
    if (here == 0) return fail("this is the beginning of the recording: only 'step' and 'goto' lead away");
    if (!args.words.empty() && args.words.front() == "until") {
        std::string_view text = args.all.substr(5);
        while (text.starts_with(' '))
            text.remove_prefix(1);
        const auto condition = Expression::parse(text, debugger.meanings());
        if (!condition) return std::unexpected(condition.error());
        const auto end = run_backward(debugger, 0, Goal(&*condition));
        if (!end) return std::unexpected(end.error());
        if (end->why == RunEnd::Why::kTarget &&
            !(session.position() == 0 && condition->holds(debugger.moment()))) {
            session.seek(here);
            if (const auto value = condition->evaluate(debugger.moment()); !value)
                return std::unexpected(value.error());
            return fail("'{}' never held before this position; it has not changed", condition->text());
        }
        return arrived(debugger, *end, "");
    }
    const auto distance = parse_distance(args);
    if (!distance) return std::unexpected(distance.error());
    std::uint64_t target = 0;
    std::string note;
    if (distance->unit == Unit::kInstruction) {
        if (distance->count <= here)
            target = here - distance->count;
        else
            note = fmt::format("only {} instructions were before", here);
    } else {
        const std::size_t before = first_from(debugger.history(), distance->unit, here);
        if (before == 0)
            return fail("there is no {} before this position; 'goto start' goes to the start",
                        unit_name(distance->unit));
        if (distance->count > before)
            note = fmt::format("only {} {}{} before", before, unit_name(distance->unit),
                               before == 1 ? " was" : "s were");
        target = record_step(debugger.history(), distance->unit,
                             before - std::min<std::uint64_t>(distance->count, before));
    }
    const auto end = run_backward(debugger, target, {});
    if (!end) return std::unexpected(end.error());
    return arrived(debugger, *end, end->why == RunEnd::Why::kTarget ? note : "");
}

Result<Reply> cmd_until(Debugger& debugger, const Args& args) {
    if (args.all.empty())
        return fail("until what? 'until queue[3].state == stopped', 'until decision.queue == 3'");
    const auto condition = Expression::parse(args.all, debugger.meanings());
    if (!condition) return std::unexpected(condition.error());
    Session& session = debugger.session();
    const std::uint64_t here = session.position();
    if (!condition->uses_event() && condition->holds(debugger.moment())) {
        RunEnd end;
        return arrived(debugger, end, "it holds here already");
    }
    if (here == session.end())
        return fail("this is the end of the recording; 'back until {}' looks backward", args.all);
    const auto end = run_forward(debugger, session.end(), Goal(&*condition));
    if (!end) return std::unexpected(end.error());
    if (end->why == RunEnd::Why::kTarget && !condition->holds(debugger.moment())) {
        session.seek(here);
        if (const auto value = condition->evaluate(debugger.moment()); !value)
            return std::unexpected(value.error());
        return fail("'{}' never holds from here to the end of the recording; the position has not changed",
                    args.all);
    }
    return arrived(debugger, *end, "");
}

Result<Reply> cmd_continue(Debugger& debugger, const Args&) {
    Session& session = debugger.session();
    if (session.position() == session.end())
        return fail("this is the end of the recording: 'reverse-continue' goes the other way");
    return continued(debugger, run_forward(debugger, session.end(), {}));
}

Result<Reply> cmd_reverse_continue(Debugger& debugger, const Args&) {
    if (debugger.session().position() == 0)
        return fail("this is the beginning of the recording: 'continue' goes the other way");
    return continued(debugger, run_backward(debugger, 0, {}));
}

Result<Time> parse_moment(const Debugger& debugger, std::string_view text) {
    if (text == "start") return debugger.session().about().start;
    if (text == "end") return debugger.session().end_time();
    if (text == "now" || text == ".") return debugger.session().time();
    if (auto time = parse_time(text)) return time;
    return fail("'{}' is no moment: write a time with its unit, as in 12.5us, or start, now, end", text);
}

Result<Reply> cmd_goto(Debugger& debugger, const Args& args) {
    Session& session = debugger.session();
    const History& history = debugger.history();
    if (args.words.empty())
        return fail("where to? A time (12.5us), a step (100000), start, end, 'event 7' or 'decision 7'");
    const std::string& word = args.words.front();
    std::uint64_t target = 0;
    std::optional<Time> moment;
    const bool alone = args.words.size() == 1;
    if (word == "start" && alone) {
        target = 0;
    } else if (word == "end" && alone) {
        target = session.end();
    } else if ((word == "event" || word == "decision") && args.words.size() == 2) {
        const auto number = parse_number(args.words[1]);
        if (!number) return std::unexpected(number.error());
        const Unit unit = word == "event" ? Unit::kEvent : Unit::kDecision;
        const std::size_t count = record_count(history, unit);
        if (*number >= count) {
            return fail(
                "there is no {} {}: {}", word, *number,
                count == 0 ? "the recording has none" : fmt::format("they run from 0 to {}", count - 1));
        }
        target = record_step(history, unit, *number);
    } else if (auto number = parse_number(args.all)) {
        if (*number > session.end())
            return fail("the recording has {} steps: 'goto end' goes there", session.end());
        target = *number;
    } else if (auto time = parse_time(args.all)) {
        if (*time > session.end_time()) {
            return fail("the recording ends at {}: 'goto end' goes there", moment_text(session.end_time()));
        }
        if (*time < session.about().start)
            return fail("the recording begins at {}", moment_text(session.about().start));
        moment = *time;
        target = position_at(debugger, *time);
    } else {
        return fail(
            "'{}' is neither a time (with its unit, as in 12.5us) nor a step, start, end, 'event N' or "
            "'decision N'",
            args.all);
    }
    const auto end = run_to(debugger, target);
    if (!end) return std::unexpected(end.error());
    Reply reply = arrived(debugger, *end, "");
    // Nothing happens in between: the core sleeps, or an access takes its time.
    if (moment && session.position() == target && session.time() < *moment && target != session.end()) {
        session.seek(target + 1);
        reply.text += fmt::format("  (the next step is at {})\n", moment_text(session.time()));
        session.seek(target);
    }
    return reply;
}

}  // namespace orrery::step
