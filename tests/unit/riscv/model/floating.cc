#include <functional>
#include <map>
#include <optional>

#include "tests/unit/riscv/model/execute.h"
#include "tests/unit/riscv/model/fp.h"

namespace orrery::riscv::model {
namespace {

// One element: a is vs2, b is vs1 or f[rs1], d is the old vd, all in the result's format.
using Function = std::function<u64(const Fp&, u64 a, u64 b, u64 d)>;

u64 negated(const Fp& fp, u64 a) {
    return a ^ fp.format.sign();
}

const std::map<std::string, Function>& results() {
    static const std::map<std::string, Function> map = {
        {"add", [](const Fp& fp, u64 a, u64 b, u64) { return fp.add(a, b); }},
        {"sub", [](const Fp& fp, u64 a, u64 b, u64) { return fp.sub(a, b); }},
        {"rsub", [](const Fp& fp, u64 a, u64 b, u64) { return fp.sub(b, a); }},
        {"mul", [](const Fp& fp, u64 a, u64 b, u64) { return fp.mul(a, b); }},
        {"div", [](const Fp& fp, u64 a, u64 b, u64) { return fp.div(a, b); }},
        {"rdiv", [](const Fp& fp, u64 a, u64 b, u64) { return fp.div(b, a); }},
        {"min", [](const Fp& fp, u64 a, u64 b, u64) { return fp.min(a, b); }},
        {"max", [](const Fp& fp, u64 a, u64 b, u64) { return fp.max(a, b); }},
        {"sgnj",
         [](const Fp& fp, u64 a, u64 b, u64) { return (a & ~fp.format.sign()) | (b & fp.format.sign()); }},
        {"sgnjn",
         [](const Fp& fp, u64 a, u64 b, u64) { return (a & ~fp.format.sign()) | (~b & fp.format.sign()); }},
        {"sgnjx", [](const Fp& fp, u64 a, u64 b, u64) { return a ^ (b & fp.format.sign()); }},
        {"macc", [](const Fp& fp, u64 a, u64 b, u64 d) { return fp.fma(b, a, d); }},
        {"nmacc",
         [](const Fp& fp, u64 a, u64 b, u64 d) { return fp.fma(negated(fp, b), a, negated(fp, d)); }},
        {"msac", [](const Fp& fp, u64 a, u64 b, u64 d) { return fp.fma(b, a, negated(fp, d)); }},
        {"nmsac", [](const Fp& fp, u64 a, u64 b, u64 d) { return fp.fma(negated(fp, b), a, d); }},
        {"madd", [](const Fp& fp, u64 a, u64 b, u64 d) { return fp.fma(b, d, a); }},
        {"nmadd",
         [](const Fp& fp, u64 a, u64 b, u64 d) { return fp.fma(negated(fp, b), d, negated(fp, a)); }},
        {"msub", [](const Fp& fp, u64 a, u64 b, u64 d) { return fp.fma(b, d, negated(fp, a)); }},
        {"nmsub", [](const Fp& fp, u64 a, u64 b, u64 d) { return fp.fma(negated(fp, b), d, a); }},
        {"maccbf16", [](const Fp& fp, u64 a, u64 b, u64 d) { return fp.fma(b, a, d); }},
        {"sqrt", [](const Fp& fp, u64 a, u64, u64) { return fp.sqrt(a); }},
        {"rec7", [](const Fp& fp, u64 a, u64, u64) { return fp.rec7(a); }},
        {"rsqrt7", [](const Fp& fp, u64 a, u64, u64) { return fp.rsqrt7(a); }},
        {"class", [](const Fp& fp, u64 a, u64, u64) { return fp.classify(a); }},
    };
    return map;
}

Fp arithmetic(Execution& e, Format format) {
    return {format, static_cast<Rounding>(e.old.frm), e.state.fflags};
}

bool do_comparison(Execution& e) {
    if (!e.name.starts("vmf")) return false;
    const Fp fp = arithmetic(e, format_of(e.vtype.sew));
    const std::string condition = e.name.base.substr(3);
    e.each([&](u64 i) {
        const u64 a = e.get(e.shape.vs2, i), b = e.first_operand(i);
        const bool value = condition == "eq"   ? fp.eq(a, b)
                           : condition == "ne" ? !fp.eq(a, b)
                           : condition == "lt" ? fp.lt(a, b)
                           : condition == "le" ? fp.le(a, b)
                           : condition == "gt" ? fp.lt(b, a)
                                               : fp.le(b, a);
        e.state.set_mask_bit(e.fields.vd, i, value);
    });
    return true;
}

u64 tree_sum(Execution& e, const Fp& fp, const std::function<u64(u64)>& element) {
    std::vector<std::optional<u64>> partial(16);
    const auto add = [&fp](std::optional<u64>& sum, const std::optional<u64>& more) {
        if (more) sum = sum ? fp.add(*sum, *more) : *more;
    };
    e.each([&](u64 i) { add(partial[i % 16], element(i)); });
    for (std::size_t half = 8; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; ++k)
            add(partial[k], partial[k + half]);
    const u64 first = e.get(e.shape.vs1, 0);
    return partial[0] ? fp.add(first, *partial[0]) : first;
}

bool do_reduction(Execution& e) {
    if (e.name.suffix != "vs") return false;
    if (e.old.vl == 0) return true;
    const Format source = format_of(e.vtype.sew), format = format_of(e.shape.vd.eew);
    const Fp fp = arithmetic(e, format);
    const auto element = [&](u64 i) {
        const u64 value = e.get(e.shape.vs2, i);
        return source.width() == format.width() ? value : fp.from(source, value);
    };
    if (e.sums == Sums::kTree && e.name.base.ends_with("usum")) {
        e.state.set_element(e.fields.vd, 0, format.width(), tree_sum(e, fp, element));
        return true;
    }
    u64 result = e.get(e.shape.vs1, 0);
    e.each([&](u64 i) {
        const u64 value = element(i);
        result = e.name.base == "vfredmin"   ? fp.min(result, value)
                 : e.name.base == "vfredmax" ? fp.max(result, value)
                                             : fp.add(result, value);
    });
    e.state.set_element(e.fields.vd, 0, format.width(), result);
    return true;
}

}  // namespace

bool do_floating(Execution& e) {
    if (!e.shape.floating) return false;
    if (do_comparison(e) || do_reduction(e)) return true;
    const bool wide = e.name.starts("vfw");
    const auto found = results().find(e.name.base.substr(wide ? 3 : 2));
    if (found == results().end()) return false;
    const Format format = format_of(e.shape.vd.eew);
    const Format narrow = e.name.base == "vfwmaccbf16" ? kBf16 : format_of(e.vtype.sew);
    const Fp fp = arithmetic(e, format);
    const bool unary = e.name.suffix == "v";
    e.each([&](u64 i) {
        u64 a = e.get(e.shape.vs2, i), b = unary ? 0 : e.first_operand(i);
        if (wide) {
            if (e.shape.vs2.eew == e.vtype.sew) a = fp.from(narrow, a);
            b = fp.from(narrow, b);
        }
        e.state.set_element(e.fields.vd, i, format.width(), found->second(fp, a, b, e.get(e.shape.vd, i)));
    });
    return true;
}

bool do_conversion(Execution& e) {
    const std::string& base = e.name.base;
    if (base.find("fcvt") == std::string::npos && base.find("fwcvt") == std::string::npos &&
        base.find("fncvt") == std::string::npos)
        return false;
    const bool bf16 = base.ends_with("bf16");
    std::string what = e.name.suffix.substr(0, e.name.suffix.size() - 2);  // x.f, rtz.xu.f, f.x, rod.f.f
    auto rounding = static_cast<Rounding>(e.old.frm);
    if (what.starts_with("rtz.")) rounding = kToZero;
    if (what.starts_with("rod.")) rounding = kToOdd;
    if (what.starts_with("r")) what = what.substr(4);
    const unsigned to = e.shape.vd.eew, from = e.shape.vs2.eew;
    const auto format = [bf16](unsigned bits) { return bf16 && bits == 16 ? kBf16 : format_of(bits); };
    e.each([&](u64 i) {
        const u64 a = e.get(e.shape.vs2, i);
        u64 value = 0;
        if (what == "f.f")
            value = Fp{format(to), rounding, e.state.fflags}.from(format(from), a);
        else if (what.starts_with("f."))
            value = Fp{format(to), rounding, e.state.fflags}.from_integer(a, from, what == "f.x");
        else
            value = Fp{format(from), rounding, e.state.fflags}.to_integer(a, to, what == "x.f");
        e.state.set_element(e.fields.vd, i, to, value);
    });
    return true;
}

}  // namespace orrery::riscv::model
