// The two forms of output.
#pragma once

#include "tools/smi/cards.h"

namespace orrery::smi {

void show_table(const System& system, bool counters);
// docs/runtime.md describes the keys; new ones may be added.
void show_json(const System& system);

}  // namespace orrery::smi
