// Whole files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/text/result.h"

namespace orrery::text {

Result<std::vector<std::uint8_t>> read_file(const std::string& file);
// Replaces the file; fails if not every byte could be written.
Result<void> write_file(const std::string& file, std::string_view bytes);

}  // namespace orrery::text
