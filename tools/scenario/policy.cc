#include "tools/scenario/policy.h"

#include <orrery/fw/policy.h>

#include "tools/text/units.h"

namespace orrery::scenario {
namespace {

using text::fail;

// A flag's bit; 0: no such name.
std::uint64_t flag_of(std::string_view name) {
#define ORR_FLAG_CASE(bit, text) \
    if (name == (text)) return bit;
    ORR_POLICY_FLAG_LIST(ORR_FLAG_CASE)
#undef ORR_FLAG_CASE
    return 0;
}

std::string flag_names() {
    std::string all;
#define ORR_FLAG_NAME(bit, text) all += (all.empty() ? "" : ", ") + std::string(text);
    ORR_POLICY_FLAG_LIST(ORR_FLAG_NAME)
#undef ORR_FLAG_NAME
    return all;
}

text::Result<std::uint64_t> parse_flags(std::string_view names) {
    std::uint64_t flags = 0;
    if (names == "none") return flags;
    for (std::size_t at = 0; at <= names.size();) {
        const std::size_t end = std::min(names.find(',', at), names.size());
        const std::string_view name = names.substr(at, end - at);
        const std::uint64_t bit = flag_of(name);
        if (bit == 0) return fail("there is no flag '{}'; there are {}, none", name, flag_names());
        flags |= bit;
        at = end + 1;
    }
    return flags;
}

}  // namespace

text::Result<Policy> parse_policy(const std::vector<std::string>& settings) {
    Policy policy;
    for (const std::string& setting : settings) {
        const std::size_t equal = setting.find('=');
        if (equal == std::string::npos)
            return fail("'{}': a policy is NAME=VALUE, as in slice_us=50", setting);
        const std::string name = setting.substr(0, equal);
        const std::string value = setting.substr(equal + 1);
        std::string known;
        bool found = false;
#define ORR_POLICY_NAME(member, text, unit)                   \
    known += (known.empty() ? "" : ", ") + std::string(text); \
    found = found || name == (text);
        ORR_POLICY_LIST(ORR_POLICY_NAME)
#undef ORR_POLICY_NAME
        if (!found) return fail("there is no policy '{}'; there are {}", name, known);
        auto number = text::parse_number(value);
        if (!number && name == "flags") number = parse_flags(value);
        if (!number) return fail("{}: {}", name, number.error().text);
        policy.emplace_back(name, *number);
    }
    return policy;
}

}  // namespace orrery::scenario
