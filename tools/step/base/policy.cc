#include "tools/step/base/policy.h"

#include <orrery/fw/policy.h>

#include "tools/step/base/units.h"

namespace orrery::step {

Result<std::vector<std::pair<std::string, std::uint64_t>>> parse_policy(
    const std::vector<std::string>& settings) {
    std::vector<std::pair<std::string, std::uint64_t>> policy;
    for (const std::string& setting : settings) {
        const std::size_t equal = setting.find('=');
        if (equal == std::string::npos)
            return fail("'{}': a policy is NAME=VALUE, as in slice_us=50", setting);
        const std::string name = setting.substr(0, equal);
        std::string known;
        bool found = false;
#define ORR_STEP_NAME(member, text, unit)                     \
    known += (known.empty() ? "" : ", ") + std::string(text); \
    found = found || name == (text);
        ORR_POLICY_LIST(ORR_STEP_NAME)
#undef ORR_STEP_NAME
        if (!found) return fail("there is no policy '{}'; there are {}", name, known);
        const auto value = parse_number(setting.substr(equal + 1));
        if (!value) return fail("{}: {}", name, value.error().text);
        policy.emplace_back(name, *value);
    }
    return policy;
}

}  // namespace orrery::step
