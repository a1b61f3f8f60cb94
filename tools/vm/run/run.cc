#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "tools/vm/guest_modules.h"
#include "tools/vm/initramfs.h"
#include "tools/vm/logs.h"
#include "tools/vm/qemu.h"
#include "tools/vm/run/dry_run.h"
#include "tools/vm/run/run.h"
#include "tools/vm/run/several.h"
#include "tools/vm/run/supervisor.h"
#include "tools/vm/unpacked_kernel.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr int kTerminalLook = 500;  // milliseconds
// For all cards and switches, which may have memory to give back, or the end of a recording to write.
constexpr std::chrono::seconds kCardStopLimit{30};

Result<Fd> block(std::initializer_list<int> numbers) {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int number : numbers)
        ::sigaddset(&set, number);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) return fail(fmt::format("signalfd: {}", std::strerror(errno)));
    return fd;
}

// SIGUSR1 ends no wait: it is by itself, and waits until somebody looks for it.
Result<Signals> block_signals() {
    ::signal(SIGPIPE, SIG_IGN);
    auto ends = block({SIGINT, SIGTERM, SIGHUP, SIGQUIT});
    if (!ends) return std::unexpected(ends.error());
    auto reports = block({SIGUSR1});
    if (!reports) return std::unexpected(reports.error());
    return Signals{std::move(*ends), std::move(*reports)};
}

}  // namespace

void Run::say(const std::string& text) const {
    if (!options_.verbose) return;
    const std::chrono::duration<double> now = Clock::now() - begin_;
    fmt::print(stderr, "orrery-vm: {:6.2f} s  {}\n", now.count(), text);
}

