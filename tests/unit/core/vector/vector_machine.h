// A hart with vectors, its registers as arrays, and encodings from the table.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "emulator/core/vector/opcodes.h"
#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"

namespace orrery::emu::test {

inline constexpr Word kVstart = 0x008, kVxsat = 0x009, kVxrm = 0x00a, kVcsr = 0x00f;
inline constexpr Word kVl = 0xc20, kVtype = 0xc21, kVlenb = 0xc22;

enum Sew : Word { e8, e16, e32, e64 };
enum Lmul : Word { m1, m2, m4, m8, mf8 = 5, mf4, mf2 };

constexpr Word vtype(Sew sew, Lmul lmul) {
    return sew << 3 | lmul;
}
constexpr Word vsetvli(Word rd, Word rs1, Word type) {
    return type << 20 | rs1 << 15 | 7u << 12 | rd << 7 | 0x57;
}
constexpr Word vsetivli(Word rd, Word avl, Word type) {
    return 3u << 30 | type << 20 | avl << 15 | 7u << 12 | rd << 7 | 0x57;
}
constexpr Word vsetvl(Word rd, Word rs1, Word rs2) {
    return 1u << 31 | rs2 << 20 | rs1 << 15 | 7u << 12 | rd << 7 | 0x57;
}
// The operands in the order of the fields vd, vs2, vs1 (rs1, immediate).
constexpr Word v(VectorOp op, Word vd, Word vs2, Word vs1, bool masked = false, Word fields = 1) {
    const VectorRow& what = row(op);
    const Word all = vd << 7 | (vs1 & 31) << 15 | vs2 << 20 | (masked ? 0u : 1u) << 25 | (fields - 1) << 29;
    return what.match | (all & ~what.mask);
}

inline Config vector_config(std::uint32_t vlen = 256) {
    return {.reset_pc = kRam, .fp = true, .vlen = vlen, .trap_to_host = true};
}

struct VectorMachine : Machine {
    explicit VectorMachine(std::uint32_t vlen = 256) : VectorMachine(vector_config(vlen)) {}
    explicit VectorMachine(const Config& config) : Machine(config), vlenb(config.vlen / 8) {
        state = hart.vector_state();
    }
    // Elements from the first of register `number` on.
    template <class T>
    void set(unsigned number, const std::vector<T>& values) {
        state = hart.vector_state();
        std::copy_n(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T),
                    state.v + number * vlenb);
        hart.set_vector_state(state);
    }
    template <class T>
    std::vector<T> get(unsigned number, std::size_t count) {
        std::vector<T> values(count);
        std::memcpy(values.data(), hart.vector_state().v + number * vlenb, count * sizeof(T));
        return values;
    }
    // As vset{i}vl{i} and CSR writes leave it.
    void configure(Sew sew, Lmul lmul, std::uint64_t vl, std::uint64_t vstart = 0) {
        state = hart.vector_state();
        state.vtype = vtype(sew, lmul);
        state.vl = vl;
        state.vstart = vstart;
        hart.set_vector_state(state);
    }
    // One instruction, which is legal.
    void run(Word instruction) {
        hart.set_pc(kRam);
        code({instruction});
        ASSERT_EQ(hart.run(1), StopReason::kBudget) << std::hex << instruction;
        EXPECT_EQ(hart.pc(), kRam + 4);
        EXPECT_EQ(hart.vector_state().vstart, 0u);
    }
    bool illegal(Word instruction) {
        hart.set_pc(kRam);
        code({instruction});
        const VectorState before = hart.vector_state();
        if (hart.run(1) != StopReason::kTrap) return false;
        EXPECT_EQ(hart.trap().cause, Cause::kIllegal);
        EXPECT_EQ(hart.trap().tval, instruction);
        EXPECT_EQ(hart.vector_state(), before);
        return true;
    }

    std::uint32_t vlenb;
    VectorState state;
};

}  // namespace orrery::emu::test
