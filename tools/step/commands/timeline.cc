// timeline
#include <orrery/fw/trace.h>

#include <algorithm>

#include "tools/records/names.h"
#include "tools/step/commands/commands.h"
#include "tools/step/report/gantt.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {

std::vector<std::string> engine_names(Debugger& debugger) {
    std::vector<std::string> names;
    // At the end the firmware knows all its engines.
    Session& session = debugger.session();
    const std::uint64_t here = session.position();
    session.seek(session.end());
    if (const auto snapshot = debugger.snapshot()) {
        for (const PortRow& port : snapshot->ports) {
            if (port.number >= names.size()) names.resize(port.number + 1);
            names[port.number] = fmt::format("{} {}", engine_kind_name(port.kind), port.number);
        }
    }
    session.seek(here);
    return names;
}

Result<Reply> cmd_timeline(Debugger& debugger, const Args& args) {
    const History& history = debugger.history();
    if (history.records().empty())
        return fail("the firmware wrote no trace records: there is nothing to draw");
    // Work only: the boot and the silence behind the last job say nothing.
    Time from = history.begin(), to = history.end();
    for (const Record& record : history.records()) {
        if (record.type != ORR_TRACE_DOORBELL) continue;
        from = record.time;
        break;
    }
    if (args.words.size() > 2)
        return fail("'timeline [FROM] [TO]', each a time with its unit and without a space, as in 12.5us");
    if (!args.words.empty()) {
        const auto moment = parse_moment(debugger, args.words[0]);
        if (!moment) return std::unexpected(moment.error());
        from = *moment;
    }
    if (args.words.size() == 2) {
        const auto moment = parse_moment(debugger, args.words[1]);
        if (!moment) return std::unexpected(moment.error());
        to = *moment;
    }
    if (to <= from)
        return fail("the time line would end at {}, before it begins at {}", moment(to), moment(from));
    if (from >= history.end()) {
        return fail("nothing happens from {} on: the last event is at {}", moment(from),
                    moment(history.end()));
    }
    to = std::min(to, std::max(history.end(), debugger.session().end_time()));
    constexpr unsigned kLabel = 34;
    const unsigned columns =
        std::clamp(debugger.style().width > kLabel ? debugger.style().width - kLabel : 20u, 20u, 160u);
    const Gantt gantt = make_gantt(history, engine_names(debugger), from, to, columns);
    Reply reply;
    reply.text = draw(gantt);
    const auto rows = [](const std::vector<GanttRow>& from_rows) {
        Json list = Json::array();
        for (const GanttRow& row : from_rows)
            list.push_back({{"label", row.label}, {"cells", row.cells}});
        return list;
    };
    reply.data = {{"from_ps", gantt.from},    {"to_ps", gantt.to},
                  {"column_ps", gantt.cell},  {"engines", rows(gantt.engines)},
                  {"core", gantt.core.cells}, {"queues", rows(gantt.queues)}};
    return reply;
}

}  // namespace orrery::step
