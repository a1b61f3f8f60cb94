// diff
#include <orrery/fw/trace.h>

#include <algorithm>

#include "tools/records/figures.h"
#include "tools/records/names.h"
#include "tools/step/commands/commands.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

const Record& decision_of(const History& history, std::size_t i) {
    return history.records()[history.decisions()[i]];
}

// The same choice: who got what, and by which rule. (How many candidates there were may differ.)
bool same(const Record& a, const Record& b) {
    return a.a == b.a && (a.b & 0xffff) == (b.b & 0xffff) && a.word[0] == b.word[0];
}

Result<Reply> why_of(Debugger& debugger, std::size_t decision) {
    return run_command(debugger, fmt::format("why {}", decision));
}

std::string indent(const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
        out += "  " + text.substr(at, end - at + 1);
        at = end + 1;
    }
    return out;
}

}  // namespace

Result<Reply> cmd_diff(Debugger& debugger, const Args& args) {
    if (args.words.empty() || args.words.size() > 2)
        return fail(
            "diff with what? 'diff OTHER' compares this recording with another, 'diff A B' two others");
    const auto open = [&](const std::string& file) -> Result<std::unique_ptr<Debugger>> {
        auto session = debugger.options().open(file);
        if (!session) return std::unexpected(session.error());
        Debugger::Options options = debugger.options();
        options.elf.clear();
        return Debugger::make(std::move(*session), std::move(options));
    };
    std::unique_ptr<Debugger> opened_a;
    if (args.words.size() == 2) {
        auto a = open(args.words[0]);
        if (!a) return std::unexpected(a.error());
        opened_a = std::move(*a);
    }
    auto opened_b = open(args.words.back());
    if (!opened_b) return std::unexpected(opened_b.error());
    Debugger& a = opened_a ? *opened_a : debugger;
    Debugger& b = **opened_b;
    const auto &da = a.history().decisions(), &db = b.history().decisions();
    if (da.empty() || db.empty())
        return fail("{} holds no decisions", (da.empty() ? a : b).session().about().file);

    std::size_t at = 0;
    const std::size_t both = std::min(da.size(), db.size());
    std::optional<std::size_t> first_late;
    while (at < both && same(decision_of(a.history(), at), decision_of(b.history(), at))) {
        if (!first_late && decision_of(a.history(), at).time != decision_of(b.history(), at).time)
            first_late = at;
        ++at;
    }
    Reply reply;
    reply.data = {{"a", a.session().about().file},
                  {"b", b.session().about().file},
                  {"decisions_a", da.size()},
                  {"decisions_b", db.size()},
                  {"same", at}};
    for (const Debugger* each : {&a, &b})
        if (!each->session().about().verified) reply.data["verified"] = false;
    std::string& t = reply.text;
    for (const auto& [name, each] : {std::pair{"A", &a}, {"B", &b}}) {
        const About& about = each->session().about();
        t += fmt::format("{}  {}  firmware {}, {} decisions{}\n", name, about.file, about.build_id,
                         each->history().decisions().size(), about.verified ? "" : ", not verified");
    }
    if (at == da.size() && at == db.size()) {
        t += fmt::format("all {} decisions are the same", at);
        t += first_late ? fmt::format("; from decision {} on the times differ\n", *first_late)
                        : std::string(", at the same times\n");
        reply.data["different"] = false;
        reply.data["first_different_time"] = first_late ? Json(*first_late) : Json(nullptr);
        return reply;
    }
    reply.data["different"] = true;
    reply.data["first_different"] = at;
    t += at == 0 ? "the first decision differs:\n"
                 : fmt::format("the first {} decisions are the same; decision {} differs:\n", at, at);
    for (Debugger* which : {&a, &b}) {
        const char* name = which == &a ? "A" : "B";
        if (at >= which->history().decisions().size()) {
            t += fmt::format("{}: there is no further decision\n", name);
            reply.data[which == &a ? "why_a" : "why_b"] = nullptr;
            continue;
        }
        const auto why = why_of(*which, at);
        if (!why) return std::unexpected(why.error());
        t += fmt::format("{}:\n{}", name, indent(why->text));
        reply.data[which == &a ? "why_a" : "why_b"] = why->data;
    }
    const Statistics sa = statistics(a.history(), a.session().end_time()),
                     sb = statistics(b.history(), b.session().end_time());
    Table table({{""},
                 {"makespan", Align::kRight},
                 {"fairness", Align::kRight},
                 {"latency p50", Align::kRight},
                 {"p99", Align::kRight},
                 {"waiting p50", Align::kRight},
                 {"p99", Align::kRight},
                 {"preemptions", Align::kRight}});
    for (const auto& [name, s] : {std::pair{"A", &sa}, {"B", &sb}})
        table.row({name, makespan_text(*s), fmt::format("{:.4f}", s->fairness), duration(s->latency.p50),
                   duration(s->latency.p99), duration(s->waiting.p50), duration(s->waiting.p99),
                   fmt::format("{}", s->preemptions)});
    t += table.text();
    reply.data["figures_a"] = to_json(a.history(), sa);
    reply.data["figures_b"] = to_json(b.history(), sb);
    return reply;
}

}  // namespace orrery::step
