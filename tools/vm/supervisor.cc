#include "tools/vm/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/vm/cards.h"
#include "tools/vm/console_log.h"
#include "tools/vm/initramfs.h"
#include "tools/vm/logs.h"
#include "tools/vm/process.h"
#include "tools/vm/qemu.h"
#include "tools/vm/runtime_dir.h"
#include "tools/vm/terminal.h"
#include "tools/vm/topology.h"
#include "tools/vm/tree.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPowerOffLimit = std::chrono::seconds(30);
constexpr int kCardStopLimit = 5000;  // milliseconds
constexpr std::size_t kTailLines = 15;

// Bytes on their way from one descriptor to another. Reading stops while writing is not possible.
struct Relay {
    int from = -1;
    int to = -1;
    std::string pending;
    bool open = true;  // `from` may still give something

    bool wants_read() const { return open && pending.empty(); }
    void read_some();
    void write_some();
};

void Relay::read_some() {
    char buffer[65536];
    const ssize_t n = ::read(from, buffer, sizeof buffer);
    if (n > 0)
        pending.append(buffer, static_cast<std::size_t>(n));
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        open = false;
}

void Relay::write_some() {
    // No more than a pipe takes at once when poll says that it takes something, so that this cannot block.
    const ssize_t n = ::write(to, pending.data(), std::min<std::size_t>(pending.size(), PIPE_BUF));
    if (n > 0)
        pending.erase(0, static_cast<std::size_t>(n));
    else if (n < 0 && errno != EINTR && errno != EAGAIN)
        pending.clear();  // nobody reads our output any more; the command goes on
}

Result<Fd> block_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
        ::sigaddset(&set, number);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) return fail(fmt::format("signalfd: {}", std::strerror(errno)));
    return fd;
}

class Run {
  public:
    Run(const Options& options, Fd signals) : options_(options), signals_(std::move(signals)) {}

    Result<void> prepare();
    void watch();
    int verdict();
    Failure with_logs(Failure failure) const;
    bool interrupted();
    int signal() const { return signal_; }

  private:
    Result<void> start_cards();
    Result<void> start_qemu();
    void write_run_file(const fs::path& qmp) const;
    void step();
    void guest_says(const std::string& line);
    void read_status();
    void read_console();
    void read_terminal();
    void check_cards();
    void stop(Failure failure);
    void stop_cards();
    void say(const std::string& text) const;

    const Options& options_;
    Fd signals_;
    Clock::time_point begin_ = Clock::now();
    Tree tree_;
    Kernel kernel_;
    std::optional<RuntimeDir> directory_;
    fs::path logs_;

    // Ends of the sockets to QEMU. They outlive it, so that nothing that it wrote is lost.
    Fd console_, status_, out_, err_, terminal_, nvme_;
    std::optional<ConsoleLog> console_log_;
    std::vector<Relay> relays_;
    Relay typed_;
    EscapeFilter escape_;
    std::string status_text_;
    bool console_open_ = true;
    bool status_open_ = true;

    std::vector<Card> cards_;
    std::optional<Child> qemu_;  // after the cards, so that it ends before them
    std::optional<int> qemu_status_;

    std::optional<Clock::time_point> deadline_;
    bool started_ = false;
    bool powering_off_ = false;
    std::string reached_ = "nothing";  // for messages: what the guest did last
    std::optional<int> command_status_;
    std::optional<Failure> failure_;
    int signal_ = 0;
};

void Run::say(const std::string& text) const {
    if (!options_.verbose) return;
    const std::chrono::duration<double> now = Clock::now() - begin_;
    fmt::print(stderr, "orrery-vm: {:6.2f} s  {}\n", now.count(), text);
}

Failure Run::with_logs(Failure failure) const {
    if (!logs_.empty()) failure.text += fmt::format("\n  logs: {}", logs_.string());
    return failure;
}

