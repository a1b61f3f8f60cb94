// Runs another command until it ends.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tools/text/result.h"

namespace orrery::child {

// Called each so often in the meantime.
struct Ticks {
    std::chrono::milliseconds each{0};  // 0: never
    std::function<void()> tick;
};
// Its status as waitpid() has it; `prepare` runs in its process. A failure: it has not run. Signals that ask
// to end go to it meanwhile. One at a time.
text::Result<int> run(const std::vector<std::string>& command, const std::function<void()>& prepare = {},
                      const Ticks& ticks = {});
// As shells have it: 128 and a signal's number.
int exit_status(int status);

}  // namespace orrery::child
