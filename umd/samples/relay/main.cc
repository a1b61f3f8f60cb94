// relay: cards hand a buffer on, each to the next and the last to the first, as many rounds as asked for,
// with semaphores that the cards signal each other and no host in between. It can be told to make the two
// mistakes that programs of several cards make: docs/synchronisation.md shows how to find them.
#include <fmt/format.h>
#include <orrery/orrery.hpp>

#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "umd/samples/support/sample.h"

using orrery::sample::number;
using orrery::sample::run_command;
using orrery::sample::UsageError;

namespace {

constexpr const char* kHelp =
    "usage: relay [--cards N] [--rounds N] [--size BYTES] [--forget CARD:ROUND | --all-wait]\n"
    "             [--patience SECONDS]\n"
    "Cards hand a buffer round, each when it has heard from the one before it. Shows the time of a handover "
    "and "
    "checks the buffer.\n"
    "\n"
    "  --cards N            cards that take part (default: all; 2 at least)\n"
    "  --rounds N           rounds, 1 to 255 (default 4)\n"
    "  --size BYTES         of the buffer, 64 to 67108864 (default 65536)\n"
    "  --forget CARD:ROUND  a mistake: from that round (from 1) on this card does not tell the next\n"
    "  --all-wait           another one: the first card waits for the last before it begins\n"
    "  --patience SECONDS   with --forget, how long no baton moves before that is the end, 1 to 3600 "
    "(default 2)\n"
    "Exit status: 0 all is right, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

struct Options {
    unsigned cards = 0, rounds = 4, size = 64 << 10;
    std::optional<unsigned> forgets;  // this card
    unsigned forgets_in = 0;
    bool all_wait = false;
    unsigned patience = 2;  // seconds of the host's time; what the cards do here takes milliseconds
};

constexpr std::uint64_t kLookNs = 100'000'000;

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        if (option == "--all-wait") {
            options.all_wait = true;
            continue;
        }
        const std::string_view value = i + 1 < argc ? argv[++i] : "";
        if (option == "--cards") {
            options.cards = number(option, value, 2, 16);
        } else if (option == "--rounds") {
            options.rounds = number(option, value, 1, 255);
        } else if (option == "--size") {
            options.size = number(option, value, 64, 64 << 20);
        } else if (option == "--forget") {
            const auto colon = value.find(':');
            if (colon == std::string_view::npos) throw UsageError("--forget wants CARD:ROUND, as 1:2");
            options.forgets = number(option, value.substr(0, colon), 0, 15);
            options.forgets_in = number(option, value.substr(colon + 1), 1, 255);
        } else if (option == "--patience") {
            options.patience = number(option, value, 1, 3600);
        } else {
            throw UsageError(fmt::format("unknown option {}\n{}", option, kHelp));
        }
    }
    if (options.forgets && options.all_wait) throw UsageError("--forget and --all-wait exclude each other");
    return options;
}

// A card's part. Its baton says in which round the card before it has handed over.
struct Runner {
    explicit Runner(int number, std::size_t bytes) : guard(number), device(number), buffer(bytes) {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        name = fmt::format("runner {}", number);
        attributes.name = name.c_str();
        stream = orrery::Stream(attributes);
        baton.name(fmt::format("baton {}", number));
        orrery::fill(buffer.get(), 0, bytes);
    }
    orrery::DeviceGuard guard;
    int device;
    std::string name;
    orrery::DeviceMemory buffer;
    orrery::Semaphore baton;
    orrery::Stream stream{orrery::empty};
    orrery::Event begin, end;
};

// Each card's byte at its place says how often it has had the buffer.
std::byte* mark(const Runner& runner) {
    return static_cast<std::byte*>(runner.buffer.get()) + runner.device;
}

class Relay {
  public:
    explicit Relay(const Options& options) : options_(options) {
        for (unsigned device = 0; device < options.cards; ++device) {
            const int next = static_cast<int>((device + 1) % options.cards);
            orrery::enable_peer_access(static_cast<int>(device), next);
        }
        for (unsigned device = 0; device < options.cards; ++device)
            runners_.push_back(std::make_unique<Runner>(static_cast<int>(device), options.size));
    }

