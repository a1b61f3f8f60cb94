// Writes a recording (orrery/hw/trace.h) of a control core.
//
// The core calls it on the card thread; nobody else does. Recording never fails the card: the first error
// (disk full, file gone) ends it, error() says so, and all later calls do nothing.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <expected>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <orrery/hw/trace.h>

#include "emulator/base/unique_fd.h"
#include "emulator/core/hart.h"
#include "emulator/trace/clock.h"
#include "emulator/trace/flight.h"
#include "emulator/trace/keyframes.h"
#include "emulator/trace/port_words.h"
#include "emulator/trace/record_writer.h"

namespace orrery::emu {

// For the file's header.
struct RecordingInfo {
    std::string program = "orrery-card";
    std::string sku_name;
    std::string sku_text;
    std::uint64_t uid = 0;
    std::uint64_t seed = 0;  // of the fault plan
    std::string plan_text;
    std::uint64_t cycle_ps = 0;
    std::uint64_t start_ps = 0;
    std::uint64_t vram_bytes = 0;
    std::uint32_t hw_version = 0;
    std::vector<std::uint8_t> symbols;  // struct orr_otrace_symbols, for the image that has its build id
    RecordWriter::Write write;          // for tests; empty: write(2)
    // Not 0: a flight recorder (docs/trace.md): of the last kFlightSlots segments of about so many bytes
    // each, and what a core begins with.
    std::uint64_t flight_segment = 0;
    // From one keyframe to the next: steps, and the bytes of logs as so many steps each. For tests too.
    std::uint64_t keyframe_cost = kKeyframeCost;
    static constexpr std::uint64_t kKeyframeCost = 160 << 20;
    static constexpr std::uint64_t kByteCost = 8;
};

// The state of a hart as a recording knows it.
orr_otrace_state trace_state(const HartState& state);
HartState hart_state(const orr_otrace_state& state);
// state_hash of ORR_OTRACE_LOG and _START.
std::uint64_t trace_hash(const HartState& state, std::span<const std::uint8_t> sram);

class Recorder {
  public:
    // Makes the file; an existing one is replaced. A flight recorder without one keeps its memory to itself,
    // and what an earlier one has left in it stays, as FILE.last. The error is one line: which file, and why.
    static std::expected<std::unique_ptr<Recorder>, std::string> create(const std::filesystem::path& file,
                                                                        const RecordingInfo& info);
    // Without finish() the recording is one of a crash: whole up to the last flush().
    ~Recorder() = default;
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    // Empty: all is well. It says what happened, and up to where the recording is good.
    std::string error() const { return writer_->error(); }
    bool failed() const { return writer_->failed(); }
    // What waits for the file; see RecordWriter. flush() and finish() only hand over.
    RecordWriter& writer() { return *writer_; }
    // A path at which it can be opened while this lives.
    const std::filesystem::path& file() const { return file_; }
    bool is_flight() const { return flight_segment_ != 0; }
    const std::string& name() const { return name_; }  // for messages

    // --- inside an instruction: an access beyond SRAM, done. `lines` as they are after it. ---
    [[gnu::always_inline]] void load(std::uint64_t address, std::uint64_t value, std::uint64_t stall,
                                     unsigned lines) {
        std::uint64_t& predicted = values_[value_slot(address)];
        const unsigned n = value == predicted ? ORR_OTRACE_N_SAME
                                              : (71u - static_cast<unsigned>(std::countl_zero(value))) / 8u;
        predicted = value;
        access(ORR_OTRACE_LOAD | n << 4, n == ORR_OTRACE_N_SAME ? 0 : n, value,
               stalls_[access_class(address, false)], stall, lines);
    }
    [[gnu::always_inline]] void store(std::uint64_t address, std::uint64_t stall, unsigned lines) {
        access(ORR_OTRACE_STORE, 0, 0, stalls_[access_class(address, true)], stall, lines);
    }
    // It faulted: no time passed, nothing changed.
    void fault(bool store) {
        put(static_cast<std::uint8_t>((store ? ORR_OTRACE_STORE : ORR_OTRACE_LOAD) | ORR_OTRACE_N_FAULT
                                                                                         << 4));
    }

