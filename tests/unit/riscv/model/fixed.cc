#include <algorithm>

#include "tests/unit/riscv/model/execute.h"

namespace orrery::riscv::model {
namespace {

using s128 = __int128;

// roundoff_signed and roundoff_unsigned: value / 2^shift in the mode of vxrm.
s128 roundoff(s128 value, unsigned shift, u8 vxrm) {
    if (shift == 0) return value;
    const s128 unit = s128{1} << shift, quotient = value >> shift, rest = value - (quotient << shift);
    switch (vxrm) {
        case 0:
            return quotient + (2 * rest >= unit ? 1 : 0);  // rnu
        case 1:
            return quotient + (2 * rest > unit || (2 * rest == unit && (quotient & 1) != 0) ? 1 : 0);  // rne
        case 2:
            return quotient;  // rdn
        default:
            return quotient | (rest != 0 ? 1 : 0);  // rod
    }
}

}  // namespace

bool do_fixed_point(Execution& e) {
    const std::string& base = e.name.base;
    const bool saturating = base == "vsaddu" || base == "vsadd" || base == "vssubu" || base == "vssub";
    const bool averaging = base == "vaaddu" || base == "vaadd" || base == "vasubu" || base == "vasub";
    const bool shifting = base == "vssrl" || base == "vssra",
               clipping = base == "vnclipu" || base == "vnclip";
    if (!saturating && !averaging && !shifting && !clipping && base != "vsmul") return false;

    const bool is_unsigned = base.ends_with('u') || base == "vssrl";
    const unsigned bits = e.vtype.sew, source = e.shape.vs2.eew;
    const s128 greatest = is_unsigned ? (s128{1} << bits) - 1 : (s128{1} << (bits - 1)) - 1;
    const s128 least = is_unsigned ? 0 : -(s128{1} << (bits - 1));
    e.each([&](u64 i) {
        const u64 raw_a = e.get(e.shape.vs2, i), raw_b = e.first_operand(i);
        const s128 a = is_unsigned ? static_cast<s128>(raw_a) : extended(raw_a, source);
        const s128 b = is_unsigned ? static_cast<s128>(raw_b) : extended(raw_b, bits);
        const unsigned shift = static_cast<unsigned>(raw_b) & (source - 1);
        const u8 vxrm = e.old.vxrm;
        s128 value = 0;
        if (saturating) value = base.starts_with("vsa") ? a + b : a - b;
        if (averaging) value = roundoff(base.starts_with("vaa") ? a + b : a - b, 1, vxrm);
        if (shifting || clipping) value = roundoff(a, shift, vxrm);
        if (base == "vsmul") value = roundoff(a * b, bits - 1, vxrm);
        if (!averaging && !shifting) {
            const s128 fits = std::clamp(value, least, greatest);
            if (fits != value) e.state.vxsat = 1;
            value = fits;
        }
        e.state.set_element(e.shape.vd.first, i, bits, static_cast<u64>(value));
    });
    return true;
}

}  // namespace orrery::riscv::model
