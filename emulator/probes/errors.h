// What can go wrong in a card, by whose fault it is. Each kind is counted and logged with its cause, at a
// limited rate; none but the last ends the process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include <fmt/format.h>

#include "emulator/probes/counters.h"
#include "emulator/probes/log_writer.h"

namespace orrery::emu {

enum class ErrorKind : std::uint8_t {
    kGuestError,     // the guest (driver, firmware, kernel, peer) did what the hardware manual forbids
    kUnimplemented,  // defined, and this card does not have it
    kUndefined,      // legal, but the manual leaves the outcome open: whoever relies on it is wrong
    kHostError,      // the host said no: memory, descriptors, files
    kInternalError,  // our own fault; the process ends
};
inline constexpr unsigned kErrorKinds = 5;
const char* to_string(ErrorKind kind);

// Thread safety: any thread. report() formats only what will be written, and nobody waits for the log.
class Errors {
  public:
    // `log` is borrowed; nullptr: count only. The first kBurst lines of a kind are written, then each
    // doubling of their number, with how many were left out.
    Errors(Counters& counters, std::FILE* log);
    ~Errors();

    template <class... Args>
    void report(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
        const std::uint64_t number = count_one(kind);
        if (kind == ErrorKind::kInternalError) fail(fmt::format(format, std::forward<Args>(args)...));
        if (log_ == nullptr || !shown(number)) return;
        write(to_string(kind), number, fmt::format(format, std::forward<Args>(args)...));
    }
    template <class... Args>
    void guest(fmt::format_string<Args...> format, Args&&... args) {
        report(ErrorKind::kGuestError, format, std::forward<Args>(args)...);
    }
    // One of many that the caller counts by themselves (an access to some offset, say): counted as ever, and
    // written if `show`, which must be true for a bounded number of them.
    template <class... Args>
    void guest_if(bool show, fmt::format_string<Args...> format, Args&&... args) {
        count_one(ErrorKind::kGuestError);
        if (log_ != nullptr && show)
            write(to_string(ErrorKind::kGuestError), 0, fmt::format(format, std::forward<Args>(args)...));
    }
    template <class... Args>
    void unimplemented(fmt::format_string<Args...> format, Args&&... args) {
        report(ErrorKind::kUnimplemented, format, std::forward<Args>(args)...);
    }

    // A line about the card's life that is no error. Each kind of line, which is to say each format, is
    // written as often as a kind of error: a guest may bring about most of them as often as it likes.
    template <class... Args>
    void note(fmt::format_string<Args...> format, Args&&... args) {
        if (log_ == nullptr) return;
        const fmt::string_view text = format;
        const std::uint64_t number = count_note(text.data());
        if (shown(number)) write("note", number, fmt::format(format, std::forward<Args>(args)...));
    }

    // Waits until the log has been written, for a log that does not take it not for ever.
    void flush();

    std::uint64_t count(ErrorKind kind) const {
        return counts_[static_cast<unsigned>(kind)].load(std::memory_order_relaxed);
    }

    static constexpr std::uint64_t kBurst = 64;

  private:
    std::uint64_t count_one(ErrorKind kind);
    std::uint64_t count_note(const char* format);
    static bool shown(std::uint64_t number) { return number <= kBurst || (number & (number - 1)) == 0; }
    void write(const char* kind, std::uint64_t number, std::string_view text);
    [[noreturn]] void fail(std::string_view text);

    Counters& counters_;
    std::FILE* log_;
    std::unique_ptr<LogWriter> writer_;
    std::mutex mutex_;
    std::map<const char*, std::uint64_t> notes_;  // by format, of which there are as many as in the source
    std::array<std::atomic<std::uint64_t>, kErrorKinds> counts_{};
};

}  // namespace orrery::emu
