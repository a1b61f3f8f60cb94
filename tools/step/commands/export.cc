// export
#include "tools/step/report/export.h"
#include "tools/step/commands/cards.h"
#include "tools/step/commands/commands.h"
#include "tools/step/words.h"
#include "tools/text/files.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

// "jobs.csv" and "jobs-decisions.csv"
std::string beside(const std::string& file, const std::string& what) {
    const std::size_t dot = file.rfind('.');
    const std::size_t slash = file.rfind('/');
    if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return file + "-" + what;
    return file.substr(0, dot) + "-" + what + file.substr(dot);
}

// All cards of the prompt, on their common time line.
std::vector<ExportCard> exported(Debugger& debugger) {
    const auto card = [](Debugger& one, const std::string& which) {
        ExportCard made;
        made.history = &one.history();
        const About& about = one.session().about();
        made.name = fmt::format("{} {} {:016x}", which, about.sku, about.uid);
        made.engine_names = engine_names(one);
        made.uid = about.uid;
        made.bursts = &one.session().bursts();
        return made;
    };
    if (debugger.cards == nullptr) return {card(debugger, "card")};
    std::vector<ExportCard> all;
    for (std::size_t n = 0; n < debugger.cards->all.size(); ++n) {
        Debugger& one = *debugger.cards->all[n];
        all.push_back(card(one, card_name(n) + ":"));
        all.back().system_time = system_clock(one.session());
    }
    return all;
}

}  // namespace

Result<Reply> cmd_export(Debugger& debugger, const Args& args) {
    if (args.words.size() != 2 || (args.words[0] != "perfetto" && args.words[0] != "csv"))
        return fail("'export perfetto FILE' or 'export csv FILE'");
    const History& history = debugger.history();
    const std::string& file = args.words[1];
    Reply reply;
    reply.data["files"] = Json::array();
    const auto write = [&](const std::string& name, const std::string& bytes,
                           const std::string& what) -> Result<void> {
        if (auto done = write_file(name, bytes); !done) return done;
        reply.data["files"].push_back({{"file", name}, {"bytes", bytes.size()}, {"contents", what}});
        reply.text += fmt::format("{}: {}, {} bytes\n", name, what, grouped(bytes.size()));
        return {};
    };
    Result<void> done;
    if (args.words[0] == "perfetto") {
        const std::vector<ExportCard> cards = exported(debugger);
        const std::string of = cards.size() == 1 ? "" : fmt::format(" of {} cards", cards.size());
        done = write(file, perfetto_trace(cards),
                     fmt::format("a Perfetto trace{} (open it in ui.perfetto.dev)", of));
    } else {
        done = write(file, jobs_csv(history), fmt::format("{} jobs", history.jobs().size()));
        if (done)
            done = write(beside(file, "decisions"), decisions_csv(history),
                         fmt::format("{} decisions", history.decisions().size()));
    }
    if (!done) return std::unexpected(done.error());
    return reply;
}

}  // namespace orrery::step
