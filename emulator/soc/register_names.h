// Names of registers by their place, for messages about accesses that go wrong.
#pragma once

#include <cstdint>
#include <string>

namespace orrery::emu {

// "ORR_R_STATE", "ORR_R_LINK(2) + ORR_R_LINK_STATE", "ORR_R_COUNTER(7)"; with a distance if no register
// begins there: "ORR_R_STATE + 2", so what comes out is the nearest register at or before the offset, or the
// first one.
std::string name_of_host_register(std::uint64_t offset);
// Of the control core's (orrery/hw/soc.h).
std::string name_of_soc_register(std::uint64_t offset);

}  // namespace orrery::emu
