// One open /dev/accel/accelN.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "umd/winsys/unique_fd.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

// Remembers the card's file for close_inherited_cards(), and forgets it.
void remember_card_file(int fd);
void forget_card_file(int fd);

// Whether one of the ports in this folder of sysfs, `links`, names the card of another machine with this
// number. True if none says whom it meets, as with an older driver.
bool is_met(const std::filesystem::path& links, std::uint32_t node);

// Takes the opened node of an orrery card.
std::unique_ptr<Device> make_drm_device(DeviceInfo info, UniqueFd fd);

}  // namespace orrery::umd
