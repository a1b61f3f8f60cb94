// neighbours: ranks in a ring, in one VM or several, each with a card. Each adds up what all others have: it
// sends what it holds to the next, into one half of that one's inbox, while the other half is still being
// used, takes what the rank before it sent, adds that to its sum, and holds it from then on. Cards signal
// each other; no host takes part between the first step of a round and its last.
#include <fmt/format.h>
#include <orrery/orrery.hpp>

#include <cstdio>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "umd/samples/neighbours/exchange.h"
#include "umd/samples/support/sample.h"

using orrery::sample::number;
using orrery::sample::run_command;
using orrery::sample::UsageError;

namespace {

using neighbours::Exchange;
using neighbours::Group;
using neighbours::Place;
using neighbours::What;

constexpr const char* kHelp =
    "usage: orrery-run -n RANKS [--vms N] --topology ring -- neighbours [--rounds N] [--size BYTES]\n"
    "                                                                   [--crash RANK:ROUND]\n"
    "Ranks in a ring add up what all of them have, in halves that they hand on. Shows the time of a half and "
    "checks the sum.\n"
    "\n"
    "  --rounds N           rounds, 1 to 1000 (default 4)\n"
    "  --size BYTES         of a half, 64 to 67108864, a multiple of 4 (default 262144)\n"
    "  --crash RANK:ROUND   at the beginning of that round (from 1) the VM of this rank ends without a word\n"
    "Exit status: 0 all is right, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

struct Options {
    unsigned rounds = 4, size = 256 << 10;
    std::optional<unsigned> crashes;  // this rank
    unsigned crashes_in = 0;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        const std::string_view value = i + 1 < argc ? argv[++i] : "";
        if (option == "--rounds") {
            options.rounds = number(option, value, 1, 1000);
        } else if (option == "--size") {
            options.size = number(option, value, 64, 64 << 20);
            if (options.size % 4 != 0) throw UsageError("--size: a multiple of 4 is needed");
        } else if (option == "--crash") {
            const auto colon = value.find(':');
            if (colon == std::string_view::npos) throw UsageError("--crash wants RANK:ROUND, as 2:1");
            options.crashes = number(option, value.substr(0, colon), 0, 63);
            options.crashes_in = number(option, value.substr(colon + 1), 1, 1000);
        } else {
            throw UsageError(fmt::format("unknown option {}\n{}", option, kHelp));
        }
    }
    return options;
}

orrery::Semaphore make_semaphore(const std::string& name) {
    orrSemaphore_t semaphore = nullptr;
    orrery::check(orrSemaphoreCreate(&semaphore, orrSemaphoreInterprocess));
    orrery::check(orrSemaphoreSetName(semaphore, name.c_str()));
    return orrery::Semaphore::adopt(semaphore);
}

orrery::DeviceMemory make_shared_memory(std::size_t bytes) {
    void* memory = nullptr;
    orrery::check(orrIpcMalloc(&memory, bytes, 0));
    return orrery::DeviceMemory::adopt(memory);
}

std::uint32_t element(unsigned rank, std::size_t i) {
    return (static_cast<std::uint32_t>(i) + 1) * 2654435761u + rank * 40503u;
}

class Neighbour {
  public:
    Neighbour(const Options& options, const Place& place)
        : options_(options),
          place_(place),
          next_((place.rank + 1) % place.ranks),
          before_((place.rank + place.ranks - 1) % place.ranks),
          group_(place),
          mine_(options.size),
          sum_(options.size),
          inbox_(make_shared_memory(2 * std::size_t{options.size})),
          full_(make_semaphore(fmt::format("halves from {}", place.name_of(before_)))),
          room_(make_semaphore(fmt::format("room at {}", place.name_of(next_)))) {
        std::vector<std::uint32_t> values(options.size / 4);
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = element(place.rank, i);
        orrery::copy(mine_.get(), values.data(), options.size);
        orrery::fill(sum_.get(), 0, options.size);
        for (const unsigned other : {next_, before_}) {
            const int peer = place.device_of(other);
            if (!place.same_vm(other) || peer == place.device_of(place.rank)) continue;
            neighbours::once_linked([&] { return orrDeviceEnablePeerAccess(peer, 0); });
        }
        Exchange exchange(place);
        exchange.give(before_, What::kInbox, inbox_.get());
        exchange.give(before_, What::kFull, full_);
        exchange.give(next_, What::kRoom, room_);
        exchange.tell(group_);
        their_inbox_ = exchange.take_memory(next_, What::kInbox);
        their_full_ = exchange.take_semaphore(next_, What::kFull);
        their_room_ = exchange.take_semaphore(before_, What::kRoom);
        // Of another VM each who imports a semaphore is one who signals it; in this one it has to be said.
        if (place.same_vm(next_)) add_signaller(their_full_);
        if (place.same_vm(before_)) add_signaller(their_room_);
        // From here on nobody waits for somebody of whom nothing is known.
        group_.barrier();
    }

