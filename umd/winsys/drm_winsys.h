// The winsys on orrery.ko.
#pragma once

#include <memory>

#include "umd/winsys/winsys.h"

namespace orrery::umd {

std::unique_ptr<Winsys> make_drm_winsys();

}  // namespace orrery::umd
