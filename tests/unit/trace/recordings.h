// Recordings for tests: a file that goes away, and a few that a card made.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "emulator/api/replayer.h"
#include "tests/unit/card/card_rig.h"
#include "tests/unit/card/firmware_rig.h"

namespace orrery::emu {

class TemporaryFile {
  public:
    TemporaryFile();
    ~TemporaryFile();
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

// What the live card knew at its end, to hold the replay against.
struct LiveEnd {
    ModelTime time = 0;
    std::vector<std::uint8_t> sram;
    std::uint64_t instructions = 0;
    std::array<std::uint64_t, ORR_COUNTER_COUNT> counters{};
};
LiveEnd live_end(Card& card);

// Records scripts that touch everything: stores and loads of all windows, timers, traps, doorbells, sleep.
LiveEnd record_scripts(const std::filesystem::path& file);
// The real firmware with `rounds` of work on two queues, on a card that records as it is told to.
LiveEnd record_rounds(CardConfig config, unsigned rounds, const std::function<void(Card&)>& after_round);
// Records it to a file.
LiveEnd record_firmware(const std::filesystem::path& file, unsigned rounds = 4);
// The same, with a keyframe after each of them.
LiveEnd record_keyframes(const std::filesystem::path& file, unsigned rounds = 4);

// A file's blocks, unpacked; to be changed and made a good file again.
struct RawBlock {
    orr_otrace_block header{};
    std::vector<std::uint8_t> payload;
};
std::vector<RawBlock> raw_blocks(const std::vector<std::uint8_t>& file);
std::vector<std::uint8_t> sealed(const std::vector<std::uint8_t>& file, std::vector<RawBlock> blocks,
                                 bool packed = false);

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, const std::vector<std::uint8_t>& bytes);

}  // namespace orrery::emu
