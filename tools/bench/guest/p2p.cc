// orrery-bench-p2p: copies and signals between all pairs of cards, beside what their links allow.
// orrery-bench p2p starts it in a VM; the suites p2p and p2p_host have it measure one pair.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/guest/card.h"
#include "tools/bench/guest/clock.h"
#include "tools/bench/guest/pair.h"
#include "tools/bench/guest/patterns.h"
#include "tools/bench/measured.h"
#include "tools/bench/statistics.h"
#include "tools/text/table.h"
#include "tools/topology/system.h"

namespace {

using namespace orrery;
using bench::Pair;

constexpr const char* kHelp =
    "usage: orrery-bench-p2p [--size BYTES] [--model | --host | --patterns] [--json]\n"
    "       orrery-bench-p2p --measure BYTES,... | --measure-host BYTES,...\n"
    "       orrery-bench-p2p --measure-pattern NAME ... [--prefix TEXT]\n"
    "Copies and signals between all cards, one way and both ways, beside what the links between them allow,\n"
    "in model time, in the host's, or in both; with --patterns copies over several links, of all cards to "
    "all\n"
    "and of all to one, in model time. The other forms measure card 0 and 1, or some of those, for "
    "orrery-bench;\n"
    "TEXT comes before each name, where several suites measure the same.\n"
    "Exit status: 0, 1 something failed, 2 a mistake in the command line.\n";

constexpr std::uint64_t kSize = 4 << 20;
constexpr int kCopies = 4;      // in a row, where a link is to be kept at work
constexpr int kSignals = 16;    // there and back
constexpr int kHostRounds = 7;  // of which the median counts

// The kinds of time that are asked for.
struct Times {
    bool model = true, host = true;
};

// What one card reaches of another.
struct Cell {
    std::optional<topology::Way> way, back;
    bool measured = false;
    double one_way = 0, both_ways = 0;  // GB/s in model time
    double signal_ns = 0;               // model time
    double host = 0;                    // GB/s of the host's time

    double limit() const { return way ? way->gbps / 8.0 : 0; }
    // As many bytes go each way, so the slower one is waited for.
    double both_limit() const { return way && back ? 2 * std::min(way->gbps, back->gbps) / 8.0 : 0; }
};

// Messages that came after their time, of all cards; there is none between cards that keep step.
std::uint64_t late_messages() {
    std::uint64_t all = 0;
    for (int device = 0; device < device_count(); ++device) {
        orrCounter_t counter = 0;
        std::uint64_t late = 0;
        check(orrDeviceFindCounter(&counter, device, "link_stragglers"));
        check(orrDeviceReadCounters(&late, device, &counter, 1));
        all += late;
    }
    return all;
}

void tell_if_late(std::uint64_t before) {
    if (const std::uint64_t late = late_messages() - before; late != 0)
        fmt::print(stderr,
                   "orrery-bench-p2p: these model times vary from run to run: the cards do not keep step ({} "
                   "message{} came late); start them with orrery-vm --sync lockstep\n",
                   late, late == 1 ? "" : "s");
}

std::vector<topology::Edge> edges_of_system() {
    std::vector<std::vector<orrLinkInfo>> ports(static_cast<std::size_t>(device_count()));
    for (std::size_t device = 0; device < ports.size(); ++device) {
        const int number = static_cast<int>(device);
        for (std::uint32_t port = 0; port < device_properties(number).link_ports; ++port) {
            ports[device].push_back(ORR_INIT(orrLinkInfo));
            check(orrDeviceGetLink(&ports[device].back(), number, static_cast<int>(port)));
        }
    }
    return topology::edges_of(topology::links_between(ports));
}

class Matrix {
  public:
    Matrix(std::size_t bytes, Times times)
        : bytes_(bytes), times_(times), count_(static_cast<unsigned>(device_count())) {
        const topology::Ways ways(count_, edges_of_system());
        for (unsigned from = 0; from < count_; ++from)
            for (unsigned to = 0; to < count_; ++to)
                cells_[{from, to}] = {.way = ways.between(from, to), .back = ways.between(to, from)};
    }

    void measure() {
        for (unsigned from = 0; from < count_; ++from)
            for (unsigned to = from + 1; to < count_; ++to) {
                if (!reaches(from, to) || !reaches(to, from)) continue;
                Cell &there = cells_[{from, to}], &back = cells_[{to, from}];
                measure(static_cast<int>(from), static_cast<int>(to), there);
                measure(static_cast<int>(to), static_cast<int>(from), back);
            }
    }

