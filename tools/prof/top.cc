#include "tools/prof/top.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <tuple>
#include <vector>

#include "tools/text/clock.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using cards::Card;
using cards::System;
using text::Align;
using text::hour;
using text::seconds_now;
using text::Table;

constexpr const char* kNone = "-";

const Card* same_card(const System& system, const Card& card) {
    const auto found = std::ranges::find_if(
        system.cards, [&](const Card& other) { return address_of(other) == address_of(card); });
    return found != system.cards.end() ? &*found : nullptr;
}

std::optional<std::uint64_t> value_of(const Card& card, std::string_view counter) {
    const auto found = std::ranges::find(card.counters, counter, &cards::Counter::name);
    if (found == card.counters.end()) return std::nullopt;
    return found->value;
}

// A little is not nothing.
std::string small_too(double value) {
    if (value == 0 || value >= 0.1) return fmt::format("{:.1f}", value);
    return value >= 0.001 ? fmt::format("{:.3f}", value) : "<0.001";
}

// A card and what it has done since the look before.
struct Shown {
    const Card& card;
    const Card* before;
    std::vector<cards::Metric> metrics;

    // Nothing: the card does not say, or began anew.
    std::optional<std::uint64_t> more(std::string_view counter) const {
        const auto to = value_of(card, counter);
        const auto from = before != nullptr ? value_of(*before, counter) : std::nullopt;
        if (!to || !from || *to < *from) return std::nullopt;
        return *to - *from;
    }
    std::string name() const { return card.device ? fmt::format("{}", *card.device) : kNone; }
    std::string metric(std::string_view which) const {
        const auto found = std::ranges::find(metrics, which, &cards::Metric::name);
        return found == metrics.end() || std::isnan(found->value) ? kNone : small_too(found->value);
    }
    std::string count(std::string_view counter) const {
        const auto number = more(counter);
        return number ? text::grouped(*number) : kNone;
    }
    // Of another counter's growth.
    std::string share(std::string_view counter, std::string_view of) const {
        const auto part = more(counter), whole = more(of);
        if (!part || !whole || *whole == 0) return kNone;
        return fmt::format("{:.1f}", 100 * static_cast<double>(*part) / static_cast<double>(*whole));
    }
};

// Its heads, and how a card fills the columns behind its number.
struct Column {
    const char* head;
    std::string (*cell)(const Shown&);
};

std::string table_of(const std::vector<Shown>& cards, std::initializer_list<Column> columns) {
    std::vector<Table::Head> heads = {{"card"}};
    for (const Column& column : columns)
        heads.push_back({column.head, Align::kRight});
    Table table(std::move(heads));
    for (const Shown& card : cards) {
        std::vector<std::string> row = {card.name()};
        for (const Column& column : columns)
            row.push_back(column.cell(card));
        table.row(std::move(row));
    }
    return table.text();
}

std::string mib(std::uint64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
}

