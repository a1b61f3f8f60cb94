#include "tests/unit/riscv/generator.h"

#include <algorithm>
#include <iterator>

#include "tests/unit/riscv/model/shape.h"

namespace orrery::riscv::test {

using emu::VectorOp;
using emu::VectorOperand;
using model::Memory;
using model::Vtype;

u64 Generator::random() {
    random_ += 0x9e3779b97f4a7c15;
    u64 z = random_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void Generator::patch(Place place, u64 at, std::vector<u64> words) {
    patches_.push_back({place, at, std::move(words)});
    apply(patches_.back(), state_);
}

u64 Generator::float_bits(unsigned exponent, unsigned fraction) {
    const u64 sign = u64{chance(50)} << (exponent + fraction), ones = (u64{1} << exponent) - 1;
    const u64 quiet = u64{1} << (fraction - 1), any = random() & ((u64{1} << fraction) - 1);
    const u64 bias = ones >> 1;
    switch (below(12)) {
        case 0:
            return sign;
        case 1:
            return sign | ones << fraction;  // infinity
        case 2:
            return sign | ones << fraction | quiet | (any & (random() % 3));  // NaN
        case 3:
            return sign | ones << fraction | (any & ~quiet) | 1;  // signaling NaN
        case 4:
            return sign | (chance(50) ? any : 1 + below(3));  // subnormal
        case 5:
            return sign | (ones - 1) << fraction | (chance(50) ? (u64{1} << fraction) - 1 : any);
        case 6:
            return sign | u64{1} << fraction | (chance(50) ? 0 : any);  // the least normal
        case 7:
            return sign | bias << fraction;  // 1
        case 8:                              // where integers overflow
            return sign | std::min(ones - 1, bias + (u64{8} << below(4)) - below(3)) << fraction |
                   (chance(50) ? 0 : any);
        case 9:
            return sign | below(ones) << fraction | any;
        default:
            return sign | (bias - 4 + below(8)) << fraction |
                   (chance(30) ? any & ~(quiet | (quiet - 1) >> 3) : any);
    }
}

u64 Generator::pattern(unsigned style, unsigned bits) {
    u64 word = 0;
    for (unsigned at = 0; at < 64; at += bits) {
        u64 value = random();
        const u64 top = u64{1} << (bits - 1);
        if (style == 1) value = below(40);
        if (style == 2) {
            const u64 edges[] = {0, 1, top, top - 1, top + 1, ~u64{0}, ~u64{0} - 1, bits, bits - 1};
            value = edges[below(std::size(edges))];
        }
        if (style == 3 && bits == 16) value = float_bits(5, 10);
        if (style == 3 && bits == 32) value = float_bits(8, 23);
        if (style == 3 && bits == 64) value = float_bits(11, 52);
        if (style == 4) value = bits == 16 ? float_bits(8, 7) : value;
        word |= (bits == 64 ? value : value & (2 * top - 1)) << at;
    }
    return word;
}

void Generator::fill_registers(unsigned first, unsigned count) {
    const unsigned style = static_cast<unsigned>(below(6)) % 5;
    // Mostly of the width that is worked on.
    unsigned bits = std::min(64u, Vtype(state_.vtype).sew);
    if (chance(30)) bits = 8u << below(4);
    if (style == 4) bits = 16;
    std::vector<u64> words(count * state_.vlenb / 8);
    for (u64& word : words)
        word = pattern(chance(10) ? 0 : style, bits);
    patch(Place::kVector, u64{first} * state_.vlenb, std::move(words));
}

u64 Generator::scalar() {
    const unsigned sew = std::min(64u, Vtype(state_.vtype).sew);
    switch (below(5)) {
        case 0:
            return below(2 * vlen_);
        case 1:
            return static_cast<u64>(model::u64(0) - below(64));
        default: {
            const u64 value = pattern(static_cast<unsigned>(1 + below(4)), sew);
            return chance(50) || sew == 64
                       ? value
                       : static_cast<u64>(static_cast<std::int64_t>(value << (64 - sew)) >> (64 - sew));
        }
    }
}

void Generator::choose_vtype() {
    u64 type = 0;
    do
        type = below(8) | below(4) << 3 | below(4) << 6;
    while (Vtype(type).vill);
    const u64 vlmax = Vtype(type).vlmax(state_.vlenb);
    patch(Place::kVtype, type);
    patch(Place::kVl, chance(30) ? vlmax : chance(5) ? 0 : chance(10) ? 1 : below(vlmax + 1));
}

void Generator::fill_state() {
    for (unsigned i = 1; i < 32; ++i)
        patch(Place::kX, i, {random()});
    choose_vtype();
    for (unsigned i = 0; i < 32; ++i)
        patch(Place::kF, i, {~u64{0} << 16 | float_bits(5, 10)});
    for (unsigned i = 0; i < 32; i += 4)
        fill_registers(i, 4);
    std::vector<u64> memory(model::kWindowBytes / 8);
    for (u64& word : memory)
        word = random();
    patch(Place::kMemory, 0, std::move(memory));
    for (const Place place : {Place::kVstart, Place::kVxsat, Place::kVxrm, Place::kFrm, Place::kFflags})
        patch(place, 0);
}

void Generator::prepare_csrs() {
    if (chance(6)) patch(Place::kVstart, below(chance(50) ? state_.vl + 2 : vlen_) % vlen_);
    if (chance(30)) patch(Place::kVxrm, below(4));
    if (chance(30)) patch(Place::kFrm, chance(4) ? 5 + below(3) : below(5));
    if (chance(30)) patch(Place::kVxsat, 0);
    if (chance(40)) patch(Place::kFflags, 0);
    if (chance(20)) {
        const unsigned style = static_cast<unsigned>(below(4));
        std::vector<u64> words(state_.vlenb / 8);
        for (u64& word : words)
            word = style == 0   ? ~u64{0}
                   : style == 1 ? 0
                   : style == 2 ? random() & random() & random()
                                : random();
        patch(Place::kVector, 0, std::move(words));
    }
}

u32 Generator::configuration() {
    static constexpr unsigned kRegisters[] = {0, 0, 0, 1, 2, 5, 10, 31};
    const auto rd = static_cast<u32>(kRegisters[below(8)]), rs1 = static_cast<u32>(kRegisters[below(8)]);
    u64 type = below(256);
    if (chance(10)) type = random() & 0x7ff;
    const u64 vlmax = Vtype(type).vill ? 8 : Vtype(type).vlmax(state_.vlenb);
    if (rs1 != 0)
        patch(Place::kX, rs1,
              {chance(10)   ? random()
               : chance(30) ? vlmax + below(vlmax + 2)
                            : below(vlmax + 1)});
    switch (below(3)) {
        case 0:
            return static_cast<u32>(type & 0x7ff) << 20 | rs1 << 15 | 7 << 12 | rd << 7 | 0x57;
        case 1:
            return 3u << 30 | static_cast<u32>(type & 0x3ff) << 20 | static_cast<u32>(below(32)) << 15 |
                   7 << 12 | rd << 7 | 0x57;
        default: {
            constexpr u32 rs2 = 12;
            patch(Place::kX, rs2, {chance(5) ? type | u64{1} << (8 + below(56)) : type});
            return 1u << 31 | rs2 << 20 | rs1 << 15 | 7 << 12 | rd << 7 | 0x57;
        }
    }
}

// A word between the vector instructions.
u32 Generator::no_instruction() {
    for (;;) {
        static constexpr u32 kMajor[] = {0x57, 0x57, 0x07, 0x27};
        const u32 bits = static_cast<u32>(random()) << 7 | kMajor[below(4)], width = bits >> 12 & 7;
        const bool scalar = (bits & 0x7f) != 0x57 && width >= 1 && width <= 4;
        if (!scalar && emu::decode_vector(bits) == VectorOp::kNone) return bits;
    }
}

u32 Generator::operands(VectorOp op) {
    const emu::VectorRow& row = emu::row(op);
    // Groups begin at multiples of their size; any register is tried now and then.
    const unsigned step = 1u << below(4);
    const auto reg = [&](VectorOperand kind) {
        auto value = static_cast<u32>(below(32));
        const bool is_x =
            kind == VectorOperand::kX || kind == VectorOperand::kXWhole || kind == VectorOperand::kXResult;
        if (is_x) return value == 3 || value == 4 ? value + 2 : value;
        if (kind == VectorOperand::kF || kind == VectorOperand::kSigned || kind == VectorOperand::kUnsigned)
            return value;
        return chance(90) ? value & ~(step - 1) : value;
    };
    u32 bits = reg(row.vd) << 7 | reg(row.vs1) << 15 | reg(row.vs2) << 20 | static_cast<u32>(below(2)) << 25;
    if (row.has(emu::vector_property::kLoad | emu::vector_property::kStore) && chance(50))
        bits |= static_cast<u32>(below(8)) << 29;
    return row.match | (bits & ~row.mask);
}

void Generator::prepare_memory(VectorOp op, u32 bits) {
    const model::Access access = model::access_of(op);
    const model::Fields fields(bits);
    const u64 element = access.eew / 8;
    u64 base = model::kWindow + below(model::kWindowBytes);
    if (chance(70)) base = model::kWindow + below(model::kWindowBytes / 2);
    if (chance(20)) base = model::kWindow + model::kWindowBytes - below(64 + state_.vlenb);
    if (chance(4)) base = model::kWindow - below(64);
    if (chance(70)) base &= ~(element - 1);
    if (fields.vs1 != 0) patch(Place::kX, fields.vs1, {base});
    if (access.kind == Memory::kStrided && fields.vs2 != 0 && fields.vs2 != fields.vs1) {
        const u64 stride = chance(50) ? element * below(9) : below(64);
        patch(Place::kX, fields.vs2, {chance(20) ? 0 - stride : chance(5) ? random() : stride});
    }
    if (access.kind == Memory::kIndexed && chance(90)) {
        const model::Shape shape = model::shape_of(state_, op, bits);
        const u64 limit = chance(70) ? model::kWindowBytes / 4 : 64;
        const u64 bytes = std::min<u64>(u64{shape.vs2.registers()} * state_.vlenb,
                                        state_.v.size() - u64{shape.vs2.first} * state_.vlenb);
        std::vector<u64> words(bytes / 8);
        for (u64& word : words)
            for (unsigned at = 0; at < 64; at += access.eew)
                word |= (below(limit) & (access.eew == 64 ? ~u64{0} : (u64{1} << access.eew) - 1)) << at;
        patch(Place::kVector, u64{shape.vs2.first} * state_.vlenb, std::move(words));
    }
}

u32 Generator::instruction(const std::string& only) {
    auto op = VectorOp::kNone;
    do
        op = static_cast<VectorOp>(below(emu::kVectorOps));
    while (emu::row(op).has(emu::vector_property::kConfig) ||
           std::string(emu::row(op).name).find(only) == std::string::npos);

    prepare_csrs();
    u32 bits = operands(op);
    if (!chance(12))
        for (unsigned tries = 0; tries < 300 && !model::is_legal(state_, bits); ++tries) {
            if (tries % 20 == 19) choose_vtype();
            if (tries == 200) patch(Place::kVstart, 0);
            bits = operands(op);
        }
    const model::Fields fields(bits);
    const emu::VectorRow& row = emu::row(op);
    if (row.vs1 == VectorOperand::kX && fields.vs1 != 0 && chance(60))
        patch(Place::kX, fields.vs1, {scalar()});
    if (row.vs1 == VectorOperand::kF && chance(60)) {
        const unsigned sew = std::min(64u, Vtype(state_.vtype).sew);
        const bool bf16 = row.has(emu::vector_property::kBf16);
        const u64 value = sew == 32   ? float_bits(8, 23)
                          : sew == 64 ? float_bits(11, 52)
                          : bf16      ? float_bits(8, 7)
                                      : float_bits(5, 10);
        patch(Place::kF, fields.vs1,
              {sew == 64 || chance(5) ? value : value | ~u64{0} << std::max(16u, sew)});
    }
    if (chance(40)) {
        const unsigned first = chance(50)   ? fields.vs2 & ~7u
                               : chance(50) ? fields.vs1 & ~7u
                                            : fields.vd & ~7u;
        fill_registers(first, 8);
    }
    if (model::access_of(op).kind != Memory::kNone) prepare_memory(op, bits);
    return bits;
}

// false: it is one to avoid.
bool Generator::add_step(Program& program, u32 bits) {
    model::State before = state_;
    const model::Result result = model::execute(state_, bits, sums_);
    if (avoid_ != nullptr && avoid_(before, bits, result, state_)) {
        state_ = std::move(before);
        return false;
    }
    std::vector<Patch> patches;
    std::swap(patches, patches_);
    const VectorOp op = emu::decode_vector(bits);
    const bool may_store = op != VectorOp::kNone && emu::row(op).has(emu::vector_property::kStore);
    program.steps.push_back({std::move(patches), bits, result, may_store, state_});
    return true;
}

Program Generator::next(unsigned steps, const std::string& only) {
    Program program{vlen_, {}};
    patches_.clear();
    state_ = model::State(vlen_);
    fill_state();
    while (program.steps.size() < steps) {
        if (Vtype(state_.vtype).vill && chance(50)) choose_vtype();
        const bool all = only.empty();
        add_step(program, all && chance(8)   ? configuration()
                          : all && chance(2) ? no_instruction()
                                             : instruction(only));
    }
    return program;
}

Program Generator::loop(unsigned instructions, unsigned passes) {
    Program program = next(instructions);
    for (unsigned pass = 1; pass < passes; ++pass)
        for (unsigned i = 0; i < instructions; ++i) {
            const u32 bits = program.steps[i].instruction;
            const VectorOp op = emu::decode_vector(bits);
            if (chance(70)) choose_vtype();
            if (chance(10)) patch(Place::kVtype, model::kVill), patch(Place::kVl, 0);
            patch(Place::kVstart, 0);
            if (op != VectorOp::kNone && model::access_of(op).kind != Memory::kNone) prepare_memory(op, bits);
            add_step(program, bits);
        }
    return program;
}

}  // namespace orrery::riscv::test
