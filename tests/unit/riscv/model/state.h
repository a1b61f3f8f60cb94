// The state that vector instructions see: registers, CSRs and a window of memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace orrery::riscv::model {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Everything outside is not mapped.
inline constexpr u64 kWindow = 0x40000000;
inline constexpr u64 kWindowBytes = 0x4000;

inline constexpr u64 kVill = u64{1} << 63;

struct State {
    explicit State(unsigned vlen_bits) : vlenb(vlen_bits / 8), v(32 * std::size_t{vlenb}) {}

    unsigned vlenb;
    std::array<u64, 32> x{};
    std::array<u64, 32> f{};
    std::vector<u8> v;  // register after register
    u64 vstart = 0, vl = 0, vtype = kVill;
    u8 vxsat = 0, vxrm = 0, frm = 0, fflags = 0;
    std::vector<u8> memory = std::vector<u8>(kWindowBytes);

    bool operator==(const State&) const = default;

    // Element `index` of the group that begins at v[first]; bits is 8 to 64.
    u64 element(unsigned first, u64 index, unsigned bits) const {
        const std::size_t at = std::size_t{first} * vlenb + index * (bits / 8);
        u64 value = 0;
        for (unsigned i = 0; i < bits / 8; ++i)
            value |= u64{v.at(at + i)} << (8 * i);
        return value;
    }
    void set_element(unsigned first, u64 index, unsigned bits, u64 value) {
        const std::size_t at = std::size_t{first} * vlenb + index * (bits / 8);
        for (unsigned i = 0; i < bits / 8; ++i)
            v.at(at + i) = static_cast<u8>(value >> (8 * i));
    }
    bool mask_bit(unsigned reg, u64 index) const {
        return (v.at(std::size_t{reg} * vlenb + index / 8) >> (index % 8) & 1) != 0;
    }
    void set_mask_bit(unsigned reg, u64 index, bool value) {
        u8& byte = v.at(std::size_t{reg} * vlenb + index / 8);
        byte = static_cast<u8>((byte & ~(1u << (index % 8))) | unsigned{value} << (index % 8));
    }
    void set_x(unsigned index, u64 value) {
        if (index != 0) x[index] = value;
    }
};

enum class Outcome : u8 { kDone, kIllegal, kLoadFault, kStoreFault };
const char* to_string(Outcome outcome);

struct Result {
    Outcome outcome = Outcome::kDone;
    u64 address = 0;  // of a fault: the first byte that is not there
    bool operator==(const Result&) const = default;
};

// The order in which unordered sums add: the specification leaves it open.
enum class Sums : u8 {
    kInOrder,  // as ordered ones
    kTree,  // sixteen partial sums, of the elements whose index has the same low four bits, halved four times
};

// One vector instruction. What is illegal changes nothing.
Result execute(State& state, u32 instruction, Sums sums = Sums::kInOrder);
// Would it be illegal?
bool is_legal(const State& state, u32 instruction);
// A legal one that the specification reserves all the same, since it reads a register with two element
// widths. The model, as the interpreter, takes it at its word.
bool is_reserved(const State& state, u32 instruction);

}  // namespace orrery::riscv::model
