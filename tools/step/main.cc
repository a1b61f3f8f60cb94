// orrery-step: replay what a card's control core saw, forward and backward, and ask why.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/step/bundle.h"
#include "tools/step/commands/cards.h"
#include "tools/step/commands/debugger.h"
#include "tools/step/commands/script.h"
#include "tools/step/gdb.h"
#include "tools/step/init_file.h"
#include "tools/step/prompt.h"
#include "tools/step/scenario_commands.h"
#include "tools/text/progress.h"
#include "tools/text/shown.h"

namespace {

using namespace orrery::step;

constexpr const char* kFooter =
    "\nOf the recording itself:\n"
    "  orrery-step run.otrace                                  a prompt; 'help' lists its commands\n"
    "  orrery-step run.otrace -c summary -c 'goto 1ms' -c why  some commands\n"
    "  orrery-step run.otrace --script FILE --json             commands of a file, an object of JSON each\n"
    "  orrery-step card0.otrace card1.otrace -c together       linked cards on one time line\n"
    "  orrery-step run.otrace --gdb 1234                       then: gdb-multiarch -ex 'target remote "
    ":1234'\n"
    "Other work:\n"
    "  orrery-step bundle report.tar                           what a run failed of, out of orrery-vm's "
    "report\n"
    "  orrery-step run SCENARIO -o FILE                        run a scenario on a card of its own, and "
    "record it\n"
    "  orrery-step whatif TRACE --policy slice_us=50           the same arrivals under another policy or "
    "firmware\n"
    "A prompt begins with the commands of ~/.config/orrery/step (under $XDG_CONFIG_HOME) and of .orrery-step "
    "in the\ncurrent folder, if they are there; scripts do not, so that they say the same everywhere.\n"
    "Exit status: 0, 1 if a command failed or a scenario or what-if left work over, 2 a mistake in the "
    "command line.\n";

Style terminal_style() {
    Style style;
    if (isatty(STDOUT_FILENO) == 1) {
        const char* no_colour = std::getenv("NO_COLOR");
        const char* term = std::getenv("TERM");
        style.colour = (no_colour == nullptr || *no_colour == '\0') &&
                       (term == nullptr || std::string_view(term) != "dumb");
        winsize size{};
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60) style.width = size.ws_col;
    }
    return style;
}

template <typename... From>
Result<std::unique_ptr<Session>> open_with_progress(From&&... from) {
    orrery::text::Progress progress("replaying");
    return open_session(std::forward<From>(from)..., [&](double done) {
        progress.at(done);
        return true;
    });
}

struct TraceOptions {
    std::string script, elf;
    std::vector<std::string> traces, commands, sources;
    bool json = false, no_init = false;
    int gdb_port = -1;
};

// A mistake in such a file is said, and the rest of it left out.
void run_init(Debugger& debugger, bool none) {
    if (none) return;
    std::string note;
    for (const std::string& file : init_files(note)) {
        const auto reply = debugger.execute("source '" + file + "'");
        if (reply) fmt::print("{}", shown(reply->text));
        if (const std::string error = reply ? reply->failure : reply.error().text; !error.empty())
            fmt::print(stderr, "orrery-step: {}\n", shown(error));
    }
    if (!note.empty()) fmt::print(stderr, "orrery-step: {}\n", note);
}

int complain(const Error& error) {
    fmt::print(stderr, "orrery-step: {}\n", shown(error.text));
    return 1;
}

Debugger::Options debugger_options(const TraceOptions& options) {
    Debugger::Options setup;
    setup.elf = options.elf;
    setup.style = terminal_style();
    setup.open = [](const std::string& file) { return open_with_progress(file); };
    setup.source_folders = options.sources;
    setup.source_folders.emplace_back(ORRERY_SOURCE_FOLDER);
    return setup;
}

Result<std::vector<std::string>> given_lines(const TraceOptions& options) {
    std::vector<std::string> lines;
    if (!options.script.empty()) {
        auto script = script_lines(options.script);
        if (!script) return script;
        lines = std::move(*script);
    }
    lines.insert(lines.end(), options.commands.begin(), options.commands.end());
    return lines;
}

int run_cards(Cards& cards, const TraceOptions& options, std::vector<std::string> lines) {
    Debugger& first = *cards.all.front();
    const bool is_script = !options.script.empty() || !options.commands.empty();
    if (!is_script && isatty(STDIN_FILENO) == 1 && !options.json)
        return run_prompt(first, [&] { run_init(first, options.no_init); });
    if (!is_script) {
        auto script = script_lines("-");
        if (!script) return complain(script.error());
        lines = std::move(*script);
    }
    if (!options.json) {
        for (const auto& debugger : cards.all)
            for (const std::string& note : debugger->notes())
                fmt::print(stderr, "orrery-step: {}{}\n",
                           cards.all.size() > 1 ? debugger->session().about().file + ": " : "", note);
    }
    return run_script(first, lines, options.json, stdout) ? 0 : 1;
}

struct BundleOptions {
    std::string file, extract;
    bool where = false;
    TraceOptions look;
};

