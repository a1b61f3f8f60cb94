// Reads recordings (orrery/hw/trace.h): checks every byte of the file before anything is believed.
//
// A cut or corrupted file is refused with the offset and the reason. One whose recorder died (no end mark,
// but whole up to what its header says is committed) is read up to there and says so: crashed().
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <orrery/hw/soc.h>
#include <orrery/hw/trace.h>

namespace orrery::emu {

// What the header says.
struct TraceInfo {
    std::string program;   // that recorded
    std::string sku_name;  // of the card
    std::string sku_text;  // its SKU file (TOML)
    std::uint32_t format_version = 0, hw_version = 0;
    std::uint64_t uid = 0;
    std::uint64_t seed = 0;  // 0: no fault plan
    std::string plan_text;   // of the fault plan
    std::uint64_t cycle_ps = 1;
    std::uint64_t start_ps = 0;    // model time
    std::uint64_t skipped_ps = 0;  // by which the card's system time was ahead of it then
    std::uint64_t vram_bytes = 0;
    std::uint64_t file_bytes = 0;
    bool crashed = false;  // the recorder died; what is here is good
    bool resumed = false;  // it begins in the midst: the core ran already
};

// A firmware image that was booted in a recording.
struct TraceImage {
    std::vector<std::uint8_t> bytes;  // as the boot ROM got it: struct orr_image_header and the ELF
    std::vector<std::uint8_t> elf;    // empty if the image has no good header
    std::string build_id;
    std::string sha256;                 // of the ELF, as hexadecimal digits
    std::vector<std::uint8_t> symbols;  // struct orr_otrace_symbols; empty: the recording has none
};

// Where a block stands in the file.
struct TraceBlock {
    std::uint64_t offset = 0;  // of its header
    orr_otrace_block header{};
    std::uint32_t image = 0;  // START, RESUME, LOG: index in images() + 1; 0: none
};

// A block that tells of a log: PORT of the one that follows it, KEYFRAME of the one before it.
struct TraceBeside {
    TraceBlock at;
    std::size_t log = 0;  // index in blocks()
};

// Thread safety: const members from any thread.
class TraceReader {
  public:
    // Reads and checks the whole file, which may be a flight recorder's memory too (flight.h). An error is
    // one line: file, offset, reason, and what to do.
    static std::expected<TraceReader, std::string> open(const std::filesystem::path& file);
    // The same for bytes; `name` is for errors.
    static std::expected<TraceReader, std::string> parse(std::vector<std::uint8_t> bytes, std::string name);

    const TraceInfo& info() const { return info_; }
    const std::string& name() const { return name_; }
    // In file order; the end mark is not among them.
    std::span<const TraceBlock> blocks() const { return blocks_; }
    std::span<const TraceImage> images() const { return images_; }
    // Whether all that a recording says is found without a replay: it is of format 1.3 or later.
    bool indexed() const { return (info_.format_version & 0xffff) >= 3; }
    std::span<const TraceBeside> ports() const { return ports_; }
    std::span<const TraceBeside> keyframes() const { return keyframes_; }
    // Of the last block: everything that was recorded lies before.
    std::uint64_t last_step() const { return last_step_; }
    std::uint64_t last_ps() const { return last_ps_; }

    // The payload, unpacked. Errors name the offset.
    std::expected<std::vector<std::uint8_t>, std::string> payload(const TraceBlock& block) const;
    // The same without a copy: in `room`, or where it stands in the file.
    std::expected<std::span<const std::uint8_t>, std::string> payload(const TraceBlock& block,
                                                                      std::vector<std::uint8_t>& room) const;
    // "name: offset 0x..: reason"
    std::string error_at(std::uint64_t offset, const std::string& reason) const;

    // Steps of a log block at most: a bound for what a file can make its reader do.
    static constexpr std::uint64_t kMaxSteps = 32 << 20;
    // Images and symbols of a recording, unpacked, at most.
    static constexpr std::uint64_t kMaxImageBytes = 256 << 20;

  private:
    TraceReader() = default;
    std::expected<void, std::string> parse_header();
    std::expected<void, std::string> parse_blocks();
    std::expected<void, std::string> parse_image(const TraceBlock& block);
    std::string check_beside(const orr_otrace_block& block) const;
    std::string check_block(const orr_otrace_block& block, std::uint64_t sequence) const;
    std::uint64_t checksum_of(const TraceBlock& block) const;
    std::expected<std::uint32_t, std::string> image_of(const TraceBlock& block) const;

    std::string name_;
    std::vector<std::uint8_t> bytes_;
    TraceInfo info_;
    std::uint64_t committed_ = 0, first_block_ = 0;
    std::vector<TraceBlock> blocks_;
    std::vector<TraceImage> images_;
    std::vector<TraceBeside> ports_, keyframes_;
    std::uint64_t last_step_ = 0, last_ps_ = 0;
    std::uint32_t start_bytes_ = 0;  // of the first start, and what it holds; 0: there was none
};

}  // namespace orrery::emu
