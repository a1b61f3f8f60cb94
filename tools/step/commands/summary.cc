// summary
#include "tools/records/figures.h"
#include "tools/step/commands/commands.h"

namespace orrery::step {

Result<Reply> cmd_summary(Debugger& debugger, const Args&) {
    const History& history = debugger.history();
    const Statistics figures = statistics(history, debugger.session().end_time());
    if (figures.queues.empty()) return fail("no queue had any work in this recording");
    return Reply{to_text(history, figures), to_json(history, figures)};
}

}  // namespace orrery::step
