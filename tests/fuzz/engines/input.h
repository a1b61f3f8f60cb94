// Takes a fuzzer's bytes apart: zeros once they are used up.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

namespace orrery::emu::test {

class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
    bool empty() const { return rest_.empty(); }
    template <class T>
    T take() {
        T value{};
        const std::size_t bytes = std::min(sizeof value, rest_.size());
        std::memcpy(&value, rest_.data(), bytes);
        rest_ = rest_.subspan(bytes);
        return value;
    }

  private:
    std::span<const std::uint8_t> rest_;
};

}  // namespace orrery::emu::test