Result<void> Run::prepare() {
    auto tree = Tree::find();
    if (!tree) return std::unexpected(tree.error());
    tree_ = std::move(*tree);
    auto kernel = find_kernel(tree_, options_);
    if (!kernel) return std::unexpected(kernel.error());
    kernel_ = *kernel;
    auto directory = RuntimeDir::make();
    if (!directory) return std::unexpected(directory.error());
    directory_.emplace(std::move(*directory));

    auto modules = choose_modules(options_, tree_, kernel_);
    if (!modules) return std::unexpected(modules.error());
    module_file_ = modules->orrery_file;
    if (options_.net) {
        auto segment = Segment::join(*options_.net, signals_.end.get());
        if (!segment) return std::unexpected(segment.error());
        segment_.emplace(std::move(*segment));
        say(fmt::format("vm{} ({}) on the network {}", segment_->number(),
                        segment_address(segment_->number()), options_.net->name));
    }
    std::optional<RootImage> root;
    if (!options_.root.empty()) {
        auto found = find_root(options_.root);
        if (!found) return std::unexpected(found.error());
        root = std::move(*found);
        root_image_ = root->image;
    }
    auto archive = build_initramfs(options_, {.tree = tree_,
                                              .kernel = kernel_,
                                              .modules = *modules,
                                              .root = root ? &*root : nullptr,
                                              .net_number = segment_ ? segment_->number() : 0,
                                              .terminal = terminal_size()});
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
    if (!options_.record.empty()) {
        std::error_code error;
        fs::create_directories(options_.record, error);
        if (error)
            return fail(fmt::format("--record {}: the directory cannot be made: {}", options_.record.string(),
                                    error.message()));
    }
    const unsigned first = options_.first_card();
    for (unsigned i = first; i < first + options_.cards; ++i) {
        auto card = start_card(options_, i, directory_->path(), logs_, signals_.end.get());
        if (!card) return std::unexpected(card.error());
        cards_.push_back(std::move(*card));
    }
    // Of several VMs the first has the switches.
    const bool has_switches = options_.vm.value_or(0) == 0;
    for (unsigned i = 0; has_switches && i < options_.joined.switches.size(); ++i) {
        auto made = start_switch(options_, i, directory_->path(), logs_, signals_.end.get());
        if (!made) return std::unexpected(made.error());
        switches_.push_back(std::move(*made));
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
    if (auto done = connect(in_, options_.shell ? fds.terminal : fds.in); !done) return done;
    if (options_.shell) relays_.push_back({in_.get(), STDOUT_FILENO, {}, true});
    input_ = {STDIN_FILENO, in_.get(), {}, true};
    if (segment_) {
        Fd guest;
        if (auto done = connect(guest, fds.net); !done) return done;
        fds.net_number = segment_->number();
        switch_.emplace(std::move(*segment_), std::move(guest));
        segment_.reset();
    }
    if (options_.nvme) {
        nvme_ = Fd(::memfd_create("orrery-nvme", MFD_CLOEXEC));
        if (!nvme_ || ::ftruncate(nvme_.get(), static_cast<off_t>(kNvmeBytes)) != 0)
            return fail(fmt::format("cannot make the NVMe device's memory: {}", std::strerror(errno)));
        fds.nvme = nvme_.get();
        launch.keep.push_back(fds.nvme);
    }

    QemuFiles files{.kernel = boot_file(tree_, kernel_, true),
                    .initramfs = directory_->path() / "initramfs",
                    .root = root_image_,
                    .cards = {},
                    .qmp = {},
                    .gdb = {}};
    for (const auto& card : cards_)
        files.cards.push_back(card.socket);
    if (options_.qmp) files.qmp = directory_->path() / "qmp.sock";
    if (options_.gdb) files.gdb = directory_->path() / "gdb.sock";
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
    if (options_.gdb) {
        write_gdb_script();
        fmt::print(stderr, "orrery-vm: to debug the guest's kernel: gdb -x {}\n",
                   (logs_ / "kernel.gdb").string());
    }
    say("QEMU started");
    return {};
}

// For tests and tools that act on a run from outside while it goes.
void Run::write_run_file(const fs::path& qmp) const {
    nlohmann::ordered_json run{{"pid", ::getpid()}, {"kernel", kernel_.release}, {"qemu", qemu_->pid()}};
    if (!qmp.empty()) run["qmp"] = qmp.string();
    if (switch_) run["net"] = {{"name", options_.net->name}, {"address", segment_address(switch_->number())}};
    run["cards"] = nlohmann::ordered_json::array();
    for (const auto& card : cards_)
        run["cards"].push_back({{"index", card.index},
                                {"pid", card.process->pid()},
                                {"socket", card.socket.string()},
                                {"control", card.control.string()},
                                {"log", card.log.string()}});
    for (const auto& one : switches_)
        run["switches"].push_back({{"index", one.index},
                                   {"pid", one.process->pid()},
                                   {"control", one.control.string()},
                                   {"log", one.log.string()}});
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
    if (::read(signals_.end.get(), &info, sizeof info) == sizeof info)
        signal_ = static_cast<int>(info.ssi_signo);
    return signal_ != 0;
}

void Run::check_cards() {
    if (powering_off_ || options_.allow_card_exit) return;
    const auto check = [&](Card& each, std::string_view program) {
        if (const auto status = each.process->wait(0))
            stop({kExitCardDied,
                  fmt::format("{} ({}) {} while the VM was running, after {}\n  the end of {}:\n{}",
                              each.name, program, describe_status(*status), reached_, each.log.string(),
                              tail(each.log, kTailLines))});
    };
    for (auto& one : switches_)
        check(one, "orrery-switch");
    for (auto& card : cards_)
        check(card, "orrery-card");
}

// One round: wait until something happens, and deal with it.
void Run::step() {
    std::vector<pollfd> fds;
    std::vector<std::function<void()>> actions;
    const auto watch = [&](int fd, short events, std::function<void()> action) {
        fds.push_back({fd, events, 0});
        actions.push_back(std::move(action));
    };
    watch(signals_.end.get(), POLLIN, [this] { interrupted(); });
    watch(signals_.report.get(), POLLIN, [this] { report_now(); });
    if (waits_to_begin_) watch(options_.hold, POLLIN, [this] { begin_command(); });
    if (console_open_) watch(console_.get(), POLLIN, [this] { read_console(); });
    if (status_open_) watch(status_.get(), POLLIN, [this] { read_status(); });
    if (wants_input()) watch(input_.from, POLLIN, [this] { read_input(); });
    if (started_ && !input_.pending.empty()) watch(input_.to, POLLOUT, [this] { write_input(); });
    for (auto& relay : relays_) {
        if (!relay.pending.empty())
            watch(relay.to, POLLOUT, [&relay] { relay.write_some(); });
        else if (relay.open)
            watch(relay.from, POLLIN, [&relay] { relay.read_some(); });
    }
    if (switch_)
        for (const pollfd& wanted : switch_->wanted())
            watch(wanted.fd, wanted.events, [this, fd = wanted.fd] { switch_->handle(fd); });
    if (!qemu_status_) watch(qemu_->pidfd(), POLLIN, [this] { qemu_status_ = qemu_->wait(-1); });
    if (!powering_off_ && !options_.allow_card_exit && !failure_)
        for (auto* all : {&cards_, &switches_})
            for (auto& each : *all)
                watch(each.process->pidfd(), POLLIN, [] {});  // check_cards() looks at all

    int wait = -1;
    if (deadline_ && !qemu_status_) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*deadline_ - Clock::now());
        wait = static_cast<int>(std::max<std::int64_t>(0, left.count() + 1));
    }
    // Nobody tells when our job gets the terminal back.
    if (started_ && input_.wants_read() && stdin_is_taken())
        wait = wait < 0 ? kTerminalLook : std::min(wait, kTerminalLook);
    if (::poll(fds.data(), fds.size(), wait) < 0) {
        if (errno != EINTR) stop({kExitSetup, fmt::format("poll: {}", std::strerror(errno))});
        return;
    }
    for (std::size_t i = 0; i < fds.size() && signal_ == 0; ++i)
        if (fds[i].revents != 0) actions[i]();
    if (signal_ != 0) return;
    check_cards();
    if (deadline_ && !qemu_status_ && Clock::now() >= *deadline_) pass_time_limit();
}

