// The text of a SKU that was changed after it was read: a recording carries it, and a what-if builds the card
// from it.
#pragma once

#include <string>

#include "emulator/api/sku.h"

namespace orrery::scenario {

// sku.text, with the numbers of engines, ports and cores as they are now.
std::string sku_text(const emu::Sku& sku);

}  // namespace orrery::scenario
