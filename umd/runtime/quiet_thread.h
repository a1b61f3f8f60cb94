// Threads of the library's own: a program's signal handlers do not run on them.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <mutex>
#include <thread>
#include <utility>

namespace orrery::umd {

// body: takes a stop token.
template <typename Body>
std::jthread start_quiet_thread(Body&& body) {
    // A new thread inherits the mask; so it never has another.
    struct Blocked {
        Blocked() {
            sigset_t all;
            ::sigfillset(&all);
            ::pthread_sigmask(SIG_SETMASK, &all, &before);
        }
        ~Blocked() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
        sigset_t before{};
    } const blocked;
    return std::jthread(std::forward<Body>(body));
}

// Asks one that `mutex` is over to stop, and waits until it has. False: there was none.
inline bool end_quiet_thread(std::mutex& mutex, std::jthread& its) {
    std::jthread thread;
    {
        const std::lock_guard lock(mutex);
        thread = std::move(its);
    }
    if (!thread.joinable()) return false;
    thread.request_stop();
    thread.join();
    return true;
}

}  // namespace orrery::umd
