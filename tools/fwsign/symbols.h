// SPDX-License-Identifier: MIT
// What people need to read a firmware: symbols, lines and sources, packed for recordings
// (struct orr_otrace_symbols).
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/fwsign/files.h"

namespace orrery::fwsign {

struct SymbolOptions {
    std::filesystem::path elf;   // with debug information
    std::string build_id;        // as in the image's header
    std::filesystem::path root;  // of the source tree: names of the files begin there
    std::vector<std::filesystem::path> files;
};

std::expected<Bytes, std::string> pack_symbols(const SymbolOptions& options);

// The ELF without code, data, program headers, and what says where variables live at which instruction.
std::expected<Bytes, std::string> slim_elf(Bytes elf);
// SHA-256 of the code: for each section of instructions its address and its bytes.
std::expected<Bytes, std::string> code_hash(const Bytes& elf);

}  // namespace orrery::fwsign
