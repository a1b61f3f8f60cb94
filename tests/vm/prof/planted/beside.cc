#include "tests/vm/prof/planted/beside.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <exception>
#include <stdexcept>

namespace planted {
namespace {

// Ends the process when `over` can be read, with what is queued; tells `begun` when it is as far ahead as it
// wants to be.
[[noreturn]] void work_ahead(unsigned rows_ahead, const std::function<Row()>& others, int over, int begun) {
    const Row queue_row = others();
    pollfd ended{.fd = over, .events = POLLIN, .revents = 0};
    std::deque<orrery::Event> rows;
    for (unsigned row = 1; ::poll(&ended, 1, 0) == 0; ++row) {
        rows.emplace_back(orrEventDisableTiming);
        queue_row(rows.back());
        if (row < rows_ahead) continue;
        if (row == rows_ahead) (void)!::write(begun, "", 1);
        rows.front().synchronize();
        rows.pop_front();
    }
    ::_exit(0);
}

}  // namespace

void beside(unsigned rows_ahead, const std::function<Row()>& others, const std::function<void()>& own) {
    int ends[2], begun[2];
    if (::pipe(ends) != 0 || ::pipe(begun) != 0) throw std::runtime_error("no pipe");
    const pid_t other = ::fork();
    if (other == 0) {
        ::close(ends[1]);
        ::close(begun[0]);
        try {
            work_ahead(rows_ahead, others, ends[0], begun[1]);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "the other process: %s\n", error.what());
            ::_exit(1);
        }
    }
    ::close(begun[1]);
    char byte;
    if (::read(begun[0], &byte, 1) != 1) throw std::runtime_error("the other process has failed");
    own();
    ::close(ends[1]);
    int status = 0;
    ::waitpid(other, &status, 0);
    for (const int end : {ends[0], begun[0]})
        ::close(end);
    if (status != 0) throw std::runtime_error("the other process has failed meanwhile");
}

}  // namespace planted
