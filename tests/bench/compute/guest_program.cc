#include "tests/bench/compute/guest_program.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace orrery::bench {

GuestProgram::GuestProgram(char* const* command) {
    std::array<int, 2> down{}, up{};
    if (::pipe(down.data()) != 0 || ::pipe(up.data()) != 0) throw std::runtime_error("there are no pipes");
    process_ = ::fork();
    if (process_ == 0) {
        ::dup2(down[0], STDIN_FILENO);
        ::dup2(up[1], STDOUT_FILENO);
        for (const int fd : {down[0], down[1], up[0], up[1]})
            ::close(fd);
        ::execvp(command[0], command);
        std::fprintf(stderr, "%s: %s\n", command[0], std::strerror(errno));
        ::_exit(127);
    }
    ::close(down[0]);
    ::close(up[1]);
    to_.reset(::fdopen(down[1], "w"));
    from_.reset(::fdopen(up[0], "r"));
    if (process_ < 0) throw std::runtime_error("there are no more processes");
}

GuestProgram::~GuestProgram() {
    to_.reset();
    from_.reset();
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
}

pid_t GuestProgram::card() {
    namespace fs = std::filesystem;
    if (card_ > 0) return card_;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        std::ifstream in(entry.path() / "status");
        const std::string status{std::istreambuf_iterator<char>(in), {}};
        if (status.find("Name:\torrery-card\n") != std::string::npos &&
            status.find(fmt::format("\nPPid:\t{}\n", process_)) != std::string::npos)
            return card_ = std::stoi(entry.path().filename());
    }
    throw std::runtime_error("orrery-vm has started no orrery-card");
}

double GuestProgram::card_seconds() const {
    clockid_t clock{};
    timespec time{};
    if (card_ <= 0) return 0;
    if (::clock_getcpuclockid(card_, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
        throw std::runtime_error("the card's process has ended");
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Answer GuestProgram::ask(const char* what) {
    Answer answer;
    const double before = card_seconds();
    char line[128];
    if (std::fprintf(to_.get(), "%s\n", what) < 0 || std::fflush(to_.get()) != 0 ||
        std::fgets(line, sizeof line, from_.get()) == nullptr ||
        std::sscanf(line, "%lf %lf", &answer.seconds, &answer.model_ns) != 2)
        throw std::runtime_error(fmt::format("the program in the VM did not answer '{}'", what));
    answer.cpu_seconds = card_seconds() - before;
    card();  // which is there by now
    return answer;
}

}  // namespace orrery::bench
