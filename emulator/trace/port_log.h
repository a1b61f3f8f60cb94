// All that the firmware said in a recording: the words of the trace port, put together to records.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "emulator/api/replayer.h"

namespace orrery::emu {

class PortLog {
  public:
    struct Entry {
        std::uint64_t step = 0, time_ps = 0;
        std::size_t first_word = 0;
        bool operator==(const Entry&) const = default;
    };

    // In the order of their stores. Step and time count for the header of a record only.
    void word(std::uint64_t step, std::uint64_t time_ps, std::uint64_t word) {
        if (skipped_ != 0) {
            --skipped_;
            return;
        }
        if (wanted_ == 0) {
            entries_.push_back({step, time_ps, words_.size()});
            wanted_ = ORR_OTRACE_PORT_WORDS(word);
        } else {
            --wanted_;
        }
        words_.push_back(word);
    }
    bool header_next() const { return wanted_ == 0 && skipped_ == 0; }
    // The core begins: a record that is not whole does not count, and neither do the next `rest` words.
    void start(std::uint32_t rest) {
        drop_partial();
        skipped_ = rest;
    }
    // The core stopped: what it was about to say does not count.
    void drop_partial();
    // Without the records behind a position.
    void end_at(std::uint64_t step);

    const std::vector<Entry>& entries() const { return entries_; }
    std::uint64_t bytes() const {
        return entries_.size() * sizeof(Entry) + words_.size() * sizeof(words_[0]);
    }
    PortRecord record(std::size_t index) const;
    // The step of the first record that another log does not have in this way; nothing: there is none.
    std::optional<std::uint64_t> first_difference(const PortLog& other) const;

  private:
    std::vector<Entry> entries_;
    std::vector<std::uint64_t> words_;
    std::uint32_t wanted_ = 0, skipped_ = 0;
};

struct RecordedSpeech {
    PortLog port;
    std::vector<TraceNote> notes;

    // Little can say much: a few bytes unpack to a million words, and code that loops says one a step. What
    // there is of it is bounded by the file's length, with room for a firmware that repeats itself.
    bool fits(const TraceReader& reader) const {
        return port.bytes() + notes.size() * sizeof(TraceNote) <=
               kMostBytes + kBytesOfFile * reader.info().file_bytes;
    }
    static constexpr std::uint64_t kMostBytes = 256 << 20;
    static constexpr std::uint64_t kBytesOfFile = 16;
};
// The error for what does not fit; `block` is the one in which it no longer does.
std::string too_much_speech(const TraceReader& reader, const TraceBlock& block);

// What the file itself says (TraceReader::indexed()); nobody vouches for it. The error names the offset.
std::expected<RecordedSpeech, std::string> read_speech(const TraceReader& reader,
                                                       const Replayer::Progress& progress);

}  // namespace orrery::emu
