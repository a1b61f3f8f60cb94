// The vector registers of a hart and what belongs to them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "emulator/core/vector/kernels.h"
#include "emulator/core/work_counts.h"

namespace orrery::emu {

inline constexpr std::uint64_t kVill = 1ull << 63;

struct VectorFile {
    // Groups may be read a little beyond their end, in whole host vectors.
    static constexpr std::uint32_t kBeyond = 64;

    alignas(64) std::uint8_t v[kVectorRegisters * kMaxVlenBytes + kBeyond] = {};
    // Results and operands aside, while one instruction executes.
    alignas(64) std::uint8_t aside[kMaxGroupBytes + kBeyond] = {};
    alignas(64) std::uint8_t aside2[kMaxGroupBytes + kBeyond] = {};
    alignas(64) std::uint8_t aside1[kMaxGroupBytes + kBeyond] = {};
    alignas(64) std::uint8_t aside_mask[kMaxVlenBytes + kBeyond] = {};

    const VectorKernels* kernels = nullptr;
    std::uint32_t vlen_bytes = 0;
    std::uint32_t datapath_bits = 0;
    bool touched = true;  // something may not be as after reset

    std::uint64_t vl = 0, vtype = kVill, vstart = 0;
    std::uint8_t vxrm = 0, vxsat = 0;
    // What vtype says; while it is illegal, of no meaning.
    int sew_log2 = 3;   // 3 to 6
    int lmul_log2 = 0;  // -3 to 3
    std::uint64_t vlmax = 0;

    // What instructions with the vl and vtype of last time have in common.
    struct Common {
        std::uint64_t vl = 0, vtype = kVill;
        std::uint64_t cycles[2] = {};  // of vl elements of SEW, and of twice SEW
        VectorOperands operands;
    } common;

    // What instructions did (counting.h): `plain` of `common`, by their kind, and `work` all else.
    static constexpr std::size_t kPlainKinds = 16;
    std::uint64_t plain[kPlainKinds] = {};
    WorkCounts work;

    // Loads and stores of rows, by their place in the code: what the last one there says of the next.
    struct Row {
        // Where it was, and how far from the one before: a guess for the host's caches.
        std::uint64_t last = 0, step = 0;
        // The page of 2 MiB that it was in, if such an access may go to host memory at va + addend anywhere
        // in there, and is counted as one of the card's memory; 1 in bit 0 for stores. kNoSpan: not so.
        std::uint64_t span = kNoSpan;
        std::uintptr_t addend = 0;
        static constexpr std::uint64_t kNoSpan = 2;
    };
    Row rows[16];
    void forget_spans() {
        for (Row& each : rows)
            each.span = Row::kNoSpan;
    }

    // Multiply-adds that are counted and not computed yet (run.cc): of rows of register group `vs2`, of which
    // all but the last have all sums. Rows are in the group, aside or, during a run, in memory, and the group
    // is still to get the last. Nobody sees registers or flags before compute_products(), and at the end of
    // Hart::run() nothing is left.
    struct Pending {
        static constexpr std::uint32_t kMostBytes = 1024;  // of a row that others follow
        VectorProducts all;                                // rows == 0: nothing
        VectorProductsKernel kernel = nullptr;
        VectorOperands one;
        unsigned in_last = 0, log2 = 0;  // of the size of an element in bytes
        std::uint32_t in_place = 0;      // a bit each: rows that are in memory
        std::uint8_t vs2 = 0;
        alignas(64) std::uint8_t aside[VectorProducts::kRows - 1][kMostBytes] = {};
    } pending;

    // In cycles, as Hart::cycles(): when the two have done what was given to them, and when the last
    // instructions began, the oldest at `oldest`. The hart goes on while so many have not begun.
    static constexpr std::size_t kAhead = 4;
    std::uint64_t arithmetic_until = 0, memory_until = 0;
    std::uint64_t began[kAhead] = {};
    std::size_t oldest = 0;
    std::uint64_t busy_until() const { return std::max(arithmetic_until, memory_until); }
    void rest() {
        arithmetic_until = memory_until = 0;
        std::fill_n(began, kAhead, 0);
    }

    std::uint8_t* reg(unsigned number) { return v + std::uint64_t{number} * vlen_bytes; }
    // Also of a legal vtype of which vl was not chosen yet. False: it is illegal.
    bool set_vtype(std::uint64_t value);
    void clear();
};

}  // namespace orrery::emu
