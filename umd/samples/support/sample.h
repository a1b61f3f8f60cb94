// What the samples have in common: input that is the same every time, comparison with a reference, and a
// table of what ran, how long it took on the card and on this machine, and whether it was right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <orrery/prof.h>
#include <orrery/orrery.hpp>

namespace orrery::sample {

// Numbers from -1 to 1, the same for the same seed on every machine.
std::vector<float> random_floats(std::size_t count, std::uint64_t seed);
// Whole numbers from 0 to `limit` - 1.
std::vector<std::uint32_t> random_integers(std::size_t count, std::uint32_t limit, std::uint64_t seed);

// The largest |got - want| / max(1, |want|). Not a number anywhere: infinity.
double worst_error(std::span<const float> got, std::span<const float> want);

// "digest 16 digits", of all bits of a result: whoever compares two runs sees if they came to the same.
std::string digest(std::span<const std::byte> result);

struct Row {
    std::string name;
    std::string size;     // of the problem, as people write it
    double model_ns = 0;  // on the card
    double host_ns = 0;   // on this machine, from the launch to the result
    double moved = 0;     // bytes into and out of the card's memory, by its counter; 0: it has none
    double bytes = 0;     // that have to cross the card's memory; 0: no column
    double flops = 0;     // 0: no column
    bool correct = false;
    std::string difference = {};  // when it is not
};

// --exact was given: work of a row is in its streams before any of it begins, the card's time is printed to
// the picosecond and the host's not, so what is printed is the same in every run.
bool exact();

// Holds a stream until it is opened.
class Gate {
  public:
    explicit Gate(const Stream& stream) : stream_(stream) { stream_.wait(closed_, 1); }
    // What is behind it has come to an end when this returns. The host has said all before it begins, and
    // then looks at memory only: who waits has the driver speak to the card.
    void open() const;

  private:
    const Stream& stream_;
    Stream key_;
    Semaphore closed_;
};

// Runs what `enqueue` puts into a stream, and measures it.
template <typename Enqueue>
void timed(Row& row, const Stream& stream, Enqueue&& enqueue);

// A row is right if no element is off by more than `tolerance`.
void judge(Row& row, std::span<const float> got, std::span<const float> want, double tolerance);

// Prints the table, with `title` above it. What main() returns: 0 if all rows are right, else 1.
int print(const std::string& title, const std::vector<Row>& rows, const std::vector<std::string>& notes = {});

// What is wrong with the command line.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A value of an option; throws a UsageError.
unsigned number(std::string_view option, std::string_view text, unsigned least, unsigned most);

// The main() of a program: --help as its first option, else `body`, errors as one line on stderr. What `body`
// returns; 1: a failure; 2: a mistake in the command line.
int run_command(int argc, char** argv, const char* help, const std::function<int()>& body);

// The main() of a sample: --help, or --quick for small sizes and --exact; errors as one line on stderr.
// 0: all is right; 1: a wrong result or a failure; 2: a mistake in the command line.
int run_main(int argc, char** argv, const char* help, int (*run)(bool quick));
// The same with --cards N instead of --exact, of 1 to kMaxCards that are there: all, if it is not given.
int run_main(int argc, char** argv, const char* help, int (*run)(bool quick, unsigned cards));
inline constexpr unsigned kMaxCards = 16;

// A link between two devices that is up; nothing if there is none.
std::optional<orrLinkInfo> link_between(int from, int to);
// Messages between all cards that came after their time, until now: where there are some, cards waited longer
// than the model says.
std::uint64_t late_messages();
inline constexpr const char* kLate =
    "  cards were behind each other, so this depends on the host: orrery-vm --sync lockstep keeps step\n";

// Bytes into and out of the current device's memory until now; 0: the card does not count them.
double vram_bytes();
double now_ns();
// "12.3 us"
std::string time_text(double ns);

template <typename Enqueue>
void timed(Row& row, const Stream& stream, Enqueue&& enqueue) {
    const Event begin, end;
    const double moved = vram_bytes();
    const double at = now_ns();
    std::optional<Gate> gate;
    if (exact()) gate.emplace(stream);
    begin.record(stream);
    check(orrProfRangePush(nullptr, row.name.c_str()));
    enqueue();
    check(orrProfRangePop(nullptr));
    end.record(stream);
    if (gate) gate->open();
    stream.synchronize();
    row.host_ns = now_ns() - at;
    row.model_ns = end.model_ns_since(begin);
    row.moved = vram_bytes() - moved;
}

// Memory of the card with the host's values in it.
template <typename T>
DeviceArray<T> to_card(std::span<const T> values) {
    DeviceArray<T> array(values.size());
    copy(array.data(), values.data(), values.size_bytes());
    return array;
}
template <typename T>
std::vector<T> from_card(const DeviceArray<T>& array) {
    std::vector<T> values(array.size());
    copy(values.data(), array.data(), array.bytes());
    return values;
}

}  // namespace orrery::sample
