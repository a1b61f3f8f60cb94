#include "tools/records/why.h"

#include <orrery/fw/mailbox.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>

#include <algorithm>
#include <map>
#include <set>

#include "tools/records/names.h"

namespace orrery::records {
namespace {

class Explainer {
  public:
    Explainer(const History& history, const Record& record, const Snapshot& snapshot,
              const orr_policy* policy)
        : history_(history), record_(record), snapshot_(snapshot), policy_(policy) {}

    void run(Why& why) {
        why.victim = find_victim();
        collect();
        for (Candidate& c : candidates_)
            if (c.chosen) chosen_ = &c;
        why.rule_text = rule_in_words(why.victim);
        for (Candidate& c : candidates_)
            c.why = c.chosen ? "chosen" : why_not(c);
        for (const auto& [state, count] : others_)
            why.others.push_back(fmt::format("{} {}", count,
                                             state == ORR_TSTATE_OWN         ? "with packets in flight"
                                             : state == ORR_TSTATE_SEMAPHORE ? "at a semaphore"
                                                                             : state_name(state)));
        std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
            if (a.chosen != b.chosen) return a.chosen;
            if (a.row.priority != b.row.priority) return a.row.priority > b.row.priority;
            if (a.vtime != b.vtime) return a.vtime < b.vtime;
            return std::pair(a.row.number, a.index) < std::pair(b.row.number, b.index);
        });
        why.candidates = std::move(candidates_);
    }

  private:
    std::uint32_t rule() const { return record_.b & 0xff; }
    std::uint32_t resource() const { return record_.b >> 8 & 0xff; }
    bool nobody() const { return record_.a == ORR_TRACE_NONE; }
    // 0: the decision is not about engines.
    std::uint64_t engine() const {
        const auto row = std::ranges::find(engine_traces(), resource(), &EngineTrace::resource);
        return row == engine_traces().end() ? 0 : row->kind;
    }
    bool about_engines() const { return engine() != 0; }
    bool is_choice(std::uint32_t queue, std::uint64_t index) const {
        return !nobody() && queue == record_.a && index == record_.word[0];
    }
    std::uint64_t kind_of(std::uint32_t port) const {
        const auto row = std::ranges::find(snapshot_.ports, port, &PortRow::number);
        return row == snapshot_.ports.end() ? 0 : row->kind;
    }

    bool waits(const QueueRow& row) const {
        switch (row.state) {
            case ORR_TSTATE_READY:
                return resource() == ORR_RESOURCE_TURN || resource() == ORR_RESOURCE_SLOT;
            case ORR_TSTATE_QUOTA:
                return rule() == ORR_RULE_NOBODY;
            case ORR_TSTATE_GANG:
                return rule() == ORR_RULE_GANG && resource() == ORR_RESOURCE_VECTOR;
            default:
                return std::ranges::any_of(engine_traces(), [&](const EngineTrace& one) {
                    return one.waiting == row.state && one.resource == resource();
                });
        }
    }

    Candidate make(const QueueRow& row) const {
        Candidate c;
        c.row = row;
        c.index = row.next;
        c.state = state_name(row.state);
        c.vtime = about_engines() ? row.vtime_of(engine()) : row.vtime_turn;
        if (row.ready_since_ps != 0 && row.ready_since_ps <= record_.time) c.since = row.ready_since_ps;
        return c;
    }

    void collect() {
        std::set<std::uint32_t> seen;
        bool found = false;
        if (about_engines()) {
            for (const Job& job : history_.jobs()) {
                const Segment* piece = job.suspended_at(record_.step);
                const QueueRow* row = piece == nullptr ? nullptr : snapshot_.queue(job.queue);
                if (row == nullptr || kind_of(piece->port) != engine()) continue;
                Candidate c = make(*row);
                c.index = job.index;
                c.state = "suspended";
                c.since = piece->end_told;
                c.suspended = true;
                c.chosen = is_choice(job.queue, job.index);
                found = found || c.chosen;
                seen.insert(job.queue);
                candidates_.push_back(std::move(c));
            }
        }
        for (const QueueRow& row : snapshot_.queues) {
            if (!waits(row)) continue;
            Candidate c = make(row);
            c.chosen = !found && row.number == record_.a;
            found = found || c.chosen;
            seen.insert(row.number);
            candidates_.push_back(std::move(c));
        }
        // It has a port already: the decision is about the cores behind the ports.
        if (!found && !nobody() && about_engines()) {
            const bool has_port = std::ranges::any_of(snapshot_.ports, [&](const PortRow& port) {
                return port.busy && port.kind == engine() &&
                       is_choice(static_cast<std::uint32_t>(port.queue), port.index);
            });
            if (has_port) {
                candidates_.clear();
                seen.clear();
                for (const PortRow& port : snapshot_.ports) {
                    const QueueRow* row = snapshot_.queue(static_cast<std::uint32_t>(port.queue));
                    if (!port.busy || port.kind != engine() || row == nullptr) continue;
                    Candidate c = make(*row);
                    c.index = port.index;
                    c.state = fmt::format("on port {}", port.number);
                    c.since = port.started_ps;
                    c.running = true;
                    c.chosen = is_choice(row->number, port.index);
                    seen.insert(row->number);
                    candidates_.push_back(std::move(c));
                }
                found = true;
            }
        }
        // It came by itself: it had its turn, and the resource was free.
        if (const QueueRow* row = nobody() || found ? nullptr : snapshot_.queue(record_.a)) {
            Candidate c = make(*row);
            c.index = record_.word[0];
            c.chosen = true;
            if (row->state == ORR_TSTATE_TURN) c.since = kNever;
            seen.insert(row->number);
            candidates_.push_back(std::move(c));
        }
        for (const QueueRow& row : snapshot_.queues)
            if (!seen.contains(row.number)) ++others_[row.state];
    }