Result<void> Run::prepare() {
    auto tree = Tree::find();
    if (!tree) return std::unexpected(tree.error());
    tree_ = std::move(*tree);
    auto kernel = tree_.kernel(options_.kernel);
    if (!kernel) return std::unexpected(kernel.error());
    kernel_ = *kernel;
    auto directory = RuntimeDir::make();
    if (!directory) return std::unexpected(directory.error());
    directory_.emplace(std::move(*directory));

    auto archive = build_initramfs(options_, tree_, kernel_, terminal_size());
    if (!archive) return std::unexpected(archive.error());
    {
        std::ofstream file(directory_->path() / "initramfs", std::ios::binary);
        file << *archive;
        if (!file.flush()) return fail(fmt::format("cannot write {}/initramfs", directory_->path().string()));
    }
    say(fmt::format("initramfs made ({} MiB)", archive->size() >> 20));

    auto logs = make_log_dir(options_.logs);
    if (!logs) return std::unexpected(logs.error());
    logs_ = *logs;
    auto log = open_log((logs_ / "guest.log").string());
    if (!log) return std::unexpected(log.error());
    console_log_.emplace(std::move(*log));

    if (auto done = start_cards(); !done) return done;
    return start_qemu();
}

Result<void> Run::start_cards() {
    std::vector<Link> links = chain(options_.cards);
    if (!options_.topology.empty()) {
        auto loaded = load_topology(options_.topology, options_.cards);
        if (!loaded) return std::unexpected(loaded.error());
        links = std::move(*loaded);
    }
    if (!options_.record.empty()) {
        std::error_code error;
        fs::create_directories(options_.record, error);
        if (error)
            return fail(fmt::format("--record {}: the directory cannot be made: {}", options_.record.string(),
                                    error.message()));
    }
    for (unsigned i = 0; i < options_.cards; ++i) {
        auto card = start_card(options_, links, i, directory_->path(), logs_, signals_.get());
        if (!card) return std::unexpected(card.error());
        cards_.push_back(std::move(*card));
    }
    if (options_.cards > 0) say(fmt::format("{} cards are ready", options_.cards));
    return {};
}

Result<void> Run::start_qemu() {
    QemuFds fds;
    std::vector<Fd> theirs;
    Launch launch;
    const auto connect = [&](Fd& ours, int& number) -> Result<void> {
        auto pair = socket_pair();
        if (!pair) return std::unexpected(pair.error());
        ours = std::move(pair->first);
        ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
        number = pair->second.get();
        launch.keep.push_back(number);
        theirs.push_back(std::move(pair->second));
        return {};
    };
    if (auto done = connect(console_, fds.console); !done) return done;
    if (auto done = connect(status_, fds.status); !done) return done;
    if (auto done = connect(out_, fds.out); !done) return done;
    if (auto done = connect(err_, fds.err); !done) return done;
    relays_ = {{out_.get(), STDOUT_FILENO, {}, true}, {err_.get(), STDERR_FILENO, {}, true}};
    if (options_.shell) {
        if (auto done = connect(terminal_, fds.terminal); !done) return done;
        relays_.push_back({terminal_.get(), STDOUT_FILENO, {}, true});
        typed_ = {STDIN_FILENO, terminal_.get(), {}, true};
    }
    if (options_.nvme) {
        nvme_ = Fd(::memfd_create("orrery-nvme", MFD_CLOEXEC));
        if (!nvme_ || ::ftruncate(nvme_.get(), static_cast<off_t>(kNvmeBytes)) != 0)
            return fail(fmt::format("cannot make the NVMe device's memory: {}", std::strerror(errno)));
        fds.nvme = nvme_.get();
        launch.keep.push_back(fds.nvme);
    }

    QemuFiles files{.initramfs = directory_->path() / "initramfs", .cards = {}, .qmp = {}};
    for (const auto& card : cards_)
        files.cards.push_back(card.socket);
    if (options_.qmp) files.qmp = directory_->path() / "qmp.sock";
    auto log = open_log((logs_ / "qemu.log").string());
    if (!log) return std::unexpected(log.error());
    launch.argv = qemu_command(options_, tree_, kernel_, files, fds);
    launch.out = log->get();
    launch.err = log->get();
    auto qemu = Child::start(launch);
    if (!qemu) return std::unexpected(qemu.error());
    qemu_.emplace(std::move(*qemu));
    if (options_.timeout_s > 0 && !options_.shell)
        deadline_ = Clock::now() + kernel_.patience * std::chrono::seconds(options_.timeout_s);
    write_run_file(files.qmp);
    say("QEMU started");
    return {};
}

