#include "tools/vm/options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "emulator/api/flight.h"
#include "emulator/api/size.h"
#include "emulator/api/sku.h"
#include "tools/topology/file.h"
#include "tools/vm/files.h"
#include "tools/vm/qemu.h"

namespace orrery::vm {

namespace {

constexpr unsigned kMaxCards = 16;  // of all VMs
constexpr unsigned kMaxVms = 8;

int usage_error(const std::string& text) {
    fmt::print(stderr, "orrery-vm: error: {}\nTry: orrery-vm --help\n", text);
    return kExitUsage;
}

// HOST or HOST:GUEST, where GUEST is absolute.
std::optional<GuestFile> parse_file(const std::string& text) {
    const auto colon = text.rfind(":/");
    if (colon == std::string::npos || colon == 0) return GuestFile{text, ""};
    return GuestFile{text.substr(0, colon), text.substr(colon + 1)};
}

// [N:]TEXT: for card N, or for all.
struct ForCard {
    std::optional<unsigned> card;
    std::string text;
};

ForCard for_card(const std::string& given) {
    const auto colon = given.find(':');
    unsigned card = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), card);
    if (error != std::errc{} || colon == std::string::npos || end != given.data() + colon)
        return {std::nullopt, given};
    return {card, given.substr(colon + 1)};
}

// What names a card counts for it alone, whatever stands before or after.
bool take_faults(const std::vector<std::string>& given, Options& options) {
    const unsigned cards = options.all_cards();
    options.faults.assign(cards, "");
    std::vector<std::string> own(cards);
    options.switch_faults.assign(options.joined.switches.size(), "");
    for (const std::string& each : given) {
        constexpr std::string_view kSwitch = "switch";
        if (each.starts_with(kSwitch)) {
            const auto [number, text] = for_card(each.substr(kSwitch.size()));
            if (!number || *number >= options.switch_faults.size()) return false;
            options.switch_faults[*number] = text;
            continue;
        }
        const auto [card, text] = for_card(each);
        if (card && *card >= cards) return false;
        if (card)
            own[*card] = text;
        else
            std::fill(options.faults.begin(), options.faults.end(), text);
    }
    for (unsigned card = 0; card < cards; ++card)
        if (!own[card].empty()) options.faults[card] = own[card];
    return true;
}

// Each card gets those for all, then its own, each in the order in which they are given: of an option that a
// card gets twice it takes the last.
bool take_card_args(const std::vector<std::string>& given, Options& options) {
    const unsigned cards = options.all_cards();
    options.card_args.assign(cards, {});
    for (const bool own : {false, true})
        for (const std::string& each : given) {
            const auto [card, text] = for_card(each);
            if (card && *card >= cards) return false;
            if (card.has_value() != own) continue;
            for (unsigned number = 0; number < cards; ++number)
                if (number == card.value_or(number)) options.card_args[number].push_back(text);
        }
    return true;
}

// What is read out of texts.
struct Texts {
    std::optional<unsigned> cards;
    std::string memory;
    std::vector<std::string> files;
    std::vector<std::string> faults;
    std::vector<std::string> card_args;
    std::string net;
};

// The links, and the number of cards if only they tell it. A card whose SKU is another one (--card-arg) finds
// out for itself that it has no such port.
Result<void> take_topology(std::optional<unsigned> cards, const emu::Sku& sku,
                           const std::vector<std::string>& card_args, Options& options) {
    const bool one_sku = std::ranges::none_of(
        card_args, [](const std::string& each) { return for_card(each).text.starts_with("--sku"); });
    const topology::Limits limits{cards, kMaxCards, one_sku ? sku.link_ports : topology::kMaxPorts};
    text::Result<topology::Topology> made;
    // As with kernels, what contains a '/' is a path.
    if (options.topology.empty()) {
        made = topology::named(topology::Shape::kChain, limits);
    } else if (const auto shape = topology::shape_named(options.topology)) {
        made = topology::named(*shape, limits);
    } else {
        const auto text = read_file(options.topology);
        if (!text)
            return fail(fmt::format("--topology: {}. It is no shape either: {}", text.error().text,
                                    topology::shape_names()),
                        kExitUsage);
        made = topology::parse(*text, options.topology, limits);
    }
    if (!made) return fail(fmt::format("--topology {}", made.error().text), kExitUsage);
    options.joined = *std::move(made);
    if (options.joined.cards % options.vms != 0)
        return fail(fmt::format("--topology: {} cards do not go evenly into {} VMs (--vms)",
                                options.joined.cards, options.vms),
                    kExitUsage);
    options.cards = options.joined.cards / options.vms;
    return {};
}

