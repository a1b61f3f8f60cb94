// A kernel without its own decompressor. Debian's unpacks itself under TCG in a second or more, and QEMU can
// load the ELF that is in it at the entry that it has for PVH.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "tools/vm/tree.h"

namespace orrery::vm {

// The ELF in a bzImage. Nothing if it is not packed with zstd, or has no entry for PVH, without which QEMU
// does not take it: then it boots as it is.
std::optional<std::string> unpack_kernel(const std::string& bzimage);

// Whether QEMU can boot this ELF: it has an entry for PVH, and nothing of it is missing.
bool is_bootable(std::string_view elf);

// The file that QEMU is to boot: for kernels of the tree what unpack_kernel() made of them once, in the
// tree's cache; made now if it is not there and `make` is set. Else, and where it cannot be kept, the
// kernel's image.
std::filesystem::path boot_file(const Tree& tree, const Kernel& kernel, bool make);

}  // namespace orrery::vm