// For tests and tools that act on a run from outside while it goes.
void Run::write_run_file(const fs::path& qmp) const {
    nlohmann::ordered_json run{{"pid", ::getpid()}, {"kernel", kernel_.release}, {"qemu", qemu_->pid()}};
    if (!qmp.empty()) run["qmp"] = qmp.string();
    run["cards"] = nlohmann::ordered_json::array();
    for (const auto& card : cards_)
        run["cards"].push_back({{"index", card.index},
                                {"pid", card.process.pid()},
                                {"socket", card.socket.string()},
                                {"control", card.control.string()},
                                {"log", card.log.string()}});
    const fs::path fresh = logs_ / "run.json.new";
    std::ofstream(fresh) << run.dump(2) << "\n";
    std::error_code error;
    fs::rename(fresh, logs_ / "run.json", error);
}

void Run::stop(Failure failure) {
    if (!failure_) failure_ = std::move(failure);
    if (qemu_) qemu_->signal(SIGKILL);
}

bool Run::interrupted() {
    signalfd_siginfo info;
    if (::read(signals_.get(), &info, sizeof info) == sizeof info) signal_ = static_cast<int>(info.ssi_signo);
    return signal_ != 0;
}

void Run::guest_says(const std::string& line) {
    const auto space = line.find(' ');
    const std::string what = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (what == "boot") {
        reached_ = "the guest booted";
        say(fmt::format("the guest booted ({} s on its clock)", rest));
    } else if (what == "module-failed") {
        failure_ = {kExitModule, fmt::format("a module did not load: {}", rest)};
    } else if (what == "setup-failed") {
        failure_ = {kExitSetup, rest};
    } else if (what == "accel") {
        unsigned nodes = 0;
        std::from_chars(rest.data(), rest.data() + rest.size(), nodes);
        say(fmt::format("orrery.ko is loaded, {} device nodes", nodes));
        if (options_.expect_probe_failure && nodes != 0)
            failure_ = {kExitModule, fmt::format("{} of {} cards were probed, though a failure was expected",
                                                 nodes, options_.cards)};
        else if (!options_.expect_probe_failure && nodes != options_.cards)
            failure_ = {kExitModule,
                        fmt::format("the driver made {} device nodes for {} cards", nodes, options_.cards)};
    } else if (what == "start") {
        reached_ = "the command started";
        started_ = true;
        say("the command starts");
    } else if (what == "exit") {
        int status = 0;
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), status);
        if (error == std::errc{}) command_status_ = status;
        reached_ = "the command ended";
        say(fmt::format("the command ended with status {}", status));
        powering_off_ = true;
        deadline_ = Clock::now() + kernel_.patience * kPowerOffLimit;
    }
}

void Run::read_status() {
    char buffer[4096];
    const ssize_t n = ::read(status_.get(), buffer, sizeof buffer);
    if (n <= 0) {
        status_open_ = n < 0 && (errno == EINTR || errno == EAGAIN);
        return;
    }
    status_text_.append(buffer, static_cast<std::size_t>(n));
    for (auto end = status_text_.find('\n'); end != std::string::npos; end = status_text_.find('\n')) {
        const std::string line = status_text_.substr(0, end);
        status_text_.erase(0, end + 1);
        guest_says(line);
    }
}

