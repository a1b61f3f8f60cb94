// whatif
#include "tools/scenario/whatif.h"
#include "tools/scenario/policy.h"
#include "tools/step/commands/commands.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {

Result<Reply> cmd_whatif(Debugger& debugger, const Args& args) {
    scenario::WhatIfOptions options;
    std::vector<std::string> settings;
    for (std::size_t i = 0; i < args.words.size(); ++i) {
        const std::string& word = args.words[i];
        if (word == "--firmware" && i + 1 < args.words.size()) {
            options.firmware = args.words[++i];
        } else if (word == "--policy" && i + 1 < args.words.size()) {
            settings.push_back(args.words[++i]);
        } else if (word == "--output" && i + 1 < args.words.size()) {
            options.record = args.words[++i];
        } else {
            return fail(
                "'whatif --firmware IMAGE' or 'whatif --policy slice_us=50', or both; --output FILE records "
                "it");
        }
    }
    if (options.firmware.empty() && settings.empty())
        return fail("what if what? 'whatif --policy slice_us=50', 'whatif --firmware other/orrery-fw.bin'");
    auto policy = scenario::parse_policy(settings);
    if (!policy) return std::unexpected(policy.error());
    options.policy = std::move(*policy);
    const auto result = scenario::what_if(debugger.session().about().file, options);
    if (!result) return fail("{}", result.error());
    Reply reply;
    reply.text = scenario::to_text(*result);
    reply.data = scenario::to_json(*result);
    if (result->fell_short()) reply.failure = scenario::kFellShort;
    return reply;
}

}  // namespace orrery::step
