// A shared mapping of a file, unmapped when its owner goes.
#pragma once

#include <cstdint>
#include <expected>
#include <utility>

namespace orrery::emu {

class Mapping {
  public:
    Mapping() = default;
    // Errors are errno values.
    static std::expected<Mapping, int> create(int fd, std::uint64_t offset, std::uint64_t bytes,
                                              bool writable);
    Mapping(Mapping&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();

    std::uint8_t* data() const { return data_; }
    std::uint64_t size() const { return size_; }

  private:
    Mapping(std::uint8_t* data, std::uint64_t size) : data_(data), size_(size) {}
    std::uint8_t* data_ = nullptr;
    std::uint64_t size_ = 0;
};

}  // namespace orrery::emu