    void run() {
        for (unsigned round = 1; round <= options_.rounds; ++round) {
            if (options_.crashes == place_.rank && options_.crashes_in == round) crash();
            if (round == 1) begin_.record(stream_);
            for (unsigned step = 1; step < place_.ranks; ++step)
                queue(step);
            if (round == options_.rounds) {
                // Nothing that it sent is in use any more, and the one before it knows the same.
                stream_.signal(their_room_, steps_);
                stream_.wait(room_, steps_);
                end_.record(stream_);
            }
            stream_.synchronize();
        }
    }

    int judge() const {
        std::vector<std::uint32_t> got(options_.size / 4);
        orrery::copy(got.data(), sum_.get(), options_.size);
        for (std::size_t i = 0; i < got.size(); ++i) {
            std::uint32_t want = 0;
            for (unsigned other = 0; other < place_.ranks; ++other)
                want += other == place_.rank ? 0 : options_.rounds * element(other, i);
            if (got[i] == want) continue;
            fmt::print("WRONG: element {} of the sum is {:#x}, not {:#x}\n", i, got[i], want);
            return 1;
        }
        const double ns = end_.model_ns_since(begin_) / static_cast<double>(steps_);
        fmt::print("{} to {}: {} halves of {} bytes, {:.3f} us of model time each, {:.1f} GB/s, correct\n",
                   place_.name_of(place_.rank), place_.name_of(next_), steps_, options_.size, ns / 1e3,
                   options_.size / ns);
        fmt::print("{}\n", orrery::sample::digest(std::as_bytes(std::span(got))));
        return std::fflush(stdout) == 0 ? 0 : 1;
    }

  private:
    void add_signaller(const orrery::Semaphore& semaphore) const {
        orrery::check(orrSemaphoreAddSignaller(semaphore.get(), stream_.handle()));
    }

    std::byte* half(void* inbox, std::uint64_t step) const {
        return static_cast<std::byte*>(inbox) + (step % 2) * options_.size;
    }

    void queue(unsigned step) {
        const std::uint64_t n = ++steps_;
        const void* held = step == 1 ? mine_.get() : half(inbox_.get(), n - 1);
        // What went into the same half two steps ago has been sent on.
        if (n > 2) stream_.wait(room_, n - 2);
        orrery::copy(half(their_inbox_.get(), n), held, options_.size, stream_);
        stream_.signal(their_full_, n);
        if (n > 1) stream_.signal(their_room_, n - 1);
        stream_.wait(full_, n);
        orrery::reduce(sum_.get(), half(inbox_.get(), n), options_.size / 4, orrUint32, orrReduceSum,
                       stream_);
    }

    [[noreturn]] static void crash() {
        std::this_thread::sleep_for(std::chrono::seconds(5));  // others shall wait for it by then
        std::ofstream("/proc/sysrq-trigger") << "b" << std::flush;
        std::this_thread::sleep_for(std::chrono::seconds(30));
        throw std::runtime_error("--crash: the VM goes on (is the rank's user root?)");
    }

    Options options_;
    Place place_;
    unsigned next_, before_;
    Group group_;
    std::uint64_t steps_ = 0;
    orrery::DeviceMemory mine_, sum_, inbox_;
    orrery::Semaphore full_, room_;  // a half has come; the next has room for one
    orrery::DeviceMemory their_inbox_{orrery::empty};
    orrery::Semaphore their_full_{orrery::empty}, their_room_{orrery::empty};
    orrery::Stream stream_;
    orrery::Event begin_, end_;
};

int run(const Options& options) {
    const Place place = Place::find();
    try {
        orrery::check(orrSetDevice(place.device_of(place.rank)));
        Neighbour neighbour(options, place);
        neighbour.run();
        return neighbour.judge();
    } catch (const std::exception& error) {
        throw std::runtime_error(fmt::format("{}: {}", place.name_of(place.rank), error.what()));
    }
}

}  // namespace

int main(int argc, char** argv) {
    return run_command(argc, argv, kHelp, [&] { return run(parse(argc, argv)); });
}
