// Vector instructions: what their Ops hold, and what their handlers have in common.
//
// rd, rs1 and rs2 of the Op are the fields vd, vs1 and vs2. imm holds the VectorOp, what it counts as, and
// whether the registers fit one another at a vtype: that is looked at when vtype is not the one of last time.
// aux holds vm and nf.
#pragma once

#include "emulator/core/handler.h"

namespace orrery::emu {

constexpr std::uint8_t vector_aux(std::uint32_t bits) {
    return static_cast<std::uint8_t>((bits >> 25 & 1) | (bits >> 29) << 1);
}
inline bool unmasked(const Op* op) {
    return (op->aux & 1) != 0;
}
inline unsigned fields_of(const Op* op) {
    return (op->aux >> 1 & 7u) + 1;
}
inline constexpr std::uint32_t kVectorOpBits = 0xfff, kKindBits = 0xf000;  // the latter: see counting.h
static_assert(kVectorOps <= kVectorOpBits);
inline VectorOp vector_op(const Op* op) {
    return static_cast<VectorOp>(static_cast<std::uint32_t>(op->imm) & kVectorOpBits);
}

// aux of a configuration; else it is vsetvli.
inline constexpr unsigned kVsetvl = 2, kVsetivli = 3;

// What imm says beside the VectorOp.
inline constexpr std::uint32_t kCheckedVtype = 0xff << 16;
inline constexpr std::uint32_t kChecked = 1 << 24;   // legal at that vtype
inline constexpr std::uint32_t kOverlaps = 1 << 25;  // a source is not apart from vd, nor the same group
// There is nothing to do but to run its kernel, or to move its bytes, and its cycles are those of vl elements
// of SEW: what most instructions of inner loops are.
inline constexpr std::uint32_t kPlain = 1 << 26;
inline constexpr std::uint32_t kPlainWide = 1 << 27;  // arithmetic: of twice SEW
inline constexpr std::uint32_t kPlainFp = 1 << 28;
inline constexpr unsigned kPlainScalarShift = 29;  // two bits, a PlainScalar
enum class PlainScalar : std::uint8_t { kX, kF, kSigned, kUnsigned };
inline constexpr std::uint32_t kBeginsRun = 1u
                                            << 31;  // arithmetic: several like it are done in one go (run.cc)
inline constexpr std::uint32_t kPlainStore = 1 << 27;  // of memory

// EEW and EMUL of an operand, as powers of two; size is that of an element in bits.
struct GroupShape {
    int eew_log2;
    int emul_log2;
    int registers() const { return emul_log2 > 0 ? 1 << emul_log2 : 1; }
};
GroupShape shape_of(const VectorFile& file, VectorOperand operand, unsigned eew);
inline bool fits(const GroupShape& shape, unsigned number) {
    return shape.eew_log2 >= 3 && shape.eew_log2 <= 6 && shape.emul_log2 >= -3 && shape.emul_log2 <= 3 &&
           number % static_cast<unsigned>(shape.registers()) == 0;
}
// Whether vd may lie as it does against a group that is read (5.2 of the specification).
bool may_overlap(unsigned vd, const GroupShape& to, unsigned vs, const GroupShape& from);
inline bool overlap(unsigned a, int a_registers, unsigned b, int b_registers) {
    return static_cast<int>(a) < static_cast<int>(b) + b_registers &&
           static_cast<int>(b) < static_cast<int>(a) + a_registers;
}

inline bool vector_on(const Core* core) {
    return (core->mstatus & kMstatusVs) != 0;
}
// It is kPlain, with this vl and vtype.
inline bool is_plain(const VectorFile& file, const Op* op) {
    const std::uint32_t now = static_cast<std::uint32_t>(file.vtype & 0xff) << 16 | kChecked | kPlain;
    return (static_cast<std::uint32_t>(op->imm) & (kCheckedVtype | kChecked | kPlain)) == now &&
           file.vstart == 0 && file.vl != 0;
}
inline void vector_written(Core* core) {
    core->mstatus |= kMstatusVs;
    core->vector->touched = true;
}

// The instruction keeps `until` busy for so many cycles from when that is free and the instruction before has
// begun; the hart goes on beside it, if not too many wait. `awaited`: the hart needs a result.
inline void charge_vector(Core* core, Left& left, std::uint64_t& until, std::uint64_t cycles, bool awaited) {
    VectorFile& file = *core->vector;
    std::uint64_t& place = file.began[file.oldest];
    const std::uint64_t last = file.began[(file.oldest + VectorFile::kAhead - 1) % VectorFile::kAhead];
    file.oldest = (file.oldest + 1) % VectorFile::kAhead;
    const std::uint64_t now = core->steps_end - static_cast<std::uint64_t>(steps_left(left)) +
                              core->extra_cycles,
                        given = std::max(now, place);
    const std::uint64_t begin = std::max({given, last, awaited ? file.busy_until() : until});
    until = begin + cycles;
    place = begin;
    core->charge(left, awaited ? until - now : given + 1 - now);
}

// Bits [start, vl) of vd where the mask (nullptr: everywhere) has a one.
void merge_bits(std::uint8_t* vd, const std::uint8_t* from, const std::uint8_t* mask, std::uint64_t start,
                std::uint64_t vl);

// CSRs of vectors; false: illegal.
bool read_vector_csr(Core* core, std::uint32_t number, std::uint64_t& value);
bool write_vector_csr(Core* core, std::uint32_t number, std::uint64_t value);

// vset{i}vl{i} that leaves vl and vtype as they are, but for its count of steps; false: it is another one,
// and nothing is done.
bool keeps_vl(Core* core, const Op* op);
Next op_vector(Core* core, Op* op, Left left);
Next op_vector_memory(Core* core, Op* op, Left left);
// What is pending of products (file.h) is computed now.
void compute_pending(Core* core);
inline void compute_products(Core* core) {
    if (core->vector->pending.all.rows != 0) [[unlikely]]
        compute_pending(core);
}
// A whole group at `rd` is about to be loaded: where to. What is pending is computed if it has to be.
std::uint8_t* place_of_row(Core* core, unsigned rd, std::uint64_t bytes);
// One that is kPlain and kBeginsRun, and those that follow it, with frm 0.
Next op_vector_run(Core* core, Op* op, Left left);

}  // namespace orrery::emu