void Run::pass_time_limit() {
    deadline_.reset();
    stop({kExitTimeLimit,
          powering_off_ ? fmt::format("the guest did not power off within {} s after the command",
                                      (kernel_.patience * kPowerOffLimit).count())
                        : fmt::format("the time limit of {} s (--timeout) passed; the last thing seen: {}",
                                      kernel_.patience * options_.timeout_s, reached_)});
}

void Run::watch() {
    std::optional<RawTerminal> raw;
    if (options_.shell) {
        fmt::print(stderr, "orrery-vm: console of kernel {}; Ctrl-A X or exit leaves\r\n", kernel_.release);
        raw.emplace();
    }
    while (signal_ == 0 && (!qemu_status_ || draining()))
        step();
    raw.reset();
    if (signal_ != 0) return;
    say(fmt::format("QEMU {}", describe_status(*qemu_status_)));
    if (options_.hold >= 0 && !failure_ && command_status_ == 0)
        wait_for_others(options_.hold, signals_, [this] { report_now(); });
    stop_cards();
}

// Of those that have not just ended because the guest has.
void Run::note_deaths() {
    for (auto* all : {&cards_, &switches_})
        for (auto& each : *all)
            if (const auto status = each.process->wait(0);
                status && !each.died && !(powering_off_ && *status == 0))
                each.died = describe_status(*status);
}

void Run::stop_cards() {
    const auto until = Clock::now() + kCardStopLimit;
    const auto stop_one = [&](Card& each, std::string_view program) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        const auto status = each.process->wait(static_cast<int>(std::max<std::int64_t>(left, 0)));
        const bool clean = status && ((WIFEXITED(*status) && WEXITSTATUS(*status) == 0) ||
                                      (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGTERM));
        if (clean || failure_ || options_.allow_card_exit) return;
        failure_ = {kExitCardDied,
                    fmt::format("{} ({}) {} after the VM had ended\n  the end of {}:\n{}", each.name, program,
                                status ? describe_status(*status) : "did not stop on SIGTERM",
                                each.log.string(), tail(each.log, kTailLines))};
    };
    note_deaths();
    for (auto* all : {&cards_, &switches_})
        for (auto& each : *all)
            each.process->signal(SIGTERM);
    for (auto& card : cards_)
        stop_one(card, "orrery-card");
    for (auto& one : switches_)
        stop_one(one, "orrery-switch");
}

int run_vm(const Options& given) {
    if (const auto apart = topology::joined_by_mixture(given.joined); apart && !given.vm) {
        fmt::print(
            stderr,
            "orrery-vm: note: --topology {}: card {} and card {} have no way to each other, as a way is over "
            "cables or over switches, never both: copies between them go through the host's memory\n",
            given.topology, apart->first, apart->second);
    }
    if (!given.picture.empty()) return draw_topology(given);
    if (given.dry_run) return print_commands(given);
    const Options options = given.vm ? options_of(given, *given.vm) : given;
    auto signals = block_signals();
    if (!signals) {
        fmt::print(stderr, "orrery-vm: error: {}\n", signals.error().text);
        return signals.error().code;
    }
    if (options.vms > 1 && !options.vm) return run_several(options, std::move(signals->end));
    Run run(options, std::move(*signals));
    if (auto ready = run.prepare(); !ready) {
        if (run.interrupted()) return run.verdict();
        fmt::print(stderr, "orrery-vm: error: {}\n", run.with_logs(ready.error()).text);
        return ready.error().code;
    }
    run.watch();
    const int status = run.verdict();
    run.report_end();
    return status;
}

}  // namespace orrery::vm
