#include "emulator/core/decode.h"

#include "emulator/core/vector/counting.h"
#include "emulator/core/vector/execute.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kPageMask = 4095;

std::int32_t sign_extend(std::uint32_t value, unsigned bits) {
    const std::uint32_t sign = 1u << (bits - 1);
    return static_cast<std::int32_t>((value ^ sign) - sign);
}

std::int32_t imm_i(std::uint32_t b) {
    return static_cast<std::int32_t>(b) >> 20;
}
std::int32_t imm_s(std::uint32_t b) {
    return sign_extend((b >> 25) << 5 | (b >> 7 & 31), 12);
}
std::int32_t imm_b(std::uint32_t b) {
    return sign_extend((b >> 31) << 12 | (b >> 7 & 1) << 11 | (b >> 25 & 63) << 5 | (b >> 8 & 15) << 1, 13);
}
std::int32_t imm_u(std::uint32_t b) {
    return static_cast<std::int32_t>(b & 0xfffff000u);
}
std::int32_t imm_j(std::uint32_t b) {
    return sign_extend((b >> 31) << 20 | (b >> 12 & 255) << 12 | (b >> 20 & 1) << 11 | (b >> 21 & 1023) << 1,
                       21);
}

class Decoder {
  public:
    Decoder(std::uint32_t bits, std::uint64_t pc, bool fp, bool has_vector)
        : bits_(bits),
          pc_(pc),
          fp_(fp),
          vector_(has_vector),
          rd_(static_cast<std::uint8_t>(bits >> 7 & 31)),
          rs1_(static_cast<std::uint8_t>(bits >> 15 & 31)),
          rs2_(static_cast<std::uint8_t>(bits >> 20 & 31)),
          funct3_(bits >> 12 & 7),
          funct7_(bits >> 25) {}

    Decoded run() const {
        if ((bits_ & 3) != 3) return {};
        switch (bits_ >> 2 & 31) {
            case 0x00:
                return load();
            case 0x01:
                return fp_load();
            case 0x03:
                return fence();
            case 0x04:
                return op_imm();
            case 0x05:
                return auipc();
            case 0x06:
                return op_imm_32();
            case 0x08:
                return store();
            case 0x09:
                return fp_store();
            case 0x0b:
                return atomic();
            case 0x0c:
                return op();
            case 0x0d:
                return constant(imm_u(bits_));
            case 0x0e:
                return op_32();
            case 0x10:
                return fused(OpCode::kFmaddS, OpCode::kFmaddD);
            case 0x11:
                return fused(OpCode::kFmsubS, OpCode::kFmsubD);
            case 0x12:
                return fused(OpCode::kFnmsubS, OpCode::kFnmsubD);
            case 0x13:
                return fused(OpCode::kFnmaddS, OpCode::kFnmaddD);
            case 0x14:
                return fp_op();
            case 0x15:
                return vector();
            case 0x18:
                return branch();
            case 0x19:
                return jalr();
            case 0x1b:
                return jal();
            case 0x1c:
                return system();
            default:
                return {};
        }
    }

  private:
    static Decoded nop() { return {.code = OpCode::kNop}; }
    std::uint8_t rd_or_dump() const { return rd_ == 0 ? kDumpRegister : rd_; }

    Decoded constant(std::int32_t value) const {
        if (rd_ == 0) return nop();
        return {.code = OpCode::kLi, .rd = rd_, .imm = value};
    }
    // A computation: without a destination it does nothing.
    Decoded alu(OpCode code) const {
        if (rd_ == 0) return nop();
        return {.code = code, .rd = rd_, .rs1 = rs1_, .rs2 = rs2_};
    }
    // These are counted for what they are, also where they do nothing.
    Decoded muldiv(OpCode code) const { return {.code = code, .rd = rd_or_dump(), .rs1 = rs1_, .rs2 = rs2_}; }
    Decoded alu_imm(OpCode code, std::int32_t imm) const {
        if (rd_ == 0) return nop();
        return {.code = code, .rd = rd_, .rs1 = rs1_, .imm = imm};
    }