void describe(CLI::App& app, Options& options, Texts& texts) {
    app.add_option("--cards", texts.cards,
                   "Number of cards of a VM, 0 to 16 (default: what --topology says, or 1)");
    app.add_option("--vms", options.vms,
                   "Number of VMs, each with so many cards; --topology is over all of them (default 1)");
    app.add_flag("--allow-vm-exit", options.allow_vm_exit,
                 "Of several VMs: one that fails does not end the others");
    app.add_flag_callback(
        "--no-prefix", [&] { options.prefix = false; }, "Of several VMs: lines do not begin with 'vmN: '");
    app.add_option("--vm", options.vm)->group("");  // of the runs that --vms starts
    app.add_option("--shared", options.shared)->group("");
    app.add_option("--hold", options.hold)->group("");
    app.add_option("--kernel", options.kernel,
                   "lts (default), backports, debug, a release in the VM tree, or the path of a bzImage");
    app.add_option("--modules", options.modules,
                   "Modules of such a bzImage: the directory of modules.dep, or above its lib/modules");
    app.add_option("--accel", options.accel,
                   "How the CPUs are emulated: tcg (default), or kvm, if it works here")
        ->check(CLI::IsMember({"tcg", "kvm"}));
    app.add_option("--qemu", options.qemu, "QEMU to run instead of the VM tree's");
    app.add_option("--smp", options.smp, "Virtual CPUs (default 2)");
    app.add_option("--memory", texts.memory, "Guest memory (default 1G)");
    app.add_option(
           "--timeout", options.timeout,
           "Time limit in seconds (default 300, on a terminal none; 0: none; the debug kernel gets six "
           "times as long)")
        ->take_last();
    app.add_flag("--shell", options.shell, "A console instead of a command; Ctrl-A X or exit leaves");
    app.add_flag("--dry-run", options.dry_run,
                 "Print the command lines of the cards and of QEMU, and run nothing");

    app.add_option("--irq", options.irq, "Interrupts of the cards: msix (default), msi or single")
        ->check(CLI::IsMember({"msix", "msi", "single"}));
    app.add_option("--vram", options.vram, "VRAM of each card (default: what its SKU says)");
    app.add_option("--sku", options.sku,
                   "What kind of cards: a name, a SKU file, or `list` for the names (default orrery-1)")
        ->check([](const std::string& sku) {
            if (sku == "list")
                throw CLI::CallForVersion(fmt::format("{}", fmt::join(emu::Sku::names(), "\n")), 0);
            return std::string();
        })
        ->trigger_on_parse();
    app.add_option(
        "--topology", options.topology,
        fmt::format("Links between the cards: {}, or a TOML file (chain)", topology::shape_names()));
    app.add_option("--picture", options.picture,
                   "Draw the cards and their links into this file (SVG), and run nothing");
    app.add_option("--sync", options.sync,
                   "free, or lockstep: the cards keep step in model time, so that what they send each other "
                   "meets at the same times in every run (free)")
        ->check(CLI::IsMember({"free", "lockstep"}));
    app.add_option("--record", options.record,
                   "Directory for recordings of the cards' control cores: cardN.otrace, for orrery-step");
    app.add_option(
           "--flight", options.flight_mib,
           "MiB of memory in which each card keeps the last of what its control core did, for a report "
           "(64; 0: none; not with --record)")
        ->check([](const std::string& text) {
            return text == "0" ? std::string()
                               : CLI::Range(emu::kLeastFlightMib, emu::kMostFlightMib)(std::string(text));
        });
    app.add_option(
        "--report", options.report,
        "Write all that is known of the run into this file, for orrery-step bundle, however it ends; "
        "SIGUSR1 does so at once (without it: report.tar among the logs, if the VM or a card fails)");
    app.add_option("--report-file", options.report_files,
                   "One more file for that report, such as a profile (repeatable)")
        ->allow_extra_args(false);
    app.add_option("--faults", texts.faults,
                   "[N:]PLAN: fault plan of all cards or of card N, a file or its text (repeatable)")
        ->allow_extra_args(false);
    app.add_flag("--control", options.control,
                 "A socket for each card and switch at which faults can be ordered; run.json names them");
    app.add_option("--check", options.checks,
                   "race, memory or race,memory: the cards look for mistakes of kernels, which are slow then "
                   "(docs/kernels.md)")
        ->delimiter(',')
        ->check(CLI::IsMember({"race", "memory"}))
        ->allow_extra_args(false);
    app.add_option("--card-program", options.card_program, "orrery-card to start");
    app.add_option("--switch-model", options.switch_model,
                   "What kind of switches: a name or a file, as orrery-switch --model (docs/switch.md)");
    app.add_option(
           "--card-arg", texts.card_args,
           "[N:]ARGUMENT: one more argument for the orrery-card of each card or of card N (repeatable)")
        ->allow_extra_args(false);

    app.add_flag_callback("--no-module", [&] { options.module = false; }, "Do not load orrery.ko");
    app.add_option("--module", options.module_file, "orrery.ko to load");
    app.add_option("--module-params", options.module_params, "Parameters of orrery.ko");
    app.add_option("--firmware", options.firmware, "Firmware image for the guest; none: leave it out");
    app.add_flag("--expect-probe-failure", options.expect_probe_failure,
                 "Fail if a card gets a device node, instead of if it gets none");
    app.add_flag("--allow-warnings", options.allow_warnings,
                 "A WARNING of the guest kernel is not a failure");
    app.add_flag("--allow-card-exit", options.allow_card_exit, "A card that ends is not a failure");

    app.add_option("--root", options.root,
                   "A Debian for the command instead of busybox: debian, or debian+PACKAGE+PACKAGE ('make "
                   "root' makes it)");
    app.add_option("--programs", options.programs,
                   "Directory of the guest's programs (default: that of orrery-vm)");
    app.add_option("--file", texts.files, "HOST[:GUEST]: put a file or directory into the guest (repeatable)")
        ->allow_extra_args(false);
    app.add_option("--share", options.share, "Directory of the host that the guest sees as /share");
    app.add_option("--env", options.env, "NAME=VALUE for the command (repeatable)")->allow_extra_args(false);
    app.add_option("--user", options.user, "Run the command as this user id");
    app.add_flag_callback(
        "--no-device-group", [&] { options.device_group = false; },
        "Leave that user out of the devices' group");
    app.add_flag("--nvme", options.nvme, "Add QEMU's own NVMe device, backed by memory");
    app.add_flag("--viommu", options.viommu, "Add intel-iommu (iommu=pt) with interrupt remapping");
    app.add_flag("--qmp", options.qmp, "Open a QMP socket; run.json among the logs names it");
    app.add_option(
        "--net", texts.net,
        "NAME[:N]: a network of the runs that name it alike; this guest is 10.79.0.N, vmN (default: the "
        "lowest free N)");
    app.add_flag("--gdb", options.gdb, "Let gdb at the guest's kernel; says what to type");
    app.add_option("--append", options.append, "More kernel parameters");
    app.add_option("--qemu-arg", options.qemu_args, "One more argument for QEMU (repeatable)")
        ->allow_extra_args(false);

    app.add_option("--logs", options.logs, "Directory for the logs (default: build/vm/<run>)")->take_last();
    app.add_flag("--verbose", options.verbose, "Say when each step is done");
}