std::string cards_text(const std::vector<Shown>& cards) {
    std::string text = table_of(
        cards, {{"state", [](const Shown& s) { return std::string(cards::state_name(s.card.prop.state)); }},
                {"model time",
                 [](const Shown& s) {
                     const auto passed = s.more("time_ps");
                     return passed ? text::duration(*passed) : std::string(kNone);
                 }},
                {"core %", [](const Shown& s) { return s.metric("core_utilisation"); }},
                {"copy %", [](const Shown& s) { return s.metric("copy_utilisation"); }},
                {"vector %", [](const Shown& s) { return s.metric("vector_utilisation"); }},
                {"IPC", [](const Shown& s) { return s.metric("vector_ipc"); }},
                {"GFLOP/s", [](const Shown& s) { return s.metric("vector_gflops"); }},
                {"MiB", [](const Shown& s) { return mib(s.card.prop.vram_used_bytes); }},
                {"of", [](const Shown& s) { return mib(s.card.prop.vram_bytes); }}});
    text += "\nGB/s of\n" +
            table_of(cards, {{"VRAM", [](const Shown& s) { return s.metric("vram_bandwidth"); }},
                             {"PCIe read", [](const Shown& s) { return s.metric("pcie_read_bandwidth"); }},
                             {"written", [](const Shown& s) { return s.metric("pcie_write_bandwidth"); }},
                             {"links sent", [](const Shown& s) { return s.metric("link_tx_bandwidth"); }},
                             {"received", [](const Shown& s) { return s.metric("link_rx_bandwidth"); }},
                             {"again", [](const Shown& s) { return s.count("link_retries"); }},
                             {"no room %", [](const Shown& s) { return s.metric("link_credit_stalls"); }},
                             {"ports", [](const Shown& s) {
                                  const auto up = std::ranges::count_if(s.card.links, [](const auto& link) {
                                      return link.state >= orrLinkStateUp;
                                  });
                                  return fmt::format("{} of {}", up, s.card.links.size());
                              }}});
    text += "\nqueues\n" +
            table_of(cards, {{"doorbells", [](const Shown& s) { return s.count("doorbell_pops"); }},
                             {"packets", [](const Shown& s) { return s.count("ring_packets"); }},
                             {"waiting", [](const Shown& s) { return s.metric("queue_depth"); }},
                             {"us to start", [](const Shown& s) { return s.metric("dispatch_latency"); }},
                             {"kernels", [](const Shown& s) { return s.count("vector_jobs"); }},
                             {"copies", [](const Shown& s) { return s.count("copy_jobs"); }}});
    text +=
        "\nwhat the firmware does, % of its work\n" +
        table_of(cards,
                 {{"packets", [](const Shown& s) { return s.share("core_packets_ps", "core_busy_ps"); }},
                  {"choice", [](const Shown& s) { return s.share("core_scheduling_ps", "core_busy_ps"); }},
                  {"ends", [](const Shown& s) { return s.share("core_completions_ps", "core_busy_ps"); }},
                  {"driver", [](const Shown& s) { return s.share("core_mailbox_ps", "core_busy_ps"); }},
                  {"links", [](const Shown& s) { return s.share("core_links_ps", "core_busy_ps"); }}});
    return text;
}

// Of a card's engine time between the looks, in %.
std::string share_of(std::uint64_t ns, const Shown& card, const char* engine) {
    const auto busy = card.more(fmt::format("{}_busy_ps", engine)),
               idle = card.more(fmt::format("{}_idle_ps", engine));
    if (!busy || !idle || *busy + *idle == 0) return kNone;
    return fmt::format("{:.1f}", 100e3 * static_cast<double>(ns) / static_cast<double>(*busy + *idle));
}

std::string processes_text(const std::vector<Shown>& cards, const System& now) {
    struct Row {
        const cards::Process* process;
        const Shown* card;
        std::uint64_t vector_ns, copy_ns;
    };
    std::vector<Row> rows;
    for (const Shown& card : cards)
        for (const cards::Process& process : card.card.processes) {
            std::uint64_t vector_ns = process.vector_ns, copy_ns = process.copy_ns;
            if (card.before != nullptr)
                for (const cards::Process& old : card.before->processes)
                    if (old.pid == process.pid && old.name == process.name) {
                        vector_ns -= std::min(vector_ns, old.vector_ns);
                        copy_ns -= std::min(copy_ns, old.copy_ns);
                    }
            rows.push_back({&process, &card, vector_ns, copy_ns});
        }
    std::ranges::sort(rows, std::greater{}, [](const Row& row) {
        return std::tuple(row.vector_ns + row.copy_ns, row.process->memory_bytes, -row.process->pid);
    });
    Table table({{"process", Align::kRight},
                 {"card"},
                 {"name"},
                 {"MiB", Align::kRight},
                 {"vector %", Align::kRight},
                 {"copy %", Align::kRight},
                 {"vector ms", Align::kRight},
                 {"copy ms", Align::kRight}});
    for (const Row& row : rows)
        table.row({fmt::format("{}", row.process->pid), row.card->name(), row.process->name,
                   mib(row.process->memory_bytes), share_of(row.vector_ns, *row.card, "vector"),
                   share_of(row.copy_ns, *row.card, "copy"),
                   fmt::format("{:.3f}", static_cast<double>(row.process->vector_ns) / 1e6),
                   fmt::format("{:.3f}", static_cast<double>(row.process->copy_ns) / 1e6)});
    std::string text = rows.empty() ? "no process that may be seen uses a card\n" : table.text();
    if (now.hidden_processes != 0)
        text +=
            fmt::format("{} processes of others may not be looked at: root sees all\n", now.hidden_processes);
    return text;
}

