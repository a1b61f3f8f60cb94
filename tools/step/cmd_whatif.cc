// whatif
#include <orrery/fw/policy.h>

#include "tools/step/commands.h"
#include "tools/step/policy.h"
#include "tools/step/scenario/whatif.h"
#include "tools/step/units.h"

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
        if (!value) return std::unexpected(value.error());
        policy.emplace_back(name, *value);
    }
    return policy;
}

Result<Reply> cmd_whatif(Debugger& debugger, const Args& args) {
    scenario::WhatIfOptions options;
    std::vector<std::string> settings;
    for (std::size_t i = 0; i < args.words.size(); ++i) {
        const std::string& word = args.words[i];
        if (word == "--firmware" && i + 1 < args.words.size()) {
            options.firmware = args.words[++i];
        } else if (word == "--policy" && i + 1 < args.words.size()) {
            settings.push_back(args.words[++i]);
        } else {
            return fail("'whatif --firmware IMAGE' or 'whatif --policy slice_us=50', or both");
        }
    }
    if (options.firmware.empty() && settings.empty())
        return fail("what if what? 'whatif --policy slice_us=50', 'whatif --firmware other/orrery-fw.bin'");
    auto policy = parse_policy(settings);
    if (!policy) return std::unexpected(policy.error());
    options.policy = std::move(*policy);
    const auto result = scenario::what_if(debugger.session().about().file, options);
    if (!result) return fail("{}", result.error());
    Reply reply;
    reply.text = scenario::to_text(*result);
    reply.data = scenario::to_json(*result);
    return reply;
}

}  // namespace orrery::step
