// export
#include "tools/step/report/export.h"
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
        const About& about = debugger.session().about();
        done = write(file,
                     perfetto_trace(
                         history, {fmt::format("{} {:016x}", about.sku, about.uid), engine_names(debugger)}),
                     "a Perfetto trace (open it in ui.perfetto.dev)");
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
