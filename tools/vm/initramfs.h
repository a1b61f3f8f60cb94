// The guest's root file system: busybox, modules, firmware, programs with their libraries, and the command.
#pragma once

#include <filesystem>
#include <string>

#include "tools/vm/guest_modules.h"
#include "tools/vm/options.h"
#include "tools/vm/result.h"
#include "tools/vm/tree.h"

namespace orrery::vm {

// Group of /dev/accel/accelN in the guest, as udev's default rules have it.
inline constexpr const char* kDeviceGroup = "render";

struct TerminalSize {
    unsigned rows = 24;
    unsigned columns = 80;
};

struct GuestParts {
    const Tree& tree;
    const Kernel& kernel;
    const GuestModules& modules;
    const RootImage* root;  // nullptr: the archive is the command's root
    unsigned net_number;    // the guest's place on a network, 0 if it is on none
    TerminalSize terminal;
};

// The archive, not compressed: unpacking would cost the guest more than reading.
Result<std::string> build_initramfs(const Options& options, const GuestParts& parts);

}  // namespace orrery::vm
