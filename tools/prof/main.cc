// orrery-prof: what programs do with liborrery, recorded and shown.
#include <dlfcn.h>
#include <fmt/format.h>
#include <orrery/prof.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prof/compare.h"
#include "tools/prof/explain.h"
#include "tools/prof/model.h"
#include "tools/prof/record.h"
#include "tools/prof/show.h"
#include "tools/prof/skus/compare.h"
#include "tools/prof/stat_run.h"
#include "tools/prof/tables.h"
#include "tools/prof/top.h"
#include "tools/text/files.h"
#include "tools/text/shown.h"
#include "tools/text/units.h"

extern "C" const orrProfTool orrery_prof_tool;  // of the recorder

namespace {

using namespace orrery;
using namespace orrery::prof;

constexpr const char* kHelp =
    "usage: orrery-prof top [--interval SECONDS] [--batch N | --once]\n"
    "       orrery-prof record [-o FILE] [--limit MIB] [--counters] [--samples US] [--pc US]\n"
    "                          [--trace-core DEVICE:CORE[:FROM-UNTIL]] [--progress SECONDS]\n"
    "                          [--save SECONDS] [--allow-nothing] -- COMMAND [ARGUMENT...]\n"
    "       orrery-prof stat FILE | [-o OUTPUT] -- COMMAND [ARGUMENT...]\n"
    "       orrery-prof instructions FILE\n"
    "       orrery-prof report FILE [--top N] [--json]\n"
    "       orrery-prof explain FILE [--json]\n"
    "       orrery-prof compare A B | -a FILE... -b FILE... [--top N] [--json]\n"
    "       orrery-prof export FILE --sqlite OUTPUT | --csv FOLDER\n"
    "       orrery-prof merge FILE... -o OUTPUT\n"
    "       orrery-prof trace FILE [--perfetto] -o OUTPUT\n"
    "       orrery-prof html FILE [--source FOLDER]... -o OUTPUT\n"
    "       orrery-prof sku-compare [--quick] [--csv FILE] [--html FILE] [--keep FOLDER] [SKU...]\n"
    "Shows what the cards do now (top, until q or Ctrl-C). Or records what a program and the processes that "
    "it starts do with liborrery (any program, as it is), and\n"
    "shows how often and how long (stat; of a command what the cards count while it runs), how busy and "
    "where nothing ran (report), or makes a timeline of "
    "it, or a page for a browser.\n"
    "\n"
    "  --interval SECONDS  from look to look (1)\n"
    "  --batch N    N tables one after the other, for pipes; --once is --batch 1\n"
    "  -o FILE      the profile (orrery.prof), or where the timeline or page goes\n"
    "  --limit MIB  of the profile of each process (256): what comes behind is counted\n"
    "  --counters   what each kernel and copy did, as the card counts it\n"
    "  --top N      rows of each table (10)\n"
    "  --json       for programs\n"
    "  --samples US the counters of each card that is used, each so many microseconds of its model time\n"
    "  --pc US      where each vector core is in its kernel, so often (0.1 us or more) in model time\n"
    "  --trace-core each instruction of that vector core; FROM and UNTIL are microseconds of model time "
    "from\n"
    "               where the program first uses the card (0-40)\n"
    "  --progress SECONDS  how much there is of the profile, so often while the command runs (10 at a\n"
    "               terminal, else not; 0: not)\n"
    "  --save SECONDS  FILE has what there is, so often while the command runs (0.5 if FILE lies with the "
    "host\n"
    "               of this VM, so that it has that when the VM is lost, else only at the end)\n"
    "  --allow-nothing  a command that never uses liborrery is no failure, and its profile is empty\n"
    "  --sqlite     a database; docs/profile-format.md has its tables\n"
    "  --csv        the same tables as files\n"
    "  --source FOLDER  where sources of kernels lie: the page has those that samples of cores name\n"
    "  --perfetto   for ui.perfetto.dev, a protobuf; without it JSON, which chrome://tracing takes too\n"
    "Exit status: record: the command's, 128 and the number of the signal that ended it, 127 if it cannot "
    "be\n"
    "started, 1 if nothing was recorded or the profile could not be written; else 0, 1 a bad profile, 2 a "
    "mistake\nin the command line.\n";

int mistake(std::string_view what) {
    fmt::print(stderr, "orrery-prof: {}\n{}", text::shown(what), kHelp);
    return 2;
}

int problem(std::string_view what, int status = 1) {
    fmt::print(stderr, "orrery-prof: {}\n", text::shown(what));
    return status;
}

using Words = std::vector<std::string>;

// Of microseconds, with a fraction or without; 0: they are none, or more than a second.
std::uint64_t nanoseconds(std::string_view text) {
    double us = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), us);
    if (error != std::errc() || end != text.data() + text.size() || !(us > 0 && us <= 1e6)) return 0;
    return static_cast<std::uint64_t>(us * 1000 + 0.5);
}

