#include "emulator/probes/errors.h"

#include <cstdlib>

namespace orrery::emu {

const char* to_string(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::kGuestError:
            return "guest error";
        case ErrorKind::kUnimplemented:
            return "unimplemented";
        case ErrorKind::kUndefined:
            return "undefined";
        case ErrorKind::kHostError:
            return "host error";
        case ErrorKind::kInternalError:
            return "internal error";
    }
    return "unknown error";
}

Errors::Errors(Counters& counters, std::FILE* log)
    : counters_(counters), log_(log), writer_(log != nullptr ? std::make_unique<LogWriter>(log) : nullptr) {}

Errors::~Errors() = default;

std::uint64_t Errors::count_one(ErrorKind kind) {
    if (kind == ErrorKind::kGuestError) counters_.add_shared(ORR_CTR_GUEST_ERRORS);
    if (kind == ErrorKind::kUnimplemented) counters_.add_shared(ORR_CTR_UNIMPLEMENTED);
    return counts_[static_cast<unsigned>(kind)].fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t Errors::count_note(const char* format) {
    const std::lock_guard lock(mutex_);
    return ++notes_[format];
}

void Errors::flush() {
    if (writer_) writer_->flush();
}

void Errors::write(const char* kind, std::uint64_t number, std::string_view text) {
    if (number > kBurst) {
        writer_->put(fmt::format(
            "orrery-card: {} (number {}; those since the last line of this kind were left out): {}", kind,
            number, text));
    } else {
        writer_->put(fmt::format("orrery-card: {}: {}", kind, text));
    }
}

void Errors::fail(std::string_view text) {
    flush();
    std::FILE* out = log_ != nullptr ? log_ : stderr;
    fmt::print(out, "orrery-card: internal error, this is a defect of the card: {}\n", text);
    std::fflush(out);
    std::abort();
}

}  // namespace orrery::emu
