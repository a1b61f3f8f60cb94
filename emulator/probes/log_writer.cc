#include "emulator/probes/log_writer.h"

#include <poll.h>

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace orrery::emu {

namespace {
constexpr int kLookMs = 50;
}

LogWriter::~LogWriter() {
    if (!thread_.joinable()) return;
    flush();
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    more_.notify_all();
    thread_.join();
}

void LogWriter::put(std::string line) {
    if (line.size() > kLineBytes) line.resize(kLineBytes);
    line += '\n';
    {
        const std::lock_guard lock(mutex_);
        if (lines_.size() >= kLines) {
            ++lost_;
            return;
        }
        lines_.push_back(std::move(line));
        if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    }
    more_.notify_one();
}

void LogWriter::flush() {
    std::unique_lock lock(mutex_);
    written_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                      [this] { return lines_.empty() && lost_ == 0 && !busy_; });
}

// A pipe whose reader does not read must not hold this thread for ever: a line is less than what a pipe that
// is writable takes.
bool LogWriter::wait_until_writable() {
    const int fd = ::fileno(out_);
    if (fd < 0) return true;  // in memory
    for (;;) {
        pollfd ready{fd, POLLOUT, 0};
        if (::poll(&ready, 1, kLookMs) != 0) return true;
        const std::lock_guard lock(mutex_);
        if (stopping_) return false;
    }
}

void LogWriter::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        more_.wait(lock, [this] { return stopping_ || !lines_.empty() || lost_ != 0; });
        if (lines_.empty() && lost_ == 0) return;
        std::deque<std::string> lines = std::exchange(lines_, {});
        const std::uint64_t lost = std::exchange(lost_, 0);
        if (lost != 0)
            lines.push_back(
                fmt::format("orrery-card: {} lines were lost: the log is written too slowly\n", lost));
        busy_ = true;
        lock.unlock();
        bool writable = true;
        for (const std::string& line : lines) {
            writable = writable && wait_until_writable();
            if (!writable) break;
            std::fwrite(line.data(), 1, line.size(), out_);
            std::fflush(out_);
        }
        lock.lock();
        busy_ = false;
        written_.notify_all();
    }
}

}  // namespace orrery::emu
