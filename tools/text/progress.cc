#include "tools/text/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tools/text/shown.h"

namespace orrery::text {
namespace {

constexpr std::chrono::milliseconds kQuiet{500}, kBetween{200};

// A line that a terminal breaks is not overwritten by the next one; of a path its end says most.
std::string on_one_line(std::string what) {
    constexpr std::size_t kMost = 64;
    if (what.size() > kMost) what = "..." + what.substr(what.size() - kMost + 3);
    return what;
}

}  // namespace

Progress::Progress(std::string what)
    : Progress(std::move(what), stderr, ::isatty(STDERR_FILENO) == 1, kQuiet) {}

Progress::Progress(std::string what, std::FILE* to, bool shown, std::chrono::milliseconds after)
    : what_(on_one_line(text::shown(what))), to_(to), shown_(shown), next_(Clock::now() + after) {}

Progress::~Progress() {
    if (width_ > 0) (void)std::fputs(fmt::format("\r{:{}}\r", "", width_).c_str(), to_);
}

void Progress::at(double share) {
    if (!shown_) return;
    const Clock::time_point now = Clock::now();
    if (now < next_) return;
    next_ = now + kBetween;
    const std::string line = fmt::format("{}: {:.0f} %", what_, std::clamp(share, 0.0, 1.0) * 100);
    // A terminal that has gone is no error of the work.
    (void)std::fputs(fmt::format("\r{:<{}}", line, width_).c_str(), to_);
    (void)std::fflush(to_);
    width_ = std::max(width_, line.size());
}

}  // namespace orrery::text
