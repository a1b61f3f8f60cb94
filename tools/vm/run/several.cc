#include "tools/vm/run/several.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tools/vm/logs.h"
#include "tools/vm/runtime_dir.h"

namespace orrery::vm {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// For a VM that is told to stop: it ends QEMU and its cards at once, and has logs to write.
constexpr auto kStopLimit = std::chrono::seconds(15);
constexpr std::size_t kLongestLine = 65536;
// On the socket to a VM's run: what it says, and what it is told. The end of the socket: it may go.
constexpr char kReady = 'r', kEnded = 'e', kBegin = 'b';

// What a VM writes, by lines, so that those of several do not mix.
class Lines {
  public:
    Lines(Fd from, int to, std::string prefix)
        : from_(std::move(from)), to_(to), prefix_(std::move(prefix)) {}

    int fd() const { return from_.get(); }
    bool open() const { return static_cast<bool>(from_); }

    void read_some() {
        std::array<char, 16384> buffer;
        const ssize_t n = ::read(from_.get(), buffer.data(), buffer.size());
        if (n > 0) {
            text_.append(buffer.data(), static_cast<std::size_t>(n));
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            from_.reset();
            if (!text_.empty()) text_ += '\n';
        }
        std::size_t begin = 0;
        for (std::size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1)
            put(text_.substr(begin, end + 1 - begin));
        text_.erase(0, begin);
        if (text_.size() > kLongestLine) put(std::exchange(text_, {}) + "\n");
    }

  private:
    void put(const std::string& line) const {
        const std::string whole = prefix_ + line;
        for (std::size_t at = 0; at < whole.size();) {
            const ssize_t n = ::write(to_, whole.data() + at, whole.size() - at);
            if (n < 0 && errno == EAGAIN) {
                pollfd room{to_, POLLOUT, 0};
                ::poll(&room, 1, -1);
            } else if (n < 0 && errno != EINTR) {
                return;  // nobody reads it any more; the VM goes on
            }
            at += n > 0 ? static_cast<std::size_t>(n) : 0;
        }
    }

    Fd from_;
    int to_;
    std::string prefix_;
    std::string text_;
};

struct OneVm {
    unsigned number;
    Child process;
    Fd hold;
    bool guest_ready = false, guest_ended = false;
    std::optional<int> status;  // as orrery-vm ends
};

int status_of(int wait_status) {
    return WIFSIGNALED(wait_status) ? kExitSignalBase + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

class Several {
  public:
    Several(const Options& options, Fd signals) : options_(options), signals_(std::move(signals)) {}

    Result<void> start();
    int watch();

  private:
    Result<void> start_one(unsigned number);
    std::vector<std::string> command_of(unsigned number, int hold) const;
    // What all guests see as /share if nothing else was given: files of theirs for each other.
    fs::path share() const { return directory_->path() / "share"; }
    bool all(bool (*has)(const OneVm&)) const { return std::ranges::all_of(vms_, has); }
    void step();
    void look_at(OneVm& vm);
    void hear(OneVm& vm);
    void let_begin();
    void let_go();
    void stop_all(int signal);
    int told() const;

    const Options& options_;
    Fd signals_;
    std::optional<RuntimeDir> directory_;
    fs::path logs_;
    std::vector<OneVm> vms_;
    std::vector<Lines> lines_;
    std::optional<std::pair<unsigned, int>> first_;  // VM that failed first, and its status
    std::optional<Clock::time_point> kill_at_;
    int signal_ = 0;
    bool let_begin_ = false, let_go_ = false;
};

std::vector<std::string> Several::command_of(unsigned number, int hold) const {
    std::vector<std::string> argv{"/proc/self/exe"};
    argv.insert(argv.end(), options_.given.begin(), options_.given.end());
    argv.insert(argv.end(),
                {"--vm", fmt::format("{}", number), "--shared", directory_->path().string(), "--hold",
                 fmt::format("{}", hold), "--logs", (logs_ / fmt::format("vm{}", number)).string()});
    if (options_.share.empty()) argv.insert(argv.end(), {"--share", share().string()});
    // What it would find out by its own terminal, which it does not have.
    argv.insert(argv.end(), {"--timeout", fmt::format("{}", options_.timeout_s), "--"});
    argv.insert(argv.end(), options_.command.begin(), options_.command.end());
    return argv;
}

Result<void> Several::start_one(unsigned number) {
    int out[2], err[2];
    if (::pipe2(out, O_CLOEXEC) != 0)
        return fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    Fd out_reader(out[0]), out_writer(out[1]);
    if (::pipe2(err, O_CLOEXEC) != 0)
        return fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    Fd err_reader(err[0]), err_writer(err[1]);
    auto hold = socket_pair();
    if (!hold) return std::unexpected(hold.error());
    auto child = Child::start({.argv = command_of(number, hold->second.get()),
                               .in = -1,
                               .out = out_writer.get(),
                               .err = err_writer.get(),
                               .keep = {hold->second.get()}});
    if (!child) return std::unexpected(child.error());
    const std::string prefix = options_.prefix ? fmt::format("vm{}: ", number) : "";
    lines_.emplace_back(std::move(out_reader), STDOUT_FILENO, prefix);
    lines_.emplace_back(std::move(err_reader), STDERR_FILENO, prefix);
    vms_.push_back({number, std::move(*child), std::move(hold->first), false, false, {}});
    return {};
}

Result<void> Several::start() {
    auto directory = RuntimeDir::make();
    if (!directory) return std::unexpected(directory.error());
    directory_.emplace(std::move(*directory));
    std::error_code error;
    if (!fs::create_directory(share(), error) && error)
        return fail(fmt::format("cannot make {}: {}", share().string(), error.message()));
    auto logs = make_log_dir(options_.logs);
    if (!logs) return std::unexpected(logs.error());
    logs_ = *logs;
    for (unsigned number = 0; number < options_.vms; ++number)
        if (auto done = start_one(number); !done) return done;
    return {};
}

void Several::hear(OneVm& vm) {
    char what = 0;
    if (::read(vm.hold.get(), &what, 1) != 1) return vm.hold.reset();
    vm.guest_ready |= what == kReady;
    vm.guest_ended |= what == kEnded;
}

// No command runs before all VMs have their cards, or one that fails at once would leave others in their
// boot.
void Several::let_begin() {
    if (let_begin_ || !all([](const OneVm& vm) { return vm.guest_ready || vm.status; })) return;
    let_begin_ = true;
    for (const OneVm& vm : vms_)
        if (vm.hold) [[maybe_unused]]
            const auto ignored = ::write(vm.hold.get(), &kBegin, 1);
}

// Its cards stay until all guests have ended; then all may go.
void Several::let_go() {
    if (let_go_ || !all([](const OneVm& vm) { return vm.guest_ended || vm.status; })) return;
    let_go_ = true;
    for (OneVm& vm : vms_)
        vm.hold.reset();
}

void Several::stop_all(int signal) {
    for (OneVm& vm : vms_)
        if (!vm.status) vm.process.signal(signal);
}

void Several::look_at(OneVm& vm) {
    const auto ended = vm.process.wait(0);
    if (!ended || vm.status) return;
    vm.status = status_of(*ended);
    vm.hold.reset();
    if (*vm.status == 0 || first_) return;
    first_ = {vm.number, *vm.status};
    if (options_.allow_vm_exit || signal_ != 0) return;
    kill_at_ = Clock::now() + kStopLimit;
    stop_all(SIGTERM);
}

void Several::step() {
    std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}};
    for (const Lines& lines : lines_)
        fds.push_back({lines.open() ? lines.fd() : -1, POLLIN, 0});
    for (const OneVm& vm : vms_) {
        fds.push_back({vm.status ? -1 : vm.process.pidfd(), POLLIN, 0});
        fds.push_back({vm.hold.get(), POLLIN, 0});
    }
    int wait = -1;
    if (kill_at_)
        wait = static_cast<int>(std::max<std::int64_t>(
            0, std::chrono::duration_cast<std::chrono::milliseconds>(*kill_at_ - Clock::now()).count() + 1));
    if (::poll(fds.data(), fds.size(), wait) < 0) return;
    signalfd_siginfo info;
    if (fds[0].revents != 0 && ::read(signals_.get(), &info, sizeof info) == sizeof info && signal_ == 0) {
        signal_ = static_cast<int>(info.ssi_signo);
        kill_at_ = Clock::now() + kStopLimit;
        stop_all(SIGTERM);
    }
    std::size_t at = 1;
    for (Lines& lines : lines_)
        if (fds[at++].revents != 0) lines.read_some();
    for (OneVm& vm : vms_) {
        if (fds[at++].revents != 0) look_at(vm);
        if (fds[at++].revents != 0 && vm.hold) hear(vm);
    }
    let_begin();
    let_go();
    if (kill_at_ && Clock::now() >= *kill_at_) {
        kill_at_.reset();
        stop_all(SIGKILL);
    }
}