    // A word for the trace port. It takes no time, and replay makes it again: what the file has of it spares
    // the reader the replay.
    [[gnu::always_inline]] void port_word(std::uint64_t steps, std::uint64_t time, std::uint64_t word) {
        if (!port_.put(steps, time, word)) overrun();
    }

    // Is called when a segment begins that does not have what was noted in those before it.
    void on_segment(std::function<void()> call) { on_segment_ = std::move(call); }

    // --- any time; `steps` are those of the hart since its start ---
    void note(unsigned kind, std::uint64_t steps, std::uint64_t time,
              std::initializer_list<std::uint64_t> fields);

    // --- between steps ---
    // `ps` pass before the next step, with these lines; nothing is recorded if nothing changes.
    void boundary(std::uint64_t steps, std::uint64_t ps, unsigned lines) {
        if (ps != 0 || lines != lines_) put_boundary(steps, ps, lines);
    }
    // The image that the next start runs; the file gets it once, as long as it stays the same.
    void image(std::span<const std::uint8_t> bytes);
    // The core starts at its reset_pc with this memory. It does not run: stop() came before, or it is the
    // first.
    struct Start {
        bool warm = false;
        std::uint64_t time = 0;
        std::uint64_t reset_pc = 0;
        std::span<const std::uint8_t> rom, sram;
        HartState state;  // as it begins
    };
    void start(const Start& start);
    // The core stops until the next start: what was recorded so far is written. Before its memory changes.
    void stop(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t time, unsigned note);
    // A debugger changed registers, or memory (at most 4,096 bytes a call).
    void set_state(const HartState& state, std::uint64_t time);
    void set_memory(std::uint64_t address, std::span<const std::uint8_t> bytes, std::uint64_t steps,
                    std::uint64_t time);

    // Whether a flush() is due for the sake of the block's size; asked before each run of the hart, and each
    // time that a card has looked at all that arrives, as notes of that pile up while the hart sleeps.
    bool full(std::uint64_t steps) const {
        return used_ >= kFlushBytes || port_.used() >= kFlushBytes || steps - block_steps_ >= kFlushSteps;
    }
    // Anything that a crash would lose.
    bool dirty(std::uint64_t steps) const { return used_ != 0 || (running_ && steps != block_steps_); }
    // Hands over what there is, and a keyframe if one is due. After boundary(), with the hart as it stands at
    // `time`, and `rest_ps` of CoreClock; while the core is stopped only the time counts.
    void flush(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t time,
               std::uint64_t rest_ps);
    // The same without a keyframe, and the end mark.
    void finish(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t time);

    // A run of the hart between two looks at full() records no more than this: each access at most
    // kMostOfAccess bytes.
    // Long blocks: each costs a checksum of all of SRAM.
    static constexpr std::size_t kFlushBytes = 3 << 19;
    static constexpr std::size_t kRoom = 128 << 10;
    static constexpr std::size_t kMostOfAccess = 24;
    static constexpr std::uint64_t kFlushSteps = 24 << 20;

  private:
    Recorder() = default;

