// What a hart's instructions did: counted as they complete, for nobody but counters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery::emu {

// Classes of vector instructions.
enum class VectorClass : std::uint8_t { kInt, kFp, kMoves, kLoads, kStores, kConfig };
inline constexpr std::size_t kVectorClasses = 6;

// Classes of all others.
enum class ScalarClass : std::uint8_t { kInt, kMulDiv, kFp, kLoads, kStores, kJumps, kAtomics, kSystem };
inline constexpr std::size_t kScalarClasses = 8;

struct WorkCounts {
    std::array<std::uint64_t, kVectorClasses> instructions{};  // by VectorClass
    // By ScalarClass. kInt is what the hart has done beside all others (Hart::take_work), so that its many
    // instructions count nothing.
    std::array<std::uint64_t, kScalarClasses> scalar{};
    std::uint64_t& of(ScalarClass kind) { return scalar[static_cast<std::size_t>(kind)]; }
    // Elements that these worked on (all but kConfig), and that they had room for.
    std::uint64_t active = 0, lanes = 0;
    // Floating point operations with results of 16, 32 and 64 bits, of scalar instructions too: 1 for add,
    // sub, mul, div, sqrt, min and max, 2 for a multiply-add, 0 for all else.
    std::array<std::uint64_t, 3> flops{};
    std::uint64_t paused = 0;  // cycles for which PAUSEs waited

    WorkCounts& operator+=(const WorkCounts& other) {
        for (std::size_t i = 0; i < instructions.size(); ++i)
            instructions[i] += other.instructions[i];
        for (std::size_t i = 0; i < scalar.size(); ++i)
            scalar[i] += other.scalar[i];
        active += other.active;
        lanes += other.lanes;
        for (std::size_t i = 0; i < flops.size(); ++i)
            flops[i] += other.flops[i];
        paused += other.paused;
        return *this;
    }
    bool operator==(const WorkCounts&) const = default;
};

}  // namespace orrery::emu
