// waits
#include "tools/records/names.h"
#include "tools/records/wait_graph.h"
#include "tools/step/commands/commands.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {

Result<Reply> cmd_waits(Debugger& debugger, const Args&) {
    const History& history = debugger.history();
    const Time now = debugger.session().time();
    const WaitGraph graph = wait_graph(history, debugger.session().position());
    Reply reply;
    Json list = Json::array();
    Table table({{""},
                 {"queue"},
                 {"waits for"},
                 {"is", Align::kRight},
                 {"for", Align::kRight},
                 {"signal comes from"}});
    for (const WaitEdge& edge : graph.edges) {
        const Wait& wait = history.waits()[edge.wait];
        std::string source = "nobody in this recording";
        if (edge.found_by_firmware) {
            source = history.queue(*edge.holder, now) + ", says the firmware";
        } else if (edge.holder) {
            source = fmt::format("{}, at {}", history.queue(*edge.holder, now), moment(edge.woken));
        } else if (edge.woken != kNever) {
            source = fmt::format("{}, at {}", wake_name(wait.wake), moment(edge.woken));
        }
        table.row({edge.in_cycle ? debugger.style().bad("*") : "", history.queue(edge.queue, now),
                   fmt::format("{} >= {}", history.memory(wait.memory), wait.value),
                   edge.last_value ? fmt::format("{}", *edge.last_value) : "?", duration(now - wait.from),
                   source});
        Json json = {{"queue", edge.queue},
                     {"memory", wait.memory},
                     {"memory_name", history.memory(wait.memory)},
                     {"va", wait.va},
                     {"value", wait.value},
                     {"last_value", edge.last_value ? Json(*edge.last_value) : Json(nullptr)},
                     {"index", wait.index},
                     {"since_ps", wait.from},
                     {"signal_from", edge.holder ? Json(*edge.holder) : Json(nullptr)},
                     {"signal_from_firmware", edge.found_by_firmware},
                     {"woken_ps", edge.woken == kNever ? Json(nullptr) : Json(edge.woken)},
                     {"in_cycle", edge.in_cycle}};
        list.push_back(std::move(json));
    }
    reply.text = graph.edges.empty() ? "no queue waits for a semaphore\n" : table.text();
    Json cycles = Json::array();
    for (const auto& cycle : graph.cycles) {
        std::string path;
        for (const std::uint32_t queue : cycle)
            path += history.queue(queue, now) + " -> ";
        path += history.queue(cycle.front(), now);
        reply.text += debugger.style().bad("* deadlock") + ": " + path + "\n";
        cycles.push_back(cycle);
    }
    reply.data["waits"] = std::move(list);
    reply.data["cycles"] = std::move(cycles);
    return reply;
}

}  // namespace orrery::step