    Decoded load() const {
        static constexpr OpCode kCodes[] = {OpCode::kLb,  OpCode::kLh,  OpCode::kLw,  OpCode::kLd,
                                            OpCode::kLbu, OpCode::kLhu, OpCode::kLwu, OpCode::kIllegal};
        const OpCode code = kCodes[funct3_];
        if (code == OpCode::kIllegal) return {};
        return {.code = code, .rd = rd_or_dump(), .rs1 = rs1_, .imm = imm_i(bits_)};
    }
    Decoded store() const {
        static constexpr OpCode kCodes[] = {OpCode::kSb, OpCode::kSh, OpCode::kSw, OpCode::kSd};
        if (funct3_ > 3) return {};
        return {.code = kCodes[funct3_], .rs1 = rs1_, .rs2 = rs2_, .imm = imm_s(bits_)};
    }
    // Of the scalars among FP loads and stores. Harts with vectors have 16-bit ones too.
    bool has_width() const { return funct3_ == 1 ? vector_ : fp_ && (funct3_ == 2 || funct3_ == 3); }
    Decoded fp_load() const {
        if (funct3_ == 0 || funct3_ > 4) return vector();
        static constexpr OpCode kCodes[] = {OpCode::kFlh, OpCode::kFlw, OpCode::kFld};
        if (!has_width()) return {};
        return {.code = kCodes[funct3_ - 1], .rd = rd_, .rs1 = rs1_, .imm = imm_i(bits_)};
    }
    Decoded fp_store() const {
        if (funct3_ == 0 || funct3_ > 4) return vector();
        static constexpr OpCode kCodes[] = {OpCode::kFsh, OpCode::kFsw, OpCode::kFsd};
        if (!has_width()) return {};
        return {.code = kCodes[funct3_ - 1], .rs1 = rs1_, .rs2 = rs2_, .imm = imm_s(bits_)};
    }
    // Unused fields of fences are to be ignored, says the specification.
    Decoded fence() const {
        // Predecessors and successors, for who is told of fences.
        if (funct3_ == 0)
            return {.code = OpCode::kFence, .imm = static_cast<std::int32_t>(bits_ >> 20 & 0xff)};
        if (funct3_ == 1) return {.code = OpCode::kFenceI};
        return {};
    }

    Decoded op_imm() const {
        const std::int32_t imm = imm_i(bits_);
        const std::int32_t shift = imm & 63;
        switch (funct3_) {
            case 0:
                if (rs1_ == 0) return constant(imm);
                return imm == 0 ? alu(OpCode::kMv) : alu_imm(OpCode::kAddi, imm);
            case 1:
                return funct7_ >> 1 == 0 ? alu_imm(OpCode::kSlli, shift) : Decoded{};
            case 2:
                return alu_imm(OpCode::kSlti, imm);
            case 3:
                return alu_imm(OpCode::kSltiu, imm);
            case 4:
                return alu_imm(OpCode::kXori, imm);
            case 5:
                if (funct7_ >> 1 == 0) return alu_imm(OpCode::kSrli, shift);
                return funct7_ >> 1 == 0x10 ? alu_imm(OpCode::kSrai, shift) : Decoded{};
            case 6:
                return alu_imm(OpCode::kOri, imm);
            default:
                return alu_imm(OpCode::kAndi, imm);
        }
    }
    Decoded op_imm_32() const {
        const std::int32_t imm = imm_i(bits_);
        const std::int32_t shift = imm & 31;
        if (funct3_ == 0) return alu_imm(OpCode::kAddiw, imm);
        if (funct3_ == 1 && funct7_ == 0) return alu_imm(OpCode::kSlliw, shift);
        if (funct3_ == 5 && funct7_ == 0) return alu_imm(OpCode::kSrliw, shift);
        if (funct3_ == 5 && funct7_ == 0x20) return alu_imm(OpCode::kSraiw, shift);
        return {};
    }
    Decoded op() const {
        static constexpr OpCode kBase[] = {OpCode::kAdd, OpCode::kSll, OpCode::kSlt, OpCode::kSltu,
                                           OpCode::kXor, OpCode::kSrl, OpCode::kOr,  OpCode::kAnd};
        static constexpr OpCode kMul[] = {OpCode::kMul, OpCode::kMulh, OpCode::kMulhsu, OpCode::kMulhu,
                                          OpCode::kDiv, OpCode::kDivu, OpCode::kRem,    OpCode::kRemu};
        if (funct7_ == 0 && funct3_ == 0 && rs1_ == 0 && rd_ != 0) {
            return {.code = OpCode::kMv, .rd = rd_, .rs1 = rs2_};
        }
        if (funct7_ == 0) return alu(kBase[funct3_]);
        if (funct7_ == 1) return muldiv(kMul[funct3_]);
        if (funct7_ == 0x20 && funct3_ == 0) return alu(OpCode::kSub);
        if (funct7_ == 0x20 && funct3_ == 5) return alu(OpCode::kSra);
        return {};
    }
    Decoded op_32() const {
        switch (funct7_ << 3 | funct3_) {
            case 0x00 << 3 | 0:
                return alu(OpCode::kAddw);
            case 0x20 << 3 | 0:
                return alu(OpCode::kSubw);
            case 0x00 << 3 | 1:
                return alu(OpCode::kSllw);
            case 0x00 << 3 | 5:
                return alu(OpCode::kSrlw);
            case 0x20 << 3 | 5:
                return alu(OpCode::kSraw);
            case 0x01 << 3 | 0:
                return muldiv(OpCode::kMulw);
            case 0x01 << 3 | 4:
                return muldiv(OpCode::kDivw);
            case 0x01 << 3 | 5:
                return muldiv(OpCode::kDivuw);
            case 0x01 << 3 | 6:
                return muldiv(OpCode::kRemw);
            case 0x01 << 3 | 7:
                return muldiv(OpCode::kRemuw);
            default:
                return {};
        }
    }
    Decoded auipc() const {
        if (rd_ == 0) return nop();
        const std::uint64_t value = pc_ + static_cast<std::uint64_t>(std::int64_t{imm_u(bits_)});
        const auto low = static_cast<std::int32_t>(value);
        if (value >> 32 == 0) return {.code = OpCode::kLiu, .rd = rd_, .imm = low};
        return {.code = OpCode::kAuipc, .rd = rd_, .imm = imm_u(bits_)};
    }

