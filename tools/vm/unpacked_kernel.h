// A kernel without its own decompressor. Debian's unpacks itself under TCG in a second or more, and QEMU can
// load the ELF that is in it at the entry that it has for PVH.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tools/vm/result.h"
#include "tools/vm/tree.h"

namespace orrery::vm {

// The ELF in a bzImage. Nothing if it is not packed with zstd, or has no entry for PVH, without which QEMU
// does not take it: then it boots as it is.
std::optional<std::string> unpack_kernel(const std::string& bzimage);

// The file that QEMU is to boot: for kernels of the tree what unpack_kernel() made of them once, kept in the
// tree's cache; else the kernel's image.
Result<std::filesystem::path> boot_file(const Tree& tree, const Kernel& kernel);

}  // namespace orrery::vm
