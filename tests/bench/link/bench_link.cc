// How long a message takes from one card's process to another's, in host time, one way: signals there and
// back between the link ports of two cards, each on a thread, beside messages of the same size in two bare
// rings.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <thread>

#include "emulator/link/wire.h"
#include "tests/unit/link/two_cards.h"
#include "tools/bench/measured.h"

namespace orrery::bench {
namespace {

using emu::link::Message;

constexpr unsigned kRounds = 41, kMessages = 2'000;  // there and back
constexpr std::uint64_t kSemaphore = 0x1000, kGranted = 0x10000;

double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
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

// A card's end of a link: its core sleeps, so its clock goes to what comes next.
struct End {
    void send(std::uint64_t value) {
        if (card.port->signal(peer, kSemaphore, value) != ORR_FAULT_NONE)
            throw std::runtime_error("a signal");
    }
    void receive() {
        while (card.pokes.empty())
            card.idle_round();
        card.pokes.clear();
    }
    emu::test::LinkCard& card;
    std::uint32_t peer;
};

// A way there and back for so many; f(0) is told who begins, f(1) who answers.
template <typename Begin, typename Answer>
double one_way_ns(Begin begin, Answer answer) {
    std::thread other([&] {
        for (unsigned i = 0; i < kMessages; ++i)
            answer();
    });
    const double from = now_ns();
    for (unsigned i = 0; i < kMessages; ++i)
        begin();
    const double took = now_ns() - from;
    other.join();
    return took / kMessages / 2;
}

int run() {
    const emu::test::TempFolder folder;
    emu::test::LinkCard a(emu::test::kA, true, folder.file("link")),
        b(emu::test::kB, false, folder.file("link"));
    if (!connect(a, b)) throw std::runtime_error("the link does not come up");
    a.port->set_grant(0, 0, kGranted, emu::test::kB);
    b.port->set_grant(0, 0, kGranted, emu::test::kA);
    a.idle = b.idle = true;
    End at_a{a, emu::test::kB}, at_b{b, emu::test::kA};
    BareRing there, back;
    Measurement link{.name = "link message, one way", .size = {}, .samples = {}, .yardstick = {}};
    std::uint64_t value = 0, answer = 0;
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
                at_a.send(++value);
                at_a.receive();
            },
            [&] {
                at_b.receive();
                at_b.send(++answer);
            });
        if (round == 0) continue;  // finds pages that nobody has used
        link.yardstick.push_back(bare);
        link.samples.push_back(linked);
    }
    Measured measured;
    measured.add(std::move(link));
    return measured.print() ? 0 : 1;
}

}  // namespace
}  // namespace orrery::bench

int main() {
    try {
        return orrery::bench::run();
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_link: {}\n", error.what());
        return 1;
    }
}
