// A program of one's own: the folder in which orrery-vm was started, when the command is in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/vm/result.h"

namespace orrery::vm {

// The words of the command that are relative paths ("./gemm", "build/gemm") of something below `folder`.
std::vector<std::filesystem::path> named_here(const std::vector<std::string>& command,
                                              const std::filesystem::path& folder);

// Whether the guest can show this folder of the host at its own path: not where the guest has its own files.
bool can_be_shown(const std::filesystem::path& folder);

// Whether the home directory is this folder or in it: the guest can write what it is shown, and a home holds
// what its owner's shell runs.
bool holds_home(const std::filesystem::path& folder, const std::filesystem::path& home);

}  // namespace orrery::vm
