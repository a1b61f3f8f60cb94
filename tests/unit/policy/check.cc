#include "tests/unit/policy/check.h"

#include <orrery/fw/queue.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace orrery::policy {

namespace {

using scenario::Job;
using scenario::Op;
using Kind = Happening::Kind;

constexpr std::uint32_t kClasses = 4;
constexpr Ps kNot = ~Ps{0};
// No packet starts that is further than this from the oldest one of its queue that has not finished
// (docs/firmware.md).
constexpr std::uint64_t kWindow = 16;

bool on_engine(Op op) {
    return op == Op::kKernel || op == Op::kCopy || op == Op::kFill;
}
// Starts only when all earlier packets have finished.
bool waits_for_all(const Job& job) {
    return job.ordered || job.op == Op::kSignal || job.op == Op::kTimestamp || job.op == Op::kBarrier ||
           job.op == Op::kGang;
}

// How many members have come to what.
struct GangState {
    std::uint32_t members = 0, started = 0, saved = 0, ended = 0;
    bool resuming = false;  // some have resumed, the others are to follow at once
};

struct Packet {
    Job job;
    Ps submitted = 0;
    bool started = false, running = false, suspended = false, ended = false;
    Ps moved = 0;  // when the last of the above changed
};

struct QueueState {
    std::vector<Packet> packets;
    std::uint64_t retired = 0;
    Ps retired_at = 0;
    bool failed = false, throttled = false;
};

struct PortState {
    bool busy = false;
    std::uint32_t queue = 0;
    std::uint64_t index = 0;
    bool bound = false;  // it got there because it had waited for so long
};

class Checker {
  public:
    Checker(const scenario::Scenario& scenario, const History& history, const Limits& limits)
        : scenario_(scenario), history_(history), limits_(limits), queues_(scenario.queues.size()) {
        ports_.resize(history.copy_engines + history.vector_ports);
        for (auto& kind : since_)
            kind.fill(kNot);
    }

    Verdict run() {
        submits_ = scenario_.submits;
        std::ranges::sort(order_of(), {}, [&](std::size_t n) { return std::pair(submits_[n].at, n); });
        for (const Happening& one : history_.all) {
            arrive(one.at);
            if (!verdict_.wrong.empty()) return verdict_;
            apply(one);
            look(one.at);
            if (!verdict_.wrong.empty()) {
                verdict_.wrong +=
                    fmt::format(" (at {:.3f} us)\n{}", static_cast<double>(one.at) / 1e6, before(one));
                return verdict_;
            }
        }
        finish();
        return verdict_;
    }

  private:
    void wrong(std::string what) {
        if (verdict_.wrong.empty()) verdict_.wrong = std::move(what);
    }
    std::vector<std::size_t>& order_of() {
        for (std::size_t n = 0; n < submits_.size(); ++n)
            order_.push_back(n);
        return order_;
    }

    // The last that happened, for people.
    std::string before(const Happening& last) const {
        constexpr const char* kNames[] = {"decision", "start",  "end",   "preempt", "resume",
                                          "retire",   "signal", "quota", "error",   "deadlock"};
        constexpr std::ptrdiff_t kShown = 40;
        const auto end = &last - history_.all.data() + 1;
        std::string text;
        for (auto n = std::max<std::ptrdiff_t>(0, end - kShown); n < end; ++n) {
            const Happening& one = history_.all[static_cast<std::size_t>(n)];
            const std::uint32_t level =
                one.queue < scenario_.queues.size() ? scenario_.queues[one.queue].priority : 9;
            text += fmt::format("  {:.3f} us {} {}/{} class {} port {} status {} rule {} resource {}\n",
                                static_cast<double>(one.at) / 1e6, kNames[static_cast<std::size_t>(one.kind)],
                                one.queue, one.index, level, one.port, one.status, one.rule, one.resource);
        }
        return text;
    }

