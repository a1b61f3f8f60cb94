// The C extension (RV64): every two-byte instruction stands for one four-byte instruction.
#include "emulator/core/decode.h"

namespace orrery::emu {
namespace {

// Moves bits [from + width - 1 : from] of `value` to position `to`.
constexpr std::uint32_t field(std::uint32_t value, unsigned from, unsigned width, unsigned to) {
    return (value >> from & ((1u << width) - 1)) << to;
}
constexpr std::uint32_t kLoad = 0x03, kFpLoad = 0x07, kOpImm = 0x13, kOpImm32 = 0x1b, kStore = 0x23,
                        kFpStore = 0x27, kOp = 0x33, kLui = 0x37, kOp32 = 0x3b, kBranch = 0x63, kJalr = 0x67,
                        kJal = 0x6f;

constexpr std::uint32_t i_type(std::uint32_t opcode, std::uint32_t funct3, std::uint32_t rd,
                               std::uint32_t rs1, std::uint32_t imm) {
    return (imm & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode;
}
constexpr std::uint32_t s_type(std::uint32_t opcode, std::uint32_t funct3, std::uint32_t rs1,
                               std::uint32_t rs2, std::uint32_t imm) {
    return (imm >> 5 & 127) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (imm & 31) << 7 | opcode;
}
constexpr std::uint32_t r_type(std::uint32_t opcode, std::uint32_t funct3, std::uint32_t funct7,
                               std::uint32_t rd, std::uint32_t rs1, std::uint32_t rs2) {
    return funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode;
}
// `imm` is sign-extended.
constexpr std::uint32_t b_type(std::uint32_t funct3, std::uint32_t rs1, std::uint32_t imm) {
    return field(imm, 12, 1, 31) | field(imm, 5, 6, 25) | rs1 << 15 | funct3 << 12 | field(imm, 1, 4, 8) |
           field(imm, 11, 1, 7) | kBranch;
}
constexpr std::uint32_t j_type(std::uint32_t imm) {
    return field(imm, 20, 1, 31) | field(imm, 1, 10, 21) | field(imm, 11, 1, 20) | field(imm, 12, 8, 12) |
           kJal;
}
constexpr std::uint32_t sign_extend(std::uint32_t value, unsigned bits) {
    const std::uint32_t sign = 1u << (bits - 1);
    return (value ^ sign) - sign;
}

// Immediates that several instructions share.
std::uint32_t imm6(std::uint32_t c) {
    return sign_extend(field(c, 12, 1, 5) | field(c, 2, 5, 0), 6);
}
std::uint32_t shamt(std::uint32_t c) {
    return field(c, 12, 1, 5) | field(c, 2, 5, 0);
}
std::uint32_t word_offset(std::uint32_t c) {
    return field(c, 10, 3, 3) | field(c, 6, 1, 2) | field(c, 5, 1, 6);
}
std::uint32_t double_offset(std::uint32_t c) {
    return field(c, 10, 3, 3) | field(c, 5, 2, 6);
}
std::uint32_t word_from_sp(std::uint32_t c) {
    return field(c, 12, 1, 5) | field(c, 4, 3, 2) | field(c, 2, 2, 6);
}
std::uint32_t double_from_sp(std::uint32_t c) {
    return field(c, 12, 1, 5) | field(c, 5, 2, 3) | field(c, 2, 3, 6);
}
std::uint32_t word_to_sp(std::uint32_t c) {
    return field(c, 9, 4, 2) | field(c, 7, 2, 6);
}
std::uint32_t double_to_sp(std::uint32_t c) {
    return field(c, 10, 3, 3) | field(c, 7, 3, 6);
}

std::uint32_t quadrant0(std::uint32_t c) {
    const std::uint32_t rd = 8 + field(c, 2, 3, 0);
    const std::uint32_t rs1 = 8 + field(c, 7, 3, 0);
    switch (c >> 13) {
        case 0: {  // c.addi4spn
            const std::uint32_t imm =
                field(c, 11, 2, 4) | field(c, 7, 4, 6) | field(c, 6, 1, 2) | field(c, 5, 1, 3);
            return imm == 0 ? 0 : i_type(kOpImm, 0, rd, 2, imm);
        }
        case 1:
            return i_type(kFpLoad, 3, rd, rs1, double_offset(c));
        case 2:
            return i_type(kLoad, 2, rd, rs1, word_offset(c));
        case 3:
            return i_type(kLoad, 3, rd, rs1, double_offset(c));
        case 5:
            return s_type(kFpStore, 3, rs1, rd, double_offset(c));
        case 6:
            return s_type(kStore, 2, rs1, rd, word_offset(c));
        case 7:
            return s_type(kStore, 3, rs1, rd, double_offset(c));
        default:
            return 0;
    }
}

std::uint32_t quadrant1_alu(std::uint32_t c) {
    const std::uint32_t rd = 8 + field(c, 7, 3, 0);
    const std::uint32_t rs2 = 8 + field(c, 2, 3, 0);
    switch (c >> 10 & 3) {
        case 0:
            return i_type(kOpImm, 5, rd, rd, shamt(c));
        case 1:
            return i_type(kOpImm, 5, rd, rd, shamt(c) | 0x400);
        case 2:
            return i_type(kOpImm, 7, rd, rd, imm6(c));
        default:
            break;
    }
    switch (field(c, 12, 1, 2) | field(c, 5, 2, 0)) {
        case 0:
            return r_type(kOp, 0, 0x20, rd, rd, rs2);
        case 1:
            return r_type(kOp, 4, 0, rd, rd, rs2);
        case 2:
            return r_type(kOp, 6, 0, rd, rd, rs2);
        case 3:
            return r_type(kOp, 7, 0, rd, rd, rs2);
        case 4:
            return r_type(kOp32, 0, 0x20, rd, rd, rs2);
        case 5:
            return r_type(kOp32, 0, 0, rd, rd, rs2);
        default:
            return 0;
    }
}

std::uint32_t quadrant1(std::uint32_t c) {
    const std::uint32_t rd = field(c, 7, 5, 0);
    const std::uint32_t rs1 = 8 + field(c, 7, 3, 0);
    switch (c >> 13) {
        case 0:
            return i_type(kOpImm, 0, rd, rd, imm6(c));
        case 1:
            return rd == 0 ? 0 : i_type(kOpImm32, 0, rd, rd, imm6(c));
        case 2:
            return i_type(kOpImm, 0, rd, 0, imm6(c));
        case 3:
            if (rd == 2) {  // c.addi16sp
                const std::uint32_t imm =
                    sign_extend(field(c, 12, 1, 9) | field(c, 6, 1, 4) | field(c, 5, 1, 6) |
                                    field(c, 3, 2, 7) | field(c, 2, 1, 5),
                                10);
                return imm == 0 ? 0 : i_type(kOpImm, 0, 2, 2, imm);
            }
            return imm6(c) == 0 ? 0 : imm6(c) << 12 | rd << 7 | kLui;
        case 4:
            return quadrant1_alu(c);
        case 5:
            return j_type(sign_extend(field(c, 12, 1, 11) | field(c, 11, 1, 4) | field(c, 9, 2, 8) |
                                          field(c, 8, 1, 10) | field(c, 7, 1, 6) | field(c, 6, 1, 7) |
                                          field(c, 3, 3, 1) | field(c, 2, 1, 5),
                                      12));
        default: {
            const std::uint32_t imm =
                sign_extend(field(c, 12, 1, 8) | field(c, 10, 2, 3) | field(c, 5, 2, 6) | field(c, 3, 2, 1) |
                                field(c, 2, 1, 5),
                            9);
            return b_type(c >> 13 == 6 ? 0 : 1, rs1, imm);
        }
    }
}

std::uint32_t quadrant2(std::uint32_t c) {
    const std::uint32_t rd = field(c, 7, 5, 0);
    const std::uint32_t rs2 = field(c, 2, 5, 0);
    switch (c >> 13) {
        case 0:
            return i_type(kOpImm, 1, rd, rd, shamt(c));
        case 1:
            return i_type(kFpLoad, 3, rd, 2, double_from_sp(c));
        case 2:
            return rd == 0 ? 0 : i_type(kLoad, 2, rd, 2, word_from_sp(c));
        case 3:
            return rd == 0 ? 0 : i_type(kLoad, 3, rd, 2, double_from_sp(c));
        case 4:
            if ((c >> 12 & 1) == 0) {
                if (rs2 != 0) return r_type(kOp, 0, 0, rd, 0, rs2);  // c.mv
                return rd == 0 ? 0 : i_type(kJalr, 0, 0, rd, 0);     // c.jr
            }
            if (rs2 != 0) return r_type(kOp, 0, 0, rd, rd, rs2);       // c.add
            return rd == 0 ? 0x00100073 : i_type(kJalr, 0, 1, rd, 0);  // c.ebreak, c.jalr
        case 5:
            return s_type(kFpStore, 3, 2, rs2, double_to_sp(c));
        case 6:
            return s_type(kStore, 2, 2, rs2, word_to_sp(c));
        default:
            return s_type(kStore, 3, 2, rs2, double_to_sp(c));
    }
}

}  // namespace

std::uint32_t expand_compressed(std::uint16_t bits) {
    switch (bits & 3) {
        case 0:
            return quadrant0(bits);
        case 1:
            return quadrant1(bits);
        case 2:
            return quadrant2(bits);
        default:
            return 0;
    }
}

}  // namespace orrery::emu
