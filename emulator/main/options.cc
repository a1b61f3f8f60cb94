#include "emulator/main/options.h"

#include <sodium.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "emulator/api/checks.h"
#include "emulator/api/flight.h"
#include "emulator/api/size.h"

namespace orrery::emu {

namespace {

// A card's number in its machine gives its uid, so that the same command line always makes the same card.
constexpr std::uint64_t kUidBase = 0x4f520000;
constexpr unsigned kMaxIndex = 65534;

// Without a name those that the firmware's build left beside this program; empty if there are none. Whether
// they are of the image that is booted is seen when it is.
std::expected<std::vector<std::uint8_t>, std::string> load_symbols(std::string file) {
    std::error_code error;
    const bool named = !file.empty();
    if (!named) {
        const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
        file = (self.parent_path().parent_path() / "firmware" / "orrery-fw.symbols").string();
    }
    std::ifstream in(file, std::ios::binary);
    std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
    if (!named || (in && !bytes.empty())) return bytes;
    return std::unexpected(fmt::format(
        "{}: these symbols cannot be read; `orrery-fwsign symbols` makes them, as the firmware's build does",
        file));
}

// `--sku list` needs no other option and starts no card.
std::string list_skus(const std::string& sku) {
    if (sku == "list") throw CLI::CallForVersion(fmt::format("{}", fmt::join(Sku::names(), "\n")), 0);
    return "";
}

}  // namespace

std::expected<Options, std::string> Options::parse(int argc, const char* const* argv) {
    Options options;
    std::string vram;
    std::string sku;
    std::string symbols;
    std::string fuses;
    std::string faults;
    std::vector<std::string> links;
    std::vector<std::string> checks;
    std::uint64_t uid = 0;
    std::uint64_t flight_mib = 0;
    const std::map<std::string, InterruptMode> modes{
        {"msix", InterruptMode::kMsix}, {"msi", InterruptMode::kMsi}, {"single", InterruptMode::kSingle}};

    CLI::App app("One Orrery card: serves its PCIe function to a virtual machine over vfio-user.",
                 "orrery-card");
    // Of an option that is given again the last counts: what starts cards appends what is meant for one of
    // them.
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.add_option("--socket", options.socket, "UNIX socket to listen on")->required();
    app.add_option("--index", options.index, "number of the card; gives it its uid")
        ->required()
        ->check(CLI::Range(0u, kMaxIndex));
    app.add_option("--uid", uid, "unique id instead of the one from --index; not 0");
    app.add_option("--vram", vram, "bytes of VRAM, such as 256M or 64G; sparse");
    app.add_option("--irq", options.interrupts, "msix, msi (a card that QEMU can unplug) or single")
        ->transform(CLI::CheckedTransformer(modes))
        ->option_text("NAME");
    app.add_option("--sku", sku, "what kind of card: a name, a SKU file, or `list` for the names (orrery-1)")
        ->check(list_skus)
        ->trigger_on_parse();
    app.add_option("--fuses", fuses,
                   "Ed25519 public key that firmware must be signed with: 32 bytes or 64 hex digits");
    app.add_option("--link", links, "PORT:listen:PATH or PORT:connect:PATH; once a link")->take_all();
    app.add_option("--lockstep", options.card.lockstep,
                   "file of the cards that keep step with each other in model time: made if it is not there "
                   "(docs/links.md)");
    app.add_option("--spin-us", options.card.spin_us,
                   "microseconds without work before the card sleeps; 0 is legal")
        ->check(CLI::Range(0u, 10'000'000u));
    app.add_option("--workers", options.card.workers,
                   "host threads that carry out large copies beside the card's own; worth it on a host "
                   "with idle CPUs (0)")
        ->check(CLI::Range(0u, 16u));
    app.add_option("--check", checks,
                   "race, memory or race,memory: look for mistakes of kernels, which run far slower then "
                   "(docs/kernels.md)")
        ->delimiter(',')
        ->check(CLI::IsMember({"race", "memory"}))
        ->take_all()
        ->allow_extra_args(false);
    app.add_flag("!--no-host-atomics", options.card.host_atomics,
                 "a platform that completes no AtomicOps: kernels' atomics on host memory fail");
    app.add_option(
           "--threads", options.card.threads,
           "host threads that compute work-groups of kernels beside the card's own; worth it on a host "
           "with idle CPUs (0)")
        ->check(CLI::Range(0u, 16u));
    app.add_option("--launches", options.card.launches,
                   "file for a line about each launch of a kernel: how much of it ran in the order of model "
                   "time (docs/engines.md); replaced if it exists");
    app.add_option("--record", options.card.record,
                   "file to record the control core to, for orrery-step; replaced if it exists");
    app.add_option(
           "--flight", flight_mib,
           "MiB of a flight recorder, which keeps the last of what the control core did (0: none); not "
           "with --record")
        ->check(CLI::Validator(
            [](std::string& text) -> std::string {
                const auto mib = CLI::Range(kLeastFlightMib, kMostFlightMib)(text);
                return text == "0" ? "" : mib;
            },
            fmt::format("0 or {} to {}", kLeastFlightMib, kMostFlightMib)));
    app.add_option(
        "--flight-file", options.card.flight_file,
        "file for it, which whoever holds it has also when the card dies; one that is there already "
        "becomes FILE.last; without it: memory");
    app.add_option(
        "--symbols", symbols,
        "the firmware's symbols and sources for the recording; else those of this build, if they fit");
    app.add_option("--gdb", options.card.gdb,
                   "port on 127.0.0.1 at which gdb-multiarch may debug the control core; 0: any free one");
    app.add_option("--gdb-kernels", options.card.kernel_gdb, "the same for the kernels on the vector cores");
    app.add_option("--faults", faults, "fault plan, a file or its text (docs/faults.md)");
    app.add_option("--control", options.card.control,
                   "UNIX socket to listen on, at which faults can be ordered and counted");
    app.add_option("--log", options.log, "file to append the card's log to; without it: stderr");
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& told) {
        app.exit(told);
        return std::unexpected("");
    } catch (const CLI::ParseError& error) {
        return std::unexpected(fmt::format("{}; try --help", error.what()));
    }

