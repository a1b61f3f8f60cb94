// How long a message takes from one card's process to another's, in host time, one way: signals there and
// back between the link ports of two cards, each on a thread, beside messages of the same size in two bare
// rings. `bench_link alone N`: N ways there and back by the links and by the rings on one thread, for a
// profiler that counts instructions: nobody waits. With `framed` as the last word messages have CRCs, as
// those of cards have that may be given a fault plan while they run.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <thread>

#include "emulator/link/wire.h"
#include "tests/unit/link/two_cards.h"
#include "tools/bench/measured.h"

namespace orrery::bench {
namespace {

using emu::link::Message;

// There and back. Short rounds: one in which the host runs something else is one of many.
constexpr unsigned kRounds = 241, kMessages = 400;
// Before these the ring has pages that nobody has used.
constexpr unsigned kFirstRounds = emu::link::kRingEntries / kMessages + 1;
constexpr std::uint64_t kSemaphore = 0x1000, kGranted = 0x10000;

double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void pause_cpu() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// What no one could do without: a message, an index that says so, and a look at it.
class BareRing {
  public:
    void send(std::uint64_t value) {
        Message& to = messages_[produced_ % kSize];
        to = Message{};
        to.value = value;
        index_.store(++produced_, std::memory_order_release);
    }
    std::uint64_t receive() {
        while (index_.load(std::memory_order_acquire) == consumed_) {
        }
        const Message message = messages_[consumed_++ % kSize];
        return message.value;
    }

  private:
    static constexpr std::size_t kSize = 1024;
    alignas(64) std::atomic<std::uint64_t> index_{0};
    alignas(64) std::uint64_t produced_ = 0;
    alignas(64) std::uint64_t consumed_ = 0;
    alignas(64) std::array<Message, kSize> messages_{};
};

// A card's end of a link: its core sleeps, so its clock goes to what comes next. Nothing of one end is on a
// cache line with something of the other, as it is not in two processes.
struct alignas(256) End {
    End(std::uint32_t own, std::uint32_t peer_node, bool listen, const emu::test::TempFolder& folder,
        bool framed)
        : card(own, listen, folder.file("link")), peer(peer_node) {
        card.idle = true;
        if (!framed) return;
        card.port.reset();
        card.config.faults = &faults;
        card.open();
    }
    void send() {
        if (card.port->signal(peer, kSemaphore, ++value) != ORR_FAULT_NONE)
            throw std::runtime_error("a signal");
    }
    void receive() {
        // As a card's thread does, which looks at other things, too.
        while (card.pokes.empty())
            if (!card.idle_round()) pause_cpu();
        card.pokes.clear();
    }
    emu::test::LinkCard card;
    emu::Faults faults{{}, card.events, {.die = [] {}, .struck = {}}};  // none, till now
    std::uint32_t peer;
    std::uint64_t value = 0;  // of the last signal
};

// A way there and back for so many; f(0) is told who begins, f(1) who answers.
template <typename Begin, typename Answer>
double one_way_ns(Begin begin, Answer answer) {
    std::thread other([&] {
        for (unsigned i = 0; i <= kMessages; ++i)
            answer();
    });
    begin();  // until the other thread is there
    const double from = now_ns();
    for (unsigned i = 0; i < kMessages; ++i)
        begin();
    const double took = now_ns() - from;
    other.join();
    return took / kMessages / 2;
}

struct Linked {
    explicit Linked(bool with_crcs) : framed(with_crcs) {
        if (!connect(at_a.card, at_b.card)) throw std::runtime_error("the link does not come up");
        at_a.card.port->set_grant(0, 0, kGranted, at_a.peer);
        at_b.card.port->set_grant(0, 0, kGranted, at_b.peer);
    }
    const bool framed;
    const emu::test::TempFolder folder;
    End at_a{emu::test::kA, emu::test::kB, true, folder, framed};
    End at_b{emu::test::kB, emu::test::kA, false, folder, framed};
};

[[gnu::noinline]] void link_alone(Linked& cards, unsigned messages) {
    for (unsigned n = 0; n < messages; ++n) {
        cards.at_a.send();
        cards.at_b.receive();
        cards.at_b.send();
        cards.at_a.receive();
    }
}

[[gnu::noinline]] void rings_alone(BareRing& there, BareRing& back, unsigned messages) {
    for (unsigned value = 1; value <= messages; ++value) {
        there.send(value);
        back.send(there.receive());
        (void)back.receive();
    }
}

int run_alone(unsigned messages, bool framed) {
    Linked cards(framed);
    BareRing there, back;
    link_alone(cards, messages);
    rings_alone(there, back, messages);
    return 0;
}

int run(bool framed) {
    Linked cards(framed);
    End &at_a = cards.at_a, &at_b = cards.at_b;
    BareRing there, back;
    Measurement link{.name = "link message, one way", .size = {}, .samples = {}, .yardstick = {}};
    for (unsigned round = 0; round < kRounds; ++round) {
        const double bare = one_way_ns(
            [&] {
                there.send(1);
                (void)back.receive();
            },
            [&] {
                (void)there.receive();
                back.send(1);
            });
        const double linked = one_way_ns(
            [&] {
                at_a.send();
                at_a.receive();
            },
            [&] {
                at_b.receive();
                at_b.send();
            });
        if (round < kFirstRounds) continue;
        link.yardstick.push_back(bare);
        link.samples.push_back(linked);
    }
    Measured measured;
    measured.add(std::move(link));
    return measured.print() ? 0 : 1;
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
    try {
        const bool framed = argc > 1 && std::string_view(argv[argc - 1]) == "framed";
        if (argc > 2 && std::string_view(argv[1]) == "alone")
            return orrery::bench::run_alone(static_cast<unsigned>(std::stoul(argv[2])), framed);
        return orrery::bench::run(framed);
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_link: {}\n", error.what());
        return 1;
    }
}