    // `clock`: see clock_factor().
    void show(double clock) const {
        const auto rate = [](double value, double limit) {
            return limit == 0 ? fmt::format("{:.2f}", value)
                              : fmt::format("{:.2f} / {:g} ({:.3f})", value, limit, value / limit);
        };
        if (times_.model) {
            fmt::print("{} copies of {} bytes in a row. Measured / what the links allow (ratio)\n", kCopies,
                       bytes_);
            table("one way, GB/s of model time", [&](const Cell& c) { return rate(c.one_way, c.limit()); });
            table("both ways at once, sum, GB/s of model time",
                  [&](const Cell& c) { return rate(c.both_ways, c.both_limit()); });
            table("a signal one way with the firmware of both cards / latency of the links, ns of model time",
                  [&](const Cell& c) {
                      return c.way ? fmt::format("{:.0f} / {}", c.signal_ns, c.way->latency_ns)
                                   : fmt::format("{:.0f}", c.signal_ns);
                  });
        }
        if (times_.host) {
            if (!times_.model) fmt::print("Copies of {} bytes\n", bytes_);
            table("one way, GB/s of the host's time",
                  [&](const Cell& c) { return fmt::format("{:.2f}", c.host / clock); });
        }
        bool missing = false;
        for (const auto& [pair, cell] : cells_)
            missing |= pair.first != pair.second && !cell.measured;
        if (missing)
            fmt::print(
                "\n-  no copies over links from the one to the other here (orrery-smi topo says why)\n");
    }

    void show_json(double clock) const {
        using Json = nlohmann::ordered_json;
        Json pairs = Json::array();
        for (const auto& [pair, cell] : cells_) {
            if (pair.first == pair.second) continue;
            Json one{{"from", pair.first},
                     {"to", pair.second},
                     {"links", cell.way ? Json(cell.way->links) : Json(nullptr)},
                     {"link_gb_per_s", cell.way ? Json(cell.limit()) : Json(nullptr)},
                     {"link_latency_ns", cell.way ? Json(cell.way->latency_ns) : Json(nullptr)}};
            const auto add = [&](const char* key, double value) {
                one.emplace(key, cell.measured ? Json(value) : Json(nullptr));
            };
            if (times_.model) {
                add("one_way_gb_per_s", cell.one_way);
                add("both_ways_gb_per_s", cell.both_ways);
                add("signal_ns", cell.signal_ns);
            }
            if (times_.host) add("host_gb_per_s", cell.host / clock);
            pairs.push_back(std::move(one));
        }
        fmt::print("{}\n", Json{{"bytes", bytes_}, {"copies", kCopies}, {"pairs", pairs}}.dump(2));
    }

  private:
    static bool reaches(unsigned from, unsigned to) {
        int can = 0;
        check(orrDeviceCanAccessPeer(&can, static_cast<int>(from), static_cast<int>(to)));
        return can != 0;
    }

    void measure(int from, int to, Cell& cell) const {
        Pair pair(from, to, bytes_);
        if (times_.model) {
            pair.one_way(bytes_, 1);  // so that each card knows the translations
            pair.both_ways(bytes_, 1);
            cell.one_way = pair.one_way(bytes_, kCopies);
            cell.both_ways = pair.both_ways(bytes_, kCopies);
            cell.signal_ns = pair.signal_ns(kSignals);
        }
        if (times_.host) {
            std::vector<double> rates(kHostRounds);
            for (double& each : rates)
                each = pair.host_rate(bytes_);
            cell.host = bench::summarise(std::move(rates)).median;
        }
        cell.measured = true;
    }

    void table(std::string_view what, const auto& text_of) const {
        std::vector<text::Table::Head> heads{{"from \\ to"}};
        std::vector<std::string> names(count_);
        for (unsigned card = 0; card < count_; ++card)
            names[card] = fmt::format("card {}", card);
        heads.reserve(count_ + 1);
        for (const std::string& name : names)
            heads.push_back({name});
        text::Table table(std::move(heads));
        for (unsigned from = 0; from < count_; ++from) {
            std::vector<std::string> row{names[from]};
            for (unsigned to = 0; to < count_; ++to) {
                const Cell& cell = cells_.at({from, to});
                row.push_back(from == to ? "X" : cell.measured ? text_of(cell) : "-");
            }
            table.row(std::move(row));
        }
        fmt::print("\n{}\n{}", what, table.text("  "));
    }

