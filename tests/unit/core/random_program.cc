#include "tests/unit/core/random_program.h"

#include <array>
#include <cstddef>
#include <iterator>

#include "tests/unit/core/encode.h"

namespace orrery::emu::test {
namespace {

constexpr Word kCounter = 31;
constexpr Word kAddress = 30;

class Builder {
  public:
    Builder(std::mt19937_64& random, const ProgramOptions& options) : random_(random), options_(options) {}

    Program build() {
        emit32(addi(kCounter, x0, static_cast<int>(options_.rounds)));
        const std::size_t loop = size();
        starts_.clear();
        for (unsigned i = 0; i < options_.instructions; ++i) {
            starts_.push_back(size());
            one();
        }
        starts_.push_back(size());
        patch();
        emit32(addi(kCounter, kCounter, -1));
        emit32(beq(kCounter, x0, 8));
        emit32(jal(x0, -static_cast<int>(size() - loop)));
        return std::move(program_);
    }

  private:
    struct Branch {
        std::size_t at;
        std::size_t index;  // of the instruction
        Word bits;          // without the offset
        bool is_jal;
    };

    std::size_t size() const { return program_.code.size(); }
    Word pick(Word count) { return static_cast<Word>(random_() % count); }
    bool chance(Word one_in) { return pick(one_in) == 0; }
    // A register that programs may write.
    Word target() {
        for (;;) {
            const Word r = pick(30);
            if (r != sp && r != s0 && r != s1) return r;
        }
    }
    Word source() { return pick(30); }
    Word base() {
        static constexpr Word kBases[] = {sp, s0, s1};
        return kBases[pick(3)];
    }
    int imm12() { return chance(4) ? static_cast<int>(pick(3)) - 1 : static_cast<int>(pick(4096)) - 2048; }

    void emit32(Word bits) {
        program_.listing.push_back(bits);
        for (unsigned i = 0; i < 4; ++i)
            program_.code.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
    }
    void emit16(Word bits) {
        program_.listing.push_back(bits);
        for (unsigned i = 0; i < 2; ++i)
            program_.code.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
    }

    void one() {
        const Word kinds = options_.fp ? 16 : 8;
        switch (pick(kinds)) {
            case 0:
                return alu();
            case 1:
                return alu_imm();
            case 2:
                return chance(2) ? emit32(lui(target(), pick(1 << 20)))
                                 : emit32(auipc(target(), pick(1 << 20)));
            case 3:
                return memory();
            case 4:
                return options_.atomics ? atomic() : alu();
            case 5:
                return branch();
            case 6:
            case 7:
                return options_.compressed ? compressed() : alu_imm();
            default:
                return floating();
        }
    }

    void alu() {
        static constexpr Word kFunct7[] = {0, 0, 1, 1, 0x20};
        Word funct7 = kFunct7[pick(5)];
        if (chance(2)) {
            Word funct3 = pick(8);
            if (funct7 == 0x20) funct3 = chance(2) ? 0 : 5;
            return emit32(r_type(0x33, funct3, funct7, target(), source(), source()));
        }
        static constexpr std::array<std::array<Word, 2>, 10> kWord{
            {{0, 0}, {0, 0x20}, {1, 0}, {5, 0}, {5, 0x20}, {0, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}}};
        const auto& form = kWord[pick(10)];
        emit32(r_type(0x3b, form[0], form[1], target(), source(), source()));
    }
    void alu_imm() {
        const Word funct3 = pick(8);
        const bool shift = funct3 == 1 || funct3 == 5;
        if (chance(3)) {
            const Word narrow = chance(3) ? 0 : chance(2) ? 1 : 5;
            int imm = imm12();
            if (narrow != 0) imm = static_cast<int>(pick(32) | (narrow == 5 && chance(2) ? 0x400u : 0u));
            return emit32(i_type(0x1b, narrow, target(), source(), imm));
        }
        int imm = imm12();
        if (shift) imm = static_cast<int>(pick(64) | (funct3 == 5 && chance(2) ? 0x400u : 0u));
        emit32(i_type(0x13, funct3, target(), source(), imm));
    }
    void memory() {
        // Offsets are mostly aligned, as in programs; the others find the slow paths.
        int offset = imm12();
        if (!chance(4)) offset &= ~7;
        if (options_.fp && chance(3)) {
            const Word format = pick(2);
            if (chance(2)) return emit32(i_type(0x07, 2 + format, fp_register(format), base(), offset));
            return emit32(s_type(0x27, 2 + format, base(), fp_register(format), offset));
        }
        if (chance(2)) return emit32(load(pick(7), target(), base(), offset));
        emit32(store(pick(4), source(), base(), offset));
    }
    void atomic() {
        static constexpr Word kFunctions[] = {0, 1, 2, 3, 4, 8, 12, 16, 20, 24, 28};
        Word width = 2 + pick(2);
        emit32(addi(kAddress, base(), (static_cast<int>(pick(32)) - 16) * 8));
        Word function = kFunctions[pick(11)];
        const Word operand = source();
        const Word order = pick(4);
        // Unicorn 2.0.1 gets AMOMIN[U].W and AMOMAX[U].W wrong: it compares the zero-extended word in memory
        // with all 64 bits of the operand. qemu_test.cc has them.
        if (function >= 16) width = 3;
        const auto amo_of = [&](Word f) {
            emit32(r_type(0x2f, width, f << 2 | order, target(), kAddress, f == 2 ? 0 : operand));
        };
        // LR is followed by SC, sometimes with something in between.
        if (function == 2 || function == 3) {
            amo_of(2);
            if (chance(2)) alu();
            function = 3;
        }
        amo_of(function);
    }
    void branch() {
        static constexpr Word kConditions[] = {0, 1, 4, 5, 6, 7};
        const bool is_jal = chance(6);
        const Word bits =
            is_jal ? (target() << 7 | 0x6f) : b_type(kConditions[pick(6)], source(), source(), 0);
        branches_.push_back({size(), starts_.size() - 1, bits, is_jal});
        emit32(bits);
    }
    // Branches go one to eight instructions ahead.
    void patch() {
        for (const Branch& branch : branches_) {
            const std::size_t last = starts_.size() - 1;
            std::size_t to = branch.index + 1 + pick(8);
            if (to > last) to = last;
            const int offset = static_cast<int>(starts_[to] - branch.at);
            const Word bits =
                branch.is_jal ? (branch.bits | jal(0, offset)) : (branch.bits | b_type(0, 0, 0, offset));
            for (unsigned i = 0; i < 4; ++i) {
                program_.code[branch.at + i] = static_cast<std::uint8_t>(bits >> (8 * i));
            }
        }
    }

