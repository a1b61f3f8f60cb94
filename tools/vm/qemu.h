// QEMU's command line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/vm/options.h"
#include "tools/vm/tree.h"

namespace orrery::vm {

// File descriptors that QEMU inherits under their numbers; sockets except for nvme.
struct QemuFds {
    int console = -1;   // the first serial port: the kernel's console
    int status = -1;    // ports of a virtio-serial device: how far the guest is
    int out = -1;       //   stdout of the command
    int err = -1;       //   stderr of the command
    int in = -1;        //   stdin of the command; not with --shell
    int terminal = -1;  // --shell only
    int nvme = -1;      // --nvme only: a memory file of kNvmeBytes
    int net = -1;       // --net only
    unsigned net_number = 0;
};

inline constexpr std::uint64_t kNvmeBytes = std::uint64_t{256} << 20;

struct QemuFiles {
    std::filesystem::path kernel;  // boot_file()
    std::filesystem::path initramfs;
    std::filesystem::path root;                // empty: none
    std::vector<std::filesystem::path> cards;  // their sockets
    std::filesystem::path qmp;                 // empty: none
    std::filesystem::path gdb;                 // empty: none
};

// The window for all ports. An emulated CPU has 40 address bits, of which the window gets one half at most.
inline constexpr std::uint64_t kMaxPciWindow = std::uint64_t{1} << 39;
std::uint64_t pci_window(std::uint64_t vram_bytes, unsigned cards);

std::vector<std::string> qemu_command(const Options& options, const Tree& tree, const Kernel& kernel,
                                      const QemuFiles& files, const QemuFds& fds);

// How much 64-bit prefetchable space the port of a card sets aside: room for BAR 2 and BAR 4, also for a card
// that is added later. A power of two.
std::uint64_t port_reserve(std::uint64_t vram_bytes);

}  // namespace orrery::vm
