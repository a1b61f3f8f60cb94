// The table that `make bench` prints.
#pragma once

#include <vector>

#include "tools/bench/history.h"
#include "tools/bench/result.h"

namespace orrery::bench {

void show(const std::vector<Result>& results, const History& history);
// The table of figures, without measuring.
void list();

}  // namespace orrery::bench
