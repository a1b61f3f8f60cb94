// Registers of a target with one hart, which has no vectors.
#include "emulator/gdb/target.h"

#include <cstring>

#include "emulator/gdb/registers.h"

namespace orrery::emu::gdb {

const std::string& Target::description() const {
    return target_description();
}

std::vector<std::uint8_t> Target::read_register(std::uint64_t number) {
    std::uint64_t value = 0;
    if (!gdb::read_register(state(), number, value)) return {};
    std::vector<std::uint8_t> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

Written Target::write_register(std::uint64_t number, std::span<const std::uint8_t> bytes) {
    std::uint64_t value = 0;
    HartState now = state();
    if (bytes.size() != sizeof value) return Written::kWrongSize;
    std::memcpy(&value, bytes.data(), sizeof value);
    if (!gdb::write_register(now, number, value)) return Written::kNoSuchRegister;
    return set_state(now) ? Written::kDone : Written::kNotAllowed;
}

}  // namespace orrery::emu::gdb
