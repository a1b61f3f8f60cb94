#include <algorithm>
#include <map>
#include <utility>

#include "tools/prof/profile.h"

namespace orrery::prof {
namespace {

constexpr std::uint16_t kWait = 4;  // an orrProfOperation
// Later ones are nobody's clock, and could not be told apart from earlier ones when they are subtracted.
constexpr std::uint64_t kLatest = std::uint64_t{1} << 60;

StepTimes step_times(const Profile& profile, std::size_t machine) {
    StepTimes times;
    for (const Process& process : profile.processes) {
        if (process.machine_at != machine) continue;
        std::map<std::uint32_t, bool> in_step;
        for (const ClockRecord& clock : process.clocks) {
            if (clock.in_step == 0 || clock.after_ns >= kLatest || clock.device_ps >= kLatest) continue;
            in_step[clock.device] = true;
            times.reached.emplace_back(clock.device_ps, clock.after_ns);
        }
        for (const WorkRecord& work : process.work) {
            if (work.operation == kWait || !in_step.contains(work.device) || work.submitted_ns >= kLatest ||
                work.begin_ps >= kLatest)
                continue;
            times.begun.emplace_back(work.begin_ps, work.submitted_ns);
        }
    }
    return times;
}

// To `by` later, which a time of anybody's file may not bear: then it stays as it is.
void shift(std::uint64_t& ns, std::int64_t by) {
    const auto moved = static_cast<std::int64_t>(std::min(ns, kLatest)) + by;
    if (ns < kLatest && moved >= 0) ns = static_cast<std::uint64_t>(moved);
}

void shift(Process& process, std::int64_t by) {
    shift(process.begin_ns, by);
    for (CallRecord& call : process.calls) {
        shift(call.begin_ns, by);
        shift(call.end_ns, by);
        call.end_ns = std::max(call.begin_ns, call.end_ns);
    }
    for (Process::Range& range : process.ranges)
        shift(range.record.ns, by);
    for (WorkRecord& work : process.work) {
        shift(work.submitted_ns, by);
        if (work.found_ns != 0) shift(work.found_ns, by);
    }
    for (SignalRecord& signal : process.signals)
        shift(signal.submitted_ns, by);
    for (StreamMarkRecord& mark : process.stream_marks)
        shift(mark.submitted_ns, by);
    for (StepRecord& step : process.steps) {
        if (step.device >= 0) continue;
        shift(step.begin_ns, by);
        shift(step.end_ns, by);
        step.end_ns = std::max(step.begin_ns, step.end_ns);
    }
    for (MemoryRecord& memory : process.memory)
        shift(memory.ns, by);
    for (ClockRecord& clock : process.clocks) {
        shift(clock.before_ns, by);
        shift(clock.after_ns, by);
        clock.after_ns = std::max(clock.before_ns, clock.after_ns);
    }
}

void sort(Profile& profile) {
    std::ranges::sort(profile.processes, {},
                      [](const Process& process) { return std::pair(process.begin_ns, process.pid); });
}

}  // namespace

void align_machines(Profile& profile) {
    sort(profile);
    std::map<std::uint64_t, std::size_t> numbers;
    for (Process& process : profile.processes) {
        const auto [at, is_new] = numbers.try_emplace(process.machine, profile.machines.size());
        process.machine_at = at->second;
        if (is_new) profile.machines.push_back({.id = process.machine, .offset = {}});
    }
    if (profile.machines.size() < 2) return;
    const StepTimes first = step_times(profile, 0);
    profile.machines[0].aligned = true;
    std::int64_t furthest = 0;  // nobody's times get below 0
    for (std::size_t i = 1; i < profile.machines.size(); ++i) {
        const auto offset = host_offset(first, step_times(profile, i));
        if (!offset) continue;
        profile.machines[i].aligned = true;
        profile.machines[i].offset = *offset;
        furthest = std::max(furthest, offset->ns);
    }
    for (Process& process : profile.processes) {
        const Machine& machine = profile.machines[process.machine_at];
        if (machine.aligned) shift(process, furthest - machine.offset.ns);
    }
    sort(profile);
}

}  // namespace orrery::prof
