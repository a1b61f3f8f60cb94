#include "tools/step/commands/run.h"

#include <algorithm>

namespace orrery::step {
namespace {

// How closely an expression must be followed.
enum class Grain : std::uint8_t {
    kRecords,    // it says something about records only: looked up without replay
    kAtRecords,  // needs the state at records
    kMemory,     // changes only with stores to fixed addresses
    kEverywhere,
};

Grain grain_of(const Expression& e) {
    const bool other = e.uses_registers() || e.uses_time();
    const bool no_memory = e.memory() && e.memory()->empty();
    if (e.uses_event()) return !other && no_memory ? Grain::kRecords : Grain::kAtRecords;
    if (!other && e.memory() && !no_memory) return Grain::kMemory;
    return Grain::kEverywhere;
}

// Something that may end the run.
struct Probe {
    const Expression* expression = nullptr;
    Grain grain{};
    unsigned breakpoint = 0;  // 0: `until`
    bool watch = false;
    std::uint64_t before = 0;  // of a watch
};

class Run {
  public:
    Run(Debugger& debugger, const Goal& goal, bool back)
        : debugger_(debugger), session_(debugger.session()), goal_(goal), back_(back) {
        if (goal.until != nullptr) add(*goal.until, 0, false);
        limits_.breakpoints = goal.pcs;
        for (const Breakpoint& b : debugger.breakpoints()) {
            if (!b.enabled) continue;
            limits_.breakpoints.insert(limits_.breakpoints.end(), b.pcs.begin(), b.pcs.end());
            if (b.pcs.empty()) add(*b.condition, b.number, b.watch);
        }
        const bool everywhere = has(Grain::kEverywhere) || goal_everywhere();
        if (everywhere || has(Grain::kAtRecords)) {
            limits_.condition = [this] { return probe(true); };
            limits_.condition_at_records = !everywhere;
        }
        for (const Probe& p : probes_) {
            if (p.grain != Grain::kMemory) continue;
            const auto& memory = *p.expression->memory();
            limits_.watchpoints.insert(limits_.watchpoints.end(), memory.begin(), memory.end());
        }
        limits_.progress = [](std::uint64_t) {
            const bool stop = Debugger::take_interrupt();
            return !stop;
        };
    }

    Result<RunEnd> go(std::uint64_t target) {
        RunEnd at_record = cap(target);
        const bool capped = at_record.why != RunEnd::Why::kTarget;
        if (limits_.breakpoints.empty() && limits_.watchpoints.empty() && !limits_.condition) {
            if (session_.seek(target).stop == emu::ReplayStop::kDiverged) return diverged();
            return at_record;
        }
        while (session_.position() != target) {
            const emu::ReplayStopInfo info =
                back_ ? session_.run_back(target, limits_) : session_.run(target, limits_);
            switch (info.stop) {
                case emu::ReplayStop::kCondition:
                    return found_;
                case emu::ReplayStop::kWatchpoint:
                    if (probe(false)) return found_;
                    break;
                case emu::ReplayStop::kBreakpoint:
                    if (auto end = at_breakpoint(info.breakpoint)) return *end;
                    break;
                case emu::ReplayStop::kCancelled:
                    return RunEnd{RunEnd::Why::kInterrupted, 0, "interrupted"};
                case emu::ReplayStop::kDiverged:
                    return diverged();
                default:
                    return capped && session_.position() == target ? at_record : RunEnd{};
            }
        }
        return at_record;
    }

  private:
    std::unexpected<Error> diverged() const {
        return fail("replay stopped: {}", session_.about().divergence);
    }
    bool goal_everywhere() const { return goal_.holds && goal_.pcs.empty(); }
    bool has(Grain grain) const {
        return std::ranges::any_of(probes_, [&](const Probe& p) { return p.grain == grain; });
    }
    void add(const Expression& expression, unsigned number, bool watch) {
        Probe probe{&expression, grain_of(expression), number, watch, 0};
        if (watch) {
            if (const auto value = expression.evaluate(debugger_.moment())) probe.before = value->bits;
        }
        probes_.push_back(probe);
    }
    RunEnd ended(const Probe& probe) const {
        if (probe.breakpoint == 0) return {RunEnd::Why::kCondition, 0, ""};
        return {RunEnd::Why::kBreakpoint, probe.breakpoint,
                fmt::format("breakpoint {}: {}", probe.breakpoint, probe.expression->text())};
    }

