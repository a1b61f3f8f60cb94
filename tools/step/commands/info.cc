// info
#include "tools/step/commands/commands.h"
#include "tools/step/words.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

std::string policy_text(std::string_view name, std::uint64_t value) {
    if (name != "flags") return fmt::format("{}", value);
    std::string flags;
#define ORR_STEP_FLAG(bit, text)           \
    if ((value & (bit)) != 0) {            \
        flags += flags.empty() ? "" : ","; \
        flags += text;                     \
        value &= ~std::uint64_t{bit};      \
    }
    ORR_POLICY_FLAG_LIST(ORR_STEP_FLAG)
#undef ORR_STEP_FLAG
    if (value != 0) flags += fmt::format("{}{:#x}", flags.empty() ? "" : ",", value);
    return flags.empty() ? "none" : flags;
}

std::string replay_text(Debugger& debugger) {
    const About& about = debugger.session().about();
    if (!about.divergence.empty()) return debugger.style().bad("NOT exact: " + about.divergence);
    if (about.verified) return fmt::format("exact: {} state hashes checked", about.hashes_checked);
    if (about.hashes_checked == 0)
        return "not checked yet: this is what the file says; 'verify' replays and checks it";
    return fmt::format(
        "exact where it was replayed, {} state hashes checked; the events are what the file says; 'verify' "
        "replays and checks all",
        about.hashes_checked);
}

}  // namespace

Result<Reply> cmd_verify(Debugger& debugger, const Args&) {
    Session& session = debugger.session();
    Debugger::take_interrupt();
    if (!session.verify([](double) { return !Debugger::take_interrupt(); }))
        return fail("interrupted: not all was checked");
    const About& about = session.about();
    Reply reply;
    reply.text = replay_text(debugger) + "\n";
    reply.data = {{"hashes_checked", about.hashes_checked},
                  {"verified", about.verified},
                  {"divergence", about.divergence}};
    if (!about.divergence.empty())
        return fail("replay does not make what was recorded: {}", about.divergence);
    return reply;
}

Result<Reply> cmd_info(Debugger& debugger, const Args& args) {
    if (args.all == "registers") return registers_reply(debugger);
    if (!args.all.empty()) return fail("'info' tells about the recording, 'info registers' shows the core's");
    const About& about = debugger.session().about();
    const History& history = debugger.history();
    Reply reply;
    Json& data = reply.data;
    data = {{"file", about.file},
            {"program", about.program},
            {"sku", about.sku},
            {"uid", fmt::format("{:016x}", about.uid)},
            {"seed", about.seed},
            {"fault_plan", about.fault_plan},
            {"firmware", about.build_id},
            {"firmware_sha256", about.firmware_hash},
            {"hardware_version", fmt::format("{}.{}", about.hw_version >> 16, about.hw_version & 0xffff)},
            {"cycle_ps", about.cycle_ps},
            {"start_ps", about.start},
            {"end_ps", debugger.session().end_time()},
            {"steps", debugger.session().end()},
            {"events", history.records().size()},
            {"decisions", history.decisions().size()},
            {"hashes_checked", about.hashes_checked},
            {"verified", about.verified},
            {"crashed", about.crashed},
            {"divergence", about.divergence},
            {"symbols", debugger.program().name()}};
    std::string& t = reply.text;
    const auto line = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) t += fmt::format("{:<10} {}\n", name, value);
    };
    line("recording",
         fmt::format("{}, by {}{}", about.file, about.program, about.crashed ? ", which died" : ""));
    line("card", fmt::format("{}, uid {:016x}{}", about.sku, about.uid,
                             about.seed != 0 ? fmt::format(", seed {}", about.seed) : ""));
    std::string plan = about.fault_plan;
    while (plan.ends_with('\n'))
        plan.pop_back();
    for (std::size_t at = plan.find('\n'); at != std::string::npos; at = plan.find('\n', at + 1))
        plan.replace(at, 1, "; ");
    line("faults", plan);
    line("firmware", about.build_id.empty()
                         ? ""
                         : fmt::format("{}  SHA-256 {}", about.build_id, about.firmware_hash.substr(0, 16)));
    line("symbols", debugger.program().symbols().empty()
                        ? ""
                        : fmt::format("{}{}", debugger.program().name(),
                                      debugger.program().debug().has_lines() ? ", with source lines" : ""));
    line("length", fmt::format("{} steps, {} to {}", grouped(debugger.session().end()),
                               moment_text(about.start), moment_text(debugger.session().end_time())));
    line("contents", fmt::format("{} events, {} decisions, {} jobs", history.records().size(),
                                 history.decisions().size(), history.jobs().size()));
    line("replay", replay_text(debugger));
    if (const auto policy = find_policy(debugger.session().sram())) {
        std::string values;
        Json numbers = Json::object();
#define ORR_STEP_VALUE(member, name, unit)                                              \
    values += fmt::format("{}{} {}{}{}", values.empty() ? "" : ", ", name,              \
                          policy_text(name, policy->member), *(unit) ? " " : "", unit); \
    numbers[name] = policy->member;
        ORR_POLICY_LIST(ORR_STEP_VALUE)
#undef ORR_STEP_VALUE
        line("policy", values);
        data["policy"] = std::move(numbers);
    }
    for (const Breakpoint& b : debugger.breakpoints())
        line(b.watch ? "watch" : "break",
             fmt::format("{}: {}{}", b.number, b.text, b.enabled ? "" : "  (disabled)"));
    data["breakpoints"] = breakpoints_json(debugger);
    return reply;
}

}  // namespace orrery::step
