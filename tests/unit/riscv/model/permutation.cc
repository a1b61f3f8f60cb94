#include "tests/unit/riscv/model/execute.h"

namespace orrery::riscv::model {
namespace {

// Moves between a scalar and element 0, whatever LMUL; and of whole registers.
bool do_move(Execution& e) {
    const std::string& suffix = e.name.suffix;
    const unsigned sew = e.vtype.sew;
    if (!e.name.starts("vmv") && !e.name.starts("vfmv")) return false;
    if (suffix == "x.s") {
        e.state.set_x(e.fields.vd, static_cast<u64>(extended(e.get(e.shape.vs2, 0), sew)));
    } else if (suffix == "f.s") {
        const u64 value = e.get(e.shape.vs2, 0);
        e.state.f[e.fields.vd] = sew == 64 ? value : value | ~u64{0} << sew;
    } else if (suffix == "s.x" || suffix == "s.f") {
        if (e.old.vstart < e.old.vl) e.state.set_element(e.fields.vd, 0, sew, e.scalar());
    } else if (suffix == "v") {
        const u64 count = u64{e.shape.vd.registers()} * e.state.vlenb * 8 / sew;
        for (u64 i = e.old.vstart; i < count; ++i)
            e.state.set_element(e.fields.vd, i, sew, e.get(e.shape.vs2, i));
    } else if (suffix == "v.f") {
        e.each([&](u64 i) { e.state.set_element(e.fields.vd, i, sew, e.scalar()); });
    } else {
        return false;
    }
    return true;
}

}  // namespace

bool do_permutation(Execution& e) {
    if (do_move(e)) return true;
    const std::string& base = e.name.base;
    const Group &vd = e.shape.vd, &vs2 = e.shape.vs2;
    const unsigned sew = e.vtype.sew;
    const u64 vlmax = e.vtype.vlmax(e.state.vlenb), vl = e.old.vl;
    const auto put = [&](u64 i, u64 value) { e.state.set_element(vd.first, i, sew, value); };

    if (base == "vfmerge") {
        e.each([&](u64 i) { put(i, e.old.mask_bit(0, i) ? e.scalar() : e.get(vs2, i)); });
    } else if (base == "vslideup") {
        e.each([&](u64 i) {
            if (i >= e.scalar()) put(i, e.get(vs2, i - e.scalar()));
        });
    } else if (base == "vslidedown") {
        e.each([&](u64 i) {
            const u64 offset = e.scalar();
            put(i, offset < vlmax && i + offset < vlmax ? e.get(vs2, i + offset) : 0);
        });
    } else if (base == "vslide1up" || base == "vfslide1up") {
        e.each([&](u64 i) { put(i, i == 0 ? e.scalar() : e.get(vs2, i - 1)); });
    } else if (base == "vslide1down" || base == "vfslide1down") {
        e.each([&](u64 i) { put(i, i == vl - 1 ? e.scalar() : e.get(vs2, i + 1)); });
    } else if (base == "vrgather" || base == "vrgatherei16") {
        e.each([&](u64 i) {
            const u64 index = e.shape.vs1.kind == Group::kVector ? e.get(e.shape.vs1, i) : e.scalar();
            put(i, index < vlmax ? e.get(vs2, index) : 0);
        });
    } else if (base == "vcompress") {
        u64 next = 0;
        for (u64 i = 0; i < vl; ++i)
            if (e.old.mask_bit(e.shape.vs1.first, i)) put(next++, e.get(vs2, i));
    } else {
        return false;
    }
    return true;
}

bool do_mask(Execution& e) {
    const std::string& base = e.name.base;
    const auto source = [&e](u64 i) { return e.old.mask_bit(e.fields.vs2, i); };
    if (e.name.suffix == "mm") {
        e.each([&](u64 i) {
            const bool a = source(i), b = e.old.mask_bit(e.fields.vs1, i);
            const bool value = base == "vmand"    ? a && b
                               : base == "vmnand" ? !(a && b)
                               : base == "vmandn" ? a && !b
                               : base == "vmor"   ? a || b
                               : base == "vmnor"  ? !(a || b)
                               : base == "vmorn"  ? a || !b
                               : base == "vmxor"  ? a != b
                                                  : a == b;
            e.state.set_mask_bit(e.fields.vd, i, value);
        });
    } else if (base == "vcpop") {
        u64 count = 0;
        e.each([&](u64 i) { count += source(i); });
        e.state.set_x(e.fields.vd, count);
    } else if (base == "vfirst") {
        u64 first = ~u64{0};
        e.each([&](u64 i) {
            if (source(i) && first == ~u64{0}) first = i;
        });
        e.state.set_x(e.fields.vd, first);
    } else if (base == "vmsbf" || base == "vmsif" || base == "vmsof") {
        bool found = false;
        e.each([&](u64 i) {
            const bool here = !found && source(i);
            e.state.set_mask_bit(e.fields.vd, i,
                                 base == "vmsof" ? here : !found && (base == "vmsif" || !source(i)));
            found = found || source(i);
        });
    } else if (base == "viota") {
        u64 sum = 0;
        e.each([&](u64 i) {
            e.state.set_element(e.fields.vd, i, e.vtype.sew, sum);
            sum += source(i);
        });
    } else if (base == "vid") {
        e.each([&](u64 i) { e.state.set_element(e.fields.vd, i, e.vtype.sew, i); });
    } else {
        return false;
    }
    return true;
}

}  // namespace orrery::riscv::model