    // Conditions on records alone: the nearest record at which one holds is as far as we go.
    RunEnd cap(std::uint64_t& target) {
        RunEnd end;
        const auto& records = debugger_.history().records();
        const std::uint64_t here = session_.position();
        for (const Probe& p : probes_) {
            if (p.grain != Grain::kRecords || p.watch) continue;
            const auto check = [&](std::size_t i) {
                if (!p.expression->holds({&session_, &records[i]})) return false;
                target = records[i].step;
                end = ended(p);
                return true;
            };
            if (back_) {
                for (std::size_t i = debugger_.history().first_at_or_after(here);
                     i > 0 && records[i - 1].step >= target; --i)
                    if (check(i - 1)) break;
            } else {
                for (std::size_t i = debugger_.history().first_at_or_after(here + 1);
                     i < records.size() && records[i].step <= target; ++i)
                    if (check(i)) break;
            }
        }
        return end;
    }

    // Does any of them end the run here?
    bool probe(bool from_condition) {
        if (from_condition && goal_everywhere() && goal_.holds()) {
            found_ = {RunEnd::Why::kCondition, 0, ""};
            return true;
        }
        const Moment moment = debugger_.moment();
        for (Probe& p : probes_) {
            if (p.grain == Grain::kRecords && !p.watch) continue;
            if (from_condition && p.grain == Grain::kMemory) continue;  // its stores are watched
            if (!p.watch) {
                if (!p.expression->holds(moment)) continue;
                found_ = ended(p);
                return true;
            }
            const auto value = p.expression->evaluate(moment);
            if (!value || !value->present || value->bits == p.before) continue;
            Value old = *value;
            old.bits = p.before;
            found_ = {RunEnd::Why::kBreakpoint, p.breakpoint,
                      fmt::format("watch {}: {} {} {}, {} {}", p.breakpoint, p.expression->text(),
                                  back_ ? "is" : "was", show(back_ ? *value : old, debugger_.program()),
                                  back_ ? "and becomes" : "is now",
                                  show(back_ ? old : *value, debugger_.program()))};
            return true;
        }
        return false;
    }

    std::optional<RunEnd> at_breakpoint(std::uint64_t pc) {
        for (const Breakpoint& b : debugger_.breakpoints()) {
            if (!b.enabled || std::ranges::find(b.pcs, pc) == b.pcs.end()) continue;
            if (b.condition && !b.condition->holds(debugger_.moment())) continue;
            return RunEnd{RunEnd::Why::kBreakpoint, b.number,
                          fmt::format("breakpoint {}: {}", b.number, b.text)};
        }
        if (std::ranges::find(goal_.pcs, pc) != goal_.pcs.end() && goal_.holds())
            return RunEnd{RunEnd::Why::kCondition, 0, ""};
        return std::nullopt;
    }

    Debugger& debugger_;
    Session& session_;
    const Goal& goal_;
    bool back_;
    std::vector<Probe> probes_;
    emu::ReplayLimits limits_;
    RunEnd found_;
};

}  // namespace

Result<RunEnd> run_forward(Debugger& debugger, std::uint64_t target, const Goal& goal) {
    return Run(debugger, goal, false).go(target);
}

Result<RunEnd> run_backward(Debugger& debugger, std::uint64_t target, const Goal& goal) {
    return Run(debugger, goal, true).go(target);
}

Result<RunEnd> run_to(Debugger& debugger, std::uint64_t target) {
    const std::uint64_t here = debugger.session().position();
    return target >= here ? run_forward(debugger, target, {}) : run_backward(debugger, target, {});
}

}  // namespace orrery::step
