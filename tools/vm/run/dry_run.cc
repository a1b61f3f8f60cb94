#include "tools/vm/run/dry_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/text/files.h"
#include "tools/text/shell.h"
#include "tools/vm/cards.h"
#include "tools/vm/qemu.h"
#include "tools/vm/run/several.h"
#include "tools/vm/unpacked_kernel.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

bool is_plain(const std::string& word) {
    return !word.empty() && word.find_first_not_of(
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_") == std::string::npos;
}

void print_line(const std::vector<std::string>& argv) {
    std::string line;
    for (const auto& word : argv)
        line += (line.empty() ? "" : " ") + (is_plain(word) ? word : text::shell_quote(word));
    fmt::print("{}\n", line);
}

}  // namespace

int draw_topology(const Options& options) {
    const auto drawn = text::write_file(options.picture, topology::svg_of(options.planned));
    if (drawn) return 0;
    fmt::print(stderr, "orrery-vm: error: --picture {}\n", drawn.error().text);
    return kExitSetup;
}

int print_commands(const Options& options) {
    if (options.vms > 1 && !options.vm) {
        for (unsigned vm = 0; vm < options.vms; ++vm) {
            fmt::print("# vm{}\n", vm);
            Options own = options_of(options, vm);
            own.shared = "SHARED";
            if (const int status = print_commands(own); status != 0) return status;
        }
        return 0;
    }
    const auto fail_with = [](const Failure& failure) {
        fmt::print(stderr, "orrery-vm: error: {}\n", failure.text);
        return failure.code;
    };
    const auto tree = Tree::find();
    if (!tree) return fail_with(tree.error());
    const auto kernel = find_kernel(*tree, options);
    if (!kernel) return fail_with(kernel.error());

    const fs::path directory = "DIRECTORY";
    QemuFiles files{.kernel = boot_file(*tree, *kernel, false),
                    .initramfs = directory / "initramfs",
                    .root = {},
                    .cards = {},
                    .qmp = {},
                    .gdb = {}};
    if (!options.root.empty()) {
        const auto root = find_root(options.root);
        if (!root) return fail_with(root.error());
        files.root = root->image;
    }
    fmt::print("# kernel {}, {}; DIRECTORY is made for the run and goes with it\n", kernel->release,
               options.timeout_s == 0
                   ? "no time limit"
                   : fmt::format("a time limit of {} s", kernel->patience * options.timeout_s));
    const unsigned first = options.first_card();
    for (unsigned i = first; i < first + options.cards; ++i) {
        print_line(card_command(options, i, directory));
        files.cards.push_back(card_socket(directory, i));
    }
    const bool has_switches = options.vm.value_or(0) == 0;
    for (unsigned i = 0; has_switches && i < options.joined.switches.size(); ++i)
        print_line(switch_command(options, i, directory));
    if (options.qmp) files.qmp = directory / "qmp.sock";
    if (options.gdb) files.gdb = directory / "gdb.sock";
    QemuFds fds{.console = 3, .status = 4, .out = 5, .err = 6};
    (options.shell ? fds.terminal : fds.in) = 7;
    if (options.nvme) fds.nvme = 8;
    if (options.net) {
        fds.net = 9;
        fds.net_number = std::max(options.net->number, 1u);
    }
    fmt::print("# descriptors 3 to 7{} are sockets to orrery-vm{}\n", options.net ? " and 9" : "",
               options.nvme ? fmt::format(", 8 is a memory file of {} MiB", kNvmeBytes >> 20) : "");
    print_line(qemu_command(options, *tree, *kernel, files, fds));
    return 0;
}

}  // namespace orrery::vm
