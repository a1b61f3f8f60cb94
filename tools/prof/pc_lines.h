// Where vector cores were in kernels when they were looked at, by line.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/prof/model.h"

namespace orrery::prof {

// By PcStall.
using PcCounts = std::array<std::uint64_t, kPcStalls>;

struct PcLine {
    std::string_view kernel, function;
    std::string_view source;   // "gemm.cc:42"; empty: not known, and `offset` is of the instruction
    std::uint64_t offset = 0;  // 0 of a line
    PcCounts counts{};
    std::uint64_t total = 0;
};

inline std::uint64_t count_of(const PcSampleRecord& sample) {
    return std::uint64_t{sample.more} + 1;
}
// "latency"; of one that is not known "unknown".
const char* name_of_stall(std::uint32_t stall);
// Of one device, the most first. The activity outlives them.
std::vector<PcLine> pc_lines(const Activity& activity, std::uint32_t device);
// "latency 61.0 %, computing 39.0 %"
std::string stalls_text(const PcLine& line);

}  // namespace orrery::prof