// DEVICE:CORE[:FROM-UNTIL] as kTraceVariable has it; empty: it is none.
std::string trace_of(const std::string& text) {
    unsigned device = 0, core = 0;
    double from = 0, until = 40;
    int end = 0;
    if (std::sscanf(text.c_str(), "%9u:%9u%n", &device, &core, &end) != 2) return "";
    if (text[static_cast<std::size_t>(end)] != '\0') {
        int rest = 0;
        if (std::sscanf(text.c_str() + end, ":%lf-%lf%n", &from, &until, &rest) != 2 ||
            text[static_cast<std::size_t>(end + rest)] != '\0')
            return "";
    }
    if (!(from >= 0 && from < until && until <= 1e9)) return "";
    return fmt::format("{}:{}:{:.0f}:{:.0f}", device, core, from * 1000, until * 1000);
}

// From 1 to `most`, in decimal; 0: it is no such number.
std::uint64_t whole(std::string_view text, std::uint64_t most) {
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && rest == text.data() + text.size() && number <= most ? number : 0;
}

// With a fraction or without; nothing: they are none.
std::optional<double> seconds_of(std::string_view text) {
    double seconds = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc{} || rest != text.data() + text.size() || !(seconds >= 0)) return {};
    return seconds;
}

int run_top(const Words& words) {
    TopOptions options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool more = i + 1 < words.size();
        if (words[i] == "--once") {
            options.times = 1;
        } else if (words[i] == "--batch" && more) {
            options.times = whole(words[++i], 1'000'000'000);
            if (options.times == 0) return mistake(fmt::format("--batch {}: give how many tables", words[i]));
        } else if (words[i] == "--interval" && more) {
            const auto seconds = seconds_of(words[++i]);
            if (!seconds || *seconds < 0.1 || *seconds > 3600)
                return mistake(fmt::format("--interval {}: give 0.1 to 3600 seconds", words[i]));
            options.seconds = *seconds;
        } else {
            return mistake(fmt::format("top does not know {}", words[i]));
        }
    }
    return prof::run_top(options);
}

