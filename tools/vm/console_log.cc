#include "tools/vm/console_log.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace orrery::vm {

namespace {

constexpr std::size_t kMaxLine = 4096;

struct Pattern {
    std::string_view text;
    bool at_start;  // only as the beginning of a message, because the words are common
    Trouble trouble;
};

constexpr std::array kPatterns = {
    Pattern{"Kernel panic - not syncing", false, Trouble::kPanic},
    Pattern{"BUG: ", false, Trouble::kFault},  // also KASAN, soft lockups, sleeping in atomic context
    Pattern{"kernel BUG at ", false, Trouble::kFault},
    Pattern{"BUG ", true, Trouble::kFault},  // the slab allocator, then the cache's name
    Pattern{"ODEBUG: ", true, Trouble::kFault},
    Pattern{" at kernel/dma/debug.c:", false, Trouble::kFault},
    Pattern{"DMA-API: debugging out of memory", true, Trouble::kFault},
    Pattern{"Oops: ", true, Trouble::kFault},
    Pattern{"Internal error: ", true, Trouble::kFault},
    Pattern{"general protection fault, ", true, Trouble::kFault},  // without the comma it is a user program's
    Pattern{"Unable to handle kernel ", true, Trouble::kFault},
    Pattern{"UBSAN: ", true, Trouble::kFault},
    Pattern{"KCSAN: ", false, Trouble::kFault},
    Pattern{"possible circular locking dependency detected", false, Trouble::kFault},
    Pattern{"possible recursive locking detected", false, Trouble::kFault},
    Pattern{"possible irq lock inversion", false, Trouble::kFault},
    Pattern{"inconsistent lock state", false, Trouble::kFault},
    Pattern{"suspicious RCU usage", false, Trouble::kFault},
    Pattern{"bad unlock balance detected", false, Trouble::kFault},
    Pattern{"bad contention detected", false, Trouble::kFault},
    Pattern{" lock order detected", false, Trouble::kFault},
    Pattern{"Nested lock was not taken", false, Trouble::kFault},
    Pattern{"held lock freed", false, Trouble::kFault},
    Pattern{"still has locks held", false, Trouble::kFault},
    Pattern{"lock held when returning to user space", false, Trouble::kFault},
    Pattern{"INFO: trying to register non-static key", true, Trouble::kFault},
    Pattern{"turning off the locking correctness validator", false, Trouble::kFault},
    Pattern{"DEBUG_LOCKS_WARN_ON", false, Trouble::kFault},
    Pattern{"blocked for more than", false, Trouble::kFault},
    Pattern{"detected stall", false, Trouble::kFault},
    Pattern{"self-detected stall", false, Trouble::kFault},
    Pattern{"new suspected memory leaks", false, Trouble::kFault},
    Pattern{"kmemleak: Cannot allocate a kmemleak_object", true,
            Trouble::kFault},                         // it switches itself off then
    Pattern{"orrery-init: ", true, Trouble::kFault},  // guest/init: a detector does not work
    Pattern{"list_add corruption", true, Trouble::kFault},
    Pattern{"list_del corruption", true, Trouble::kFault},
    Pattern{"------------[ cut here ]------------", true, Trouble::kWarning},
    Pattern{"WARNING: ", true, Trouble::kWarning},
    Pattern{"refcount_t: ", true, Trouble::kWarning},
    Pattern{"sysfs: cannot create duplicate filename", true, Trouble::kWarning},
};

// "[    1.234567] " or "[    1.234567][  T123] "
std::string_view without_stamp(std::string_view line) {
    while (line.starts_with('[')) {
        const auto end = line.find(']');
        if (end == std::string_view::npos) break;
        const std::string_view inside = line.substr(1, end - 1);
        if (inside.find_first_not_of(" .0123456789TC") != std::string_view::npos) break;
        line.remove_prefix(end + 1);
        if (line.starts_with(' ')) line.remove_prefix(1);
    }
    return line;
}

}  // namespace

std::optional<Trouble> classify(std::string_view line) {
    const std::string_view message = without_stamp(line);
    for (const auto& pattern : kPatterns)
        if (pattern.at_start ? message.starts_with(pattern.text)
                             : message.find(pattern.text) != std::string_view::npos)
            return pattern.trouble;
    return std::nullopt;
}

void ConsoleLog::judge(std::string_view line) {
    const auto found = classify(line);
    const bool fresh = found && (!trouble_ || (*trouble_ == Trouble::kWarning && *found > *trouble_));
    if (fresh) {
        line_ = without_stamp(line);
        context_.clear();
        context_lines_ = 0;
    } else if (trouble_ && line_.starts_with("------------[ cut here")) {
        line_ = without_stamp(line);  // the line after the scissors says what it is
    }
    if (found && (!trouble_ || *found > *trouble_)) trouble_ = found;
    if (!trouble_ || context_lines_ == kContextLines) return;
    ++context_lines_;
    context_.append("    ").append(line).append("\n");
}

void ConsoleLog::feed(std::string_view bytes) {
    for (const char c : bytes) {
        if (c == '\r' || c == '\0') continue;
        pending_ += c;
        if (c != '\n' && pending_.size() < kMaxLine) continue;
        // A full disk must not stop the run; the log is only shorter then.
        [[maybe_unused]] const auto ignored = ::write(file_.get(), pending_.data(), pending_.size());
        std::string_view line = pending_;
        if (line.ends_with('\n')) line.remove_suffix(1);
        judge(line);
        pending_.clear();
    }
}

}  // namespace orrery::vm
