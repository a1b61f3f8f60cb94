// What the instructions compute, one element at a time.
#pragma once

#include <vector>

#include "tests/unit/core/vector_fp/harness.h"

namespace orrery::emu::test {

// f: the format of SEW bits.
std::vector<Case> arithmetic_cases(reference::Format f);
std::vector<Case> fused_cases(reference::Format f);
std::vector<Case> sign_and_order_cases(reference::Format f);
std::vector<Case> estimate_cases(reference::Format f);
// From f of SEW bits to the one of twice the width.
std::vector<Case> widening_cases(reference::Format f);
std::vector<Case> conversion_cases(unsigned sew_log2);
std::vector<Case> fixed_point_cases(unsigned sew_log2);

}  // namespace orrery::emu::test
