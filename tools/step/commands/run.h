// Long moves: until a condition holds, a breakpoint is reached or a watched value changes.
#pragma once

#include <optional>
#include <string>

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

// Forward to position `target`, or where `until` (may be null) holds, or to a breakpoint. Makes at least a
// step.
Result<RunEnd> run_forward(Debugger& debugger, std::uint64_t target, const Expression* until);
// Back to `target`, or to the last position before this one at which `until` held, or a breakpoint.
Result<RunEnd> run_backward(Debugger& debugger, std::uint64_t target, const Expression* until);

}  // namespace orrery::step
