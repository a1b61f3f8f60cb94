// The state of one run of a VM: the processes, what came through their sockets, and how it ended.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/vm/cards.h"
#include "tools/vm/console_log.h"
#include "tools/vm/net/segment.h"
#include "tools/vm/net/switch.h"
#include "tools/vm/options.h"
#include "tools/vm/process.h"
#include "tools/vm/run/gdb.h"
#include "tools/vm/run/relay.h"
#include "tools/vm/run/several.h"
#include "tools/vm/run/status_lines.h"
#include "tools/vm/runtime_dir.h"
#include "tools/vm/terminal.h"
#include "tools/vm/tree.h"

namespace orrery::vm {

class Run {
  public:
    Run(const Options& options, Signals signals) : options_(options), signals_(std::move(signals)) {}

    // run.cc: from the first card to QEMU's end
    Result<void> prepare();
    void watch();
    bool interrupted();

    // verdict.cc
    int verdict();
    // report.cc: after verdict(), if somebody wants it or the VM failed
    void report_end();
    Failure with_logs(Failure failure) const;

  private:
    using Clock = std::chrono::steady_clock;

    // run.cc
    Result<void> start_cards();
    Result<void> start_qemu();
    void write_run_file(const std::filesystem::path& qmp) const;
    void step();
    void pass_time_limit();
    void check_cards();
    void stop(Failure failure);
    void stop_cards();
    void note_deaths();
    int judge();
    void say(const std::string& text) const;

    // report.cc
    void report_now();
    void report(bool ended);
    void write_report(const std::filesystem::path& file, bool ended);

    // streams.cc: what comes from the guest, and what goes there
    void read_status();
    void read_console();
    void guest_says(const std::string& line);
    void begin_command();
    bool wants_input() const;
    void tell_gdb(const std::string& what, const std::string& rest);
    void write_gdb_script() const;
    void read_input();
    void write_input();
    void end_input();
    bool draining() const;

    const Options& options_;
    Signals signals_;
    Clock::time_point begin_ = Clock::now();
    Tree tree_;
    Kernel kernel_;
    std::optional<RuntimeDir> directory_;
    std::filesystem::path logs_;
    std::filesystem::path root_image_;  // of --root

    // Ends of the sockets to QEMU. They outlive it, so that nothing that it wrote is lost.
    Fd console_, status_, out_, err_, in_, nvme_;
    std::optional<ConsoleLog> console_log_;
    std::optional<Segment> segment_;  // until QEMU starts
    std::optional<Switch> switch_;
    std::vector<Relay> relays_;
    Relay input_;  // from our stdin: to the command's, or to the console's keyboard
    bool input_ended_ = false;
    EscapeFilter escape_;
    StatusLines status_lines_;
    std::filesystem::path module_file_;  // orrery.ko on the host; empty: none
    GuestSymbols guest_symbols_;         // with --gdb
    bool console_open_ = true;
    bool status_open_ = true;

    std::vector<Card> cards_;
    std::vector<Card> switches_;  // that join their links
    std::optional<Child> qemu_;   // after the cards, so that it ends before them
    std::optional<int> qemu_status_;

    std::optional<Clock::time_point> deadline_;
    bool waits_to_begin_ = false;  // of several VMs: until all are ready
    bool started_ = false;
    bool powering_off_ = false;
    std::string reached_ = "nothing";  // for messages: what the guest did last
    std::optional<int> command_status_;
    std::optional<Failure> failure_;
    bool vm_failed_ = false;  // and not just the command
    int status_code_ = 0;     // as verdict() gives it
    std::string verdict_;     // what it said, in a line; empty: all is well
    int signal_ = 0;
};

inline constexpr auto kPowerOffLimit = std::chrono::seconds(30);
inline constexpr std::size_t kTailLines = 15;  // of a log, in a message

}  // namespace orrery::vm