int run_bundle(const BundleOptions& options) {
    if (!options.extract.empty()) {
        const auto bundle = orrery::bundle::read(options.file);
        if (!bundle) return complain(bundle.error());
        const auto done = extract(*bundle, options.extract);
        return done ? 0 : complain(done.error());
    }
    auto lines = given_lines(options.look);
    if (!lines) return complain(lines.error());
    const auto opened = open_bundle(options.file, debugger_options(options.look),
                                    [](std::vector<std::uint8_t> bytes, const std::string& name) {
                                        return open_with_progress(std::move(bytes), name);
                                    });
    if (!opened) return complain(opened.error());
    OpenBundle& bundle = **opened;
    if (options.where) {
        fmt::print("{}", shown(where(bundle, options.look.json)));
        return 0;
    }
    const bool looks = !options.look.script.empty() || !options.look.commands.empty();
    if (!options.look.json) fmt::print("{}", shown(summary(bundle)));
    if (!looks && (isatty(STDIN_FILENO) != 1 || options.look.json)) {
        if (options.look.json) fmt::print("{}", where(bundle, true));
        return 0;
    }
    if (bundle.cards.all.empty())
        return looks ? complain({options.file + ": there is no recording in it"}) : 0;
    return run_cards(bundle.cards, options.look, std::move(*lines));
}

int run_trace(const TraceOptions& options) {
    if (options.gdb_port >= 0) {
        if (options.traces.size() > 1) return complain({"gdb gets one recording at a time"});
        return serve_gdb(options.traces.front(), options.elf, static_cast<unsigned>(options.gdb_port));
    }
    auto lines = given_lines(options);
    if (!lines) return complain(lines.error());
    const Debugger::Options setup = debugger_options(options);
    Cards cards;
    for (const std::string& trace : options.traces) {
        auto session = open_with_progress(trace);
        if (!session) return complain(session.error());
        auto debugger = Debugger::make(std::move(*session), setup);
        if (!debugger) return complain(debugger.error());
        if (options.traces.size() > 1) (*debugger)->cards = &cards;
        cards.all.push_back(std::move(*debugger));
    }
    return run_cards(cards, options, std::move(*lines));
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "orrery-step: replays a recording of a card's scheduler, steps it forward and backward, and says "
        "why");
    app.footer(kFooter);
    app.set_help_flag("-h,--help", "this text");
    TraceOptions options;
    app.add_option("TRACE", options.traces, "a recording (*.otrace); several are those of linked cards");
    app.add_option("-s,--script", options.script, "commands from a file (-: standard input)");
    app.add_option("-c,--command", options.commands, "a command; may be given several times")

        ->allow_extra_args(false);
    app.add_flag("--json", options.json, "one JSON object for each command");
    app.add_option("--elf", options.elf,
                   "the firmware's ELF file with debug information, if it is not found; none: no symbols");
    app.add_option("--source", options.sources, "folder with the firmware's source tree")

        ->allow_extra_args(false);
    app.add_flag("--no-init", options.no_init, "a prompt without the commands of init files");
    app.add_option("--gdb", options.gdb_port,
                   "serve the replay to gdb on this TCP port of the loopback interface")
        ->check(CLI::Range(0, 65535));
    app.require_subcommand(0, 1);

    BundleOptions report;
    CLI::App* bundle_app =
        app.add_subcommand("bundle", "a report of orrery-vm's: what the run failed of, and the moment of it");
    bundle_app->add_option("FILE", report.file, "a report (orrery-vm --report)")->required();
    bundle_app->add_flag("--where", report.where, "say only what failed first, on which card, at which step");
    bundle_app->add_option("--extract", report.extract, "write its files into this folder, and no more");
    bundle_app->add_option("-s,--script", report.look.script, "commands from a file, from that moment on");
    bundle_app->add_option("-c,--command", report.look.commands, "a command; may be given several times")
        ->allow_extra_args(false);
    bundle_app->add_flag("--json", report.look.json, "as JSON");
    bundle_app->add_option("--elf", report.look.elf, "as without 'bundle'");

    RunOptions run;
    CLI::App* run_app = app.add_subcommand("run", "run a scenario on a card of its own, and record it");
    run_app->add_option("SCENARIO", run.scenario, "a scenario (*.toml)")->required();
    run_app->add_option("-o,--output", run.output,
                        "the recording; with several cards NAME.otrace becomes NAME-0.otrace and so on");
    run_app->add_option("--firmware", run.firmware, "a firmware image or ELF; else that of this build");
    run_app
        ->add_option(
            "--policy", run.policy,
            "NAME=VALUE of the firmware's policy, as in slice_us=50 or flags=no_preemption; may be given "
            "several times")

        ->allow_extra_args(false);
    run_app->add_flag("--json", run.json, "all results as JSON");
    run_app->add_flag("--print", run.print, "show the scenario as it was understood, and do not run it");

    WhatIfCommand whatif;
    CLI::App* whatif_app =
        app.add_subcommand("whatif", "the arrivals of a recording with another firmware or policy");
    whatif_app->add_option("TRACE", whatif.trace, "a recording (*.otrace)")->required();
    whatif_app->add_option("--firmware", whatif.firmware, "a firmware image or ELF");
    whatif_app
        ->add_option("--policy", whatif.policy, "NAME=VALUE; may be given several times")

        ->allow_extra_args(false);
    whatif_app->add_option("-o,--output", whatif.output, "a recording of what was played");
    whatif_app->add_flag("--json", whatif.json, "as JSON");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (bundle_app->parsed()) return run_bundle(report);
    if (run_app->parsed()) return run_scenario(run);
    if (whatif_app->parsed()) return run_whatif(whatif);
    if (options.traces.empty()) {
        fmt::print(stderr, "orrery-step: which recording? 'orrery-step run.otrace'; --help shows more\n");
        return 2;
    }
    return run_trace(options);
}
