#include "tests/unit/core/vector_fp/cases.h"

namespace orrery::emu::test {
namespace {

using reference::decode;
using reference::Format;
using reference::kBf16;
using reference::kF16;
using reference::kF32;
using reference::kF64;
using reference::Value;

using Binary = std::uint64_t (*)(Format, const Value&, const Value&, reference::Mode, std::uint8_t&);

reference::Mode mode(const Element& e) {
    return static_cast<reference::Mode>(e.frm);
}
unsigned log2_of(unsigned bits) {
    return bits == 8 ? 3 : bits == 16 ? 4 : bits == 32 ? 5 : 6;
}
Format wider(Format f) {
    return f.bits == 16 ? kF32 : kF64;
}

std::uint64_t subtract(Format to, const Value& a, const Value& b, reference::Mode mode, std::uint8_t& flags) {
    return reference::add(to, a, -b, mode, flags);
}

// result in `to` of a in `fa` and b in `fb`.
ElementReference binary(Binary function, Format to, Format fa, Format fb, bool reversed = false) {
    return [=](Element& e) {
        const Value a = decode(fa, e.a);
        const Value b = decode(fb, e.b);
        return reversed ? function(to, b, a, mode(e), e.flags) : function(to, a, b, mode(e), e.flags);
    };
}

// The addend is in `to`, the factors in `f`; `multiplies_d`: d is a factor and a is added.
ElementReference fused(Format to, Format f, bool multiplies_d, bool minus_product, bool minus_addend) {
    return [=](Element& e) {
        Value x = decode(f, e.b);
        const Value y = decode(f, multiplies_d ? e.d : e.a);
        Value z = decode(to, multiplies_d ? e.a : e.d);
        if (minus_product) x = -x;
        if (minus_addend) z = -z;
        return reference::fma(to, x, y, z, mode(e), e.flags);
    };
}

void add_both(std::vector<Case>& cases, VectorOp vv, VectorOp vf, unsigned sew, Operand d, Operand a,
              Operand b, const ElementReference& expected) {
    cases.push_back({vv, sew, d, a, b, false, expected});
    cases.push_back({vf, sew, d, a, b, true, expected});
}

bool either_nan(const Value& a, const Value& b, bool signals_always, std::uint8_t& flags) {
    if (a.kind == Value::kSignalingNan || b.kind == Value::kSignalingNan) flags |= reference::kNv;
    if (!a.is_nan() && !b.is_nan()) return false;
    if (signals_always) flags |= reference::kNv;
    return true;
}

ElementReference extremum(Format f, int wanted) {
    return [=](Element& e) -> std::uint64_t {
        const Value a = decode(f, e.a);
        const Value b = decode(f, e.b);
        if (either_nan(a, b, false, e.flags)) {
            if (a.is_nan() && b.is_nan()) return reference::canonical_nan(f);
            return a.is_nan() ? e.b : e.a;
        }
        int order = reference::compare(a, b);
        if (order == 0) order = static_cast<int>(b.negative) - static_cast<int>(a.negative);
        return order == wanted ? e.a : e.b;
    };
}

template <class Holds>
ElementReference comparison(Format f, bool signals_always, bool of_nan, Holds holds) {
    return [=](Element& e) -> std::uint64_t {
        const Value a = decode(f, e.a);
        const Value b = decode(f, e.b);
        if (either_nan(a, b, signals_always, e.flags)) return of_nan ? 1 : 0;
        return holds(reference::compare(a, b)) ? 1 : 0;
    };
}

std::uint64_t classify(Format f, const Element& e) {
    const Value a = decode(f, e.a);
    const bool normal = (e.a & (reference::infinity(f, false))) != 0;
    switch (a.kind) {
        case Value::kInfinite:
            return a.negative ? 0x001 : 0x080;
        case Value::kFinite:
            return a.negative ? (normal ? 0x002 : 0x004) : (normal ? 0x040 : 0x020);
        case Value::kZero:
            return a.negative ? 0x008 : 0x010;
        case Value::kSignalingNan:
            return 0x100;
        default:
            return 0x200;
    }
}

}  // namespace

std::vector<Case> arithmetic_cases(Format f) {
    const Operand v = floating(f);
    const unsigned sew = log2_of(v.bits);
    std::vector<Case> cases;
    add_both(cases, VectorOp::kVfaddVv, VectorOp::kVfaddVf, sew, v, v, v, binary(reference::add, f, f, f));
    add_both(cases, VectorOp::kVfsubVv, VectorOp::kVfsubVf, sew, v, v, v, binary(subtract, f, f, f));
    add_both(cases, VectorOp::kVfmulVv, VectorOp::kVfmulVf, sew, v, v, v, binary(reference::mul, f, f, f));
    add_both(cases, VectorOp::kVfdivVv, VectorOp::kVfdivVf, sew, v, v, v, binary(reference::div, f, f, f));
    cases.push_back({VectorOp::kVfrsubVf, sew, v, v, v, true, binary(subtract, f, f, f, true)});
    cases.push_back({VectorOp::kVfrdivVf, sew, v, v, v, true, binary(reference::div, f, f, f, true)});
    cases.push_back({VectorOp::kVfsqrtV, sew, v, v, {}, false, [=](Element& e) {
                         return reference::sqrt(f, decode(f, e.a), mode(e), e.flags);
                     }});
    return cases;
}

std::vector<Case> fused_cases(Format f) {
    const Operand v = floating(f);
    const unsigned sew = log2_of(v.bits);
    std::vector<Case> cases;
    const auto add = [&](VectorOp vv, VectorOp vf, bool multiplies_d, bool product, bool addend) {
        add_both(cases, vv, vf, sew, v, v, v, fused(f, f, multiplies_d, product, addend));
    };
    add(VectorOp::kVfmaccVv, VectorOp::kVfmaccVf, false, false, false);
    add(VectorOp::kVfnmaccVv, VectorOp::kVfnmaccVf, false, true, true);
    add(VectorOp::kVfmsacVv, VectorOp::kVfmsacVf, false, false, true);
    add(VectorOp::kVfnmsacVv, VectorOp::kVfnmsacVf, false, true, false);
    add(VectorOp::kVfmaddVv, VectorOp::kVfmaddVf, true, false, false);
    add(VectorOp::kVfnmaddVv, VectorOp::kVfnmaddVf, true, true, true);
    add(VectorOp::kVfmsubVv, VectorOp::kVfmsubVf, true, false, true);
    add(VectorOp::kVfnmsubVv, VectorOp::kVfnmsubVf, true, true, false);
    return cases;
}

std::vector<Case> sign_and_order_cases(Format f) {
    const Operand v = floating(f);
    const unsigned sew = log2_of(v.bits);
    const std::uint64_t sign = reference::zero(f, true);
    std::vector<Case> cases;
    add_both(cases, VectorOp::kVfminVv, VectorOp::kVfminVf, sew, v, v, v, extremum(f, -1));
    add_both(cases, VectorOp::kVfmaxVv, VectorOp::kVfmaxVf, sew, v, v, v, extremum(f, 1));
    add_both(cases, VectorOp::kVfsgnjVv, VectorOp::kVfsgnjVf, sew, v, v, v,
             [=](Element& e) { return (e.a & (sign - 1)) | (e.b & sign); });
    add_both(cases, VectorOp::kVfsgnjnVv, VectorOp::kVfsgnjnVf, sew, v, v, v,
             [=](Element& e) { return (e.a & (sign - 1)) | (~e.b & sign); });
    add_both(cases, VectorOp::kVfsgnjxVv, VectorOp::kVfsgnjxVf, sew, v, v, v,
             [=](Element& e) { return e.a ^ (e.b & sign); });
    cases.push_back({VectorOp::kVfclassV, sew, v, v, {}, false, [=](Element& e) { return classify(f, e); }});
    const Operand bit{1, {}, true};
    add_both(cases, VectorOp::kVmfeqVv, VectorOp::kVmfeqVf, sew, bit, v, v,
             comparison(f, false, false, [](int order) { return order == 0; }));
    add_both(cases, VectorOp::kVmfneVv, VectorOp::kVmfneVf, sew, bit, v, v,
             comparison(f, false, true, [](int order) { return order != 0; }));
    add_both(cases, VectorOp::kVmfltVv, VectorOp::kVmfltVf, sew, bit, v, v,
             comparison(f, true, false, [](int order) { return order < 0; }));
    add_both(cases, VectorOp::kVmfleVv, VectorOp::kVmfleVf, sew, bit, v, v,
             comparison(f, true, false, [](int order) { return order <= 0; }));
    cases.push_back({VectorOp::kVmfgtVf, sew, bit, v, v, true,
                     comparison(f, true, false, [](int order) { return order > 0; })});
    cases.push_back({VectorOp::kVmfgeVf, sew, bit, v, v, true,
                     comparison(f, true, false, [](int order) { return order >= 0; })});
    return cases;
}

std::vector<Case> widening_cases(Format f) {
    const Format wide = wider(f);
    const Operand v = floating(f);
    const Operand w = floating(wide);
    const unsigned sew = log2_of(v.bits);
    std::vector<Case> cases;
    if (f.mantissa == kBf16.mantissa) {
        add_both(cases, VectorOp::kVfwmaccbf16Vv, VectorOp::kVfwmaccbf16Vf, sew, w, v, v,
                 fused(wide, f, false, false, false));
        return cases;
    }
    add_both(cases, VectorOp::kVfwaddVv, VectorOp::kVfwaddVf, sew, w, v, v,
             binary(reference::add, wide, f, f));
    add_both(cases, VectorOp::kVfwsubVv, VectorOp::kVfwsubVf, sew, w, v, v, binary(subtract, wide, f, f));
    add_both(cases, VectorOp::kVfwmulVv, VectorOp::kVfwmulVf, sew, w, v, v,
             binary(reference::mul, wide, f, f));
    add_both(cases, VectorOp::kVfwaddWv, VectorOp::kVfwaddWf, sew, w, w, v,
             binary(reference::add, wide, wide, f));
    add_both(cases, VectorOp::kVfwsubWv, VectorOp::kVfwsubWf, sew, w, w, v, binary(subtract, wide, wide, f));
    const auto add = [&](VectorOp vv, VectorOp vf, bool product, bool addend) {
        add_both(cases, vv, vf, sew, w, v, v, fused(wide, f, false, product, addend));
    };
    add(VectorOp::kVfwmaccVv, VectorOp::kVfwmaccVf, false, false);
    add(VectorOp::kVfwnmaccVv, VectorOp::kVfwnmaccVf, true, true);
    add(VectorOp::kVfwmsacVv, VectorOp::kVfwmsacVf, false, true);
    add(VectorOp::kVfwnmsacVv, VectorOp::kVfwnmsacVf, true, false);
    return cases;
}

std::vector<Case> conversion_cases(unsigned sew_log2) {
    std::vector<Case> cases;
    const unsigned bits = 1u << sew_log2;
    const auto format = [](unsigned width) { return width == 16 ? kF16 : width == 32 ? kF32 : kF64; };
    const auto add = [&](VectorOp op, Operand to, Operand from, int fixed_mode = -1) {
        const auto own_mode = [=](const Element& e) {
            return fixed_mode < 0 ? mode(e) : static_cast<reference::Mode>(fixed_mode);
        };
        cases.push_back({op, sew_log2, to, from, {}, false, [=](Element& e) {
                             return reference::convert(to.format, decode(from.format, e.a), own_mode(e),
                                                       e.flags);
                         }});
    };
    const auto to_integer = [&](VectorOp op, unsigned to, Format from, bool is_signed, bool rtz) {
        cases.push_back({op, sew_log2, integer(to), floating(from), {}, false, [=](Element& e) {
                             return reference::to_integer(to, is_signed, decode(from, e.a),
                                                          rtz ? reference::kRtz : mode(e), e.flags);
                         }});
    };
    const auto from_integer = [&](VectorOp op, Format to, unsigned from, bool is_signed) {
        cases.push_back({op, sew_log2, floating(to), integer(from), {}, false, [=](Element& e) {
                             mpz_class value = e.a;
                             if (is_signed && (e.a >> (from - 1) & 1) != 0) value -= mpz_class(1) << from;
                             return reference::from_integer(to, value, mode(e), e.flags);
                         }});
    };
    if (bits >= 16) {
        const Format f = format(bits);
        to_integer(VectorOp::kVfcvtXuFV, bits, f, false, false);
        to_integer(VectorOp::kVfcvtXFV, bits, f, true, false);
        to_integer(VectorOp::kVfcvtRtzXuFV, bits, f, false, true);
        to_integer(VectorOp::kVfcvtRtzXFV, bits, f, true, true);
        from_integer(VectorOp::kVfcvtFXuV, f, bits, false);
        from_integer(VectorOp::kVfcvtFXV, f, bits, true);
    }
    if (bits >= 16 && bits <= 32) {
        const Format f = format(bits);
        const Format wide = format(2 * bits);
        to_integer(VectorOp::kVfwcvtXuFV, 2 * bits, f, false, false);
        to_integer(VectorOp::kVfwcvtXFV, 2 * bits, f, true, false);
        to_integer(VectorOp::kVfwcvtRtzXuFV, 2 * bits, f, false, true);
        to_integer(VectorOp::kVfwcvtRtzXFV, 2 * bits, f, true, true);
        from_integer(VectorOp::kVfncvtFXuW, f, 2 * bits, false);
        from_integer(VectorOp::kVfncvtFXW, f, 2 * bits, true);
        add(VectorOp::kVfwcvtFFV, floating(wide), floating(f));
        add(VectorOp::kVfncvtFFW, floating(f), floating(wide));
        add(VectorOp::kVfncvtRodFFW, floating(f), floating(wide), reference::kRod);
    }
    if (bits <= 32) {
        const Format wide = format(2 * bits);
        from_integer(VectorOp::kVfwcvtFXuV, wide, bits, false);
        from_integer(VectorOp::kVfwcvtFXV, wide, bits, true);
        to_integer(VectorOp::kVfncvtXuFW, bits, wide, false, false);
        to_integer(VectorOp::kVfncvtXFW, bits, wide, true, false);
        to_integer(VectorOp::kVfncvtRtzXuFW, bits, wide, false, true);
        to_integer(VectorOp::kVfncvtRtzXFW, bits, wide, true, true);
    }
    if (bits == 16) {
        add(VectorOp::kVfwcvtbf16FFV, floating(kF32), floating(kBf16));
        add(VectorOp::kVfncvtbf16FFW, floating(kBf16), floating(kF32));
    }
    return cases;
}

}  // namespace orrery::emu::test
