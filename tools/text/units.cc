#include "tools/text/units.h"

#include <array>
#include <charconv>
#include <cmath>

namespace orrery::text {
namespace {

struct Unit {
    std::string_view name;
    double ps;
};
constexpr std::array<Unit, 5> kUnits = {Unit{"ps", 1}, Unit{"ns", 1e3}, Unit{"us", 1e6}, Unit{"ms", 1e9},
                                        Unit{"s", 1e12}};

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ')
        text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ')
        text.remove_suffix(1);
    return text;
}

}  // namespace

std::string moment(Time time) {
    if (time == kNever) return "never";
    const Time ns = time / 1000;
    return fmt::format("{}.{:03} us", ns / 1000, ns % 1000);
}

std::string duration(Time time) {
    if (time == kNever) return "for ever";
    if (time == 0) return "0";
    if (time < 1000) return fmt::format("{} ps", time);
    std::size_t unit = 1;
    while (unit + 1 < kUnits.size() && static_cast<double>(time) >= kUnits[unit + 1].ps * 0.9999995)
        ++unit;
    return fmt::format("{:.3f} {}", static_cast<double>(time) / kUnits[unit].ps, kUnits[unit].name);
}

Result<Time> parse_time(std::string_view text) {
    const std::string_view all = trim(text);
    double value = 0;
    const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
    if (error == std::errc{} && value >= 0) {
        const std::string_view name = trim(all.substr(static_cast<std::size_t>(end - all.data())));
        for (const Unit& unit : kUnits) {
            if (name != unit.name) continue;
            const double ps = std::round(value * unit.ps);
            if (ps < 1.8e19) return static_cast<Time>(ps);
        }
    }
    return fail("'{}' is not a time: write a number and a unit (ps, ns, us, ms, s), as in 12.5us", text);
}

Result<std::uint64_t> parse_number(std::string_view text) {
    std::string_view digits = trim(text);
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
        digits.remove_prefix(2);
        base = 16;
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error == std::errc{} && end == digits.data() + digits.size()) return value;
    if (error == std::errc::result_out_of_range) return fail("{} does not fit 64 bits", text);
    return fail("'{}' is not a number", text);
}

std::string percent(double share) {
    return fmt::format("{:.1f} %", share * 100);
}

std::string grouped(std::uint64_t n) {
    std::string digits = std::to_string(n);
    for (std::size_t at = digits.size(); at > 3;) {
        at -= 3;
        digits.insert(at, 1, ' ');
    }
    return digits;
}

}  // namespace orrery::text
