// A decoded instruction, and how one is followed by the next.
//
// A code page is an array of Op, one for each halfword of the page, so that the next instruction of a 2-byte
// one is op + 1 and of a 4-byte one op + 2, and pc follows from the address of the Op. Handlers end in
// ORR_NEXT, a tail call of the next handler. Where the compiler does not promise tail calls, handlers that it
// might not do it for (they have locals in memory) return the next Op to a loop instead, and without
// optimisation all do.
#pragma once

#include <cstdint>

namespace orrery::emu {

struct Core;
struct Op;

// What is left of the budget, this instruction included and less one, above what was done since the handlers
// began: jumps, loads and stores, each in a field of its own. So these are counted by the subtraction that
// each instruction makes anyhow, and what is subtracted fits its immediate operand.
using Left = std::uint64_t;
inline constexpr unsigned kLeftField = 10, kLeftShift = 3 * kLeftField;
inline constexpr Left kLeftStep = Left{1} << kLeftShift, kLeftCounts = kLeftStep - 1;
inline constexpr Left kLeftJump = kLeftStep - 1, kLeftLoad = kLeftStep - (Left{1} << kLeftField),
                      kLeftStore = kLeftStep - (Left{1} << 2 * kLeftField);
// Handlers get no more at a time, so no field runs over.
inline constexpr std::int64_t kMostLeft = (std::int64_t{1} << kLeftField) - 1;
// Also of what is left after the last one: 0.
constexpr std::int64_t steps_left(Left left) {
    return static_cast<std::int64_t>(((left >> kLeftShift) + 1) & (~Left{0} >> kLeftShift));
}
constexpr Left with_steps_left(Left left, std::int64_t steps) {
    return static_cast<Left>(steps - 1) << kLeftShift | (left & kLeftCounts);
}

#if defined(__clang__)
#define ORR_MUSTTAIL [[clang::musttail]]
using Next = void;
#define ORR_STOP() return
#define ORR_DISPATCH(core, op, left) ORR_MUSTTAIL return (op)->fn((core), (op), (left))
#define ORR_DISPATCH_SLOW(core, op, left) ORR_DISPATCH(core, op, left)
#define ORR_CALL(handler, core, op, left) ORR_MUSTTAIL return (handler)((core), (op), (left))
#else
// A nullptr op ends the loop in run_ops().
struct Next {
    Op* op;
    Left left;
};
#define ORR_STOP() return Next{nullptr, 0}
#define ORR_DISPATCH_SLOW(core, op, left) \
    return Next {                         \
        (op), (left)                      \
    }
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ORR_DISPATCH(core, op, left) return (op)->fn((core), (op), (left))
#else
#define ORR_DISPATCH(core, op, left) ORR_DISPATCH_SLOW(core, op, left)
#endif
#define ORR_CALL(handler, core, op, left) return (handler)((core), (op), (left))
#endif

// There is something left in every call.
using Handler = Next (*)(Core* core, Op* op, Left left);

struct Op {
    Handler fn;
    std::int32_t imm;  // sign-extended immediate; for near jumps the distance in Ops
    // Register numbers. For integer results x0 is replaced by kDumpRegister, so that no handler asks.
    std::uint8_t rd, rs1, rs2;
    std::uint8_t aux;  // rounding mode, AMO function, rs3, CSR function: as the handler says
};
static_assert(sizeof(void*) != 8 || sizeof(Op) == 16);

inline constexpr std::uint8_t kDumpRegister = 32;

// Near and Far: the target is in the same page or not. Each group is implemented in one file.
// clang-format off
enum class OpCode : std::uint8_t {
    // handlers_int.cc
    kNop, kLi, kLiu, kAuipc, kMv,
    kAdd, kSub, kSll, kSlt, kSltu, kXor, kSrl, kSra, kOr, kAnd, kAddw, kSubw, kSllw, kSrlw, kSraw,
    kAddi, kSlti, kSltiu, kXori, kOri, kAndi, kSlli, kSrli, kSrai, kAddiw, kSlliw, kSrliw, kSraiw,
    kMul, kMulh, kMulhsu, kMulhu, kDiv, kDivu, kRem, kRemu, kMulw, kDivw, kDivuw, kRemw, kRemuw,
    // handlers_jump.cc
    kBeqNear, kBneNear, kBltNear, kBgeNear, kBltuNear, kBgeuNear,
    kBeqFar, kBneFar, kBltFar, kBgeFar, kBltuFar, kBgeuFar,
    kJalNear, kJNear, kJalFar, kJalr, kJr,
    // handlers_mem.cc
    kLb, kLh, kLw, kLd, kLbu, kLhu, kLwu, kSb, kSh, kSw, kSd, kFlh, kFlw, kFld, kFsh, kFsw, kFsd,
    // handlers_atomic.cc
    kLrW, kLrD, kScW, kScD, kAmoW, kAmoD, kFence,
    // handlers_fp.cc
    kFaddS, kFsubS, kFmulS, kFdivS, kFsqrtS, kFaddD, kFsubD, kFmulD, kFdivD, kFsqrtD,
    kFmaddS, kFmsubS, kFnmsubS, kFnmaddS, kFmaddD, kFmsubD, kFnmsubD, kFnmaddD,
    kFsgnjS, kFsgnjnS, kFsgnjxS, kFsgnjD, kFsgnjnD, kFsgnjxD, kFminS, kFmaxS, kFminD, kFmaxD,
    kFeqS, kFltS, kFleS, kFeqD, kFltD, kFleD, kFclassS, kFclassD,
    kFcvtSD, kFcvtDS, kFmvXW, kFmvXD, kFmvWX, kFmvDX,
    kFcvtToIntS, kFcvtToIntD, kFcvtFromIntS, kFcvtFromIntD,
    kFmvXH, kFmvHX, kFcvtSH, kFcvtHS, kFcvtDH, kFcvtHD, kFcvtSBf16, kFcvtBf16S,
    // handlers_sys.cc
    kIllegal, kEcall, kEbreak, kMret, kWfi, kFenceI, kCsr, kCsrWord,
    // vector/
    kVectorConfig, kVector, kVectorMemory,
    kCount
};
// clang-format on

// Handlers by code and by length in halfwords less one.
struct HandlerTable {
    Handler of[static_cast<unsigned>(OpCode::kCount)][2];
    void set(OpCode code, Handler two_bytes, Handler four_bytes) {
        of[static_cast<unsigned>(code)][0] = two_bytes;
        of[static_cast<unsigned>(code)][1] = four_bytes;
    }
};
void add_int_handlers(HandlerTable& table);
void add_jump_handlers(HandlerTable& table);
void add_mem_handlers(HandlerTable& table, bool counted);
void add_atomic_handlers(HandlerTable& table);
void add_fp_handlers(HandlerTable& table);
void add_sys_handlers(HandlerTable& table);
void add_vector_handlers(HandlerTable& table);
// `counted`: loads and stores look at the meter (meter.h).
const HandlerTable& handler_table(bool counted = false);

}  // namespace orrery::emu