int run_record(const Words& words) {
    Recording recording;
    bool allow_nothing = false;
    recording.file = "orrery.prof";
    if (::isatty(STDERR_FILENO) == 1) recording.progress = std::chrono::seconds(10);
    std::size_t i = 0;
    for (; i < words.size() && words[i] != "--"; ++i) {
        const bool more = i + 1 < words.size();
        if (words[i] == "-o" && more) {
            recording.file = words[++i];
        } else if (words[i] == "--limit" && more) {
            const std::uint64_t mib = whole(words[++i], 65'536);
            if (mib == 0) return mistake(fmt::format("--limit {}: give 1 to 65536 MiB", words[i]));
            recording.limit = mib << 20;
        } else if (words[i] == "--progress" && more) {
            const auto seconds = seconds_of(words[++i]);
            if (!seconds || *seconds > 3600)
                return mistake(fmt::format("--progress {}: give 0 to 3600 seconds", words[i]));
            recording.progress =
                std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*seconds * 1000)));
        } else if (words[i] == "--save" && more) {
            const auto seconds = seconds_of(words[++i]);
            if (!seconds || *seconds < 0.01 || *seconds > 3600)
                return mistake(fmt::format("--save {}: give 0.01 to 3600 seconds", words[i]));
            recording.save = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(*seconds * 1000)));
        } else if (words[i] == "--counters") {
            recording.counters = true;
        } else if (words[i] == "--allow-nothing") {
            allow_nothing = true;
        } else if (words[i] == "--samples" && more) {
            const std::uint64_t us = whole(words[++i], 4'000'000);
            if (us == 0) return mistake(fmt::format("--samples {}: give 1 to 4000000 us", words[i]));
            recording.sample_ns = us * 1'000;
        } else if (words[i] == "--pc" && more) {
            recording.pc_ns = nanoseconds(words[++i]);
            if (recording.pc_ns < 100)
                return mistake(fmt::format("--pc {}: give 0.1 to 1000000 us", words[i]));
        } else if (words[i] == "--trace-core" && more) {
            recording.trace = trace_of(words[++i]);
            if (recording.trace.empty())
                return mistake(
                    fmt::format("--trace-core {}: give DEVICE:CORE or DEVICE:CORE:FROM-UNTIL", words[i]));
        } else {
            return mistake(fmt::format("record does not know {}", words[i]));
        }
    }
    if (i + 1 >= words.size()) return mistake("record wants a command, behind --");
    recording.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
    Dl_info found{};
    // By a function of it: the constant may be a copy in this program.
    if (::dladdr(reinterpret_cast<const void*>(orrery_prof_tool.start), &found) == 0 ||
        found.dli_fname == nullptr)
        return problem("the recorder's library cannot be found");
    recording.recorder = found.dli_fname;
    const auto recorded = record(recording);
    if (!recorded) return problem(recorded.error().text, 127);
    if (!recorded->fault.empty())
        return problem(recorded->fault, recorded->status == 0 ? 1 : recorded->status);
    if (recorded->signal != 0) {
        (void)problem(fmt::format(
            "the command was ended by signal {} ({}), it or a tool in it{}", recorded->signal,
            ::strsignal(recorded->signal),
            recorded->processes == 0 ? "" : ": the profile has what had ended and been told until then"));
    }
    for (const std::string& line : recorded->told)
        (void)problem(line);
    if (recorded->processes == 0) {
        (void)problem(recorded->told.empty()
                          ? "nothing was recorded: no process of the command called liborrery (one that is "
                            "linked with it, not statically)"
                          : "nothing was recorded that can be read");
        if (!allow_nothing) return recorded->status == 0 ? 1 : recorded->status;
        std::error_code error;
        std::filesystem::resize_file(recording.file, 0, error);
        return recorded->status == 0 && error ? 1 : recorded->status;
    }
    fmt::print(stderr, "orrery-prof: {} bytes of {} process{} in {}\n", text::grouped(recorded->bytes),
               recorded->processes, recorded->processes == 1 ? "" : "es", text::shown(recording.file));
    if (recorded->lost > 0)
        (void)problem(
            fmt::format("{} records were lost: give a larger --limit", text::grouped(recorded->lost)));
    return recorded->status;
}

int run_listing(const Words& words, std::string_view command, std::string (*listing)(const Model&)) {
    if (words.size() != 1) return mistake(fmt::format("{} wants a profile", command));
    const auto model = read_model(words[0]);
    if (!model) return problem(model.error().text);
    fmt::print("{}", listing(*model));
    return std::fflush(stdout) == 0 ? 0 : 1;
}

int run_stat(const Words& words) {
    const auto dashes = std::ranges::find(words, "--");
    if (dashes == words.end()) return run_listing(words, "stat", stat_text);
    const Words command(dashes + 1, words.end());
    std::string file;
    for (auto word = words.begin(); word != dashes; ++word) {
        if (*word != "-o" || word + 1 == dashes) return mistake(fmt::format("stat does not know {}", *word));
        file = *++word;
    }
    if (command.empty()) return mistake("stat wants a command behind --, or a profile");
    return prof::run_stat(command, file);
}

