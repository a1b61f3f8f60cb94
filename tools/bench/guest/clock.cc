#include "tools/bench/guest/clock.h"

#include <fcntl.h>
#include <linux/rtc.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

namespace orrery::bench {
namespace {

// Waits for the moment at which the clock's second changes; -1: it never does.
std::int64_t next_second(int fd) {
    rtc_time start{}, now{};
    if (::ioctl(fd, RTC_RD_TIME, &start) != 0) return -1;
    for (int i = 0; i < 1'000'000; ++i) {
        if (::ioctl(fd, RTC_RD_TIME, &now) != 0) return -1;
        if (now.tm_sec != start.tm_sec) return now_ns();
    }
    return -1;
}

}  // namespace

std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

std::optional<double> clock_factor() {
    const int fd = ::open("/dev/rtc0", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    constexpr int kSeconds = 3;
    const std::int64_t begin = next_second(fd);
    std::int64_t end = begin;
    for (int i = 0; i < kSeconds && end >= 0; ++i)
        end = next_second(fd);
    ::close(fd);
    if (begin < 0 || end <= begin) return std::nullopt;
    return kSeconds * 1e9 / static_cast<double>(end - begin);
}

}  // namespace orrery::bench