    void arrive(Ps now) {
        for (; next_ < order_.size() && submits_[order_[next_]].at <= now; ++next_) {
            const auto& submit = submits_[order_[next_]];
            for (const Job& job : submit.jobs)
                queues_[submit.queue].packets.push_back(
                    {job, submit.at, false, false, false, false, submit.at});
            look(submit.at);
        }
    }

    Packet* packet(const Happening& one) {
        if (one.queue >= queues_.size() || one.index >= queues_[one.queue].packets.size()) {
            wrong(fmt::format("packet {}/{} was never submitted", one.queue, one.index));
            return nullptr;
        }
        return &queues_[one.queue].packets[one.index];
    }

    bool is_vector(std::uint32_t port) const { return port >= history_.copy_engines; }

    void occupy(const Happening& one, Packet& packet) {
        if (one.port >= ports_.size()) return wrong(fmt::format("port {} does not exist", one.port));
        PortState& port = ports_[one.port];
        if (port.busy) {
            return wrong(fmt::format("{}/{} starts on port {} where {}/{} runs", one.queue, one.index,
                                     one.port, port.queue, port.index));
        }
        if (is_vector(one.port) != (packet.job.op == Op::kKernel))
            return wrong(fmt::format("{}/{} is on a port of the wrong kind", one.queue, one.index));
        port = {true, one.queue, one.index, last_rule_[is_vector(one.port)] == ORR_RULE_BOUND};
        packet.running = true;
        packet.moved = one.at;
    }

    void start(const Happening& one) {
        Packet* const packet = this->packet(one);
        if (packet == nullptr) return;
        ++verdict_.starts;
        const QueueState& queue = queues_[one.queue];
        if (!on_engine(packet->job.op))
            return wrong(fmt::format("{}/{} needs no engine", one.queue, one.index));
        if (packet->started) return wrong(fmt::format("{}/{} starts twice", one.queue, one.index));
        if (queue.failed)
            return wrong(fmt::format("{}/{} starts after its queue's error", one.queue, one.index));
        // `all`: everything before has to have finished, because of this packet or one in between.
        bool all = waits_for_all(packet->job);
        for (std::uint64_t n = one.index; n-- > 0;) {
            const Packet& before = queue.packets[n];
            if (on_engine(before.job.op)) {
                if (!before.started)
                    return wrong(fmt::format("{}/{} starts before {}", one.queue, one.index, n));
                if (all && !before.ended)
                    return wrong(fmt::format("{}/{} starts before {} has finished", one.queue, one.index, n));
            } else if (before.job.op == Op::kWait) {
                if (semaphores_[before.job.semaphore] < before.job.value)
                    return wrong(
                        fmt::format("{}/{} starts though the wait {} holds", one.queue, one.index, n));
            }
            all = all || waits_for_all(before.job);
        }
        packet->started = true;
        if (GangState* const gang = gang_of(one)) ++gang->started;
        occupy(one, *packet);
    }

    // Of which this is a member; null: of none.
    GangState* gang_of(const Happening& one) {
        const QueueState& queue = queues_[one.queue];
        if (one.index == 0 || queue.packets[one.index - 1].job.op != Op::kGang) return nullptr;
        const Job& gang = queue.packets[one.index - 1].job;
        GangState& state = gangs_[{gang.gang, gang.round}];
        state.members = scenario_.gangs[gang.gang].members[0];
        return &state;
    }

    // A member that ends or is preempted before another has started, or resumed, was not with it.
    void end_of_member(const Happening& one) {
        GangState* const gang = gang_of(one);
        if (gang == nullptr) return;
        if (gang->started != gang->members)
            return wrong(fmt::format("{}/{} ends when {} of the {} members of its gang have started",
                                     one.queue, one.index, gang->started, gang->members));
        if (gang->resuming)
            return wrong(fmt::format("{}/{} ends when {} members of its gang have not resumed", one.queue,
                                     one.index, gang->saved));
        ++(one.status == ORR_DONE_PREEMPTED ? gang->saved : gang->ended);
    }

