// Child processes that never outlive orrery-vm.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/vm/result.h"

namespace orrery::vm {

// A file descriptor that closes itself.
class Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Fd() { reset(); }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    void reset();

  private:
    int fd_ = -1;
};

// A connected pair of UNIX stream sockets, both close-on-exec.
Result<std::pair<Fd, Fd>> socket_pair();

// A file for writing at the end, made if missing, close-on-exec.
Result<Fd> open_log(const std::string& path);

struct Launch {
    std::vector<std::string> argv;  // argv[0] is looked up in PATH
    int in = -1;                    // -1: /dev/null
    int out = -1;
    int err = -1;
    std::vector<int> keep;  // descriptors that stay open under their numbers
};

// One child, in a process group of its own. It gets SIGKILL when this process ends in whatever way, and when
// this object goes.
class Child {
  public:
    static Result<Child> start(const Launch& launch);
    Child(Child&& other) noexcept;
    Child& operator=(Child&& other) noexcept;
    ~Child();

    pid_t pid() const { return pid_; }
    int pidfd() const { return pidfd_.get(); }  // readable when the child has ended
    void signal(int number) const;

    // Waits at most this long; -1 waits for ever. The wait status as waitpid gives it, or nothing.
    std::optional<int> wait(int milliseconds);

  private:
    Child(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
    void end();

    pid_t pid_ = -1;
    Fd pidfd_;
    std::optional<int> status_;
};

// "exited with status 3", "was killed by signal 11 (Segmentation fault)"
std::string describe_status(int wait_status);

// Runs a command to its end and gives its standard output. A status other than 0 is an error that holds what
// the command wrote to stderr.
Result<std::string> capture(const std::vector<std::string>& argv);

}  // namespace orrery::vm