    bool near(std::int32_t offset) const {
        return ((pc_ + static_cast<std::uint64_t>(std::int64_t{offset})) & ~kPageMask) == (pc_ & ~kPageMask);
    }
    Decoded branch() const {
        static constexpr OpCode kNear[] = {OpCode::kBeqNear,  OpCode::kBneNear, OpCode::kIllegal,
                                           OpCode::kIllegal,  OpCode::kBltNear, OpCode::kBgeNear,
                                           OpCode::kBltuNear, OpCode::kBgeuNear};
        static constexpr OpCode kFar[] = {OpCode::kBeqFar,  OpCode::kBneFar, OpCode::kIllegal,
                                          OpCode::kIllegal, OpCode::kBltFar, OpCode::kBgeFar,
                                          OpCode::kBltuFar, OpCode::kBgeuFar};
        if (kNear[funct3_] == OpCode::kIllegal) return {};
        const std::int32_t offset = imm_b(bits_);
        const bool here = near(offset);
        return {.code = here ? kNear[funct3_] : kFar[funct3_],
                .rs1 = rs1_,
                .rs2 = rs2_,
                .imm = here ? offset / 2 : offset};
    }
    Decoded jal() const {
        const std::int32_t offset = imm_j(bits_);
        if (!near(offset)) return {.code = OpCode::kJalFar, .rd = rd_or_dump(), .imm = offset};
        if (rd_ == 0) return {.code = OpCode::kJNear, .imm = offset / 2};
        return {.code = OpCode::kJalNear, .rd = rd_, .imm = offset / 2};
    }
    Decoded jalr() const {
        if (funct3_ != 0) return {};
        if (rd_ == 0) return {.code = OpCode::kJr, .rs1 = rs1_, .imm = imm_i(bits_)};
        return {.code = OpCode::kJalr, .rd = rd_, .rs1 = rs1_, .imm = imm_i(bits_)};
    }

