#include "tests/unit/riscv/model/shape.h"

#include <cstdlib>
#include <set>

namespace orrery::riscv::model {

using emu::VectorOp;

Vtype::Vtype(u64 bits)
    : vill(bits >> 8 != 0), sew(8u << (bits >> 3 & 7)), lmul_log2(static_cast<int>(bits & 7)) {
    if (lmul_log2 >= 4) lmul_log2 -= 8;
    // ELEN is 64; with a fraction of a register only SEW <= LMUL * ELEN.
    if (lmul_log2 == -4 || sew > 64 || (lmul_log2 < 0 && sew > 64u >> -lmul_log2)) vill = true;
}

u64 Vtype::vlmax(unsigned vlenb) const {
    const u64 per_register = vlenb * 8 / sew;
    return lmul_log2 >= 0 ? per_register << lmul_log2 : per_register >> -lmul_log2;
}

Name::Name(VectorOp op) {
    const std::string name = emu::row(op).name;
    const auto dot = name.find('.');
    base = name.substr(0, dot);
    if (dot != std::string::npos) suffix = name.substr(dot + 1);
}

// vle32ff, vlse8, vluxei16, vlm, vl4re8; likewise of stores.
Access access_of(VectorOp op) {
    Access access;
    if (op == VectorOp::kNone) return access;
    const Name name(op);
    const auto digits = [&name](const char* prefix) {
        return static_cast<unsigned>(std::atoi(name.base.c_str() + std::string(prefix).size()));
    };
    if (name.suffix != "v") return access;
    for (const char kind : {'l', 's'}) {
        access.store = kind == 's';
        const std::string v = std::string("v") + kind;
        const auto is = [&](const std::string& more) {
            const std::string prefix = v + more;
            if (!name.base.starts_with(prefix) || name.base.size() == prefix.size()) return false;
            access.eew = digits(prefix.c_str());
            return access.eew != 0;
        };
        if (name.base == v + "m") return {Memory::kMaskBits, access.store, 8};
        if (is("e")) {
            access.kind = name.base.ends_with("ff") ? Memory::kFaultFirst : Memory::kUnit;
            return access;
        }
        if (is("se")) {
            access.kind = Memory::kStrided;
            return access;
        }
        if (is("uxei") || is("oxei")) {
            access.kind = Memory::kIndexed;
            return access;
        }
        if (is("")) {  // a number of registers: vl2re16, vs2r
            const auto e = name.base.find("re");
            access.kind = Memory::kWhole;
            access.eew =
                e == std::string::npos ? 8 : static_cast<unsigned>(std::atoi(name.base.c_str() + e + 2));
            return access;
        }
    }
    return {};
}

namespace {

int log2_of(unsigned value) {
    int result = 0;
    while ((1u << result) < value)
        ++result;
    return result;
}

// A group whose elements have another width than SEW holds as many of them.
Group vector(unsigned first, unsigned eew, const Vtype& vtype) {
    return {Group::kVector, first, eew, vtype.lmul_log2 + log2_of(eew) - log2_of(vtype.sew), 1};
}
Group mask(unsigned first) {
    return {Group::kMask, first, 1, 0, 1};
}
Group element(unsigned first, unsigned eew) {
    return {Group::kElement, first, eew, 0, 1};
}

Shape memory_shape(const State& state, const Access& access, const Fields& fields) {
    const Vtype vtype(state.vtype);
    Shape shape;
    shape.masked = fields.masked;
    Group data = vector(fields.vd, access.eew, vtype);
    switch (access.kind) {
        case Memory::kWhole:
            shape.needs_vtype = false;
            data = {Group::kVector, fields.vd, access.eew, log2_of(fields.nf), 1};
            break;
        case Memory::kMaskBits:
            data = mask(fields.vd);
            break;
        case Memory::kIndexed:
            data = vector(fields.vd, vtype.sew, vtype);
            shape.vs2 = vector(fields.vs2, access.eew, vtype);
            shape.no_overlap = !access.store && fields.nf > 1;
            [[fallthrough]];
        default:
            data.fields = fields.nf;
    }
    shape.vd = data;
    shape.vd_is_source = access.store;
    return shape;
}

bool is_fp_width(unsigned bits) {
    return bits >= 16 && bits <= 64;
}

bool is_floating(const Name& name) {
    return (name.starts("vf") || name.starts("vmf")) && name.base != "vfirst";
}

// Is the SEW one that the instruction has? Of conversions the names of both sides count, whose widths differ.
bool sew_exists(const Name& name, unsigned sew, bool wide_vd, bool wide_vs2) {
    const unsigned destination = wide_vd ? 2 * sew : sew, source = wide_vs2 ? 2 * sew : sew;
    if (destination > 64 || source > 64) return false;
    if (name.base.find("bf16") != std::string::npos) return sew == 16;
    if (!is_floating(name)) return true;
    const bool converts = name.base == "vfcvt" || name.base == "vfwcvt" || name.base == "vfncvt";
    if (!converts) return is_fp_width(sew) && is_fp_width(destination);
    const bool to_integer =
        name.suffix.find("x.f.") != std::string::npos || name.suffix.find("xu.f.") != std::string::npos;
    const bool from_integer = name.suffix.starts_with("f.x");
    return (to_integer || is_fp_width(destination)) && (from_integer || is_fp_width(source));
}

Shape arithmetic_shape(const State& state, VectorOp op, const Fields& fields) {
    static const std::set<std::string> kAccumulate = {
        "vmacc",    "vnmsac",  "vmadd",   "vnmsub",   "vwmaccu", "vwmacc",   "vwmaccsu",
        "vwmaccus", "vfmacc",  "vfnmacc", "vfmsac",   "vfnmsac", "vfmadd",   "vfnmadd",
        "vfmsub",   "vfnmsub", "vfwmacc", "vfwnmacc", "vfwmsac", "vfwnmsac", "vfwmaccbf16"};
    const Name name(op);
    const Vtype vtype(state.vtype);
    const std::string& suffix = name.suffix;
    Shape shape;
    shape.floating = is_floating(name);
    shape.vd_is_source = kAccumulate.contains(name.base);
    const bool reduction =
        name.starts("vred") || name.starts("vwred") || name.starts("vfred") || name.starts("vfwred");
    const bool wide_vd = name.starts("vw") || name.starts("vfw");
    const bool wide_vs2 = suffix[0] == 'w' || suffix.ends_with(".w");
    const unsigned sew = vtype.sew, vd_bits = wide_vd ? 2 * sew : sew;
    shape.possible = sew_exists(name, sew, wide_vd, wide_vs2);
    shape.masked = fields.masked;

    shape.vd = vector(fields.vd, vd_bits, vtype);
    shape.vs2 = vector(fields.vs2, wide_vs2 ? 2 * sew : sew, vtype);
    const bool vs1_is_vector = suffix == "vv" || suffix == "wv" || suffix == "vvm" || suffix == "v.v";
    if (vs1_is_vector) shape.vs1 = vector(fields.vs1, sew, vtype);

    if (reduction) {
        shape.vd = element(fields.vd, vd_bits);
        shape.vs1 = element(fields.vs1, vd_bits);
        shape.vstart_zero = true;
    } else if (suffix == "mm") {
        shape.vd = mask(fields.vd);
        shape.vs2 = mask(fields.vs2);
        shape.vs1 = mask(fields.vs1);
        shape.masked = false;
    } else if (suffix == "m") {  // vmsbf, vmsif, vmsof, viota, vcpop, vfirst
        shape.vs2 = mask(fields.vs2);
        shape.vstart_zero = true;
        shape.no_overlap = true;
        if (name.starts("vms")) shape.vd = mask(fields.vd);
        if (name.base == "vcpop" || name.base == "vfirst") shape.vd = {};
    } else if (name.starts("vms") || name.starts("vmf") || name.base == "vmadc") {
        shape.vd = mask(fields.vd);
    } else if (suffix.starts_with("vf") && suffix != "vf" && suffix != "vfm") {  // vzext.vf4
        const unsigned factor = static_cast<unsigned>(suffix[2] - '0');
        shape.vs2 = vector(fields.vs2, sew / factor, vtype);
        shape.possible = sew / factor >= 8;
    } else if (suffix == "x.s" || suffix == "f.s") {
        shape.vd = {};
        shape.vs2 = element(fields.vs2, sew);
    } else if (suffix == "s.x" || suffix == "s.f") {
        shape.vd = element(fields.vd, sew);
        shape.vs2 = {};
    } else if (name.base == "vcompress") {
        shape.vs1 = mask(fields.vs1);
        shape.no_overlap = true;
        shape.vstart_zero = true;
        shape.masked = false;
    } else if (name.base == "vid" || suffix == "v.v" || suffix == "v.x" || suffix == "v.i" ||
               suffix == "v.f") {
        if (name.base == "vid" || name.starts("vmv") || name.starts("vfmv")) shape.vs2 = {};
    } else if (name.starts("vmv")) {  // vmv4r.v
        const int emul = log2_of(static_cast<unsigned>(name.base[3] - '0'));
        shape.vd = {Group::kVector, fields.vd, sew, emul, 1};
        shape.vs2 = {Group::kVector, fields.vs2, sew, emul, 1};
    } else if (name.starts("vrgather") || name.base == "vslideup" || name.base == "vslide1up" ||
               name.base == "vfslide1up") {
        shape.no_overlap = true;
        if (name.base == "vrgatherei16") shape.vs1 = vector(fields.vs1, 16, vtype);
    }
    // With a carry in or as a selector, v0 is an operand; in an instruction with vm = 1 it is none.
    if (suffix.ends_with('m') && suffix.size() == 3) {
        shape.masked = false;
        shape.mask_is_source = true;
    }
    return shape;
}

}  // namespace

Shape shape_of(const State& state, VectorOp op, u32 bits) {
    const Fields fields(bits);
    const Access access = access_of(op);
    return access.kind == Memory::kNone ? arithmetic_shape(state, op, fields)
                                        : memory_shape(state, access, fields);
}

namespace {

bool group_exists(const Group& group) {
    if (group.kind != Group::kVector) return true;
    if (group.emul_log2 < -3 || group.emul_log2 > 3) return false;
    const unsigned aligned = group.emul_log2 > 0 ? 1u << group.emul_log2 : 1;
    return group.first % aligned == 0 && group.registers() <= 8 && group.first + group.registers() <= 32;
}

bool overlap(const Group& a, const Group& b) {
    return a.kind != Group::kNone && b.kind != Group::kNone && a.first < b.first + b.registers() &&
           b.first < a.first + a.registers();
}

// A destination over a source: the same width, or narrower over the lowest part, or wider and the source in
// its highest part.
bool destination_allows(const Group& destination, const Group& source) {
    if (!overlap(destination, source) || destination.eew == source.eew) return true;
    if (destination.eew < source.eew) return destination.first == source.first;
    return source.emul_log2 >= 0 && source.kind == Group::kVector &&
           destination.first + destination.registers() == source.first + source.registers();
}

}  // namespace

bool is_legal(const State& state, u32 bits) {
    const VectorOp op = emu::decode_vector(bits);
    if (op == VectorOp::kNone) return false;
    const Name name(op);
    if (name.starts("vset")) return true;
    const Fields fields(bits);
    const Shape shape = shape_of(state, op, bits);
    if (shape.needs_vtype && Vtype(state.vtype).vill) return false;
    if (!shape.possible) return false;
    if (shape.floating && state.frm > 4) return false;
    if (shape.vstart_zero && state.vstart != 0) return false;
    for (const Group& group : {shape.vd, shape.vs2, shape.vs1})
        if (!group_exists(group)) return false;

    const Group v0{Group::kMask, 0, 1, 0, 1};
    const bool reads_v0 = shape.masked || shape.mask_is_source;
    // v0 may be the destination of a masked instruction only as a mask or the scalar of a reduction, and not
    // where v0 is a carry for a vector.
    const bool store = access_of(op).store;
    if (reads_v0 && !store && shape.vd.kind == Group::kVector && overlap(shape.vd, v0)) return false;
    if (shape.no_overlap) {
        if (overlap(shape.vd, shape.vs2) || overlap(shape.vd, shape.vs1)) return false;
        if (shape.masked && overlap(shape.vd, v0)) return false;
    }
    // The scalar result of a reduction, and the single registers of scalar moves, may overlap anything.
    if (shape.vd.kind != Group::kElement && !store)
        if (!destination_allows(shape.vd, shape.vs2) || !destination_allows(shape.vd, shape.vs1))
            return false;

    return true;
}

// A register that is read with two widths: as itself in two groups, or as mask and data.
bool is_reserved(const State& state, u32 bits) {
    const VectorOp op = emu::decode_vector(bits);
    if (op == VectorOp::kNone) return false;
    const Shape shape = shape_of(state, op, bits);
    std::vector<Group> sources = {shape.vs2, shape.vs1};
    if (shape.vd_is_source) sources.push_back(shape.vd);
    if (shape.masked || shape.mask_is_source) sources.push_back({Group::kMask, 0, 1, 0, 1});
    for (const Group& a : sources)
        for (const Group& b : sources)
            if (a.eew != b.eew && overlap(a, b)) return true;
    return false;
}

}  // namespace orrery::riscv::model