    // A gang resumes when all that has not ended is saved, and then all of it.
    void resume_of_member(const Happening& one) {
        GangState* const gang = gang_of(one);
        if (gang == nullptr) return;
        if (!gang->resuming && gang->saved + gang->ended != gang->members)
            return wrong(fmt::format("{}/{} resumes when {} of the {} members of its gang are saved",
                                     one.queue, one.index, gang->saved, gang->members));
        gang->resuming = --gang->saved != 0;
        if (!gang->resuming) ++verdict_.gangs_resumed;
    }

    void resume(const Happening& one) {
        Packet* const packet = this->packet(one);
        if (packet == nullptr) return;
        if (!packet->suspended)
            return wrong(fmt::format("{}/{} resumes and was not preempted", one.queue, one.index));
        packet->suspended = false;
        resume_of_member(one);
        occupy(one, *packet);
    }

    void end(const Happening& one) {
        Packet* const packet = this->packet(one);
        if (packet == nullptr) return;
        if (one.port >= ports_.size()) return wrong(fmt::format("port {} does not exist", one.port));
        PortState& port = ports_[one.port];
        if (!port.busy || port.queue != one.queue || port.index != one.index || !packet->running)
            return wrong(
                fmt::format("{}/{} ends on port {}, where it does not run", one.queue, one.index, one.port));
        port.busy = false;
        packet->running = false;
        packet->moved = one.at;
        end_of_member(one);
        if (one.status == ORR_DONE_PREEMPTED) {
            packet->suspended = true;
        } else {
            packet->ended = true;
        }
    }

    void retire(const Happening& one) {
        if (one.queue >= queues_.size()) return wrong(fmt::format("queue {} does not exist", one.queue));
        QueueState& queue = queues_[one.queue];
        if (one.index < queue.retired || one.index > queue.packets.size())
            return wrong(fmt::format("queue {} retires {} of {} after {}", one.queue, one.index,
                                     queue.packets.size(), queue.retired));
        for (std::uint64_t n = queue.retired; n < one.index; ++n) {
            if (on_engine(queue.packets[n].job.op) && !queue.packets[n].ended)
                return wrong(fmt::format("{}/{} retires and has not finished", one.queue, n));
        }
        queue.retired = one.index;
        queue.retired_at = one.at;
    }

    void apply(const Happening& one) {
        switch (one.kind) {
            case Kind::kDecision:
                ++verdict_.decisions;
                if (one.resource == ORR_RESOURCE_COPY || one.resource == ORR_RESOURCE_VECTOR)
                    last_rule_[one.resource == ORR_RESOURCE_VECTOR] = one.rule;
                return;
            case Kind::kStart:
                return start(one);
            case Kind::kResume:
                return resume(one);
            case Kind::kEnd:
                return end(one);
            case Kind::kPreempt:
                ++verdict_.preemptions;
                return;
            case Kind::kRetire:
                return retire(one);
            case Kind::kSignal: {
                auto& value = semaphores_[(one.semaphore - history_.semaphores_at) / 16];
                value = std::max(value, one.value);
                return;
            }
            case Kind::kQuota:
            case Kind::kDeadlock:
                return;
            case Kind::kError:
                if (one.queue < queues_.size()) queues_[one.queue].failed = true;
                return;
        }
    }

    // The queue could use an engine of this kind at once. Nothing if it cannot, or if that is not certain.
    bool could_start(const QueueState& queue, bool vector) const {
        if (queue.failed) return false;
        const std::uint64_t end = std::min<std::uint64_t>(queue.packets.size(), queue.retired + kWindow);
        for (std::uint64_t n = queue.retired; n < end; ++n) {
            const Packet& packet = queue.packets[n];
            if (packet.suspended && (packet.job.op == Op::kKernel) == vector) return true;
            if (packet.started) continue;
            if (!on_engine(packet.job.op)) return false;
            if (waits_for_all(packet.job) && n != queue.retired) return false;
            return (packet.job.op == Op::kKernel) == vector;
        }
        return false;
    }

