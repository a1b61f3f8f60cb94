#include "emulator/memory/vram.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace orrery::emu {

std::expected<Vram, std::string> Vram::create(std::uint64_t bytes) {
    if (!std::has_single_bit(bytes) || bytes < (1u << 20) || bytes > kMaxBytes) {
        return std::unexpected(
            fmt::format("VRAM of {} bytes: the size must be a power of two from 1M to 64G", bytes));
    }
    UniqueFd fd(::memfd_create("orrery-vram", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd) {
        return std::unexpected(fmt::format("cannot create the VRAM's memory file: {}", std::strerror(errno)));
    }
    if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
        return std::unexpected(
            fmt::format("cannot make a memory file of {} bytes for VRAM: {}; try a smaller --vram", bytes,
                        std::strerror(errno)));
    }
    // The guest and linked cards get this descriptor: none of them may cut the file under our mapping.
    ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    auto mapping = Mapping::create(fd.get(), 0, bytes, true);
    if (!mapping) {
        return std::unexpected(fmt::format("cannot map {} bytes of VRAM: {}; try a smaller --vram", bytes,
                                           std::strerror(mapping.error())));
    }
    return Vram(std::move(fd), std::move(*mapping));
}

void Vram::clear() {
    ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size()));
}

}  // namespace orrery::emu