    // All of it, before the first card has begun: from there on no host takes part.
    void queue() {
        if (!options_.all_wait) runners_[0]->baton.signal(1);
        for (unsigned round = 1; round <= options_.rounds; ++round)
            for (std::size_t n = 0; n < runners_.size(); ++n)
                queue(n, round);
    }

    // False, and said why: it has not come to an end.
    bool wait() const {
        // Nobody finds out that somebody forgot, so there a limit is needed; a circle ends by itself.
        if (options_.forgets && !comes_back()) {
            fmt::print("the buffer has not come back, and no baton has moved for {} s\n", options_.patience);
            for (const auto& runner : runners_)
                fmt::print("card {}: 'baton {}' is {}{}\n", runner->device, runner->device,
                           runner->baton.value(), runner->stream.done() ? ", and all its work is done" : "");
            for (const auto& runner : runners_)
                runner->stream.abort();
            return false;
        }
        for (const auto& runner : runners_)
            runner->stream.synchronize();
        return true;
    }

    // False: nothing goes on any more.
    bool comes_back() const {
        std::vector<std::uint64_t> before;
        // Looks are counted, so that a machine that stands still has not lost its patience when it goes on.
        std::uint64_t still_ns = 0;
        while (!runners_[0]->baton.wait_for(options_.rounds + 1, kLookNs)) {
            std::vector<std::uint64_t> now;
            for (const auto& runner : runners_)
                now.push_back(runner->baton.value());
            still_ns = now == before ? still_ns + kLookNs : 0;
            if (still_ns >= options_.patience * std::uint64_t{1'000'000'000}) return false;
            before = std::move(now);
        }
        return true;
    }

    int judge() const {
        std::vector<std::byte> got(options_.cards);
        orrery::copy(got.data(), runners_[0]->buffer.get(), got.size());
        for (unsigned card = 0; card < options_.cards; ++card) {
            const auto rounds = std::to_integer<unsigned>(got[card]);
            if (rounds == options_.rounds) continue;
            fmt::print("WRONG: card {} has had the buffer {} times, says the buffer, and not {}\n", card,
                       rounds, options_.rounds);
            return 1;
        }
        const Runner& first = *runners_[0];
        const double ns = first.end.model_ns_since(first.begin) /
                          (static_cast<double>(options_.cards) * (options_.rounds - 1) + 1);
        fmt::print("{} cards handed {} bytes round {} times: {:.3f} us of model time a handover, correct\n",
                   options_.cards, options_.size, options_.rounds, ns / 1e3);
        return std::fflush(stdout) == 0 ? 0 : 1;
    }

  private:
    void queue(std::size_t n, unsigned round) {
        const Runner& me = *runners_[n];
        const std::size_t after = (n + 1) % runners_.size();
        const Runner& next = *runners_[after];
        const orrery::DeviceGuard guard(me.device);
        me.stream.wait(me.baton, round);
        if (round == 1) me.begin.record(me.stream);
        orrery::fill(mark(me), static_cast<int>(round), 1, me.stream);
        orrery::copy(next.buffer.get(), me.buffer.get(), options_.size, me.stream);
        if (round == options_.rounds) me.end.record(me.stream);
        if (options_.forgets == n && options_.forgets_in <= round) return;
        // The last card's word begins the first card's next round.
        me.stream.signal(next.baton, after == 0 ? round + 1 : round);
    }

    Options options_;
    std::vector<std::unique_ptr<Runner>> runners_;
};

int run(Options options) {
    const int found = orrery::device_count();
    if (found < 2)
        throw std::runtime_error(fmt::format("there {} and it takes two: orrery-vm --cards 2",
                                             found == 0 ? "is no card" : "is one card"));
    if (options.cards == 0) options.cards = static_cast<unsigned>(std::min(found, 16));
    if (options.cards > static_cast<unsigned>(found))
        throw UsageError(fmt::format("--cards {}: there are only {}", options.cards, found));
    if (options.forgets && (*options.forgets >= options.cards || options.forgets_in > options.rounds))
        throw UsageError("--forget names a card or a round that there is not");
    Relay relay(options);
    relay.queue();
    return relay.wait() ? relay.judge() : 1;
}

}  // namespace

int main(int argc, char** argv) {
    return run_command(argc, argv, kHelp, [&] { return run(parse(argc, argv)); });
}
