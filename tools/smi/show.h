// The two forms of output.
#pragma once

#include "tools/cards/cards.h"

namespace orrery::smi {

void show_table(const cards::System& system, bool counters);
// docs/runtime.md describes the keys; new ones may be added.
void show_json(const cards::System& system);

}  // namespace orrery::smi
