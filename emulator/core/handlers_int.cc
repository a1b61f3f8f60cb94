// Integer computations.
#include <limits>

#include "emulator/core/handler.h"

namespace orrery::emu {
namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

std::int32_t as_i32(std::uint64_t v) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(v));
}
std::uint32_t as_u32(std::uint64_t v) {
    return static_cast<std::uint32_t>(v);
}

// Division never traps: by zero, and the one overflow, have defined results.
template <class T>
T divide(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (std::numeric_limits<T>::is_signed && b == static_cast<T>(-1)) {
        return a == std::numeric_limits<T>::min() ? a : static_cast<T>(T{0} - a);
    }
    return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
    if (b == 0) return a;
    if (std::numeric_limits<T>::is_signed && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
}

std::uint64_t mulh(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>(static_cast<Uint128>(Int128{as_signed(a)} * Int128{as_signed(b)}) >>
                                      64);
}
std::uint64_t mulhu(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint64_t>(Uint128{a} * Uint128{b} >> 64);
}
std::uint64_t mulhsu(std::uint64_t a, std::uint64_t b) {
    return mulhu(a, b) - (as_signed(a) < 0 ? b : 0);
}

// Each function object gives the result from the two operands; the second is a register or an immediate.
// clang-format off
struct Add { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a + b; } };
struct Sub { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a - b; } };
struct Sll { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a << (b & 63); } };
struct Srl { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a >> (b & 63); } };
struct Sra {
    static std::uint64_t of(std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint64_t>(as_signed(a) >> (b & 63));
    }
};
struct Slt { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return as_signed(a) < as_signed(b); } };
struct Sltu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a < b; } };
struct Xor { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a ^ b; } };
struct Or { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a | b; } };
struct And { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a & b; } };
struct Addw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(a + b); } };
struct Subw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(a - b); } };
struct Sllw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(a << (b & 31)); } };
struct Srlw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(as_u32(a) >> (b & 31)); } };
struct Sraw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext(as_i32(a) >> (b & 31)); } };
struct Mul { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a * b; } };
struct Mulh { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return mulh(a, b); } };
struct Mulhsu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return mulhsu(a, b); } };
struct Mulhu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return mulhu(a, b); } };
struct Mulw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(a * b); } };
struct Div {
    static std::uint64_t of(std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint64_t>(divide(as_signed(a), as_signed(b)));
    }
};
struct Divu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return divide(a, b); } };
struct Rem {
    static std::uint64_t of(std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint64_t>(remainder(as_signed(a), as_signed(b)));
    }
};
struct Remu { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return remainder(a, b); } };
struct Divw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext(divide(as_i32(a), as_i32(b))); } };
struct Divuw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(divide(as_u32(a), as_u32(b))); } };
struct Remw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext(remainder(as_i32(a), as_i32(b))); } };
struct Remuw { static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return sext32(remainder(as_u32(a), as_u32(b))); } };

// clang-format on

template <class Function, unsigned kLength>
Next op_reg(Core* core, Op* op, std::int64_t left) {
    core->x[op->rd] = Function::of(core->x[op->rs1], core->x[op->rs2]);
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <class Function, unsigned kLength>
Next op_imm(Core* core, Op* op, std::int64_t left) {
    core->x[op->rd] = Function::of(core->x[op->rs1], sext(op->imm));
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_nop(Core* core, Op* op, std::int64_t left) {
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_mv(Core* core, Op* op, std::int64_t left) {
    core->x[op->rd] = core->x[op->rs1];
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_li(Core* core, Op* op, std::int64_t left) {
    core->x[op->rd] = sext(op->imm);
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_liu(Core* core, Op* op, std::int64_t left) {
    core->x[op->rd] = static_cast<std::uint32_t>(op->imm);
    op += kLength;
    ORR_NEXT(core, op, left);
}
template <unsigned kLength>
Next op_auipc(Core* core, Op* op, std::int64_t left) {
    core->x[op->rd] = core->pc_of(op) + sext(op->imm);
    op += kLength;
    ORR_NEXT(core, op, left);
}

}  // namespace

void add_int_handlers(HandlerTable& table) {
#define PLAIN(code, name) table.set(OpCode::code, name<1>, name<2>)
#define REG(name) table.set(OpCode::k##name, op_reg<name, 1>, op_reg<name, 2>)
#define IMM(code, name) table.set(OpCode::code, op_imm<name, 1>, op_imm<name, 2>)
    PLAIN(kNop, op_nop);
    PLAIN(kMv, op_mv);
    PLAIN(kLi, op_li);
    PLAIN(kLiu, op_liu);
    PLAIN(kAuipc, op_auipc);
    REG(Add);
    REG(Sub);
    REG(Sll);
    REG(Slt);
    REG(Sltu);
    REG(Xor);
    REG(Srl);
    REG(Sra);
    REG(Or);
    REG(And);
    REG(Addw);
    REG(Subw);
    REG(Sllw);
    REG(Srlw);
    REG(Sraw);
    REG(Mul);
    REG(Mulh);
    REG(Mulhsu);
    REG(Mulhu);
    REG(Div);
    REG(Divu);
    REG(Rem);
    REG(Remu);
    REG(Mulw);
    REG(Divw);
    REG(Divuw);
    REG(Remw);
    REG(Remuw);
    IMM(kAddi, Add);
    IMM(kSlti, Slt);
    IMM(kSltiu, Sltu);
    IMM(kXori, Xor);
    IMM(kOri, Or);
    IMM(kAndi, And);
    IMM(kSlli, Sll);
    IMM(kSrli, Srl);
    IMM(kSrai, Sra);
    IMM(kAddiw, Addw);
    IMM(kSlliw, Sllw);
    IMM(kSrliw, Srlw);
    IMM(kSraiw, Sraw);
#undef PLAIN
#undef REG
#undef IMM
}

}  // namespace orrery::emu
