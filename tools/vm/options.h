// The command line of orrery-vm.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/topology/picture.h"
#include "tools/topology/topology.h"
#include "tools/vm/net/segment.h"
#include "tools/vm/result.h"

namespace orrery::vm {

struct GuestFile {
    std::filesystem::path host;
    std::string guest;  // absolute; empty: the host's file name in the command's directory
};

struct Options {
    unsigned cards = 1;  // of one VM
    unsigned vms = 1;
    std::optional<unsigned> vm;    // which of several this one is; unset: the run of all of them
    std::filesystem::path shared;  // of several: directory for what joins their cards
    int hold = -1;                 // of several: a socket to who runs them all
    bool allow_vm_exit = false;
    bool prefix = true;  // of lines of several
    std::string kernel =
        "lts";  // lts, backports, debug, a release that the VM tree holds, or a bzImage's path
    std::filesystem::path modules;  // of a kernel given by its path
    std::string accel = "tcg";      // or kvm
    std::filesystem::path qemu;     // default: the VM tree's
    unsigned smp = 2;
    std::uint64_t memory_mib = 1024;
    std::optional<unsigned> timeout;  // as given
    unsigned timeout_s = 0;           // 0: none
    bool shell = false;
    bool dry_run = false;

    std::string irq = "msix";
    std::string vram;  // as orrery-card takes it
    std::uint64_t vram_bytes = std::uint64_t{256} << 20;
    std::string sku;                // name or file; empty: the default
    std::string topology;           // a shape or a file; empty: a chain
    topology::Topology joined;      // what that makes of the cards
    std::filesystem::path picture;  // a file for a picture of that, instead of a run; empty: none
    topology::Picture planned;      // what it shows
    std::string sync = "free";      // or lockstep
    std::filesystem::path record;   // directory for the cards' recordings; empty: none
    std::uint64_t flight_mib = 64;  // of each card's flight recorder; 0: none
    std::filesystem::path
        report;  // a bundle about the run, however it ends; empty: if it fails, with the logs
    std::vector<std::filesystem::path> report_files;  // more for the bundle
    std::filesystem::path card_program;               // default: orrery-card beside orrery-vm
    std::vector<std::string> checks;
    std::vector<std::vector<std::string>> card_args;  // of each card
    std::filesystem::path switch_program;             // default: orrery-switch beside orrery-vm
    std::string switch_model;                         // empty: that of orrery-switch
    std::vector<std::string> switch_faults;           // of each switch
    std::vector<std::string> faults;                  // of each card: a plan, or a file; empty: none
    bool control = false;                             // a control socket for each card and switch

    bool module = true;
    std::filesystem::path module_file;  // default: build/kmod/<release>/orrery.ko
    std::string module_params;
    std::filesystem::path firmware;  // default: the build's; "none": no file in the guest
    bool expect_probe_failure = false;
    bool allow_warnings = false;
    bool allow_card_exit = false;

    std::filesystem::path programs;  // default: the directory of orrery-vm
    std::vector<GuestFile> files;
    std::filesystem::path share;
    std::filesystem::path here;  // shown at its own path, for a command that names what is in it; empty: none
    std::vector<std::string> env;
    std::optional<std::uint32_t> user;
    bool device_group = true;
    bool nvme = false;
    bool viommu = false;
    bool qmp = false;
    bool gdb = false;
    std::optional<SegmentPlace> net;
    std::string root;  // "debian", "debian+python3"; empty: busybox alone
    std::string append;
    std::vector<std::string> qemu_args;

    std::filesystem::path logs;  // default: build/vm/<time>-<pid>
    bool verbose = false;
    std::vector<std::string> command;
    std::vector<std::string> given;  // the arguments before the command, for the runs of several

    // Cards are numbered over all VMs.
    unsigned first_card() const { return cards * vm.value_or(0); }
    unsigned all_cards() const { return cards * vms; }
};

// Arguments without the program's name. An int is an exit status for a run that is over (--help, a usage
// error whose text has been printed).
std::variant<Options, int> parse_options(const std::vector<std::string>& arguments);

// The time limit when none is given: none where somebody watches.
unsigned default_timeout(bool on_terminal);

}  // namespace orrery::vm