    // Registers x8 to x15 without the bases.
    Word small_target() { return 2 + pick(6); }
    void compressed() {
        for (;;) {
            switch (pick(12)) {
                case 0:
                    return emit16(pick(1 << 6) << 7 | (1 + pick(3)) << 5 |
                                  small_target() << 2);  // c.addi4spn
                case 1:
                    return emit16((chance(2) ? 2u : 3u) << 13 | pick(8) << 10 | pick(2) << 7 | pick(4) << 5 |
                                  small_target() << 2);  // c.lw, c.ld
                case 2:
                    return emit16((chance(2) ? 6u : 7u) << 13 | pick(8) << 10 | pick(2) << 7 | pick(4) << 5 |
                                  pick(8) << 2);  // c.sw, c.sd
                case 3:
                    return emit16(pick(2) << 12 | target() << 7 | pick(32) << 2 | 1);  // c.addi, c.nop
                case 4: {
                    const Word rd = target();
                    if (rd != 0)
                        return emit16(1u << 13 | pick(2) << 12 | rd << 7 | pick(32) << 2 | 1);  // c.addiw
                    break;
                }
                case 5:
                    return emit16(2u << 13 | pick(2) << 12 | target() << 7 | pick(32) << 2 | 1);  // c.li
                case 6:
                    return emit16(3u << 13 | pick(2) << 12 | target() << 7 | (1 + pick(31)) << 2 |
                                  1);  // c.lui
                case 7: {
                    const Word kind = pick(3);  // c.srli, c.srai, c.andi
                    return emit16(4u << 13 | pick(2) << 12 | kind << 10 | small_target() << 7 |
                                  pick(32) << 2 | 1);
                }
                case 8: {
                    const Word wide = pick(2);
                    const Word function = wide != 0 ? pick(2) : pick(4);
                    return emit16(4u << 13 | wide << 12 | 3u << 10 | small_target() << 7 | function << 5 |
                                  pick(8) << 2 | 1);
                }
                case 9:
                    return emit16(pick(2) << 12 | target() << 7 | pick(32) << 2 | 2);  // c.slli
                case 10: {
                    const Word rd = target();
                    const Word width = 2 + pick(2);
                    if (chance(2))
                        return emit16((width + 4) << 13 | pick(64) << 7 | pick(30) << 2 | 2);  // c.swsp
                    if (rd != 0) return emit16(width << 13 | pick(2) << 12 | rd << 7 | pick(32) << 2 | 2);
                    break;
                }
                default: {
                    const Word rs2 = 1 + pick(29);
                    return emit16(4u << 13 | pick(2) << 12 | target() << 7 | rs2 << 2 | 2);  // c.mv, c.add
                }
            }
        }
    }

