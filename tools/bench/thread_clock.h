// Time of this thread on a CPU: other programs on the host do not count.
#pragma once

#include <time.h>

namespace orrery::bench {

inline double thread_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
double thread_seconds_of(Work&& work) {
    const double begin = thread_seconds();
    work();
    return thread_seconds() - begin;
}

// Keeps the compiler from leaving out what was written to memory.
inline void written() {
    asm volatile("" ::: "memory");
}

}  // namespace orrery::bench
