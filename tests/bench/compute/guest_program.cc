#include "tests/bench/compute/guest_program.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace orrery::bench {
namespace {

double seconds_on_cpus(pid_t process) {
    clockid_t clock{};
    timespec time{};
    if (process <= 0) return 0;
    if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
        throw std::runtime_error("the process of a card, or QEMU, has ended");
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

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

// Of the processes that the command has started; QEMU has the name of its loader.
std::vector<pid_t> GuestProgram::find(bool cards) const {
    namespace fs = std::filesystem;
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
        std::ifstream in(entry.path() / "status");
        const std::string status{std::istreambuf_iterator<char>(in), {}};
        if (status.find(fmt::format("\nPPid:\t{}\n", process_)) != std::string::npos &&
            status.starts_with("Name:\torrery-card\n") == cards)
            found.push_back(std::stoi(entry.path().filename()));
    }
    if (found.empty())
        throw std::runtime_error(fmt::format("orrery-vm has started no {}", cards ? "orrery-card" : "QEMU"));
    std::ranges::sort(found);
    return found;
}

double GuestProgram::seconds_of_cards() const {
    double seconds = 0;
    for (const pid_t card : cards_)
        seconds += seconds_on_cpus(card);
    return seconds;
}

pid_t GuestProgram::card() {
    if (cards_.empty()) cards_ = find(true);
    return cards_.front();
}

Answer GuestProgram::ask(const char* what) {
    Answer answer;
    const double cards_before = seconds_of_cards(), vm_before = seconds_on_cpus(vm_);
    char line[128];
    if (std::fprintf(to_.get(), "%s\n", what) < 0 || std::fflush(to_.get()) != 0 ||
        std::fgets(line, sizeof line, from_.get()) == nullptr ||
        std::sscanf(line, "%lf %lf", &answer.seconds, &answer.model_ns) != 2)
        throw std::runtime_error(fmt::format("the program in the VM did not answer '{}'", what));
    answer.cpu_seconds = seconds_of_cards() - cards_before;
    answer.vm_cpu_seconds = seconds_on_cpus(vm_) - vm_before;
    (void)card();  // which are there by now
    if (vm_ <= 0) vm_ = find(false).front();
    return answer;
}

int main_of(const char* bench, int argc, char** argv, void (*measure)(Measured& measured, char** command)) {
    if (argc < 2) {
        fmt::print(stderr,
                   "usage: {0} COMMAND...\nCOMMAND starts {0}_guest, in a VM with a card. "
                   "orrery-bench makes a table of what is printed.\n",
                   bench);
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN);
    try {
        Measured measured;
        measure(measured, argv + 1);
        return measured.print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", bench, error.what());
        return 1;
    }
}

}  // namespace orrery::bench
