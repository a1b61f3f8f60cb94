// The winsys on orrery.ko.
#pragma once

#include <memory>

#include "umd/winsys/winsys.h"

namespace orrery::umd {

std::unique_ptr<Winsys> make_drm_winsys();

// In a child after fork(): closes the cards' files that it has from its parent, whose queues and memory would
// otherwise live as long as the child. Async-signal-safe.
void close_inherited_cards();

}  // namespace orrery::umd
