#include "emulator/trace/log.h"

#include <cstring>

#include <fmt/format.h>

namespace orrery::emu {

namespace {

constexpr std::uint64_t kMaxChange = 4096;

unsigned fields_of(unsigned note) {
    switch (note) {
        case ORR_OTRACE_NOTE_DOORBELL:
            return 4;
        case ORR_OTRACE_NOTE_LINK_SENT:
        case ORR_OTRACE_NOTE_LINK_TAKEN:
            return 6;
        case ORR_OTRACE_NOTE_POKE:
        case ORR_OTRACE_NOTE_JUMP:
            return 1;
        case ORR_OTRACE_NOTE_HALT:
        case ORR_OTRACE_NOTE_LINK_STATE:
            return 3;
        default:
            return 0;
    }
}

class Decoder {
  public:
    Decoder(std::span<const std::uint8_t> in, std::uint64_t steps, Log& out)
        : in_(in), steps_(steps), out_(out) {}

    std::expected<void, LogError> run() {
        while (at_ < in_.size() && reason_ == nullptr) {
            begin_ = at_;
            const std::uint8_t tag = in_[at_++];
            switch (tag & 3u) {
                case ORR_OTRACE_LOAD:
                case ORR_OTRACE_STORE:
                    access(tag);
                    break;
                case ORR_OTRACE_BOUNDARY:
                    boundary(tag);
                    break;
                default:
                    note(tag);
                    break;
            }
        }
        if (reason_ != nullptr) return std::unexpected(LogError{begin_, reason_});
        return {};
    }

  private:
    void refuse(const char* reason) {
        if (reason_ == nullptr) reason_ = reason;
    }
    std::uint8_t byte() {
        if (at_ == in_.size()) {
            refuse("a record is cut");
            return 0;
        }
        return in_[at_++];
    }
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 70; shift += 7) {
            const std::uint8_t next = byte();
            if (shift == 63 && next > 1) break;
            value |= std::uint64_t{next & 0x7fu} << shift;
            if ((next & 0x80) == 0) return value;
        }
        refuse("a number is too long");
        return 0;
    }
    void step() {
        const std::uint64_t more = varint();
        if (more > steps_ - step_) return refuse("a record lies beyond the last step of its block");
        step_ += more;
    }
    std::uint8_t lines() {
        const std::uint8_t value = byte();
        if (value > (ORR_OTRACE_LINE_EXTERNAL | ORR_OTRACE_LINE_TIMER)) refuse("an unknown interrupt line");
        return value;
    }

    void access(std::uint8_t tag) {
        LoggedAccess access;
        access.kind = tag & 3u;
        access.n = static_cast<std::uint8_t>(tag >> 4);
        if (access.n > ORR_OTRACE_N_FAULT ||
            (access.kind == ORR_OTRACE_STORE && access.n != 0 && access.n != ORR_OTRACE_N_FAULT))
            return refuse("an access of an unknown form");
        if (access.kind == ORR_OTRACE_LOAD && access.n <= 8) {
            if (in_.size() - at_ < access.n) return refuse("a record is cut");
            std::memcpy(&access.value, in_.data() + at_, access.n);
            at_ += access.n;
        }
        access.has_stall = (tag & ORR_OTRACE_TAG_STALL) != 0;
        access.has_lines = (tag & ORR_OTRACE_TAG_LINES) != 0;
        if (access.has_stall) access.stall = varint();
        if (access.has_lines) access.lines = lines();
        out_.accesses.push_back(access);
    }
    void boundary(std::uint8_t tag) {
        LoggedBoundary boundary;
        if (tag >> 4 != 0) return refuse("a boundary of an unknown form");
        step();
        boundary.step = step_;
        if ((tag & ORR_OTRACE_TAG_STALL) != 0) boundary.ps = varint();
        boundary.has_lines = (tag & ORR_OTRACE_TAG_LINES) != 0;
        if (boundary.has_lines) boundary.lines = lines();
        out_.boundaries.push_back(boundary);
    }
    void note(std::uint8_t tag) {
        LoggedNote note;
        note.kind = tag >> 4;
        if (note.kind == 0 || note.kind > ORR_OTRACE_NOTE_LINK_STATE || (tag & 0x0c) != 0)
            return refuse("a note of an unknown kind");
        step();
        const std::uint64_t time = varint();
        time_ += time >> 1 ^ (0 - (time & 1));
        note.step = step_;
        note.time_ps = static_cast<std::int64_t>(time_);
        if (note.kind == ORR_OTRACE_NOTE_SET_STATE) {
            change(note, 0, sizeof(orr_otrace_state));
        } else if (note.kind == ORR_OTRACE_NOTE_SET_MEMORY) {
            note.field[0] = varint();
            note.field[1] = varint();
            if (note.field[1] > kMaxChange) return refuse("a change of memory that is too long");
            change(note, note.field[0], note.field[1]);
        } else {
            for (unsigned i = 0; i < fields_of(note.kind); ++i)
                note.field[i] = varint();
        }
        out_.stops = out_.stops || note.kind == ORR_OTRACE_NOTE_RESET || note.kind == ORR_OTRACE_NOTE_RESTART;
        out_.notes.push_back(note);
    }
    void change(const LoggedNote& note, std::uint64_t address, std::uint64_t size) {
        if (in_.size() - at_ < size) return refuse("a record is cut");
        LoggedBoundary boundary;
        boundary.step = note.step;
        boundary.change = static_cast<std::uint8_t>(note.kind);
        boundary.address = address;
        boundary.first_byte = static_cast<std::uint32_t>(out_.bytes.size());
        boundary.byte_count = static_cast<std::uint32_t>(size);
        out_.bytes.insert(out_.bytes.end(), in_.begin() + static_cast<std::ptrdiff_t>(at_),
                          in_.begin() + static_cast<std::ptrdiff_t>(at_ + size));
        at_ += size;
        out_.boundaries.push_back(boundary);
    }

    std::span<const std::uint8_t> in_;
    std::uint64_t steps_;
    Log& out_;
    std::size_t at_ = 0;
    std::size_t begin_ = 0;
    std::uint64_t step_ = 0;
    std::uint64_t time_ = 0;  // modulo 2^64
    const char* reason_ = nullptr;
};

}  // namespace

std::string describe(const LogError& error) {
    return fmt::format("at byte {} of this block's payload: {}", error.at, error.reason);
}

std::expected<void, LogError> decode_log(std::span<const std::uint8_t> payload, std::uint64_t steps,
                                         Log& out) {
    out.accesses.clear();
    out.accesses.reserve(payload.size() / 2);
    out.boundaries.clear();
    out.notes.clear();
    out.bytes.clear();
    out.stops = false;
    return Decoder(payload, steps, out).run();
}

}  // namespace orrery::emu
