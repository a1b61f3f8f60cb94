// Who called the code at a position, from the call frame information of the firmware's ELF file.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace orrery::step {

// What unwinding needs of a hart.
struct FrameRegisters {
    std::array<std::uint64_t, 32> x{};
    std::uint64_t pc = 0;
    std::uint64_t sp() const { return x[2]; }
};
// 8 bytes at an address; false: they are not in the recording.
using ReadWord = std::function<bool(std::uint64_t address, std::uint64_t& value)>;

class CallFrames {
  public:
    CallFrames();  // knows nothing
    explicit CallFrames(std::vector<std::uint8_t> elf);
    ~CallFrames();
    CallFrames(CallFrames&&) noexcept;
    CallFrames& operator=(CallFrames&&) noexcept;

    // The registers as they will be behind the call, when the code at `pc` has returned. Nothing: the
    // information does not reach here (assembly), or nobody called.
    std::optional<FrameRegisters> caller(const FrameRegisters& here, const ReadWord& read) const;

  private:
    struct Held;
    std::unique_ptr<Held> held_;
};

}  // namespace orrery::step
