// How far something is that may take long, for who waits at a terminal.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace orrery::text {

// One line, which begins once it has taken half a second, follows what at() says and is gone at the end. Of
// one thread.
class Progress {
  public:
    // "reading x.prof", to standard error; nothing if that is no terminal.
    explicit Progress(std::string what);
    Progress(std::string what, std::FILE* to, bool shown, std::chrono::milliseconds after);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void at(double share);  // of 1

  private:
    using Clock = std::chrono::steady_clock;
    const std::string what_;
    std::FILE* const to_;
    const bool shown_;
    Clock::time_point next_;
    std::size_t width_ = 0;  // of what stands there now
};

}  // namespace orrery::text
