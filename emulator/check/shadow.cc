#include "emulator/check/shadow.h"

namespace orrery::emu {

std::uint8_t Cell::bytes_of(unsigned part) {
    static constexpr std::array<std::uint8_t, 16> kBytes = {0,    0xff, 0x0f, 0xf0, 0x03, 0x0c, 0x30, 0xc0,
                                                            0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80};
    return kBytes[part];
}

}  // namespace orrery::emu
