#include "umd/samples/support/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string_view>
#include <thread>

namespace orrery::sample {
namespace {

std::string rate_text(double amount, double ns) {
    return amount > 0 && ns > 0 ? fmt::format("{:.1f}", amount / ns) : "-";
}

bool wants_exact = false;

// Until all of the stream's work is done.
void look_until_done(const Stream& stream) {
    orrError_t state = orrErrorNotReady;
    while ((state = orrStreamQuery(stream.handle())) == orrErrorNotReady)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    check(state);
}

struct Options {
    bool quick = false;
    unsigned cards = 0;
};

bool asks_for_help(std::string_view argument) {
    return argument == "--help" || argument == "-h";
}

int run_with_options(int argc, char** argv, const char* help, bool takes_cards, const auto& run) {
    return run_command(argc, argv, help, [&] {
        Options options;
        for (int i = 1; i < argc; ++i) {
            const std::string_view argument = argv[i];
            if (asks_for_help(argument)) {
                fmt::print("{}", help);
                return 0;
            }
            if (takes_cards && argument == "--cards")
                options.cards = number(argument, i + 1 < argc ? argv[++i] : "", 1, kMaxCards);
            else if (argument == "--quick")
                options.quick = true;
            else if (!takes_cards && argument == "--exact")
                wants_exact = true;
            else
                throw UsageError(fmt::format("unknown option {}\n{}", argument, help));
        }
        const auto found = static_cast<unsigned>(device_count());
        if (found == 0)
            throw std::runtime_error("there is no Orrery card: is the module loaded (modprobe orrery)?");
        if (options.cards > found)
            throw UsageError(fmt::format("--cards {}: there are only {}", options.cards, found));
        if (options.cards == 0) options.cards = std::min(found, kMaxCards);
        return run(options);
    });
}

}  // namespace

bool exact() {
    return wants_exact;
}

void Gate::open() const {
    // Doorbells are taken in the order in which they are rung: the card knows of all that is behind the gate.
    const Event known;
    known.record(key_);
    look_until_done(key_);
    key_.signal(closed_, 1);
    look_until_done(stream_);
    look_until_done(key_);
}

unsigned number(std::string_view option, std::string_view text, unsigned least, unsigned most) {
    unsigned result = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error != std::errc() || end != text.data() + text.size() || result < least || result > most)
        throw UsageError(fmt::format("{} {}: a number from {} to {} is needed", option, text, least, most));
    return result;
}

int run_command(int argc, char** argv, const char* help, const std::function<int()>& body) {
    if (argc > 1 && asks_for_help(argv[1])) {
        fmt::print("{}", help);
        return 0;
    }
    const std::string_view path = argv[0];
    const std::string_view name = path.substr(path.rfind('/') + 1);
    try {
        return body();
    } catch (const UsageError& error) {
        fmt::print(stderr, "{}: {}\n", name, error.what());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", name, error.what());
        return 1;
    }
}

// mt19937_64 is the same everywhere; the distributions of the standard library are not.
std::vector<float> random_floats(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 source(seed);
    std::vector<float> values(count);
    for (float& value : values)
        value = static_cast<float>(static_cast<std::int64_t>(source() >> 40) - (1 << 23)) / (1 << 23);
    return values;
}

std::vector<std::uint32_t> random_integers(std::size_t count, std::uint32_t limit, std::uint64_t seed) {
    std::mt19937_64 source(seed);
    std::vector<std::uint32_t> values(count);
    for (std::uint32_t& value : values)
        value = static_cast<std::uint32_t>((source() >> 32) * limit >> 32);
    return values;
}

double worst_error(std::span<const float> got, std::span<const float> want) {
    double worst = got.size() == want.size() ? 0 : std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
        const double error = std::abs(double{got[i]} - want[i]) / std::max(1.0, std::abs(double{want[i]}));
        if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
    return worst;
}

void judge(Row& row, std::span<const float> got, std::span<const float> want, double tolerance) {
    const double worst = worst_error(got, want);
    row.correct = worst <= tolerance;
    if (!row.correct) row.difference = fmt::format("off by {:.3g}, {:.3g} is allowed", worst, tolerance);
}

std::string digest(std::span<const std::byte> result) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const std::byte byte : result)
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211u;
    return fmt::format("digest {:016x}", hash);
}

int print(const std::string& title, const std::vector<Row>& rows, const std::vector<std::string>& notes) {
    std::size_t names = std::string_view("what").size(), sizes = std::string_view("size").size();
    for (const Row& row : rows) {
        names = std::max(names, row.name.size());
        sizes = std::max(sizes, row.size.size());
    }
    fmt::print("\n{}\n\n", title);
    fmt::print("{:<{}}  {:<{}} {:>10} {:>8} {:>9} {:>9} {:>10}  correct\n", "what", names, "size", sizes,
               "card time", "VRAM MB", "GB/s", "GFLOP/s", "host time");
    bool all = true;
    for (const Row& row : rows) {
        all &= row.correct;
        fmt::print("{:<{}}  {:<{}} {:>10} {:>8} {:>9} {:>9} {:>10}  {}\n", row.name, names, row.size, sizes,
                   exact() ? fmt::format("{:.3f} ns", row.model_ns) : time_text(row.model_ns),
                   row.moved > 0 && !exact() ? fmt::format("{:.2f}", row.moved / 1e6) : "-",
                   rate_text(row.bytes, row.model_ns), rate_text(row.flops, row.model_ns),
                   exact() ? "-" : time_text(row.host_ns), row.correct ? "yes" : "NO: " + row.difference);
    }
    // They may be of what the host does, too.
    if (!notes.empty() && !exact()) {
        fmt::print("\n");
        for (const std::string& note : notes)
            fmt::print("{}\n", note);
    }
    return all && std::fflush(stdout) == 0 ? 0 : 1;
}

int run_main(int argc, char** argv, const char* help, int (*run)(bool quick)) {
    return run_with_options(argc, argv, help, false,
                            [run](const Options& options) { return run(options.quick); });
}
int run_main(int argc, char** argv, const char* help, int (*run)(bool quick, unsigned cards)) {
    return run_with_options(argc, argv, help, true,
                            [run](const Options& options) { return run(options.quick, options.cards); });
}

std::optional<orrLinkInfo> link_between(int from, int to) {
    for (std::uint32_t port = 0; port < device_properties(from).link_ports; ++port) {
        orrLinkInfo link = ORR_INIT(orrLinkInfo);
        check(orrDeviceGetLink(&link, from, static_cast<int>(port)));
        const bool up = link.state == orrLinkStateUp || link.state == orrLinkStateDegraded;
        if (up && link.peer_device == to) return link;
    }
    return {};
}

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

double vram_bytes() {
    orrCounter_t counter = 0;
    const int device = current_device();
    const orrError_t found = orrDeviceFindCounter(&counter, device, "vram_bytes");
    if (found == orrErrorNotFound) return 0;
    check(found);
    std::uint64_t bytes = 0;
    check(orrDeviceReadCounters(&bytes, device, &counter, 1));
    return static_cast<double>(bytes);
}

std::string time_text(double ns) {
    if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
    if (ns < 1e6) return fmt::format("{:.1f} us", ns / 1e3);
    if (ns < 1e9) return fmt::format("{:.1f} ms", ns / 1e6);
    return fmt::format("{:.2f} s", ns / 1e9);
}

double now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::nano>(now).count();
}

}  // namespace orrery::sample