    // The preemption that goes with the decision stands right behind it.
    std::string find_victim() {
        const auto& records = history_.records();
        for (std::size_t i = history_.first_at_or_after(record_.step + 1); i < records.size(); ++i) {
            if (records[i].type != ORR_TRACE_PREEMPT) break;
            victim_queue_ = records[i].a;
            victim_index_ = records[i].word[0];
            return fmt::format("{}, packet {}, on port {}, {}", history_.queue(records[i].a, records[i].time),
                               records[i].word[0], records[i].b & 0xff,
                               preempt_name(records[i].b >> 8 & 0xff));
        }
        return "";
    }

    std::string waited(const Candidate& c) const {
        return c.since == kNever ? "" : duration(record_.time - std::min(record_.time, c.since));
    }
    std::string bound() const {
        return policy_ == nullptr ? "its bound"
                                  : fmt::format("its bound of {}", duration(policy_->bound_us * 1'000'000));
    }

    std::string why_not(const Candidate& c) const {
        if (c.row.number == victim_queue_ && c.index == victim_index_ && c.running) return "gives way";
        if (c.row.state == ORR_TSTATE_QUOTA) return "its context is over its quota for this period";
        if (chosen_ == nullptr) return "a gang holds the resource, or its context is over its quota";
        if (c.running) return "keeps its cores";
        const std::string its_class = class_name(c.row.priority), other = class_name(chosen_->row.priority);
        if (rule() == ORR_RULE_GANG && c.row.state != ORR_TSTATE_GANG)
            return "is not of the gang, whose members start together";
        if (c.row.priority < chosen_->row.priority) {
            const std::string waits = waited(c);
            return fmt::format(
                "class {} is below {}{}", its_class, other,
                waits.empty() ? "" : fmt::format(", and {} on waiting has not come ({})", bound(), waits));
        }
        if (c.row.priority > chosen_->row.priority) {
            if (rule() == ORR_RULE_BOUND)
                return fmt::format("class {} is above, but {}'s bound on waiting has come", its_class, other);
            return fmt::format("class {} is above {}: it is next", its_class, other);
        }
        if (rule() == ORR_RULE_RESUME && !c.suspended)
            return fmt::format("was not preempted: what was goes first in class {}", its_class);
        if (c.vtime > chosen_->vtime) {
            return fmt::format("has used more for its weight: vtime {} against {}", duration(c.vtime),
                               duration(chosen_->vtime));
        }
        if (c.vtime == chosen_->vtime) return "same vtime: the other one came first";
        return fmt::format("vtime {} counts as the same as {}: the other one came first", duration(c.vtime),
                           duration(chosen_->vtime));
    }

    std::string rule_in_words(const std::string& victim) const {
        const std::string its_class =
            chosen_ == nullptr ? "its class" : "class " + class_name(chosen_->row.priority);
        const bool on_port = chosen_ != nullptr && chosen_->running;
        const std::string gives_way = victim.empty() ? "" : ": " + victim;
        switch (rule()) {
            case ORR_RULE_ONLY:
                return "it is the only candidate";
            case ORR_RULE_PRIORITY:
                return fmt::format("it is the only one of the highest class, {}",
                                   chosen_ == nullptr ? "" : class_name(chosen_->row.priority));
            case ORR_RULE_SHARE: {
                if (chosen_ == nullptr) return "it has used the least for its weight in the highest class";
                const auto of_class = std::ranges::count_if(
                    candidates_, [&](const Candidate& c) { return c.row.priority == chosen_->row.priority; });
                return fmt::format("it has used the least for its weight of {} in {} (vtime {})", of_class,
                                   its_class, duration(chosen_->vtime));
            }
            case ORR_RULE_BOUND:
                return fmt::format("{} is lower, but has waited for {}: it gets one slice{}", its_class,
                                   bound(), gives_way);
            case ORR_RULE_RESUME:
                return fmt::format("it was preempted, and is first of {} again", its_class);
            case ORR_RULE_GANG:
                return "its gang is complete: all members start together";
            case ORR_RULE_PREEMPT:
                return fmt::format(
                    "{} {} a lower class{}", its_class,
                    on_port ? "has a port but no core, and takes those of" : "takes the port of", gives_way);
            case ORR_RULE_SLICE:
                return fmt::format("it takes the {} of one whose time slice is over{}",
                                   on_port ? "cores" : "port", gives_way);
            case ORR_RULE_NOBODY:
                return "nobody may have it: the candidates are over their quota, or a gang holds it";
            default:
                return fmt::format("rule {} of a firmware that is newer than this tool", rule());
        }
    }

    const History& history_;
    const Record& record_;
    const Snapshot& snapshot_;
    const orr_policy* policy_;
    std::vector<Candidate> candidates_;
    const Candidate* chosen_ = nullptr;
    std::map<std::uint64_t, unsigned> others_;  // queues by state
    std::uint32_t victim_queue_ = ORR_TRACE_NONE;
    std::uint64_t victim_index_ = 0;
};

}  // namespace

Why explain(const History& history, std::size_t decision, const Snapshot& snapshot,
            const orr_policy* policy) {
    Why why;
    why.number = decision;
    why.record = history.records()[history.decisions()[decision]];
    why.counted = why.record.b >> 16;
    why.rule = rule_name(why.record.b & 0xff);
    why.resource = resource_name(why.record.b >> 8 & 0xff);
    Explainer(history, why.record, snapshot, policy).run(why);
    return why;
}

}  // namespace orrery::records