    if (!sku.empty()) {
        auto loaded = Sku::find(sku);
        if (!loaded) return std::unexpected(loaded.error());
        options.card.sku = *std::move(loaded);
    }
    for (const std::string& check : checks)
        options.card.check |= check == "race" ? kCheckRace : kCheckMemory;
    if (flight_mib != 0 && !options.card.record.empty())
        return std::unexpected("--flight: a recording (--record) has all of it; give one of the two");
    if (flight_mib == 0 && !options.card.flight_file.empty())
        return std::unexpected("--flight-file: there is no flight recorder; give --flight MIB too");
    options.card.flight_segment = flight_segment(flight_mib);
    if (!options.card.record.empty() || flight_mib != 0) {
        auto pack = load_symbols(symbols);
        if (!pack) return std::unexpected(pack.error());
        options.card.symbols = *std::move(pack);
    }
    if (!vram.empty()) {
        const auto bytes = parse_size(vram);
        if (!bytes) return std::unexpected(fmt::format("--vram: {}", bytes.error()));
        if (const auto good = check_vram_size(*bytes); !good) {
            return std::unexpected(fmt::format("--vram: {}", good.error()));
        }
        options.card.vram_bytes = *bytes;
    }
    if (!fuses.empty()) {
        auto key = load_fuses(fuses);
        if (!key) return std::unexpected(key.error());
        options.card.key = *key;
    }
    if (!faults.empty()) {
        auto plan = FaultPlan::load(faults);
        if (!plan) return std::unexpected(fmt::format("--faults: {}", plan.error()));
        options.card.faults = *std::move(plan);
    }
    for (const std::string& text : links) {
        auto link = LinkConfig::parse(text);
        if (!link) return std::unexpected(fmt::format("--link: {}", link.error()));
        options.card.links.push_back(*std::move(link));
    }
    options.card.uid = kUidBase + options.index + 1;
    if (app.count("--uid") != 0) {
        if (uid == 0 || uid == UINT64_MAX)
            return std::unexpected("--uid: a card's uid must be neither 0 nor all ones");
        options.card.uid = uid;
    }
    return options;
}

}  // namespace orrery::emu
