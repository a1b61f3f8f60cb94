#include <map>

#include "tests/unit/riscv/model/execute.h"

namespace orrery::riscv::model {
namespace {

using s128 = __int128;
using u128 = unsigned __int128;

// The operands of one element, each with and without sign; all arithmetic is wide enough to be exact.
struct Operands {
    unsigned bits;    // SEW
    unsigned source;  // width of vs2
    s128 a, b, d;     // vs2, vs1 or scalar, old vd: signed
    s128 ua, ub, ud;  // unsigned
    int carry;        // v0
};

s128 divide(s128 a, s128 b, s128 by_zero) {
    return b == 0 ? by_zero : a / b;
}
s128 remainder(s128 a, s128 b) {
    return b == 0 ? a : a % b;
}

using Function = s128 (*)(const Operands&);

unsigned shift(const Operands& o) {
    return static_cast<unsigned>(o.ub) & (o.source - 1);
}

const std::map<std::string, Function>& results() {
    static const std::map<std::string, Function> map = {
        {"vadd", [](const Operands& o) { return o.a + o.b; }},
        {"vsub", [](const Operands& o) { return o.a - o.b; }},
        {"vrsub", [](const Operands& o) { return o.b - o.a; }},
        {"vadc", [](const Operands& o) { return o.a + o.b + o.carry; }},
        {"vsbc", [](const Operands& o) { return o.a - o.b - o.carry; }},
        {"vwadd", [](const Operands& o) { return o.a + o.b; }},
        {"vwaddu", [](const Operands& o) { return o.ua + o.ub; }},
        {"vwsub", [](const Operands& o) { return o.a - o.b; }},
        {"vwsubu", [](const Operands& o) { return o.ua - o.ub; }},
        {"vminu", [](const Operands& o) { return o.ua < o.ub ? o.ua : o.ub; }},
        {"vmin", [](const Operands& o) { return o.a < o.b ? o.a : o.b; }},
        {"vmaxu", [](const Operands& o) { return o.ua > o.ub ? o.ua : o.ub; }},
        {"vmax", [](const Operands& o) { return o.a > o.b ? o.a : o.b; }},
        {"vand", [](const Operands& o) { return o.a & o.b; }},
        {"vor", [](const Operands& o) { return o.a | o.b; }},
        {"vxor", [](const Operands& o) { return o.a ^ o.b; }},
        {"vsll", [](const Operands& o) { return static_cast<s128>(static_cast<u128>(o.ua) << shift(o)); }},
        {"vsrl", [](const Operands& o) { return o.ua >> shift(o); }},
        {"vsra", [](const Operands& o) { return o.a >> shift(o); }},
        {"vnsrl", [](const Operands& o) { return o.ua >> shift(o); }},
        {"vnsra", [](const Operands& o) { return o.a >> shift(o); }},
        {"vmerge", [](const Operands& o) { return o.carry != 0 ? o.b : o.a; }},
        {"vmv", [](const Operands& o) { return o.b; }},
        {"vmul", [](const Operands& o) { return o.a * o.b; }},
        {"vmulh", [](const Operands& o) { return (o.a * o.b) >> o.bits; }},
        {"vmulhu",
         [](const Operands& o) {
             return static_cast<s128>((static_cast<u128>(o.ua) * static_cast<u128>(o.ub)) >> o.bits);
         }},
        {"vmulhsu", [](const Operands& o) { return (o.a * o.ub) >> o.bits; }},
        {"vwmul", [](const Operands& o) { return o.a * o.b; }},
        {"vwmulu", [](const Operands& o) { return o.ua * o.ub; }},
        {"vwmulsu", [](const Operands& o) { return o.a * o.ub; }},
        {"vdivu", [](const Operands& o) { return divide(o.ua, o.ub, -1); }},
        {"vdiv", [](const Operands& o) { return divide(o.a, o.b, -1); }},
        {"vremu", [](const Operands& o) { return remainder(o.ua, o.ub); }},
        {"vrem", [](const Operands& o) { return remainder(o.a, o.b); }},
        {"vmacc", [](const Operands& o) { return o.a * o.b + o.d; }},
        {"vnmsac", [](const Operands& o) { return -(o.a * o.b) + o.d; }},
        {"vmadd", [](const Operands& o) { return o.d * o.b + o.a; }},
        {"vnmsub", [](const Operands& o) { return -(o.d * o.b) + o.a; }},
        {"vwmacc", [](const Operands& o) { return o.a * o.b + o.d; }},
        {"vwmaccu", [](const Operands& o) { return o.ua * o.ub + o.ud; }},
        {"vwmaccsu", [](const Operands& o) { return o.ua * o.b + o.d; }},
        {"vwmaccus", [](const Operands& o) { return o.a * o.ub + o.d; }},
        {"vzext", [](const Operands& o) { return o.ua; }},
        {"vsext", [](const Operands& o) { return o.a; }},
    };
    return map;
}

const std::map<std::string, Function>& conditions() {
    static const std::map<std::string, Function> map = {
        {"vmseq", [](const Operands& o) { return s128{o.a == o.b}; }},
        {"vmsne", [](const Operands& o) { return s128{o.a != o.b}; }},
        {"vmsltu", [](const Operands& o) { return s128{o.ua < o.ub}; }},
        {"vmslt", [](const Operands& o) { return s128{o.a < o.b}; }},
        {"vmsleu", [](const Operands& o) { return s128{o.ua <= o.ub}; }},
        {"vmsle", [](const Operands& o) { return s128{o.a <= o.b}; }},
        {"vmsgtu", [](const Operands& o) { return s128{o.ua > o.ub}; }},
        {"vmsgt", [](const Operands& o) { return s128{o.a > o.b}; }},
        {"vmadc", [](const Operands& o) { return s128{o.ua + o.ub + o.carry >= s128{1} << o.bits}; }},
        {"vmsbc", [](const Operands& o) { return s128{o.ua < o.ub + o.carry}; }},
    };
    return map;
}

Operands operands(const Execution& e, u64 i) {
    Operands o{};
    o.bits = e.vtype.sew;
    o.source = e.vtype.sew;
    if (e.shape.vs2.kind == Group::kVector) {
        o.source = e.shape.vs2.eew;
        const u64 value = e.get(e.shape.vs2, i);
        o.a = extended(value, o.source);
        o.ua = value;
    }
    if (!e.name.starts("vzext") && !e.name.starts("vsext")) {
        const u64 value = e.first_operand(i);
        o.b = extended(value, o.bits);
        o.ub = value;
    }
    if (e.shape.vd.kind == Group::kVector) {
        const u64 value = e.get(e.shape.vd, i);
        o.d = extended(value, e.shape.vd.eew);
        o.ud = value;
    }
    o.carry = e.shape.mask_is_source && e.old.mask_bit(0, i) ? 1 : 0;
    return o;
}

// vredsum.vs and its kind, and the two that widen.
bool do_reduction(Execution& e) {
    const std::string& base = e.name.base;
    const bool wide = e.name.starts("vwredsum");
    if (!wide && !e.name.starts("vred")) return false;
    if (e.old.vl == 0) return true;
    const unsigned bits = e.shape.vd.eew;
    u64 sum = e.get(e.shape.vs1, 0);
    e.each([&](u64 i) {
        const u64 value = e.get(e.shape.vs2, i);
        const std::int64_t a = extended(sum, bits), b = extended(value, e.shape.vs2.eew);
        if (base == "vredsum" || base == "vwredsumu") sum += value;
        if (base == "vwredsum") sum += static_cast<u64>(b);
        if (base == "vredand") sum &= value;
        if (base == "vredor") sum |= value;
        if (base == "vredxor") sum ^= value;
        if ((base == "vredminu" && value < sum) || (base == "vredmaxu" && value > sum)) sum = value;
        if ((base == "vredmin" && b < a) || (base == "vredmax" && b > a)) sum = value;
        sum = cut(sum, bits);
    });
    e.state.set_element(e.shape.vd.first, 0, bits, sum);
    return true;
}

}  // namespace

bool do_integer(Execution& e) {
    if (do_reduction(e)) return true;
    if (const auto found = conditions().find(e.name.base); found != conditions().end()) {
        e.each([&](u64 i) { e.state.set_mask_bit(e.shape.vd.first, i, found->second(operands(e, i)) != 0); });
        return true;
    }
    const auto found = results().find(e.name.base);
    if (found == results().end()) return false;
    const unsigned bits = e.shape.vd.eew;
    e.each([&](u64 i) {
        e.state.set_element(e.shape.vd.first, i, bits, static_cast<u64>(found->second(operands(e, i))));
    });
    return true;
}

}  // namespace orrery::riscv::model
