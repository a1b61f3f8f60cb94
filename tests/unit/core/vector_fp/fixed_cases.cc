// Fixed point by division of integers of any length, which rounds in the sense of the word.
#include "tests/unit/core/vector_fp/cases.h"

namespace orrery::emu::test {
namespace {

mpz_class power(unsigned exponent) {
    return mpz_class(1) << exponent;
}
mpz_class value_of(std::uint64_t bits, unsigned width, bool is_signed) {
    mpz_class value = bits;
    if (width < 64) value %= power(width);
    return is_signed && value >= power(width - 1) ? mpz_class(value - power(width)) : value;
}
std::uint64_t bits_of(const mpz_class& value, unsigned width) {
    mpz_class wrapped;
    mpz_fdiv_r_2exp(wrapped.get_mpz_t(), value.get_mpz_t(), width);
    return wrapped.get_ui();
}

// value / 2^shift as vxrm says: to nearest with halves up, to nearest even, down, or odd if inexact.
mpz_class rounded(const mpz_class& value, unsigned shift, unsigned vxrm) {
    mpz_class down;
    mpz_class rest;
    mpz_fdiv_qr(down.get_mpz_t(), rest.get_mpz_t(), value.get_mpz_t(), power(shift).get_mpz_t());
    const int half = cmp(rest * 2, power(shift));
    const bool odd = mpz_odd_p(down.get_mpz_t()) != 0;
    if (vxrm == 0 && half >= 0) return down + 1;
    if (vxrm == 1 && (half > 0 || (half == 0 && odd))) return down + 1;
    if (vxrm == 3 && rest != 0 && !odd) return down + 1;
    return down;
}
std::uint64_t saturated(const mpz_class& value, unsigned width, bool is_signed, Element& e) {
    const mpz_class most = power(is_signed ? width - 1 : width) - 1;
    const mpz_class least = is_signed ? mpz_class(-power(width - 1)) : mpz_class(0);
    if (value <= most && value >= least) return bits_of(value, width);
    e.saturated = 1;
    return bits_of(value > most ? most : least, width);
}

}  // namespace

std::vector<Case> fixed_point_cases(unsigned sew_log2) {
    const unsigned bits = 1u << sew_log2;
    const Operand v = integer(bits);
    std::vector<Case> cases;
    const auto add = [&](VectorOp vv, VectorOp vx, const ElementReference& expected,
                         VectorOp vi = VectorOp::kNone) {
        cases.push_back({vv, sew_log2, v, v, v, false, expected});
        cases.push_back({vx, sew_log2, v, v, v, true, expected});
        if (vi != VectorOp::kNone) cases.push_back({vi, sew_log2, v, v, v, true, expected});
    };
    const auto sum = [=](bool is_signed, int sign) {
        return [=](Element& e) {
            const mpz_class a = value_of(e.a, bits, is_signed);
            const mpz_class b = value_of(e.b, bits, is_signed);
            return saturated(a + sign * b, bits, is_signed, e);
        };
    };
    const auto average = [=](bool is_signed, int sign) {
        return [=](Element& e) {
            const mpz_class a = value_of(e.a, bits, is_signed);
            const mpz_class b = value_of(e.b, bits, is_signed);
            return bits_of(rounded(a + sign * b, 1, e.vxrm), bits);
        };
    };
    const auto shift = [=](bool is_signed) {
        return [=](Element& e) {
            const auto amount = static_cast<unsigned>(e.b % bits);
            return bits_of(rounded(value_of(e.a, bits, is_signed), amount, e.vxrm), bits);
        };
    };
    add(VectorOp::kVsaddVv, VectorOp::kVsaddVx, sum(true, 1), VectorOp::kVsaddVi);
    add(VectorOp::kVsadduVv, VectorOp::kVsadduVx, sum(false, 1), VectorOp::kVsadduVi);
    add(VectorOp::kVssubVv, VectorOp::kVssubVx, sum(true, -1));
    add(VectorOp::kVssubuVv, VectorOp::kVssubuVx, sum(false, -1));
    add(VectorOp::kVaaddVv, VectorOp::kVaaddVx, average(true, 1));
    add(VectorOp::kVaadduVv, VectorOp::kVaadduVx, average(false, 1));
    add(VectorOp::kVasubVv, VectorOp::kVasubVx, average(true, -1));
    add(VectorOp::kVasubuVv, VectorOp::kVasubuVx, average(false, -1));
    add(VectorOp::kVssrlVv, VectorOp::kVssrlVx, shift(false), VectorOp::kVssrlVi);
    add(VectorOp::kVssraVv, VectorOp::kVssraVx, shift(true), VectorOp::kVssraVi);
    add(VectorOp::kVsmulVv, VectorOp::kVsmulVx, [=](Element& e) {
        const mpz_class product = value_of(e.a, bits, true) * value_of(e.b, bits, true);
        return saturated(rounded(product, bits - 1, e.vxrm), bits, true, e);
    });
    if (bits == 64) return cases;
    const auto clip = [=](bool is_signed) {
        return [=](Element& e) {
            const auto amount = static_cast<unsigned>(e.b % (2 * bits));
            return saturated(rounded(value_of(e.a, 2 * bits, is_signed), amount, e.vxrm), bits, is_signed, e);
        };
    };
    const Operand w = integer(2 * bits);
    for (const auto& [op, is_signed] : {std::pair{VectorOp::kVnclipWv, true}, {VectorOp::kVnclipuWv, false}})
        cases.push_back({op, sew_log2, v, w, v, false, clip(is_signed)});
    for (const auto& [op, is_signed] : {std::pair{VectorOp::kVnclipWx, true},
                                        {VectorOp::kVnclipWi, true},
                                        {VectorOp::kVnclipuWx, false},
                                        {VectorOp::kVnclipuWi, false}})
        cases.push_back({op, sew_log2, v, w, v, true, clip(is_signed)});
    return cases;
}

}  // namespace orrery::emu::test
