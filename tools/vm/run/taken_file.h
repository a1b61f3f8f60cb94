// A file for a report, which a guest may have made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tools/vm/result.h"

namespace orrery::vm {

enum class Taken { kWhole, kEnd };

// The bytes of a regular file: all, which may be no more than `most`, or the last `most` of them. It never
// waits, and takes no more than there was when it was opened. No link is followed at the file's own name;
// below `share`, a folder that a guest writes to (empty: there is none), no link at all is, nor anything out
// of it. The error is a reason, without the file's name.
Result<std::string> take_file(const std::filesystem::path& file, const std::filesystem::path& share,
                              std::uint64_t most, Taken what);

}  // namespace orrery::vm