int Several::watch() {
    while (!all([](const OneVm& vm) { return vm.status.has_value(); }) ||
           std::ranges::any_of(lines_, &Lines::open))
        step();
    return told();
}

int Several::told() const {
    if (signal_ != 0) {
        fmt::print(stderr, "orrery-vm: stopped by signal {}\n", signal_);
        return kExitSignalBase + signal_;
    }
    if (!first_) return 0;
    const auto [number, status] = *first_;
    fmt::print(stderr, "orrery-vm: vm{} was the first to fail, with status {}{}\n  logs: {}\n", number,
               status, options_.allow_vm_exit ? "" : "; the others were stopped", logs_.string());
    return status;
}

}  // namespace

Nodes nodes_of(const Options& options) {
    const unsigned count = (ORR_NODES - 1) / options.vms;
    return {1 + count * options.vm.value_or(0), count};
}

Options options_of(const Options& options, unsigned vm) {
    Options own = options;
    own.vm = vm;
    if (!own.report.empty()) own.report += fmt::format(".vm{}", vm);
    const Nodes nodes = nodes_of(own);
    own.module_params += fmt::format("{}first_node={} nodes={}", own.module_params.empty() ? "" : " ",
                                     nodes.first, nodes.count);
    own.env.insert(own.env.begin(), {fmt::format("ORR_VM={}", vm), fmt::format("ORR_VMS={}", options.vms)});
    return own;
}

int run_several(const Options& options, Fd signals) {
    Several several(options, std::move(signals));
    if (auto started = several.start(); !started) {
        fmt::print(stderr, "orrery-vm: error: {}\n", started.error().text);
        return started.error().code;
    }
    return several.watch();
}

void tell_ready(int hold) {
    [[maybe_unused]] const auto ignored = ::write(hold, &kReady, 1);
}

bool may_begin(int hold) {
    char what = 0;
    return ::read(hold, &what, 1) == 1 && what == kBegin;
}

void wait_for_others(int hold, const Signals& signals, const std::function<void()>& report) {
    if (::write(hold, &kEnded, 1) != 1) return;
    while (true) {
        pollfd fds[] = {{hold, POLLIN, 0}, {signals.end.get(), POLLIN, 0}, {signals.report.get(), POLLIN, 0}};
        if (::poll(fds, 3, -1) < 0 && errno == EINTR) continue;
        if ((fds[0].revents | fds[1].revents) != 0 || fds[2].revents == 0) return;
        report();
    }
}

}  // namespace orrery::vm
