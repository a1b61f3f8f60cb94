// One open /dev/accel/accelN.
#pragma once

#include <memory>

#include "umd/winsys/unique_fd.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

// Remembers the card's file for close_inherited_cards(), and forgets it.
void remember_card_file(int fd);
void forget_card_file(int fd);

// Takes the opened node of an orrery card.
std::unique_ptr<Device> make_drm_device(DeviceInfo info, UniqueFd fd);

}  // namespace orrery::umd
