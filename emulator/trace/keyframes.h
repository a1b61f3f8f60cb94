// States of the core in a recording: the payload of a KEYFRAME block (struct orr_otrace_keyframe).
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include <orrery/hw/trace.h>

#include "emulator/core/hart.h"

namespace orrery::emu {

// Finds what changed in a memory since the last look.
class ChangedPages {
  public:
    // Begins anew, with this memory.
    void begin(std::span<const std::uint8_t> memory) { last_.assign(memory.begin(), memory.end()); }
    // Puts the payload for this state into `payload`.
    void keyframe(const HartState& state, std::uint64_t rest_ps, std::span<const std::uint8_t> memory,
                  std::vector<std::uint8_t>& payload);

  private:
    std::vector<std::uint8_t> last_;
};

struct Keyframe {
    HartState state;
    std::uint64_t rest_ps = 0;
};
// Puts the pages of a payload, which nobody vouches for, into `memory`. The error says what is wrong with it.
std::expected<Keyframe, const char*> apply_keyframe(std::span<const std::uint8_t> payload,
                                                    std::span<std::uint8_t> memory);

}  // namespace orrery::emu
