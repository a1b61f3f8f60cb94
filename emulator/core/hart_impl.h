// For the sources of Hart.
#pragma once

#include "emulator/core/core.h"

namespace orrery::emu {

struct Hart::Impl {
    Core core;
};

}  // namespace orrery::emu