// --- the screen ---

class Screen {
  public:
    explicit Screen(bool whole) : whole_(whole) {
        if (!whole_) return;
        keys_ = ::isatty(STDIN_FILENO) != 0 && ::tcgetattr(STDIN_FILENO, &before_) == 0;
        if (keys_) {
            termios raw = before_;
            raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
            ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        }
        fmt::print("\x1b[?1049h\x1b[?25l");
    }
    ~Screen() {
        if (!whole_) return;
        fmt::print("\x1b[?25h\x1b[?1049l");
        (void)std::fflush(stdout);
        if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    bool keys() const { return keys_; }
    // False: nobody reads it any more.
    bool show(const std::string& text) {
        if (!whole_) {
            fmt::print("{}", text);
            return std::fflush(stdout) == 0;
        }
        winsize size{};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
            size.ws_row = 24;
            size.ws_col = 80;
        }
        std::string shown = "\x1b[H";
        std::string_view rest = text;
        for (unsigned row = 0; row < size.ws_row && !rest.empty(); ++row) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            if (row != 0) shown += "\r\n";
            shown += std::string(rest.substr(0, std::min<std::size_t>(end, size.ws_col))) + "\x1b[K";
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        fmt::print("{}\x1b[J", shown);
        return std::fflush(stdout) == 0;
    }

  private:
    bool whole_;
    bool keys_ = false;
    termios before_{};
};

// Signals that end it, as a file that can be read.
int ends_file() {
    sigset_t ends;
    ::sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        ::sigaddset(&ends, signal);
    ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    return ::signalfd(-1, &ends, SFD_CLOEXEC);
}

// False: it is to end.
bool wait(double seconds, int ends, bool keys) {
    const double until = seconds_now() + seconds;
    for (double left = seconds; left > 0; left = until - seconds_now()) {
        pollfd files[] = {{ends, POLLIN, 0}, {STDOUT_FILENO, 0, 0}, {keys ? STDIN_FILENO : -1, POLLIN, 0}};
        if (::poll(files, std::size(files), static_cast<int>(std::ceil(left * 1e3))) <= 0) continue;
        if (files[0].revents != 0 || files[1].revents != 0) return false;
        char key = 0;
        if (files[2].revents != 0 && (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q')) return false;
    }
    return true;
}

}  // namespace

std::string top_text(const System& before, const System& now) {
    std::vector<Shown> cards;
    for (const Card& card : now.cards) {
        if (!card.device) continue;
        const Card* const old = same_card(before, card);
        cards.push_back(
            {card, old, old != nullptr ? cards::metrics_since(*old, card) : std::vector<cards::Metric>{}});
    }
    std::string text;
    if (!cards.empty()) text += cards_text(cards) + "\n" + processes_text(cards, now);
    for (const Card& card : now.cards)
        if (!card.trouble.empty()) text += fmt::format("{}: {}\n", address_of(card), card.trouble);
    if (!now.trouble.empty()) text += now.trouble + "\n";
    return text;
}

int run_top(const TopOptions& options) {
    const int ends = ends_file();
    System before = cards::look();
    if (before.cards.empty()) {
        fmt::print(stderr, "orrery-prof: there is no Orrery card in this system{}{}\n",
                   before.trouble.empty() ? "" : ": ", before.trouble);
        return 1;
    }
    const char* const terminal = std::getenv("TERM");
    const bool whole = options.times == 0 && ::isatty(STDOUT_FILENO) != 0 && terminal != nullptr &&
                       std::strcmp(terminal, "dumb") != 0;
    Screen screen(whole);
    double looked = seconds_now();
    for (std::uint64_t shown = 0; options.times == 0 || shown < options.times; ++shown) {
        if (!wait(options.seconds, ends, screen.keys())) return 0;
        System now = cards::look();
        const double time = seconds_now();
        const std::string head =
            fmt::format("orrery-prof top  {}, {:.1f} s{}; % and GB/s of the cards' own time\n\n", hour(),
                        time - looked, whole ? "; q ends" : "");
        if (!screen.show((whole || shown == 0 ? "" : "\n") + head + top_text(before, now))) return 1;
        before = std::move(now);
        looked = time;
    }
    return 0;
}

}  // namespace orrery::prof