std::optional<std::string> check(const Options& options) {
    if (!options.picture.empty()) return std::nullopt;  // nothing runs
    if (options.vm && (*options.vm >= options.vms || options.shared.empty() || options.hold < 0))
        return "--vm, --shared and --hold are for the runs that --vms starts";
    if (options.vms > 1 && (options.shell || options.gdb))
        return "--shell and --gdb are for one VM, not for --vms";
    if (options.vms > 1 && options.net && options.net->number != 0)
        return "--net NAME:N gives all VMs of --vms one address: leave N out";
    if (options.cards > 0 && pci_window(options.vram_bytes, options.cards) > kMaxPciWindow)
        return fmt::format(
            "{} cards with that much VRAM (--vram) do not fit into the emulated CPU's address space",
            options.cards);
    if (options.smp < 1 || options.smp > 64) return "--smp takes 1 to 64";
    if (options.memory_mib < 128) return "--memory needs 128M or more";
    if (options.shell && !options.command.empty()) return "--shell takes no command";
    if (!options.shell && options.command.empty())
        return "no command: give one after '--', or --shell for a console";
    if (!options.modules.empty() && options.kernel.find('/') == std::string::npos)
        return "--modules belongs to a kernel that --kernel names by its path (./bzImage, not bzImage)";
    if (options.expect_probe_failure && !options.module) return "--expect-probe-failure needs the module";
    for (const auto& entry : options.env)
        if (entry.find('=') == std::string::npos || entry[0] == '=')
            return fmt::format("--env wants NAME=VALUE, not '{}'", entry);
    return std::nullopt;
}

}  // namespace

