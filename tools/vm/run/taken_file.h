// A file for a report, which a guest may have made.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tools/vm/process.h"
#include "tools/vm/result.h"

namespace orrery::vm {

enum class Taken { kWhole, kEnd };

struct OpenFile {
    Fd file;
    std::uint64_t from = 0, bytes = 0;  // of what is to be taken
};

// A regular file: all of it, which may be no more than `most` bytes, or the last `most` of them. Nothing ever
// waits, and it is no more than there was when it was opened. No link is followed at the file's own name;
// below `share`, a folder that a guest writes to (empty: there is none), no link at all is, nor anything out
// of it. The error is a reason, without the file's name.
Result<OpenFile> open_taken(const std::filesystem::path& file, const std::filesystem::path& share,
                            std::uint64_t most, Taken what);

}  // namespace orrery::vm
