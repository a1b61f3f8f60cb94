// How numbers of a comparison are said.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tools/prof/skus/compare.h"

namespace orrery::prof {

std::string times_text(double times);    // "2.1 x"; 0: ""
std::string joules_text(double joules);  // "1.2 mJ"
std::string limit_text(const Measured& measured);
// Of what the class is about, as it was counted: "270 GFLOP/s"; "" if it has no rate. Nothing: it is not
// known.
std::optional<std::string> rate_text(std::size_t one_class, const Measured& measured);

}  // namespace orrery::prof
