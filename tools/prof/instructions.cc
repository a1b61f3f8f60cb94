// Instructions of vector cores that were traced, as a listing.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "tools/prof/pc_lines.h"
#include "tools/prof/show.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::prof {

std::string instructions_text(const Model& model) {
    using text::Align;
    std::string text;
    for (const Activity& activity : model.processes) {
        const Process& process = *activity.process;
        if (process.instructions.empty()) continue;
        // Jobs come in the order in which they ended.
        std::vector<const PcSampleRecord*> all;
        for (const PcSampleRecord& each : process.instructions)
            all.push_back(&each);
        std::ranges::sort(all, [](const PcSampleRecord* a, const PcSampleRecord* b) {
            return std::tie(a->device, a->core, a->time_ps, a) < std::tie(b->device, b->core, b->time_ps, b);
        });
        text += (text.empty() ? "" : "\n") + process_title(model, activity);
        text::Table table({{"device"},
                           {"core"},
                           {"at, ps", Align::kRight},
                           {"cycles", Align::kRight},
                           {"at what"},
                           {"kernel"},
                           {"group", Align::kRight},
                           {"offset", Align::kRight},
                           {"source"}});
        for (const PcSampleRecord* each : all) {
            const std::string_view source = activity.text(each->source);
            table.row({fmt::format("{}", each->device), fmt::format("{}", each->core),
                       fmt::format("{}", each->time_ps), text::grouped(count_of(*each)),
                       name_of_stall(each->stall), plain(activity.text(each->head.text)),
                       text::grouped(each->group), fmt::format("{:#x}", each->offset),
                       plain(source.substr(source.rfind('/') + 1))});
        }
        text += table.text("  ") + missing_text(process);
    }
    if (!text.empty()) return text;
    text = "no instructions were recorded: record --trace-core DEVICE:CORE, of a core that does something\n";
    for (const Activity& activity : model.processes) {
        if (const std::string missing = missing_text(*activity.process); !missing.empty())
            text += process_title(model, activity) + missing;
    }
    return text;
}

}  // namespace orrery::prof
