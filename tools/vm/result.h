// How orrery-vm ends: its own exit statuses and the error type of its parts.
#pragma once

#include <expected>
#include <string>

namespace orrery::vm {

// A command's own status passes through unchanged. These are the VM's own failures; each comes with a line
// "orrery-vm: error: ..." on stderr. docs/vm.md lists them.
inline constexpr int kExitUsage = 120;    // options that make no sense
inline constexpr int kExitSetup = 121;    // a file, tree or program is missing, or a process did not start
inline constexpr int kExitVmEnded = 122;  // QEMU ended before the guest told a status
inline constexpr int kExitKernelReport =
    123;  // the guest kernel reported a panic, oops, BUG, warning, deadlock ...
inline constexpr int kExitTimeLimit = 124;   // the time limit passed
inline constexpr int kExitCardDied = 125;    // an orrery-card ended by itself or with an error
inline constexpr int kExitModule = 126;      // a module did not load, or not every card got its device node
inline constexpr int kExitSignalBase = 128;  // + number of the signal that stopped orrery-vm

struct Failure {
    int code = kExitSetup;
    std::string text;
};

template <typename T>
using Result = std::expected<T, Failure>;

inline std::unexpected<Failure> fail(std::string text, int code = kExitSetup) {
    return std::unexpected(Failure{code, std::move(text)});
}

}  // namespace orrery::vm
