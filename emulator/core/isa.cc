#include "emulator/core/isa.h"

#include <fmt/format.h>

namespace orrery::emu {

std::string isa_of(std::uint32_t vlen) {
    std::string isa = fmt::format("rv64imafdc{}_zicntr_zicsr_zifencei", vlen != 0 ? "v" : "");
    if (vlen != 0) isa += fmt::format("_zfbfmin_zfhmin_zvfbfmin_zvfbfwma_zvfh_zvl{}b", vlen);
    return isa;
}

}  // namespace orrery::emu
