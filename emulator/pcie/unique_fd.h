// Moved: use emulator/os/unique_fd.h.
#pragma once
#include "emulator/os/unique_fd.h"
