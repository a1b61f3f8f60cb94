#include "umd/prof/steps.h"

#include <atomic>

#include "umd/runtime/clock.h"

namespace orrery::umd {

StepMarks StepMarks::here() noexcept {
    const ThreadMarks& marks = thread_marks();
    return {marks.correlation, marks.external, prof_thread()};
}

std::uint64_t next_step_owner() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

orrProfStep make_step(orrProfStepKind kind, orrProfOwner of, std::uint64_t owner, std::uint64_t number,
                      int device) noexcept {
    orrProfStep step = ORR_INIT(orrProfStep);
    step.kind = kind;
    step.of = of;
    step.owner = owner;
    step.number = number;
    step.device = device;
    return step;
}

void tell_step(const StepNote& note) noexcept {
    orrProfRecord record = ORR_INIT(orrProfRecord);
    record.kind = orrProfStepDone;
    record.name = note.name.c_str();
    record.params = &note.step;
    record.correlation = note.marks.correlation;
    record.external = note.marks.external;
    record.thread = note.marks.thread;
    Profiler::get().tell_as_it_is(record, orrProfWantSteps);
}

void tell_host_step(StepNote note, std::int64_t begin_ns) noexcept {
    note.step.begin_ns = static_cast<std::uint64_t>(begin_ns);
    note.step.end_ns = static_cast<std::uint64_t>(now_ns());
    tell_step(note);
}

}  // namespace orrery::umd
