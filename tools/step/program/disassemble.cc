#include "tools/step/program/disassemble.h"

#include <fmt/format.h>

#include "emulator/api/instruction.h"

namespace orrery::step {
namespace {

constexpr const char* kRegisters[32] = {"zero", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
                                        "a1",   "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
                                        "s6",   "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};

// The fields of a 32-bit instruction.
struct Fields {
    std::uint32_t bits;
    std::uint32_t get(unsigned high, unsigned low) const { return bits >> low & ((2u << (high - low)) - 1); }
    const char* rd() const { return kRegisters[get(11, 7)]; }
    const char* rs1() const { return kRegisters[get(19, 15)]; }
    const char* rs2() const { return kRegisters[get(24, 20)]; }
    std::uint32_t funct3() const { return get(14, 12); }
    std::uint32_t funct7() const { return get(31, 25); }
    std::int32_t imm_i() const { return static_cast<std::int32_t>(bits) >> 20; }
    std::int32_t imm_s() const {
        return static_cast<std::int32_t>(bits) >> 25 << 5 | static_cast<std::int32_t>(get(11, 7));
    }
    std::int64_t imm_b() const {
        return static_cast<std::int32_t>(bits) >> 31 << 12 |
               static_cast<std::int32_t>(get(7, 7) << 11 | get(30, 25) << 5 | get(11, 8) << 1);
    }
    std::int64_t imm_j() const {
        return static_cast<std::int32_t>(bits) >> 31 << 20 |
               static_cast<std::int32_t>(get(19, 12) << 12 | get(20, 20) << 11 | get(30, 21) << 1);
    }
};

using Symbol = std::function<std::string(std::uint64_t)>;

std::string target(std::uint64_t address, const Symbol& symbol) {
    const std::string name = symbol ? symbol(address) : "";
    return name.empty() ? fmt::format("{:#x}", address) : fmt::format("{:#x} <{}>", address, name);
}

std::string branch(Fields f, std::uint64_t pc, const Symbol& symbol) {
    static constexpr const char* kNames[8] = {"beq", "bne", nullptr, nullptr, "blt", "bge", "bltu", "bgeu"};
    const char* name = kNames[f.funct3()];
    if (name == nullptr) return "";
    const std::string to = target(pc + static_cast<std::uint64_t>(f.imm_b()), symbol);
    if (f.get(24, 20) == 0 && f.funct3() <= 5) return fmt::format("{}z {}, {}", name, f.rs1(), to);
    return fmt::format("{} {}, {}, {}", name, f.rs1(), f.rs2(), to);
}

std::string load(Fields f) {
    static constexpr const char* kNames[8] = {"lb", "lh", "lw", "ld", "lbu", "lhu", "lwu", nullptr};
    const char* name = kNames[f.funct3()];
    return name == nullptr ? "" : fmt::format("{} {}, {}({})", name, f.rd(), f.imm_i(), f.rs1());
}

std::string store(Fields f) {
    static constexpr const char* kNames[8] = {"sb", "sh", "sw", "sd"};
    const char* name = kNames[f.funct3()];
    return name == nullptr ? "" : fmt::format("{} {}, {}({})", name, f.rs2(), f.imm_s(), f.rs1());
}

std::string immediate(Fields f) {
    const std::int32_t imm = f.imm_i();
    const std::uint32_t top = f.get(31, 26);
    switch (f.funct3()) {
        case 0:
            if (f.bits == 0x13) return "nop";
            if (f.get(19, 15) == 0) return fmt::format("li {}, {}", f.rd(), imm);
            if (imm == 0) return fmt::format("mv {}, {}", f.rd(), f.rs1());
            return fmt::format("addi {}, {}, {}", f.rd(), f.rs1(), imm);
        case 1:
            return top == 0 ? fmt::format("slli {}, {}, {}", f.rd(), f.rs1(), f.get(25, 20)) : "";
        case 2:
            return fmt::format("slti {}, {}, {}", f.rd(), f.rs1(), imm);
        case 3:
            if (imm == 1) return fmt::format("seqz {}, {}", f.rd(), f.rs1());
            return fmt::format("sltiu {}, {}, {}", f.rd(), f.rs1(), imm);
        case 4:
            if (imm == -1) return fmt::format("not {}, {}", f.rd(), f.rs1());
            return fmt::format("xori {}, {}, {}", f.rd(), f.rs1(), imm);
        case 5:
            if (top != 0 && top != 0x10) return "";
            return fmt::format("{} {}, {}, {}", top == 0 ? "srli" : "srai", f.rd(), f.rs1(), f.get(25, 20));
        case 6:
            return fmt::format("ori {}, {}, {}", f.rd(), f.rs1(), imm);
        default:
            return fmt::format("andi {}, {}, {}", f.rd(), f.rs1(), imm);
    }
}

std::string immediate_word(Fields f) {
    switch (f.funct3()) {
        case 0:
            if (f.imm_i() == 0) return fmt::format("sext.w {}, {}", f.rd(), f.rs1());
            return fmt::format("addiw {}, {}, {}", f.rd(), f.rs1(), f.imm_i());
        case 1:
            return f.funct7() == 0 ? fmt::format("slliw {}, {}, {}", f.rd(), f.rs1(), f.get(24, 20)) : "";
        case 5:
            if (f.funct7() != 0 && f.funct7() != 0x20) return "";
            return fmt::format("{} {}, {}, {}", f.funct7() == 0 ? "srliw" : "sraiw", f.rd(), f.rs1(),
                               f.get(24, 20));
        default:
            return "";
    }
}

std::string operation(Fields f, bool word) {
    static constexpr const char* kPlain[8] = {"add", "sll", "slt", "sltu", "xor", "srl", "or", "and"};
    static constexpr const char* kMultiply[8] = {"mul", "mulh", "mulhsu", "mulhu",
                                                 "div", "divu", "rem",    "remu"};
    const std::uint32_t f3 = f.funct3();
    std::string name;
    if (f.funct7() == 0) {
        if (word && f3 != 0 && f3 != 1 && f3 != 5) return "";
        name = kPlain[f3];
    } else if (f.funct7() == 0x20 && (f3 == 0 || f3 == 5)) {
        name = f3 == 0 ? "sub" : "sra";
    } else if (f.funct7() == 1) {
        if (word && f3 >= 1 && f3 <= 3) return "";
        name = kMultiply[f3];
    } else {
        return "";
    }
    if (word) name += "w";
    if (f.get(19, 15) == 0) {
        if (name == "sub" || name == "subw")
            return fmt::format("{} {}, {}", name == "sub" ? "neg" : "negw", f.rd(), f.rs2());
        if (name == "add") return fmt::format("mv {}, {}", f.rd(), f.rs2());  // what c.mv stands for
        if (name == "sltu") return fmt::format("snez {}, {}", f.rd(), f.rs2());
        if (name == "slt") return fmt::format("sgtz {}, {}", f.rd(), f.rs2());
    }
    if (name == "slt" && f.get(24, 20) == 0) return fmt::format("sltz {}, {}", f.rd(), f.rs1());
    return fmt::format("{} {}, {}, {}", name, f.rd(), f.rs1(), f.rs2());
}

std::string atomic(Fields f) {
    const std::uint32_t width = f.funct3();
    if (width != 2 && width != 3) return "";
    const char* name = nullptr;
    switch (f.get(31, 27)) {
        case 0x00:
            name = "amoadd";
            break;
        case 0x01:
            name = "amoswap";
            break;
        case 0x02:
            name = "lr";
            break;
        case 0x03:
            name = "sc";
            break;
        case 0x04:
            name = "amoxor";
            break;
        case 0x08:
            name = "amoor";
            break;
        case 0x0c:
            name = "amoand";
            break;
        case 0x10:
            name = "amomin";
            break;
        case 0x14:
            name = "amomax";
            break;
        case 0x18:
            name = "amominu";
            break;
        case 0x1c:
            name = "amomaxu";
            break;
        default:
            return "";
    }
    static constexpr const char* kOrder[4] = {"", ".rl", ".aq", ".aqrl"};
    const std::string full = fmt::format("{}.{}{}", name, width == 2 ? "w" : "d", kOrder[f.get(26, 25)]);
    if (f.get(31, 27) == 2)
        return f.get(24, 20) == 0 ? fmt::format("{} {}, ({})", full, f.rd(), f.rs1()) : "";
    return fmt::format("{} {}, {}, ({})", full, f.rd(), f.rs2(), f.rs1());
}

std::string fence(Fields f) {
    if (f.funct3() == 1) return "fence.i";
    if (f.funct3() != 0) return "";
    const auto set = [](std::uint32_t bits) {
        std::string text;
        for (unsigned i = 0; i < 4; ++i)
            if ((bits >> (3 - i) & 1) != 0) text += "iorw"[i];
        return text.empty() ? std::string("0") : text;
    };
    if (f.get(31, 20) == 0x0ff) return "fence";
    return fmt::format("fence {}, {}", set(f.get(27, 24)), set(f.get(23, 20)));
}

std::string system(Fields f) {
    if (f.funct3() == 0) {
        switch (f.bits) {
            case 0x00000073:
                return "ecall";
            case 0x00100073:
                return "ebreak";
            case 0x30200073:
                return "mret";
            case 0x10500073:
                return "wfi";
            default:
                return "";
        }
    }
    if (f.funct3() == 4) return "";
    const std::string csr = csr_name(f.get(31, 20));
    static constexpr const char* kNames[4] = {"", "csrrw", "csrrs", "csrrc"};
    static constexpr const char* kShort[4] = {"", "csrw", "csrs", "csrc"};
    const std::uint32_t function = f.funct3() & 3;
    const bool is_imm = f.funct3() >= 4;
    const std::string source = is_imm ? fmt::format("{}", f.get(19, 15)) : std::string(f.rs1());
    if (function == 2 && !is_imm && f.get(19, 15) == 0) return fmt::format("csrr {}, {}", f.rd(), csr);
    if (f.get(11, 7) == 0)
        return fmt::format("{}{} {}, {}", kShort[function], is_imm ? "i" : "", csr, source);
    return fmt::format("{}{} {}, {}, {}", kNames[function], is_imm ? "i" : "", f.rd(), csr, source);
}

std::string jump(Fields f, std::uint64_t pc, const Symbol& symbol) {
    const std::string to = target(pc + static_cast<std::uint64_t>(f.imm_j()), symbol);
    if (f.get(11, 7) == 0) return fmt::format("j {}", to);
    if (f.get(11, 7) == 1) return fmt::format("jal {}", to);
    return fmt::format("jal {}, {}", f.rd(), to);
}

std::string jump_register(Fields f) {
    if (f.funct3() != 0) return "";
    const std::int32_t imm = f.imm_i();
    if (imm == 0 && f.get(11, 7) == 0) return f.get(19, 15) == 1 ? "ret" : fmt::format("jr {}", f.rs1());
    if (imm == 0 && f.get(11, 7) == 1) return fmt::format("jalr {}", f.rs1());
    if (f.get(11, 7) == 0) return fmt::format("jr {}({})", imm, f.rs1());
    if (f.get(11, 7) == 1) return fmt::format("jalr {}({})", imm, f.rs1());
    return fmt::format("jalr {}, {}({})", f.rd(), imm, f.rs1());
}

std::string text_of(Fields f, std::uint64_t pc, const Symbol& symbol) {
    switch (f.get(6, 0)) {
        case 0x03:
            return load(f);
        case 0x0f:
            return fence(f);
        case 0x13:
            return immediate(f);
        case 0x17:
            return fmt::format("auipc {}, {}", f.rd(), f.bits >> 12);
        case 0x1b:
            return immediate_word(f);
        case 0x23:
            return store(f);
        case 0x2f:
            return atomic(f);
        case 0x33:
            return operation(f, false);
        case 0x37:
            return fmt::format("lui {}, {}", f.rd(), f.bits >> 12);
        case 0x3b:
            return operation(f, true);
        case 0x63:
            return branch(f, pc, symbol);
        case 0x67:
            return jump_register(f);
        case 0x6f:
            return jump(f, pc, symbol);
        case 0x73:
            return system(f);
        default:
            return "";
    }
}

}  // namespace

const char* register_name(unsigned number) {
    return kRegisters[number];
}

std::string csr_name(std::uint32_t number) {
    switch (number) {
        case 0x300:
            return "mstatus";
        case 0x301:
            return "misa";
        case 0x304:
            return "mie";
        case 0x305:
            return "mtvec";
        case 0x306:
            return "mcounteren";
        case 0x320:
            return "mcountinhibit";
        case 0x340:
            return "mscratch";
        case 0x341:
            return "mepc";
        case 0x342:
            return "mcause";
        case 0x343:
            return "mtval";
        case 0x344:
            return "mip";
        case 0xb00:
            return "mcycle";
        case 0xb02:
            return "minstret";
        case 0xc00:
            return "cycle";
        case 0xc01:
            return "time";
        case 0xc02:
            return "instret";
        case 0xf11:
            return "mvendorid";
        case 0xf12:
            return "marchid";
        case 0xf13:
            return "mimpid";
        case 0xf14:
            return "mhartid";
        default:
            return fmt::format("{:#x}", number);
    }
}

Instruction disassemble(std::uint32_t bits, std::uint64_t pc, const Symbol& symbol) {
    const auto first = static_cast<std::uint16_t>(bits);
    const bool four = emu::is_four_bytes(first);
    const Fields fields{four ? bits : emu::expand_compressed(first)};
    std::string text = fields.bits == 0 ? "" : text_of(fields, pc, symbol);
    if (text.empty()) text = four ? fmt::format(".word {:#010x}", bits) : fmt::format(".half {:#06x}", first);
    return {std::move(text), four ? 4u : 2u};
}

}  // namespace orrery::step
