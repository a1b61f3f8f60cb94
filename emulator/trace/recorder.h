// Writes a recording (orrery/hw/trace.h) of a control core.
//
// The core calls it on the card thread; nobody else does. Recording never fails the card: the first error
// (disk full, file gone) ends it, error() says so, and all later calls do nothing.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <expected>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <orrery/hw/trace.h>

#include "emulator/core/hart.h"
#include "emulator/os/unique_fd.h"

namespace orrery::emu {

struct RecordingInfo {
    std::string program = "orrery-card";
    std::string sku_name;
    std::string sku_text;
    std::uint64_t uid = 0;
    std::uint64_t seed = 0;
    std::uint64_t cycle_ps = 0;
    std::uint64_t start_ps = 0;
    std::uint64_t vram_bytes = 0;
    std::uint32_t hw_version = 0;
};

class Recorder;

// Makes the file; an existing one is replaced. The error is one line: which file, and why.
std::expected<std::unique_ptr<Recorder>, std::string> make_recorder(const std::filesystem::path& file,
                                                                    const RecordingInfo& info);

}  // namespace orrery::emu
