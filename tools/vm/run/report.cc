// A bundle: what is known of the run, in one file.
#include <fmt/format.h>
#include <orrery/hw/bar0.h>
#include <orrery/hw/trace.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>

#include "emulator/api/flight.h"
#include "tools/bundle/bundle.h"
#include "tools/vm/run/run.h"
#include "tools/vm/run/taken_file.h"

namespace orrery::vm {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

// The end of a log is what matters of a long one.
constexpr std::uint64_t kMostLog = 16 << 20;
constexpr std::uint64_t kMostFile = 1 << 30;

const char* how(int code, bool vm_failed, int signal) {
    if (!vm_failed) return signal != 0 ? "signal" : "command";
    switch (code) {
        case kExitKernelReport:
            return "kernel";
        case kExitCardDied:
            return "card";
        case kExitTimeLimit:
            return "time limit";
        case kExitModule:
            return "module";
        case kExitVmEnded:
            return "vm";
        default:
            return "setup";
    }
}

}  // namespace

void Run::report_end() {
    if (options_.report.empty() && !vm_failed_) return;
    report(true);
}

void Run::report_now() {
    signalfd_siginfo info;
    while (::read(signals_.report.get(), &info, sizeof info) == sizeof info) {
    }
    report(false);
}

// It never changes how the run ends, also where there is too little memory for it.
void Run::report(bool ended) {
    try {
        write_report(options_.report.empty() ? logs_ / "report.tar" : options_.report, ended);
    } catch (const std::exception& error) {
        fmt::print(stderr, "orrery-vm: the report cannot be written: {}\n", error.what());
    }
}

void Run::write_report(const fs::path& file, bool ended) {
    bundle::Writer writer(file);
    ordered_json missing = ordered_json::array();
    const auto take = [&](const std::string& name, const fs::path& from, std::uint64_t most, Taken what) {
        std::string why;
        if (const auto opened = open_taken(from, options_.share, most, what)) {
            const auto added = writer.add(name, opened->file.get(), opened->from, opened->bytes);
            if (added) return;
            why = added.error().text;
        } else {
            why = opened.error().text;
        }
        missing.push_back(fmt::format("{} ({}: {})", name, from.string(), why));
    };
    // A card that may end says nothing of what failed.
    const char* const died = options_.allow_card_exit ? "ended" : "died";
    if (!ended) note_deaths();
    ordered_json cards = ordered_json::array();
    for (const Card& card : cards_) {
        ordered_json one{{"index", card.index}};
        if (card.died) one[died] = *card.died;
        if (card.index < options_.faults.size() && !options_.faults[card.index].empty())
            one["faults"] = options_.faults[card.index];
        const std::string name = fmt::format("card{}.otrace", card.index);
        if (card.flight) {
            const auto kept = emu::flight_recording(card.flight.get());
            const auto added =
                kept ? writer.add(name, {reinterpret_cast<const char*>(kept->data()), kept->size()})
                     : text::fail("{}", kept.error());
            if (!added) missing.push_back(fmt::format("{} ({})", name, added.error().text));
        } else if (!options_.record.empty()) {
            take(name, recording_of(options_, card.index), kMostFile, Taken::kWhole);
        }
        if (writer.has(name)) one["recording"] = name;
        one["log"] = fmt::format("card{}.log", card.index);
        take(one["log"], card.log, kMostLog, Taken::kEnd);
        cards.push_back(std::move(one));
    }
    ordered_json switches = ordered_json::array();
    for (const Card& each : switches_) {
        ordered_json one{{"index", each.index}, {"log", fmt::format("switch{}.log", each.index)}};
        if (each.died) one[died] = *each.died;
        if (each.index < options_.switch_faults.size() && !options_.switch_faults[each.index].empty())
            one["faults"] = options_.switch_faults[each.index];
        take(one["log"], each.log, kMostLog, Taken::kEnd);
        switches.push_back(std::move(one));
    }
    take("guest.log", logs_ / "guest.log", kMostLog, Taken::kEnd);
    take("qemu.log", logs_ / "qemu.log", kMostLog, Taken::kEnd);
    for (std::size_t i = 0; i < options_.report_files.size(); ++i) {
        const fs::path& from = options_.report_files[i];
        std::string name = from.filename().string();
        // The names of what orrery-vm itself puts there stay free, also where that is missing.
        if (!bundle::good_name(name) || writer.has(name) || name.ends_with(".log") ||
            name.ends_with(".otrace"))
            for (std::size_t n = i; writer.has(name = fmt::format("file{}", n));)
                ++n;
        take(name, from, kMostFile, Taken::kWhole);
    }
    ordered_json links = ordered_json::array();
    for (const auto& [first, second] : options_.joined.links)
        links.push_back({first.card, first.port, second.card, second.port});

    ordered_json manifest{{"versions",
                           {{"orrery", ORRERY_VERSION},
                            {"hardware", fmt::format("{}.{}", ORR_HW_VERSION >> 16, ORR_HW_VERSION & 0xffff)},
                            {"recordings", fmt::format("{}.{}", ORR_OTRACE_MAJOR, ORR_OTRACE_MINOR)},
                            {"kernel", kernel_.release}}},
                          {"command", options_.command},
                          {"options", options_.given},
                          {"sku", options_.sku.empty() ? "orrery-1" : options_.sku},
                          {"topology", {{"named", options_.topology}, {"links", std::move(links)}}},
                          {"sync", options_.sync},
                          {"cards", std::move(cards)},
                          {"switches", std::move(switches)},
                          {"missing", std::move(missing)}};
    if (options_.vm) manifest["vm"] = {{"number", *options_.vm}, {"of", options_.vms}};
    const auto& trouble = console_log_->trouble();
    if (trouble) manifest["kernel_report"] = console_log_->line();
    manifest["ended"] = {{"how", ended ? how(status_code_, vm_failed_, signal_) : "it has not"},
                         {"status", status_code_},
                         {"text", verdict_},
                         {"reached", reached_}};
    if (const auto written = writer.end(manifest); !written)
        fmt::print(stderr, "orrery-vm: {}\n", written.error().text);
    else
        fmt::print(stderr, "orrery-vm: a report: orrery-step bundle {}\n", file.string());
}

}  // namespace orrery::vm
