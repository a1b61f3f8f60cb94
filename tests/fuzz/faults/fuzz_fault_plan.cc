// Any text as a fault plan: it is refused with a reason, or each of its rules means the same when written
// anew.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "emulator/faults/faults.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace orrery::emu;
    const auto plan = FaultPlan::parse({reinterpret_cast<const char*>(data), size});
    if (!plan) return plan.error().empty() ? (std::abort(), 0) : 0;
    if (plan->rules.size() > FaultPlan::kMaxRules) std::abort();
    for (const FaultRule& rule : plan->rules) {
        const auto again = FaultPlan::parse(to_text(rule));
        if (!again || again->rules.size() != 1 || to_text(again->rules[0]) != to_text(rule)) std::abort();
    }
    EventQueue events;
    unsigned deaths = 0;
    Faults faults(*plan, events, {.die = [&deaths] { ++deaths; }, .struck = {}});
    for (unsigned i = 0; i < 64; ++i)
        for (unsigned point = 0; point < kFaultPoints; ++point)
            faults.at(static_cast<FaultPoint>(point), i % 4);
    return 0;
}
