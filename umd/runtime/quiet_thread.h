// Threads of the library's own: a program's signal handlers do not run on them.
#pragma once

#include <pthread.h>
#include <signal.h>

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

}  // namespace orrery::umd