    [[gnu::always_inline]] void access(unsigned tag, unsigned bytes, std::uint64_t value,
                                       std::uint64_t& usual, std::uint64_t stall, unsigned lines) {
        if (stall != usual || lines != lines_ || used_ > limit_) [[unlikely]]
            return unusual_access(tag, bytes, value, usual, stall, lines);
        std::uint8_t* const at = buffer_.data() + used_;
        at[0] = static_cast<std::uint8_t>(tag);
        std::memcpy(at + 1, &value, sizeof value);
        used_ += 1 + bytes;
    }
    void unusual_access(unsigned tag, unsigned bytes, std::uint64_t value, std::uint64_t& usual,
                        std::uint64_t stall, unsigned lines);
    static std::size_t varint(std::uint8_t* at, std::uint64_t value) {
        std::size_t size = 0;
        for (; value >= 0x80; value >>= 7)
            at[size++] = static_cast<std::uint8_t>(value | 0x80);
        at[size++] = static_cast<std::uint8_t>(value);
        return size;
    }
    void put(std::uint8_t byte) {
        if (used_ == buffer_.size()) return overrun();
        buffer_[used_++] = byte;
    }
    void put_varint(std::uint64_t value);
    void put_steps(std::uint64_t steps);
    void put_boundary(std::uint64_t steps, std::uint64_t ps, unsigned lines);
    void overrun();
    bool begin_note(unsigned kind, std::uint64_t steps, std::uint64_t time, std::size_t room);
    static constexpr std::size_t kMostBuffer = 3 << 20;  // doubled once it stays below ORR_OTRACE_MAX_BLOCK
    void write_block(const orr_otrace_block& block, std::span<const std::uint8_t> payload);
    bool write_log(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t time);
    void write_keyframe(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t rest_ps);
    // Of a flight recorder.
    bool segment_is_full() const {
        return flight_segment_ != 0 && writer_->segment_bytes() >= flight_segment_;
    }
    // No room but for what ends a rest.
    bool segment_is_crowded() const {
        return flight_segment_ != 0 &&
               (writer_->segment_bytes() >= flight_segment_ + kFlightSlack / 2 || !writer_->room());
    }
    void begin_segment();
    void seal_header();
    void forget_notes();
    void resume(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t rest_ps);
    // At the begin of a block.
    orr_otrace_block point(std::uint32_t kind) const;
    bool on() const { return !ended_ && !writer_->failed(); }
    void write_image();
    void write_symbols();
    void begin_block(std::uint64_t steps, std::uint64_t time);
    std::vector<std::uint8_t> set_buffer(std::vector<std::uint8_t> buffer);

    std::filesystem::path file_;
    std::string name_;
    std::vector<std::uint8_t> header_;  // of the file, and of segments
    std::uint64_t flight_segment_ = 0;
    std::function<void()> on_segment_;
    std::vector<std::uint8_t> symbols_;
    std::unique_ptr<RecordWriter> writer_;
    bool ended_ = false;               // finish() was called
    std::vector<std::uint8_t> image_;  // last written
    bool image_known_ = false;         // the next start is of image_
    bool image_new_ = false;           // and it has not been written yet
    bool running_ = false;             // between start() and stop()
    bool halted_ = false;              // and makes no steps any more
    bool at_rest_ = true;              // what has come since then is of no weight to what it does later
    orr_otrace_start start_{};         // the last one
    std::vector<std::uint8_t> rom_;    // of that
    std::uint64_t last_hash_ = 0;
    std::uint64_t skipped_ps_ = 0, jump_time_ = 0;  // of all jumps, and of the last one
    ChangedPages pages_;                            // since the last keyframe
    std::uint64_t keyframe_cost_ = 0;
    std::uint64_t cost_ = 0;  // since the last keyframe

    // The block that is being filled.
    std::vector<std::uint8_t> buffer_;
    std::size_t limit_ = 0;  // an access fits at it
    std::size_t used_ = 0;
    PortWords port_{kFlushBytes + kRoom};
    std::uint32_t notes_ = 0;
    std::array<std::uint64_t, kValueSlots> values_{};
    std::array<std::uint64_t, kAccessClasses> stalls_{};
    std::uint64_t offset_ = 0;       // recording's steps are the hart's plus this
    std::uint64_t block_steps_ = 0;  // hart's steps at its begin
    std::uint64_t block_time_ = 0;
    std::uint64_t passed_ps_ = 0;         // of its BOUNDARYs
    std::uint64_t block_skipped_ps_ = 0;  // skipped_ps_ at its begin
    std::uint64_t last_steps_ = 0;        // of the last BOUNDARY or NOTE
    std::uint64_t last_note_time_ = 0;
    unsigned lines_ = 0;
};

}  // namespace orrery::emu