unsigned default_timeout(bool on_terminal) {
    return on_terminal ? 0 : 300;
}

std::variant<Options, int> parse_options(const std::vector<std::string>& arguments) {
    Options options;
    CLI::App app{
        "orrery-vm [OPTIONS] -- COMMAND [ARGUMENT...]\n"
        "Boots a Debian kernel under stock QEMU with N cards, runs COMMAND in it, and passes its status on.",
        "orrery-vm"};
    app.footer(
        "Statuses 120 to 126 are the VM's own failures, with a line 'orrery-vm: error: ...'. See "
        "docs/vm.md.");
    Texts texts;
    describe(app, options, texts);

    // All after "--" belongs to the command, whatever it looks like.
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    if (dashes != arguments.end()) options.command.assign(dashes + 1, arguments.end());
    std::vector<std::string> own(arguments.begin(), dashes);
    options.given = own;
    std::reverse(own.begin(), own.end());
    try {
        app.parse(own);
    } catch (const CLI::Success& told) {
        return app.exit(told);
    } catch (const CLI::ExtrasError& error) {
        return usage_error(fmt::format("{} (a command goes after '--')", error.what()));
    } catch (const CLI::ParseError& error) {
        return usage_error(error.what());
    }

    if (!texts.memory.empty()) {
        const auto bytes = emu::parse_size(texts.memory);
        if (!bytes)
            return usage_error(fmt::format("--memory '{}' is no size such as 512M or 2G", texts.memory));
        options.memory_mib = *bytes >> 20;
    }
    const auto sku = options.sku.empty() ? emu::Sku::standard() : emu::Sku::find(options.sku);
    if (!sku) return usage_error(fmt::format("--sku: {}", sku.error()));
    if (options.vms < 1 || options.vms > kMaxVms)
        return usage_error(fmt::format("--vms takes 1 to {}", kMaxVms));
    if (options.vms > 1 && options.topology.empty() && !texts.cards) texts.cards = 1;
    if (texts.cards.value_or(0) > kMaxCards / options.vms)
        return usage_error(options.vms == 1
                               ? fmt::format("--cards takes 0 to {}", kMaxCards)
                               : fmt::format("--cards takes 0 to {} with {} VMs: {} cards in all",
                                             kMaxCards / options.vms, options.vms, kMaxCards));
    std::optional<unsigned> all_cards;
    if (texts.cards) all_cards = *texts.cards * options.vms;
    if (const auto taken = take_topology(all_cards, *sku, texts.card_args, options); !taken)
        return usage_error(taken.error().text);
    options.planned =
        topology::planned(options.joined, sku->name,
                          {{}, {}, sku->link_lanes, sku->link_gbps, sku->link_latency_ns}, sku->link_ports);
    options.vram_bytes = sku->vram_bytes;
    if (!options.vram.empty()) {
        const auto bytes = emu::parse_size(options.vram);
        if (!bytes || *bytes == 0)
            return usage_error(fmt::format("--vram '{}' is no size such as 256M", options.vram));
        options.vram_bytes = *bytes;
    }
    for (const auto& text : texts.files) {
        const auto file = parse_file(text);
        if (!file || file->host.empty())
            return usage_error(fmt::format("--file '{}' wants HOST[:/GUEST]", text));
        options.files.push_back(*file);
    }
    if (!texts.net.empty()) {
        options.net = parse_place(texts.net);
        if (!options.net)
            return usage_error(
                fmt::format("--net '{}' wants a NAME of up to 15 letters, digits, - and _, or NAME:N with N "
                            "from 1 to {}",
                            texts.net, kLargestNumber));
    }
    if (const auto text = check(options)) return usage_error(*text);
    if (!take_faults(texts.faults, options))
        return usage_error(
            "--faults N:PLAN or switchN:PLAN names a card or switch that there is not; both count from 0");
    if (!take_card_args(texts.card_args, options))
        return usage_error("--card-arg N:ARGUMENT names a card that there is not; cards count from 0");
    return options;
}

}  // namespace orrery::vm