text::Result<std::uint64_t> rows(const std::string& word) {
    const auto number = text::parse_number(word);
    if (!number || *number < 1 || *number > 1'000'000)
        return text::fail("--top {}: give 1 to 1000000 rows", word);
    return number;
}

int run_report(const Words& words) {
    std::string file;
    std::uint64_t top = 10;
    bool json = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "--top" && i + 1 < words.size()) {
            const auto number = rows(words[++i]);
            if (!number) return mistake(number.error().text);
            top = *number;
        } else if (words[i] == "--json") {
            json = true;
        } else if (file.empty() && !words[i].starts_with("-")) {
            file = words[i];
        } else {
            return mistake(fmt::format("report does not know {}", words[i]));
        }
    }
    if (file.empty()) return mistake("report wants a profile");
    const auto model = read_model(file);
    if (!model) return problem(model.error().text);
    fmt::print("{}", json ? report_json(*model, top) : report_text(*model, top));
    return std::fflush(stdout) == 0 ? 0 : 1;
}

int run_explain(const Words& words) {
    const bool json = words.size() == 2 && words[1] == "--json";
    if (words.empty() || words[0].starts_with("-") || (words.size() > 1 && !json))
        return mistake("explain wants a profile, and may have --json behind it");
    const auto model = read_model(words[0]);
    if (!model) return problem(model.error().text);
    fmt::print("{}", json ? explain_json(*model) : explain_text(*model));
    return std::fflush(stdout) == 0 ? 0 : 1;
}

// False: one cannot be read, which was said.
bool read_side(const Words& files, std::vector<Model>& side) {
    for (const std::string& file : files) {
        auto model = read_model(file);
        if (!model) return problem(model.error().text) == 0;
        side.push_back(*std::move(model));
    }
    return true;
}

int run_compare(const Words& words) {
    Words plain_files, sides[2];
    Words* to = &plain_files;
    std::uint64_t top = 10;
    bool json = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "-a" || words[i] == "-b") {
            to = &sides[words[i] == "-b" ? 1 : 0];
        } else if (words[i] == "--top" && i + 1 < words.size()) {
            const auto number = rows(words[++i]);
            if (!number) return mistake(number.error().text);
            top = *number;
        } else if (words[i] == "--json") {
            json = true;
        } else if (words[i].starts_with("-")) {
            return mistake(fmt::format("compare does not know {}", words[i]));
        } else {
            to->push_back(words[i]);
        }
    }
    if (plain_files.size() == 2 && sides[0].empty() && sides[1].empty()) {
        sides[0] = {plain_files[0]};
        sides[1] = {plain_files[1]};
    } else if (!plain_files.empty() || sides[0].empty() || sides[1].empty()) {
        return mistake("compare wants two profiles, or -a and -b with some behind each");
    }
    std::vector<Model> a, b;
    if (!read_side(sides[0], a) || !read_side(sides[1], b)) return 1;
    fmt::print("{}", json ? compare_json(a, b) : compare_text(a, b, top));
    return std::fflush(stdout) == 0 ? 0 : 1;
}

int run_export(const Words& words) {
    if (words.size() != 3 || (words[1] != "--sqlite" && words[1] != "--csv") || words[0].starts_with("-"))
        return mistake("export wants a profile, and --sqlite OUTPUT or --csv FOLDER");
    const auto model = read_model(words[0]);
    if (!model) return problem(model.error().text);
    const auto written = words[1] == "--csv" ? export_csv(*model, words[2]) : export_sqlite(*model, words[2]);
    return written ? 0 : problem(written.error().text);
}

