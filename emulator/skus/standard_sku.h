#pragma once

namespace orrery::emu {

// Text of emulator/skus/orrery-1.toml.
extern const char* const kStandardSku;

}  // namespace orrery::emu
