#include "emulator/memory/mapping.h"

#include <sys/mman.h>

#include <cerrno>

namespace orrery::emu {

std::expected<Mapping, int> Mapping::create(int fd, std::uint64_t offset, std::uint64_t bytes,
                                            bool writable) {
    const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
    void* data =
        ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
    if (data == MAP_FAILED) return std::unexpected(errno);
    // A guest's memory in our core file helps nobody and fills disks.
    ::madvise(data, bytes, MADV_DONTDUMP);
    return Mapping(static_cast<std::uint8_t*>(data), bytes);
}

Mapping::~Mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace orrery::emu
