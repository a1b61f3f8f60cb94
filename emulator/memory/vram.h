// The card's memory: a sparse memfd that BAR 2 maps into the guest and a linked card may map too.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "emulator/base/unique_fd.h"
#include "emulator/memory/mapping.h"

namespace orrery::emu {

// Immutable after creation; the bytes behind it are shared with the guest and with peers, which may change
// them at any moment.
class Vram {
  public:
    static constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 30;

    // `bytes`: a power of two, 1 MiB to kMaxBytes. Errors say what to do.
    static std::expected<Vram, std::string> create(std::uint64_t bytes);

    std::uint64_t size() const { return mapping_.size(); }
    int fd() const { return fd_.get(); }
    std::uint8_t* data() const { return mapping_.data(); }

    // All bytes zero again, and their host memory given back.
    void clear();

    bool contains(std::uint64_t offset, std::uint64_t bytes) const {
        return offset <= size() && bytes <= size() - offset;
    }
    // Pointer to `bytes` bytes, or nullptr if they do not lie inside.
    std::uint8_t* at(std::uint64_t offset, std::uint64_t bytes) const {
        return contains(offset, bytes) ? data() + offset : nullptr;
    }

  private:
    Vram(UniqueFd fd, Mapping mapping) : fd_(std::move(fd)), mapping_(std::move(mapping)) {}
    UniqueFd fd_;
    Mapping mapping_;
};

}  // namespace orrery::emu