    Decoded atomic() const {
        if (funct3_ != 2 && funct3_ != 3) return {};
        const bool wide = funct3_ == 3;
        // The immediate: aq and rl, for who is told of accesses.
        Decoded d{
            .rd = rd_or_dump(), .rs1 = rs1_, .rs2 = rs2_, .imm = static_cast<std::int32_t>(bits_ >> 25 & 3)};
        const auto amo = [&](AmoFunction function) {
            d.code = wide ? OpCode::kAmoD : OpCode::kAmoW;
            d.aux = static_cast<std::uint8_t>(function);
        };
        switch (bits_ >> 27) {
            case 0x00:
                amo(AmoFunction::kAdd);
                break;
            case 0x01:
                amo(AmoFunction::kSwap);
                break;
            case 0x02:
                if (rs2_ != 0) return {};
                d.code = wide ? OpCode::kLrD : OpCode::kLrW;
                break;
            case 0x03:
                d.code = wide ? OpCode::kScD : OpCode::kScW;
                break;
            case 0x04:
                amo(AmoFunction::kXor);
                break;
            case 0x08:
                amo(AmoFunction::kOr);
                break;
            case 0x0c:
                amo(AmoFunction::kAnd);
                break;
            case 0x10:
                amo(AmoFunction::kMin);
                break;
            case 0x14:
                amo(AmoFunction::kMax);
                break;
            case 0x18:
                amo(AmoFunction::kMinu);
                break;
            case 0x1c:
                amo(AmoFunction::kMaxu);
                break;
            default:
                return {};
        }
        return d;
    }

    Decoded system() const {
        if (funct3_ == 0) {
            switch (bits_) {
                case 0x00000073:
                    return {.code = OpCode::kEcall};
                case 0x00100073:
                    return {.code = OpCode::kEbreak};
                case 0x30200073:
                    return {.code = OpCode::kMret};
                case 0x10500073:
                    return {.code = OpCode::kWfi};
                default:
                    return {};
            }
        }
        if (funct3_ == 4) return {};
        return {.code = OpCode::kCsr,
                .rd = rd_,
                .rs1 = rs1_,
                .aux = static_cast<std::uint8_t>(funct3_),
                .imm = static_cast<std::int32_t>(bits_ >> 20)};
    }

    Decoded vector() const {
        const VectorOp op = vector_ ? decode_vector(bits_) : VectorOp::kNone;
        if (op == VectorOp::kNone) return {};
        const VectorRow& what = row(op);
        Decoded d{.code = OpCode::kVector, .rd = rd_, .rs1 = rs1_, .rs2 = rs2_};
        if (what.has(vector_property::kConfig)) {
            d.code = OpCode::kVectorConfig;
            d.aux = static_cast<std::uint8_t>(bits_ >> 30);
            d.imm = static_cast<std::int32_t>(op == VectorOp::kVsetvli ? bits_ >> 20 & 0x7ff
                                                                       : bits_ >> 20 & 0x3ff);
            return d;
        }
        if (what.has(vector_property::kLoad | vector_property::kStore)) d.code = OpCode::kVectorMemory;
        d.aux = vector_aux(bits_);
        d.imm = static_cast<std::int32_t>(static_cast<std::uint32_t>(op) | kind_bits(op));
        return d;
    }

