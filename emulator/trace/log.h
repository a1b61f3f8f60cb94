// The payload of a log block, decoded.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include <orrery/hw/trace.h>

namespace orrery::emu {

struct LoggedAccess {
    std::uint64_t value = 0;
    std::uint64_t stall = 0;  // if has_stall
    std::uint8_t kind = 0;    // ORR_OTRACE_LOAD or _STORE
    std::uint8_t n = 0;       // as in the tag
    std::uint8_t lines = 0;   // if has_lines
    bool has_stall = false;
    bool has_lines = false;
};

// Between two steps.
struct LoggedBoundary {
    std::uint64_t step = 0;  // since the begin of the block
    std::uint64_t ps = 0;
    std::uint8_t lines = 0;
    bool has_lines = false;
    // A debugger's change instead: ORR_OTRACE_NOTE_SET_*, 0: none. `bytes` in Log::bytes.
    std::uint8_t change = 0;
    std::uint64_t address = 0;
    std::uint32_t first_byte = 0, byte_count = 0;
};

struct LoggedNote {
    std::uint64_t step = 0;    // since the begin of the block
    std::int64_t time_ps = 0;  // since the begin of the block
    std::uint32_t kind = 0;
    std::uint64_t field[ORR_OTRACE_NOTE_FIELDS] = {};
};

struct Log {
    std::vector<LoggedAccess> accesses;
    std::vector<LoggedBoundary> boundaries;
    std::vector<LoggedNote> notes;
    std::vector<std::uint8_t> bytes;
    bool stops = false;  // the core was reset in it
};

struct LogError {
    std::uint64_t at = 0;  // in the payload
    const char* reason = "";
};

// For an error of a file.
std::string describe(const LogError& error);

// `steps` of the block: nothing may lie beyond.
std::expected<void, LogError> decode_log(std::span<const std::uint8_t> payload, std::uint64_t steps,
                                         Log& out);

}  // namespace orrery::emu