    // Who could start, on what, and since when nothing better stood in the way.
    void look(Ps now) {
        if (!limits_.grips) return;
        for (const bool vector : {false, true}) {
            const std::uint32_t total = vector ? history_.vector_ports : history_.copy_engines;
            std::array<std::uint32_t, kClasses> held{};  // by this class or a higher one
            for (std::uint32_t n = 0; n < ports_.size(); ++n) {
                if (is_vector(n) != vector || !ports_[n].busy) continue;
                std::uint32_t level =
                    limits_.priorities ? scenario_.queues[ports_[n].queue].priority : kClasses - 1;
                if (ports_[n].bound) level = kClasses - 1;
                for (std::uint32_t below = 0; below <= level; ++below)
                    ++held[below];
            }
            for (std::uint32_t level = 0; level < kClasses; ++level) {
                const bool someone =
                    held[level] < total &&
                    std::ranges::any_of(
                        queues_,
                        [&](const QueueState& queue) {
                            const auto number = static_cast<std::size_t>(&queue - queues_.data());
                            return scenario_.queues[number].priority == level && could_start(queue, vector);
                        });
                Ps& since = since_[vector][level];
                if (since != kNot) {
                    verdict_.longest_grip = std::max(verdict_.longest_grip, now - since);
                    if (now - since > limits_.grip_ps) {
                        return wrong(
                            fmt::format("class {} has had to wait for {} for {:.3f} us while {} of {} were "
                                        "not better used",
                                        level, vector ? "a vector port" : "a copy engine",
                                        static_cast<double>(now - since) / 1e6, total - held[level], total));
                    }
                }
                // A start of one of several that could start, or of a better one, is progress: the clock
                // starts anew.
                if (!someone || started_[vector][level] != starts_of(vector, level)) since = kNot;
                started_[vector][level] = starts_of(vector, level);
                if (someone && since == kNot) since = now;
            }
        }
    }

    std::uint64_t starts_of(bool vector, std::uint32_t level) const {
        std::uint64_t count = 0;
        for (std::uint32_t n = 0; n < ports_.size(); ++n) {
            if (is_vector(n) == vector && ports_[n].busy &&
                scenario_.queues[ports_[n].queue].priority >= level)
                count = count * 1'000'003 + ports_[n].queue * 4096 + ports_[n].index + 1;
        }
        return count;
    }

    void finish() {
        if (!history_.complaints.empty()) wrong("the chip complains: " + history_.complaints.front());
        if (!history_.done) wrong("not all packets were done in time");
        for (std::size_t n = 0; n < queues_.size(); ++n) {
            if (history_.errors[n] == ORR_QERR_FIRMWARE &&
                limits_.may_fail.contains(static_cast<std::uint32_t>(n)))
                continue;
            if (history_.errors[n] != 0)
                wrong(fmt::format("queue {} stopped with error {}", n, history_.errors[n]));
            if (history_.completed[n] != queues_[n].packets.size())
                wrong(fmt::format("queue {} completed {} of {}", n, history_.completed[n],
                                  queues_[n].packets.size()));
            for (std::size_t index = 0; index < queues_[n].packets.size(); ++index) {
                const Packet& packet = queues_[n].packets[index];
                if (on_engine(packet.job.op) && !packet.ended) wrong(fmt::format("{}/{} was lost", n, index));
            }
        }
    }

    const scenario::Scenario& scenario_;
    const History& history_;
    const Limits limits_;
    std::vector<scenario::Submit> submits_;
    std::vector<std::size_t> order_;
    std::size_t next_ = 0;
    std::vector<QueueState> queues_;
    std::vector<PortState> ports_;
    std::array<std::uint32_t, 2> last_rule_{};
    std::map<std::uint64_t, std::uint64_t> semaphores_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, GangState> gangs_;  // by gang and round
    std::array<std::array<Ps, kClasses>, 2> since_{};
    std::array<std::array<std::uint64_t, kClasses>, 2> started_{};
    Verdict verdict_;
};

}  // namespace

Verdict check(const scenario::Scenario& scenario, const History& history, const Limits& limits) {
    return Checker(scenario, history, limits).run();
}

}  // namespace orrery::policy
