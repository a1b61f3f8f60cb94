// Words for the numbers of a decision (orrery/fw/trace.h).
#pragma once

#include <cstdint>

#include <orrery/fw/trace.h>

namespace orrery::scenario {

inline const char* rule_word(std::uint32_t rule) {
    constexpr const char* kWords[] = {"?",      "only", "priority", "share", "bound",
                                      "resume", "gang", "preempt",  "slice", "nobody"};
    return rule <= ORR_RULE_NOBODY ? kWords[rule] : kWords[0];
}

inline const char* resource_word(std::uint32_t resource) {
    constexpr const char* kWords[] = {"?", "turn", "copy engine", "vector port", "slot"};
    return resource <= ORR_RESOURCE_SLOT ? kWords[resource] : kWords[0];
}

inline bool is_engine(std::uint32_t resource) {
    return resource == ORR_RESOURCE_COPY || resource == ORR_RESOURCE_VECTOR;
}

}  // namespace orrery::scenario
