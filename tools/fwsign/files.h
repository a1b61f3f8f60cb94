// SPDX-License-Identifier: MIT
// Whole files in and out. Errors are texts that name the file, the cause and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace orrery::fwsign {

using Bytes = std::vector<std::uint8_t>;

// At most `limit` bytes; a longer file is an error.
std::expected<Bytes, std::string> read_file(const std::filesystem::path& path, std::size_t limit);

// Replaces the file with these bytes in one step: a reader sees the old or the new file, never half of one.
std::expected<void, std::string> write_file(const std::filesystem::path& path,
                                            std::span<const std::uint8_t> bytes, unsigned mode);

}  // namespace orrery::fwsign
