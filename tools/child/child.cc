#include "tools/child/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace orrery::child {
namespace {

using text::fail;
using text::Result;

std::string reason() {
    return std::generic_category().message(errno);
}

pid_t g_child = 0;

// While there is one: who ends the tool means the command, and of a terminal's interrupts that hears by
// itself.
class Signals {
  public:
    Signals() {
        struct sigaction action{};
        action.sa_sigaction = &pass_on;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        for (std::size_t i = 0; i < kSignals.size(); ++i)
            ::sigaction(kSignals[i], &action, &before_[i]);
    }
    ~Signals() {
        for (std::size_t i = 0; i < kSignals.size(); ++i)
            ::sigaction(kSignals[i], &before_[i], nullptr);
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

  private:
    static void pass_on(int signal, siginfo_t* info, void*) {
        const bool of_terminal = (signal == SIGINT || signal == SIGQUIT) && info->si_code == SI_KERNEL;
        if (g_child > 0 && !of_terminal) ::kill(g_child, signal);
    }
    static constexpr std::array kSignals{SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    std::array<struct sigaction, kSignals.size()> before_{};
};

[[noreturn]] void execute(const std::vector<std::string>& command, int told) {
    std::vector<char*> words;
    for (const std::string& word : command)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    const int error = errno;
    (void)!::write(told, &error, sizeof error);
    ::_exit(127);
}

void tick_until_ended(pid_t child, const Ticks& ticks) {
    const int watched = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    if (watched < 0) return;  // a kernel without: only what is told meanwhile is missing
    pollfd ended{watched, POLLIN, 0};
    const int each = static_cast<int>(std::min<std::int64_t>(ticks.each.count(), 3'600'000));
    for (int found = 0; found == 0 || (found < 0 && errno == EINTR);) {
        found = ::poll(&ended, 1, each);
        if (found == 0) ticks.tick();
    }
    ::close(watched);
}

}  // namespace

Result<int> run(const std::vector<std::string>& command, const std::function<void()>& prepare,
                const Ticks& ticks) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return fail("no pipe: {}", reason());
    g_child = ::fork();
    if (g_child == 0) {
        if (prepare) prepare();
        execute(command, pipe[1]);
    }
    ::close(pipe[1]);
    if (g_child < 0) {
        ::close(pipe[0]);
        return fail("{} cannot be started: {}", command[0], reason());
    }
    const Signals signals;
    int error = 0, status = 0;
    const bool failed = ::read(pipe[0], &error, sizeof error) == sizeof error;
    ::close(pipe[0]);
    if (!failed && ticks.each.count() > 0) tick_until_ended(g_child, ticks);
    while (::waitpid(g_child, &status, 0) < 0 && errno == EINTR) {
    }
    g_child = 0;
    if (failed) {
        return fail("{} cannot be started: {}", command[0], std::generic_category().message(error));
    }
    return status;
}

int exit_status(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace orrery::child
