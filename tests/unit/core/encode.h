// Instruction encodings, so that tests read like assembly.
#pragma once

#include <cstdint>

namespace orrery::emu::test {

using Word = std::uint32_t;

enum : Word { x0, ra, sp, gp, tp, t0, t1, t2, s0, s1, a0, a1, a2, a3, a4, a5, a6, a7, s2, s3, s4 };

constexpr Word r_type(Word opcode, Word funct3, Word funct7, Word rd, Word rs1, Word rs2) {
    return funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode;
}
constexpr Word i_type(Word opcode, Word funct3, Word rd, Word rs1, int imm) {
    return static_cast<Word>(imm) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode;
}
constexpr Word s_type(Word opcode, Word funct3, Word rs1, Word rs2, int imm) {
    const auto i = static_cast<Word>(imm);
    return (i >> 5 & 127) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (i & 31) << 7 | opcode;
}
constexpr Word b_type(Word funct3, Word rs1, Word rs2, int offset) {
    const auto o = static_cast<Word>(offset);
    return (o >> 12 & 1) << 31 | (o >> 5 & 63) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 |
           (o >> 1 & 15) << 8 | (o >> 11 & 1) << 7 | 0x63;
}

constexpr Word addi(Word rd, Word rs1, int imm) {
    return i_type(0x13, 0, rd, rs1, imm);
}
constexpr Word li(Word rd, int imm) {
    return addi(rd, x0, imm);
}
constexpr Word nop() {
    return addi(x0, x0, 0);
}
constexpr Word slli(Word rd, Word rs1, int shift) {
    return i_type(0x13, 1, rd, rs1, shift);
}
constexpr Word add(Word rd, Word rs1, Word rs2) {
    return r_type(0x33, 0, 0, rd, rs1, rs2);
}
constexpr Word lui(Word rd, Word imm20) {
    return imm20 << 12 | rd << 7 | 0x37;
}
constexpr Word auipc(Word rd, Word imm20) {
    return imm20 << 12 | rd << 7 | 0x17;
}
// funct3: 0 b, 1 h, 2 w, 3 d, +4 unsigned
constexpr Word load(Word funct3, Word rd, Word rs1, int imm) {
    return i_type(0x03, funct3, rd, rs1, imm);
}
constexpr Word store(Word funct3, Word rs2, Word rs1, int imm) {
    return s_type(0x23, funct3, rs1, rs2, imm);
}
constexpr Word lw(Word rd, Word rs1, int imm) {
    return load(2, rd, rs1, imm);
}
constexpr Word ld(Word rd, Word rs1, int imm) {
    return load(3, rd, rs1, imm);
}
constexpr Word sw(Word rs2, Word rs1, int imm) {
    return store(2, rs2, rs1, imm);
}
constexpr Word sd(Word rs2, Word rs1, int imm) {
    return store(3, rs2, rs1, imm);
}
constexpr Word beq(Word rs1, Word rs2, int offset) {
    return b_type(0, rs1, rs2, offset);
}
constexpr Word bne(Word rs1, Word rs2, int offset) {
    return b_type(1, rs1, rs2, offset);
}
constexpr Word jal(Word rd, int offset) {
    const auto o = static_cast<Word>(offset);
    return (o >> 20 & 1) << 31 | (o >> 1 & 1023) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 255) << 12 |
           rd << 7 | 0x6f;
}
constexpr Word jalr(Word rd, Word rs1, int imm) {
    return i_type(0x67, 0, rd, rs1, imm);
}
constexpr Word csrrw(Word rd, Word csr, Word rs1) {
    return csr << 20 | rs1 << 15 | 1u << 12 | rd << 7 | 0x73;
}
constexpr Word csrrs(Word rd, Word csr, Word rs1) {
    return csr << 20 | rs1 << 15 | 2u << 12 | rd << 7 | 0x73;
}
constexpr Word csrrc(Word rd, Word csr, Word rs1) {
    return csr << 20 | rs1 << 15 | 3u << 12 | rd << 7 | 0x73;
}
constexpr Word csrrwi(Word rd, Word csr, Word imm) {
    return csr << 20 | imm << 15 | 5u << 12 | rd << 7 | 0x73;
}
constexpr Word csrrsi(Word rd, Word csr, Word imm) {
    return csr << 20 | imm << 15 | 6u << 12 | rd << 7 | 0x73;
}
constexpr Word csrrci(Word rd, Word csr, Word imm) {
    return csr << 20 | imm << 15 | 7u << 12 | rd << 7 | 0x73;
}
constexpr Word csrr(Word rd, Word csr) {
    return csrrs(rd, csr, x0);
}
constexpr Word csrw(Word csr, Word rs1) {
    return csrrw(x0, csr, rs1);
}
constexpr Word ecall() {
    return 0x00000073;
}
constexpr Word ebreak() {
    return 0x00100073;
}
constexpr Word mret() {
    return 0x30200073;
}
constexpr Word wfi() {
    return 0x10500073;
}
constexpr Word fence() {
    return 0x0ff0000f;
}
constexpr Word fence_i() {
    return 0x0000100f;
}
// funct3: 2 word, 3 double. funct5: 0 add, 1 swap, 2 lr, 3 sc, 4 xor, 8 or, 12 and, 16 min, 20 max, 24 minu,
// 28 maxu
constexpr Word amo(Word funct5, Word funct3, Word rd, Word rs1, Word rs2) {
    return r_type(0x2f, funct3, funct5 << 2, rd, rs1, rs2);
}
constexpr Word lr_w(Word rd, Word rs1) {
    return amo(2, 2, rd, rs1, 0);
}
constexpr Word sc_w(Word rd, Word rs2, Word rs1) {
    return amo(3, 2, rd, rs1, rs2);
}
constexpr Word lr_d(Word rd, Word rs1) {
    return amo(2, 3, rd, rs1, 0);
}
constexpr Word sc_d(Word rd, Word rs2, Word rs1) {
    return amo(3, 3, rd, rs1, rs2);
}
// funct5 and format (0 single, 1 double) of FP computations; funct3 is mostly the rounding mode
constexpr Word fp(Word funct5, Word format, Word funct3, Word rd, Word rs1, Word rs2) {
    return r_type(0x53, funct3, funct5 << 2 | format, rd, rs1, rs2);
}
constexpr Word fadd_d(Word rd, Word rs1, Word rs2) {
    return fp(0, 1, 7, rd, rs1, rs2);
}
constexpr Word fdiv_d(Word rd, Word rs1, Word rs2) {
    return fp(3, 1, 7, rd, rs1, rs2);
}

enum : Word {
    kCsrFflags = 1,
    kCsrFrm = 2,
    kCsrFcsr = 3,
    kCsrMstatus = 0x300,
    kCsrMisa = 0x301,
    kCsrMie = 0x304,
    kCsrMtvec = 0x305,
    kCsrMscratch = 0x340,
    kCsrMepc = 0x341,
    kCsrMcause = 0x342,
    kCsrMtval = 0x343,
    kCsrMip = 0x344,
    kCsrMcycle = 0xb00,
    kCsrMinstret = 0xb02,
    kCsrMhartid = 0xf14,
};

}  // namespace orrery::emu::test
