// What the firmware said in a log: the payload of a PORT block (struct orr_otrace_port).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <span>
#include <utility>
#include <vector>

#include <orrery/hw/trace.h>

#include "emulator/trace/log.h"

namespace orrery::emu {

// Makes it, word by word, while the core runs.
class PortWords {
  public:
    static constexpr std::size_t kMostOfWord = 1 + 8 + 8 + 1 + 8;
    explicit PortWords(std::size_t bytes) : buffer_(bytes), limit_(bytes - kMostOfWord) {}

    // `step` as the hart counts. false: no room.
    [[gnu::always_inline]] bool put(std::uint64_t step, std::uint64_t time, std::uint64_t word) {
        if (used_ > limit_) [[unlikely]]
            return false;
        std::uint8_t* at = buffer_.data() + used_;
        if (wanted_ == 0) {
            const std::uint64_t steps = step - std::exchange(last_step_, step);
            const std::uint64_t ps = time - std::exchange(last_time_, time);
            const unsigned step_bytes = bytes_of(steps), ps_bytes = bytes_of(ps);
            *at++ = static_cast<std::uint8_t>(step_bytes | ps_bytes << 4);
            at = append(at, steps, step_bytes);
            at = append(at, ps, ps_bytes);
            wanted_ = ORR_OTRACE_PORT_WORDS(word);
        } else {
            --wanted_;
        }
        const unsigned word_bytes = bytes_of(word);
        *at++ = static_cast<std::uint8_t>(word_bytes);
        used_ = static_cast<std::size_t>(append(at, word, word_bytes) - buffer_.data());
        return true;
    }
    std::size_t used() const { return used_; }
    bool empty() const { return used_ == sizeof(orr_otrace_port); }
    // A log begins, with nothing in it yet.
    void begin(std::uint64_t step, std::uint64_t time) {
        used_ = sizeof(orr_otrace_port);
        last_step_ = step;
        last_time_ = time;
    }
    // Words that the record which was begun last has still to come.
    std::uint32_t wanted() const { return wanted_; }
    // The core starts: the next word is a header.
    void cut() { wanted_ = 0; }
    // The payload: used() bytes of what is returned. `spare` takes the next words, after begin().
    std::vector<std::uint8_t> take(std::uint32_t notes, std::vector<std::uint8_t> spare) {
        const orr_otrace_port head{.notes = notes, .reserved = 0};
        std::memcpy(buffer_.data(), &head, sizeof head);
        spare.resize(buffer_.size());
        return std::exchange(buffer_, std::move(spare));
    }

  private:
    static unsigned bytes_of(std::uint64_t value) {
        return (71u - static_cast<unsigned>(std::countl_zero(value))) / 8u;
    }
    [[gnu::always_inline]] static std::uint8_t* append(std::uint8_t* at, std::uint64_t value,
                                                       unsigned bytes) {
        std::memcpy(at, &value, sizeof value);
        return at + bytes;
    }

    std::vector<std::uint8_t> buffer_;
    std::size_t limit_;
    std::size_t used_ = sizeof(orr_otrace_port);
    std::uint32_t wanted_ = 0;  // of the record that is being written
    std::uint64_t last_step_ = 0, last_time_ = 0;
};

// Reads a payload word by word. It belongs to a log of `steps` steps and `ps` picoseconds; nobody vouches for
// it.
class PortDecoder {
  public:
    PortDecoder(std::span<const std::uint8_t> payload, std::uint64_t steps, std::uint64_t ps)
        : in_(payload), steps_(steps), ps_(ps) {}
    // Before all else.
    std::expected<orr_otrace_port, LogError> head();
    bool done() const { return at_ == in_.size(); }
    struct Word {
        std::uint64_t value = 0;
        std::uint64_t step = 0, ps = 0;  // of a header, since the begin of the log
    };
    // Not if it is done().
    std::expected<Word, LogError> next(bool header);

  private:
    std::unexpected<LogError> refuse(const char* reason) const {
        return std::unexpected(LogError{at_, reason});
    }
    bool number(unsigned bytes, std::uint64_t& value);

    std::span<const std::uint8_t> in_;
    std::uint64_t steps_, ps_;
    std::size_t at_ = 0;
    std::uint64_t step_ = 0, time_ = 0;
    std::uint64_t words_ = 0;
    bool any_ = false;
};

}  // namespace orrery::emu