    std::size_t bytes_;
    Times times_;
    unsigned count_;
    std::map<std::pair<unsigned, unsigned>, Cell> cells_;
};

// What a card that passes on takes: a key of its SKU, which the driver shows.
unsigned forward_ns() {
    const std::string path =
        fmt::format("/sys/bus/pci/devices/{}/sku_table", device_properties(0).pci_address);
    std::ifstream table(path);
    constexpr std::string_view kKey = "link.forward_ns\t";
    for (std::string line; std::getline(table, line);) {
        unsigned ns = 0;
        if (!line.starts_with(kKey)) continue;
        const char* const end = line.data() + line.size();
        if (std::from_chars(line.data() + kKey.size(), end, ns).ec == std::errc()) return ns;
    }
    throw std::runtime_error(path + " does not say what passing on takes (link.forward_ns)");
}

std::string shares_text(const bench::Pattern& pattern) {
    const auto [least, most] = std::ranges::minmax(pattern.shares);
    return fmt::format("shares {:.1f} to {:.1f} % ({:.1f} each +- 2: {})", least / 10, most / 10,
                       100.0 / static_cast<double>(pattern.shares.size()),
                       pattern.shares_hold() ? "yes" : "NO");
}

void show_patterns(const std::vector<bench::Pattern>& patterns, std::size_t bytes) {
    text::Table table({{"what"},
                       {"cards"},
                       {"measured", text::Align::kRight},
                       {"expected", text::Align::kRight},
                       {""},
                       {"ratio", text::Align::kRight},
                       {"goal"},
                       {"holds"},
                       {""}});
    for (const bench::Pattern& one : patterns) {
        table.row(
            {one.name, one.detail, fmt::format("{:.2f}", one.measured), fmt::format("{:g}", one.expected),
             one.unit,
             std::string_view(one.unit) == "ns" ? "" : fmt::format("{:.3f}", one.measured / one.expected),
             one.goal ? fmt::format("{:g}", *one.goal) : "",
             !one.goal     ? ""
             : one.holds() ? "yes"
                           : "NO",
             one.shares.empty() ? "" : shares_text(one)});
    }
    fmt::print("Copies of {} bytes, in model time, beside what the links allow\n\n{}", bytes,
               table.text("  "));
}

void show_patterns_json(const std::vector<bench::Pattern>& patterns, std::size_t bytes) {
    using Json = nlohmann::ordered_json;
    Json all = Json::array();
    for (const bench::Pattern& one : patterns) {
        Json entry{{"what", one.name},         {"cards", one.detail},
                   {"unit", one.unit},         {"measured", one.measured},
                   {"expected", one.expected}, {"goal", one.goal ? Json(*one.goal) : Json(nullptr)},
                   {"holds", one.holds()}};
        if (!one.shares.empty()) {
            entry["shares_per_mille"] = one.shares;
            entry["shares_hold"] = one.shares_hold();
        }
        all.push_back(std::move(entry));
    }
    fmt::print("{}\n", Json{{"bytes", bytes}, {"patterns", all}}.dump(2));
}

orrLinkInfo link_to(int device, int peer) {
    for (std::uint32_t port = 0; port < device_properties(device).link_ports; ++port) {
        orrLinkInfo link = ORR_INIT(orrLinkInfo);
        check(orrDeviceGetLink(&link, device, static_cast<int>(port)));
        if (topology::is_up(link) && link.peer_device == peer) return link;
    }
    throw std::runtime_error("card 0 and 1 are not linked");
}

// Model time hardly differs from run to run, so once is enough.
void measure_model(bench::Measured& measured, const std::vector<std::uint64_t>& sizes) {
    const orrLinkInfo link = link_to(0, 1);
    const double limit = link.gbps / 8.0;
    std::uint64_t most = 0;
    for (const std::uint64_t size : sizes)
        most = std::max(most, size);
    Pair pair(0, 1, most);
    for (const std::uint64_t size : sizes) {
        pair.one_way(size, 1);
        pair.two_at_a_time(size, 1);
        pair.both_ways(size, 1);
        measured.add({"copy to a neighbour, model time", size, {pair.one_way(size, 1)}, {limit}});
        measured.add(
            {"copies to a neighbour in a row, model time", size, {pair.one_way(size, kCopies)}, {limit}});
        measured.add({"copies to a neighbour, two at a time, model time",
                      size,
                      {pair.two_at_a_time(size, kCopies)},
                      {limit}});
        measured.add({"copies both ways, model time", size, {pair.both_ways(size, kCopies)}, {2 * limit}});
    }
    measured.add({"signal to a neighbour, model time",
                  {},
                  {pair.signal_ns(kSignals)},
                  {static_cast<double>(link.latency_ns)}});
}

void measure_host(bench::Measured& measured, const std::vector<std::uint64_t>& sizes, double clock) {
    (void)link_to(0, 1);
    for (const std::uint64_t size : sizes) {
        Pair pair(0, 1, size);
        pair.host_rate(size);
        std::vector<double> rates, yardstick;
        for (int round = 0; round < kHostRounds; ++round) {
            rates.push_back(pair.host_rate(size) / clock);
            yardstick.push_back(bench::memcpy_rate(size, 1).front() / clock);
        }
        measured.add({"copy to a neighbour, host time", size, std::move(rates), std::move(yardstick)});
    }
}

// `prefix`: of the names that the measurements have.
int measure_patterns(const std::vector<bench::Pattern>& all, const std::vector<std::string>& names,
                     const std::string& prefix) {
    bench::Measured measured;
    for (const std::string& name : names) {
        const auto found = std::ranges::find(all, name, &bench::Pattern::name);
        if (found == all.end()) throw std::runtime_error("there is no '" + name + "' between these cards");
        const std::string shown = prefix + name;
        measured.add({shown + ", model time", {}, {found->measured}, {found->expected}});
        if (found->shares.empty()) continue;
        const double even = 100.0 / static_cast<double>(found->shares.size());
        const auto [least, largest] = std::ranges::minmax(found->shares);
        measured.add({shown + ", least share", {}, {least / 10}, {even}});
        measured.add({shown + ", largest share", {}, {largest / 10}, {even}});
    }
    return measured.print() ? 0 : 1;
}

// "N,N,...": empty for anything else.
std::vector<std::uint64_t> numbers(std::string_view text) {
    std::vector<std::uint64_t> found;
    while (true) {
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc() || number == 0 || number > std::uint64_t{1} << 40) return {};
        found.push_back(number);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (text.empty()) return found;
        if (!text.starts_with(',')) return {};
        text.remove_prefix(1);
    }
}

