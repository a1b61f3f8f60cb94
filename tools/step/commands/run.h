// Long moves: until a condition holds, a breakpoint is reached or a watched value changes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/step/commands/debugger.h"

namespace orrery::step {

struct RunEnd {
    enum class Why : std::uint8_t {
        kTarget,
        kCondition,   // `until` holds
        kBreakpoint,  // or a watched value changed; see `text`
        kInterrupted,
    };
    Why why = Why::kTarget;
    unsigned breakpoint = 0;
    std::string text;  // for people: "watch 2: queue[3].vtime was 5, is 7"
};

// What ends a move besides breakpoints and its target. What is empty or null ends nothing.
struct Goal {
    Goal() = default;
    explicit Goal(const Expression* condition) : until(condition) {}
    const Expression* until = nullptr;
    // Asked where pc is one of `pcs`; without any of them everywhere.
    std::function<bool()> holds;
    std::vector<std::uint64_t> pcs;
};

// Forward to position `target`, or to the goal, or to a breakpoint. Makes at least a step, if it is not
// there.
Result<RunEnd> run_forward(Debugger& debugger, std::uint64_t target, const Goal& goal);
// Back to `target`, or to the last position before this one at which the goal held, or a breakpoint.
Result<RunEnd> run_backward(Debugger& debugger, std::uint64_t target, const Goal& goal);
// To `target`, wherever it lies, or to a breakpoint on the way.
Result<RunEnd> run_to(Debugger& debugger, std::uint64_t target);

}  // namespace orrery::step