int run_merge(const Words& words) {
    Words files;
    std::string output;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "-o" && i + 1 < words.size()) {
            output = words[++i];
        } else if (!words[i].starts_with("-")) {
            files.push_back(words[i]);
        } else {
            return mistake(fmt::format("merge does not know {}", words[i]));
        }
    }
    if (files.empty() || output.empty()) return mistake("merge wants profiles and -o OUTPUT");
    const auto merged = merge(files, output);
    return merged ? 0 : problem(merged.error().text);
}

int run_trace(const Words& words) {
    std::string file, output;
    bool perfetto = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "-o" && i + 1 < words.size()) {
            output = words[++i];
        } else if (words[i] == "--perfetto") {
            perfetto = true;
        } else if (file.empty() && !words[i].starts_with("-")) {
            file = words[i];
        } else {
            return mistake(fmt::format("trace does not know {}", words[i]));
        }
    }
    if (file.empty() || output.empty()) return mistake("trace wants a profile and -o OUTPUT");
    const auto model = read_model(file);
    if (!model) return problem(model.error().text);
    const auto written = text::write_file(output, perfetto ? perfetto_trace(*model) : chrome_json(*model));
    return written ? 0 : problem(written.error().text);
}

// Only what samples name is read, and only from these folders: names of a profile are anybody's.
std::map<std::string, std::string> sources_of(const Model& model, const Words& folders) {
    constexpr std::uintmax_t kLargest = std::uintmax_t{1} << 20, kAll = 32 * kLargest;
    std::uintmax_t taken = 0;
    std::map<std::string, std::string> sources;
    for (const std::string& name : folders.empty() ? std::set<std::string>() : sampled_sources(model)) {
        for (const std::string& folder : folders) {
            const std::filesystem::path file = std::filesystem::path(folder) / name;
            std::error_code error;
            // A link may lead out of the folder.
            if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(file, error)) ||
                std::filesystem::file_size(file, error) > std::min(kLargest, kAll - taken))
                continue;
            if (const auto bytes = text::read_file(file)) {
                taken += std::min<std::uintmax_t>(bytes->size(), kAll - taken);
                sources.try_emplace(name, bytes->begin(), bytes->end());
                break;
            }
        }
    }
    return sources;
}

int run_html(const Words& words) {
    std::string file, output;
    Words folders;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "-o" && i + 1 < words.size()) {
            output = words[++i];
        } else if (words[i] == "--source" && i + 1 < words.size()) {
            folders.push_back(words[++i]);
        } else if (file.empty() && !words[i].starts_with("-")) {
            file = words[i];
        } else {
            return mistake(fmt::format("html does not know {}", words[i]));
        }
    }
    if (file.empty() || output.empty()) return mistake("html wants a profile and -o OUTPUT");
    const auto model = read_model(file);
    if (!model) return problem(model.error().text);
    const auto written = text::write_file(
        output, html_page(*model, file.substr(file.rfind('/') + 1), sources_of(*model, folders)));
    return written ? 0 : problem(written.error().text);
}

}  // namespace

int main(int argc, char** argv) {
    const Words words(argv + 1, argv + argc);
    if (words.empty()) return mistake("say what to do");
    const Words rest(words.begin() + 1, words.end());
    if (words[0] == "top") return run_top(rest);
    if (words[0] == "record") return run_record(rest);
    if (words[0] == "stat") return run_stat(rest);
    if (words[0] == "instructions") return run_listing(rest, words[0], instructions_text);
    if (words[0] == "report") return run_report(rest);
    if (words[0] == "explain") return run_explain(rest);
    if (words[0] == "compare") return run_compare(rest);
    if (words[0] == "export") return run_export(rest);
    if (words[0] == "merge") return run_merge(rest);
    if (words[0] == "trace") return run_trace(rest);
    if (words[0] == "html") return run_html(rest);
    if (words[0] == "sku-compare") return run_sku_compare(rest);
    if (words[0] == "--help" || words[0] == "-h") {
        fmt::print("{}", kHelp);
        return 0;
    }
    return mistake(fmt::format("there is no {}", words[0]));
}
