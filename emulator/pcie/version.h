// Version and capability negotiation: the first exchange with a client.
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string>

#include "emulator/pcie/protocol.h"

namespace orrery::emu {

struct VersionReply {
    wire::Version version;
    std::string capabilities;  // JSON; goes out with a terminating NUL
};

struct VersionError {
    int error;  // errno for the client
    std::string why;
};

// Answers the payload of a VERSION message. Of the capabilities only those that the client proposed are
// answered, as the specification wants it. Not offered are twin sockets and migration, which this server has
// no use for, and coalesced writes: QEMU never sends any to a device with a mapped region.
std::expected<VersionReply, VersionError> negotiate(std::span<const std::byte> payload);

}  // namespace orrery::emu