void Run::read_console() {
    char buffer[65536];
    const ssize_t n = ::read(console_.get(), buffer, sizeof buffer);
    if (n > 0)
        console_log_->feed({buffer, static_cast<std::size_t>(n)});
    else
        console_open_ = n < 0 && (errno == EINTR || errno == EAGAIN);
    if (!console_open_) console_log_->feed("\n");
}

void Run::read_terminal() {
    char buffer[1024];
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n <= 0) {
        typed_.open = false;
        typed_.pending += '\x04';  // the end of our input is the end of the guest's
    } else if (escape_.feed({buffer, static_cast<std::size_t>(n)}, typed_.pending)) {
        command_status_ = 0;
        qemu_->signal(SIGKILL);
    }
}

void Run::check_cards() {
    for (auto& card : cards_) {
        if (powering_off_ || options_.allow_card_exit) continue;
        if (const auto status = card.process.wait(0)) {
            stop({kExitCardDied,
                  fmt::format(
                      "card {} (orrery-card) {} while the VM was running, after {}\n  the end of {}:\n{}",
                      card.index, describe_status(*status), reached_, card.log.string(),
                      tail(card.log, kTailLines))});
        }
    }
}

// One round: wait until something happens, and deal with it.
void Run::step() {
    std::vector<pollfd> fds;
    const auto add = [&fds](int fd, short events) { fds.push_back({fd, events, 0}); };
    add(signals_.get(), POLLIN);
    add(qemu_status_ ? -1 : qemu_->pidfd(), POLLIN);
    add(console_open_ ? console_.get() : -1, POLLIN);
    add(status_open_ ? status_.get() : -1, POLLIN);
    add(options_.shell && typed_.wants_read() ? STDIN_FILENO : -1, POLLIN);
    add(started_ && !typed_.pending.empty() ? terminal_.get() : -1, POLLOUT);
    const std::size_t first_relay = fds.size();
    for (const auto& relay : relays_)
        add(relay.pending.empty() ? (relay.open ? relay.from : -1) : relay.to,
            static_cast<short>(relay.pending.empty() ? POLLIN : POLLOUT));
    for (auto& card : cards_) {
        const bool watched = !powering_off_ && !options_.allow_card_exit && !failure_;
        add(watched ? card.process.pidfd() : -1, POLLIN);
    }

    int wait = -1;
    if (deadline_ && !qemu_status_) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline_ - Clock::now());
        wait = static_cast<int>(std::max<std::int64_t>(0, left.count() + 1));
    }
    if (::poll(fds.data(), fds.size(), wait) < 0) {
        if (errno != EINTR) stop({kExitSetup, fmt::format("poll: {}", std::strerror(errno))});
        return;
    }
    if (fds[0].revents != 0 && interrupted()) return;
    if (fds[2].revents != 0) read_console();
    if (fds[3].revents != 0) read_status();
    if (fds[4].revents != 0) read_terminal();
    if (fds[5].revents != 0) typed_.write_some();
    for (std::size_t i = 0; i < relays_.size(); ++i) {
        if (fds[first_relay + i].revents == 0) continue;
        if (relays_[i].pending.empty())
            relays_[i].read_some();
        else
            relays_[i].write_some();
    }
    if (fds[1].revents != 0) qemu_status_ = qemu_->wait(-1);
    check_cards();
    if (deadline_ && !qemu_status_ && Clock::now() >= *deadline_) {
        deadline_.reset();
        stop({kExitTimeLimit,
              powering_off_
                  ? fmt::format("the guest did not power off within {} s after the command",
                                (kernel_.patience * kPowerOffLimit).count())
                  : fmt::format("the time limit of {} s (--timeout) passed; the last thing seen: {}",
                                kernel_.patience * options_.timeout_s, reached_)});
    }
}

