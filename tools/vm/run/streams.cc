#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>

#include "tools/vm/run/gdb.h"
#include "tools/vm/run/run.h"
#include "tools/vm/run/several.h"

namespace orrery::vm {

namespace fs = std::filesystem;

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
    } else if (options_.gdb && (what == "kernel" || what == "section" || what == "symbols")) {
        tell_gdb(what, rest);
    } else if (what == "ready" && options_.hold >= 0 && !waits_to_begin_ && !started_) {
        reached_ = "the guest waits for the other VMs";
        waits_to_begin_ = true;
        tell_ready(options_.hold);
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

// Nothing else goes there before the command starts, so it fits.
void Run::begin_command() {
    waits_to_begin_ = false;
    if (may_begin(options_.hold)) [[maybe_unused]]
        const auto ignored = ::write(in_.get(), "begin\n", 6);
}

void Run::read_status() {
    char buffer[65536];
    const ssize_t n = ::read(status_.get(), buffer, sizeof buffer);
    if (n <= 0) {
        status_open_ = n < 0 && (errno == EINTR || errno == EAGAIN);
        return;
    }
    const auto lines = status_lines_.feed({buffer, static_cast<std::size_t>(n)});
    if (!lines) {
        status_open_ = false;
        stop(lines.error());
        return;
    }
    for (const auto& line : *lines)
        guest_says(line);
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

// A line of kallsyms, a section of orrery.ko, or that all of them have come. From its start on the command
// could say so too.
void Run::tell_gdb(const std::string& what, const std::string& rest) {
    if (started_) return;
    if (what != "symbols") {
        const auto done = what == "kernel" ? guest_symbols_.kernel(rest) : guest_symbols_.section(rest);
        if (!done) stop(done.error());
        return;
    }
    if (const std::string symbols = guest_symbols_.take_symbol_file(); !symbols.empty())
        std::ofstream(logs_ / "kernel.symbols", std::ios::binary) << symbols;
    write_gdb_script();
    say("gdb has the symbols");
}

void Run::write_gdb_script() const {
    std::error_code error;
    fs::path symbols = find_vmlinux(kernel_);
    if (symbols.empty() && fs::exists(logs_ / "kernel.symbols", error)) symbols = logs_ / "kernel.symbols";
    std::ofstream(logs_ / "kernel.gdb")
        << gdb_script(symbols, directory_->path() / "gdb.sock", module_file_, guest_symbols_.sections());
}

// The command gets nothing before it runs, so that a run that fails early leaves our stdin as it was.
bool Run::wants_input() const {
    return input_.wants_read() && (options_.shell || (started_ && !stdin_is_taken()));
}

void Run::read_input() {
    if (!options_.shell) {
        input_.read_some();
        end_input();
        return;
    }
    char buffer[1024];
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n <= 0) {
        input_.open = false;
        input_.pending += '\x04';  // the end of our input is the end of the guest's
    } else if (escape_.feed({buffer, static_cast<std::size_t>(n)}, input_.pending)) {
        command_status_ = 0;
        qemu_->signal(SIGKILL);
    }
}

void Run::write_input() {
    input_.write_some();
    end_input();
}

// The command's stdin ends when ours has ended and all of it has gone to QEMU, which then tells the guest
// that nobody is at the port's other end.
void Run::end_input() {
    if (options_.shell || input_ended_ || input_.open || !input_.pending.empty()) return;
    input_ended_ = true;
    ::shutdown(in_.get(), SHUT_WR);
}

// QEMU's ends of the sockets close with it, so what it wrote is read up to its end.
bool Run::draining() const {
    if (console_open_ || status_open_) return true;
    for (const auto& relay : relays_)
        if (relay.open || !relay.pending.empty()) return true;
    return false;
}

}  // namespace orrery::vm
