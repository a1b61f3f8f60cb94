// The directory that keeps a run's logs.
#pragma once

#include <filesystem>
#include <string>

#include "tools/vm/result.h"

namespace orrery::vm {

// `wanted`, or build/vm/<time>-<pid> of the checkout; there the oldest runs are removed.
Result<std::filesystem::path> make_log_dir(const std::filesystem::path& wanted);

// The last lines of a log, indented, for an error message; control characters are left out.
std::string tail(const std::filesystem::path& log, std::size_t lines);

}  // namespace orrery::vm