void Run::watch() {
    std::optional<RawTerminal> raw;
    if (options_.shell) {
        fmt::print(stderr, "orrery-vm: console of kernel {}; Ctrl-A X or exit leaves\r\n", kernel_.release);
        raw.emplace();
    }
    // QEMU's ends of the sockets close with it, so what it wrote is read up to its end.
    const auto draining = [this] {
        if (console_open_ || status_open_) return true;
        for (const auto& relay : relays_)
            if (relay.open || !relay.pending.empty()) return true;
        return false;
    };
    while (signal_ == 0 && (!qemu_status_ || draining()))
        step();
    raw.reset();
    if (signal_ != 0) return;
    say(fmt::format("QEMU {}", describe_status(*qemu_status_)));
    stop_cards();
}

void Run::stop_cards() {
    for (auto& card : cards_)
        card.process.signal(SIGTERM);
    for (auto& card : cards_) {
        const auto status = card.process.wait(kCardStopLimit);
        const bool clean = status && ((WIFEXITED(*status) && WEXITSTATUS(*status) == 0) ||
                                      (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGTERM));
        if (clean || failure_ || options_.allow_card_exit) continue;
        failure_ = {kExitCardDied,
                    fmt::format("card {} (orrery-card) {} after the VM had ended\n  the end of {}:\n{}",
                                card.index, status ? describe_status(*status) : "did not stop on SIGTERM",
                                card.log.string(), tail(card.log, kTailLines))};
    }
}

int Run::verdict() {
    if (signal_ != 0) {
        fmt::print(stderr, "orrery-vm: stopped by signal {}\n", signal_);
        return kExitSignalBase + signal_;
    }
    const auto& trouble = console_log_->trouble();
    const bool told = trouble && (*trouble != Trouble::kWarning || !options_.allow_warnings);
    std::optional<Failure> failure = failure_;
    // The kernel's own report tells more than the hang or the missing module that follows from it.
    if (told && (!failure || failure->code == kExitTimeLimit || failure->code == kExitModule)) {
        const char* kind = *trouble == Trouble::kPanic   ? "the guest kernel panicked"
                           : *trouble == Trouble::kFault ? "the guest kernel reported a fault"
                                                         : "the guest kernel warned";
        failure = {kExitKernelReport, fmt::format("{}: {}", kind, console_log_->line())};
        if (command_status_)
            failure->text += fmt::format("\n  (the command ended with status {})", *command_status_);
    }
    if (!failure && !command_status_) {
        failure = {kExitVmEnded, fmt::format("QEMU {} before the command's end; the last thing seen: {}",
                                             describe_status(*qemu_status_), reached_)};
        if (const auto text = tail(logs_ / "qemu.log", kTailLines); !text.empty())
            failure->text += "\n  the end of qemu.log:\n" + text;
    }
    if (!failure) {
        if (*command_status_ != 0)
            fmt::print(stderr, "orrery-vm: the command ended with status {}; logs: {}\n", *command_status_,
                       logs_.string());
        return *command_status_;
    }
    if (failure->code == kExitKernelReport)
        failure->text += fmt::format("\n  guest.log from there:\n{}", console_log_->context());
    else if (const auto text = tail(logs_ / "guest.log", kTailLines);
             failure->code != kExitCardDied && !text.empty())
        failure->text += "\n  the end of guest.log:\n" + text;
    while (failure->text.ends_with('\n'))
        failure->text.pop_back();
    fmt::print(stderr, "orrery-vm: error: {}\n", with_logs(*failure).text);
    return failure->code;
}

}  // namespace

int run_vm(const Options& options) {
    auto signals = block_signals();
    if (!signals) {
        fmt::print(stderr, "orrery-vm: error: {}\n", signals.error().text);
        return signals.error().code;
    }
    Run run(options, std::move(*signals));
    if (auto ready = run.prepare(); !ready) {
        if (run.interrupted()) return run.verdict();
        fmt::print(stderr, "orrery-vm: error: {}\n", run.with_logs(ready.error()).text);
        return ready.error().code;
    }
    run.watch();
    return run.verdict();
}

}  // namespace orrery::vm
