#include "tools/vm/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace orrery::vm {

namespace {

// Runs in the child. Returns only on failure.
void become(const Launch& launch, pid_t parent) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent ended before prctl
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || ::dup2(launch.in < 0 ? null : launch.in, 0) < 0 ||
        ::dup2(launch.out < 0 ? null : launch.out, 1) < 0 ||
        ::dup2(launch.err < 0 ? null : launch.err, 2) < 0)
        return;
    for (const int fd : launch.keep)
        ::fcntl(fd, F_SETFD, 0);
    std::vector<char*> argv;
    argv.reserve(launch.argv.size() + 1);
    for (const auto& argument : launch.argv)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
}

std::string read_all(int fd) {
    std::string text;
    char buffer[65536];
    for (;;) {
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return text;
        text.append(buffer, static_cast<std::size_t>(n));
    }
}

}  // namespace

void Fd::reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<std::pair<Fd, Fd>> socket_pair() {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return fail(fmt::format("cannot make a socket pair: {}", std::strerror(errno)));
    return std::pair{Fd(fds[0]), Fd(fds[1])};
}

Result<Fd> open_log(const std::string& path) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!fd) return fail(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
    return fd;
}

Result<Child> Child::start(const Launch& launch) {
    int report[2];  // the child tells errno here if it cannot become the program
    if (::pipe2(report, O_CLOEXEC) != 0)
        return fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    const Fd reader(report[0]);
    Fd writer(report[1]);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return fail(fmt::format("cannot start {}: {}", launch.argv[0], std::strerror(errno)));
    if (pid == 0) {
        become(launch, parent);
        const int error = errno;
        [[maybe_unused]] const auto ignored = ::write(writer.get(), &error, sizeof error);
        ::_exit(127);
    }
    ::setpgid(pid, pid);  // in both processes, so that it holds whoever runs first
    writer.reset();
    Child child(pid, Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))));
    int error = 0;
    if (::read(reader.get(), &error, sizeof error) == sizeof error)
        return fail(fmt::format("cannot start {}: {}", launch.argv[0], std::strerror(error)));
    if (!child.pidfd_) return fail("pidfd_open failed: Linux 5.3 or later is needed");
    return child;
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)), status_(other.status_) {}

Child& Child::operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(pidfd_, other.pidfd_);
    std::swap(status_, other.status_);
    return *this;
}

Child::~Child() {
    end();
}

void Child::end() {
    if (pid_ < 0 || status_) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    wait(-1);
}

void Child::signal(int number) const {
    if (pid_ > 0 && !status_) ::kill(pid_, number);
}

std::optional<int> Child::wait(int milliseconds) {
    if (status_ || pid_ < 0) return status_;
    if (milliseconds >= 0) {
        pollfd poll{pidfd(), POLLIN, 0};
        if (::poll(&poll, 1, milliseconds) <= 0) return std::nullopt;
    }
    int status = 0;
    pid_t got = 0;
    do {
        got = ::waitpid(pid_, &status, 0);
    } while (got < 0 && errno == EINTR);
    if (got == pid_) status_ = status;
    return status_;
}

std::string describe_status(int wait_status) {
    if (WIFSIGNALED(wait_status))
        return fmt::format("was killed by signal {} ({})", WTERMSIG(wait_status),
                           ::strsignal(WTERMSIG(wait_status)));
    return fmt::format("exited with status {}", WEXITSTATUS(wait_status));
}

Result<std::string> capture(const std::vector<std::string>& argv) {
    int out[2];
    int err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
        return fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    const Fd out_reader(out[0]);
    const Fd err_reader(err[0]);
    Fd out_writer(out[1]);
    Fd err_writer(err[1]);
    auto child =
        Child::start({.argv = argv, .in = -1, .out = out_writer.get(), .err = err_writer.get(), .keep = {}});
    if (!child) return std::unexpected(child.error());
    out_writer.reset();
    err_writer.reset();
    // What our commands say on stderr fits into a pipe, so reading one after the other cannot block.
    std::string text = read_all(out_reader.get());
    const std::string errors = read_all(err_reader.get());
    const auto status = child->wait(-1);
    if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
        return fail(fmt::format("{} {}: {}", argv[0], status ? describe_status(*status) : "failed",
                                errors.empty() ? text : errors));
    return text;
}

}  // namespace orrery::vm