int mistake(const std::string& what) {
    fmt::print(stderr, "orrery-bench-p2p: {}: see --help\n", what);
    return 2;
}

int run(int argc, char** argv) {
    std::vector<std::uint64_t> size{kSize}, model, host;
    Times times;
    bool json = false, patterns = false;
    std::vector<std::string> measured_patterns;
    std::optional<std::string> prefix;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        auto* const list = argument == "--size"           ? &size
                           : argument == "--measure"      ? &model
                           : argument == "--measure-host" ? &host
                                                          : nullptr;
        if (argument == "--help" || argument == "-h") {
            fmt::print("{}", kHelp);
            return 0;
        }
        if (argument == "--measure-pattern" && i + 1 < argc) {
            measured_patterns.emplace_back(argv[++i]);
            patterns = true;
            times.host = false;
        } else if (argument == "--prefix" && i + 1 < argc) {
            prefix = argv[++i];
        } else if (argument == "--json") {
            json = true;
        } else if (argument == "--patterns" && times.model && times.host) {
            patterns = true;
            times.host = false;
        } else if (argument == "--model" && times.model && !patterns) {
            times.host = false;
        } else if (argument == "--host" && times.host) {
            times.model = false;
        } else if (list != nullptr && i + 1 < argc) {
            ++i;
            *list = numbers(argv[i]);
            if (!list->empty() && (list != &size || size.size() == 1)) continue;
            return mistake(fmt::format("{} {} makes no sense", argument, argv[i]));
        } else {
            return mistake(fmt::format("{} makes no sense here", argument));
        }
    }
    if (prefix && measured_patterns.empty()) return mistake("--prefix needs a --measure-pattern");
    const bool matrix_wanted = model.empty() && host.empty();
    // It takes three seconds to know.
    const double clock =
        !host.empty() || (matrix_wanted && times.host) ? bench::clock_factor().value_or(1) : 1;
    if (matrix_wanted) {
        if (device_count() < 2) throw std::runtime_error("there are not two cards that work: see orrery-smi");
        if (patterns) {
            const std::uint64_t late = late_messages();
            const auto all = bench::measure_patterns(
                {static_cast<unsigned>(device_count()), edges_of_system(), forward_ns()}, size.front());
            if (!measured_patterns.empty())
                return measure_patterns(all, measured_patterns, prefix.value_or(""));
            if (json)
                show_patterns_json(all, size.front());
            else
                show_patterns(all, size.front());
            tell_if_late(late);
            return std::fflush(stdout) == 0 ? 0 : 1;
        }
        Matrix matrix(size.front(), times);
        const std::uint64_t late = late_messages();
        matrix.measure();
        if (json)
            matrix.show_json(clock);
        else
            matrix.show(clock);
        if (times.model) tell_if_late(late);
        return std::fflush(stdout) == 0 ? 0 : 1;
    }
    bench::Measured measured;
    if (!model.empty()) {
        const std::uint64_t late = late_messages();
        measure_model(measured, model);
        tell_if_late(late);
    }
    if (!host.empty()) measure_host(measured, host, clock);
    return measured.print() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "orrery-bench-p2p: {}\n", error.what());
        return 1;
    }
}