    // Formats: 0 single, 1 double. Rounding modes 5 and 6 are reserved; 7 is looked up when it executes.
    bool rounds() const { return funct3_ != 5 && funct3_ != 6; }
    Decoded fused(OpCode single, OpCode wide) const {
        const std::uint32_t format = funct7_ & 3;
        if (!fp_ || format > 1 || !rounds()) return {};
        // rs3 needs five bits and the rounding mode three: both fit into aux.
        return {.code = format == 0 ? single : wide,
                .rd = rd_,
                .rs1 = rs1_,
                .rs2 = rs2_,
                .aux = static_cast<std::uint8_t>(bits_ >> 27 << 3 | funct3_)};
    }
    Decoded fp(OpCode single, OpCode wide, std::uint8_t aux = 0) const {
        return {.code = (funct7_ & 1) == 0 ? single : wide, .rd = rd_, .rs1 = rs1_, .rs2 = rs2_, .aux = aux};
    }
    Decoded fp_rounded(OpCode single, OpCode wide) const {
        return rounds() ? fp(single, wide, static_cast<std::uint8_t>(funct3_)) : Decoded{};
    }
    // Results go to an integer register.
    static Decoded to_integer(Decoded d) {
        if (d.code != OpCode::kIllegal && d.rd == 0) d.rd = kDumpRegister;
        return d;
    }
    // Zfhmin and Zfbfmin: binary16 and bfloat16 are moved and converted, nothing else.
    Decoded half(OpCode code) const {
        return {.code = code, .rd = rd_, .rs1 = rs1_, .aux = static_cast<std::uint8_t>(funct3_)};
    }
    Decoded to_half() const {
        if (funct7_ == 0x72) return rs2_ == 0 && funct3_ == 0 ? to_integer(half(OpCode::kFmvXH)) : Decoded{};
        if (funct7_ == 0x7a) return rs2_ == 0 && funct3_ == 0 ? half(OpCode::kFmvHX) : Decoded{};
        if (funct7_ != 0x22 || !rounds()) return {};
        if (rs2_ == 0) return half(OpCode::kFcvtHS);
        if (rs2_ == 1) return half(OpCode::kFcvtHD);
        return rs2_ == 8 ? half(OpCode::kFcvtBf16S) : Decoded{};
    }
    Decoded fp_op() const {
        if (vector_ && (funct7_ & 3) == 2) return to_half();
        if (!fp_ || (funct7_ & 3) > 1) return {};
        const bool is_double = (funct7_ & 1) != 0;
        const auto conversion = static_cast<std::uint8_t>((rs2_ & 3u) << 3 | funct3_);
        switch (funct7_ >> 2) {
            case 0x00:
                return fp_rounded(OpCode::kFaddS, OpCode::kFaddD);
            case 0x01:
                return fp_rounded(OpCode::kFsubS, OpCode::kFsubD);
            case 0x02:
                return fp_rounded(OpCode::kFmulS, OpCode::kFmulD);
            case 0x03:
                return fp_rounded(OpCode::kFdivS, OpCode::kFdivD);
            case 0x0b:
                return rs2_ == 0 ? fp_rounded(OpCode::kFsqrtS, OpCode::kFsqrtD) : Decoded{};
            case 0x04:
                if (funct3_ == 0) return fp(OpCode::kFsgnjS, OpCode::kFsgnjD);
                if (funct3_ == 1) return fp(OpCode::kFsgnjnS, OpCode::kFsgnjnD);
                return funct3_ == 2 ? fp(OpCode::kFsgnjxS, OpCode::kFsgnjxD) : Decoded{};
            case 0x05:
                if (funct3_ == 0) return fp(OpCode::kFminS, OpCode::kFminD);
                return funct3_ == 1 ? fp(OpCode::kFmaxS, OpCode::kFmaxD) : Decoded{};
            case 0x08:
                // rs2 names the source format.
                if (!rounds()) return {};
                if (vector_ && rs2_ == 2) return half(is_double ? OpCode::kFcvtDH : OpCode::kFcvtSH);
                if (vector_ && rs2_ == 6 && !is_double) return half(OpCode::kFcvtSBf16);
                if (rs2_ != (is_double ? 0 : 1)) return {};
                return fp(OpCode::kFcvtSD, OpCode::kFcvtDS, static_cast<std::uint8_t>(funct3_));
            case 0x14:
                if (funct3_ == 0) return to_integer(fp(OpCode::kFleS, OpCode::kFleD));
                if (funct3_ == 1) return to_integer(fp(OpCode::kFltS, OpCode::kFltD));
                return funct3_ == 2 ? to_integer(fp(OpCode::kFeqS, OpCode::kFeqD)) : Decoded{};
            case 0x18:
                if (rs2_ > 3 || !rounds()) return {};
                return to_integer(fp(OpCode::kFcvtToIntS, OpCode::kFcvtToIntD, conversion));
            case 0x1a:
                if (rs2_ > 3 || !rounds()) return {};
                return fp(OpCode::kFcvtFromIntS, OpCode::kFcvtFromIntD, conversion);
            case 0x1c:
                if (rs2_ != 0) return {};
                if (funct3_ == 0) return to_integer(fp(OpCode::kFmvXW, OpCode::kFmvXD));
                return funct3_ == 1 ? to_integer(fp(OpCode::kFclassS, OpCode::kFclassD)) : Decoded{};
            case 0x1e:
                return rs2_ == 0 && funct3_ == 0 ? fp(OpCode::kFmvWX, OpCode::kFmvDX) : Decoded{};
            default:
                return {};
        }
    }

    std::uint32_t bits_;
    std::uint64_t pc_;
    bool fp_, vector_;
    std::uint8_t rd_, rs1_, rs2_;
    std::uint32_t funct3_, funct7_;
};

}  // namespace

Decoded decode(std::uint32_t bits, std::uint64_t pc, bool fp, bool vector) {
    return Decoder(bits, pc, fp, vector).run();
}

}  // namespace orrery::emu