    // Unicorn 2.0.1 does not check that singles are NaN-boxed: f0 to f15 hold singles only, the others
    // doubles only.
    Word fp_register(Word format) { return pick(16) + 16 * format; }
    Word rounding() {
        static constexpr Word kModes[] = {0, 1, 2, 3, 4, 7, 7, 7};
        return kModes[pick(8)];
    }
    void floating() {
        const Word format = pick(2);
        const Word rd = fp_register(format), rs1 = fp_register(format), rs2 = fp_register(format);
        switch (pick(12)) {
            case 0:
            case 1:
            case 2:
                return emit32(fp(pick(4), format, rounding(), rd, rs1, rs2));
            case 3:
                return emit32(fp(0x0b, format, rounding(), rd, rs1, 0));
            case 4:
                return emit32(fp(4, format, pick(3), rd, rs1, rs2));
            // FMIN and FMAX are left to qemu_test.cc: Unicorn 2.0.1 has those of IEEE 754-2008, where a
            // signaling NaN operand makes the result a NaN.
            case 5:
            case 6:
                return emit32(fp(0x14, format, pick(3), target(), rs1, rs2));
            case 7:
                return emit32(fp(8, format, rounding(), rd, fp_register(1 - format), 1 - format));
            case 8:
                return emit32(fp(0x18, format, rounding(), target(), rs1, pick(4)));
            case 9:
                return emit32(fp(0x1a, format, rounding(), rd, source(), pick(4)));
            case 10:
                if (chance(2)) return emit32(fp(0x1c, format, pick(2), target(), rs1, 0));
                if (chance(2)) return emit32(fp(0x1e, format, 0, rd, source(), 0));
                return csr();
            default: {
                const Word opcode = 0x43 + 4 * pick(4);
                return emit32(fp_register(format) << 27 | r_type(opcode, rounding(), format, rd, rs1, rs2));
            }
        }
    }
    void csr() {
        switch (pick(4)) {
            case 0:
                return emit32(csrr(target(), kCsrFcsr));
            case 1:
                return emit32(csrrwi(target(), kCsrFflags, pick(32)));
            case 2:
                return emit32(csrrwi(target(), kCsrFrm, pick(5)));
            default:
                return emit32(csrrs(target(), kCsrFflags, source()));
        }
    }

    std::mt19937_64& random_;
    const ProgramOptions& options_;
    Program program_;
    std::vector<std::size_t> starts_;
    std::vector<Branch> branches_;
};

}  // namespace

Program make_program(std::mt19937_64& random, const ProgramOptions& options) {
    return Builder(random, options).build();
}

std::uint64_t interesting_integer(std::mt19937_64& random) {
    static constexpr std::uint64_t kEdges[] = {0,
                                               1,
                                               ~0ull,
                                               0x7fffffff,
                                               0x80000000,
                                               0xffffffff,
                                               0xffffffff80000000,
                                               0x7fffffffffffffff,
                                               0x8000000000000000};
    const std::uint64_t r = random();
    switch (r % 4) {
        case 0:
            return kEdges[random() % std::size(kEdges)];
        case 1:
            return random() >> (r >> 8 & 63);
        case 2:
            return static_cast<std::uint64_t>(static_cast<std::int64_t>(random()) >> (r >> 8 & 63));
        default:
            return random();
    }
}

std::uint64_t interesting_double(std::mt19937_64& random) {
    static constexpr std::uint64_t kEdges[] = {
        0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000,
        0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001, 0xfff7ffffffffffff,
        0x0000000000000001, 0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x43e0000000000000,
        0xc3e0000000000000, 0x41e0000000000000, 0x41dfffffffc00000, 0x3fe0000000000000, 0x3810000000000000,
        0x36a0000000000000, 0x47efffffe0000000, 0x47effffff0000000, 0x4004000000000000, 0xbfe0000000000000};
    const std::uint64_t r = random();
    switch (r % 4) {
        case 0:
            return kEdges[random() % std::size(kEdges)];
        case 1:
            return random();
        // Exponents close together: cancellation, ties, double rounding.
        case 2:
            return (random() & 0x800fffffffffffff) | (1023 - 4 + (r >> 8) % 8) << 52;
        // Few bits set: exact results and ties.
        default:
            return (random() & 0x8000000000000000) | (r >> 8) % 2047 << 52 | (random() & 7) << 49 |
                   (r >> 40 & 1);
    }
}

std::uint32_t interesting_float(std::mt19937_64& random) {
    static constexpr std::uint32_t kEdges[] = {
        0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
        0x7f800001, 0xffbfffff, 0x00000001, 0x807fffff, 0x00800000, 0x7f7fffff, 0x4f000000, 0xcf000000,
        0x4effffff, 0x5f000000, 0x3f000000, 0xbf000000, 0x40200000, 0x4f800000, 0x5f800000};
    const std::uint64_t r = random();
    switch (r % 4) {
        case 0:
            return kEdges[random() % std::size(kEdges)];
        case 1:
            return static_cast<std::uint32_t>(random());
        case 2:
            return static_cast<std::uint32_t>((random() & 0x807fffff) | (127 - 4 + (r >> 8) % 8) << 23);
        default:
            return static_cast<std::uint32_t>((random() & 0x80000000) | (r >> 8) % 255 << 23 |
                                              (random() & 7) << 20 | (r >> 40 & 1));
    }
}

}  // namespace orrery::emu::test
