// What a peer writes into the channel of what is passed on is anything: no crash, no harm to the link by
// which it goes on, and nothing beside the grants of the card at its end.
#include <cstdlib>

#include "emulator/link/forwarder.h"
#include "emulator/link/frame.h"
#include "emulator/link/receiver.h"
#include "tests/fuzz/link/messages.h"
#include "tests/unit/link/net.h"

namespace {

using namespace orrery::emu;
using namespace orrery::emu::test;

constexpr std::uint16_t kEnd = 2;

// Two cards with a link; the peer, node 3, is at another port of the first.
struct Cards {
    Cards()
        : net(2, false),
          receiver(
              net[0].events, net[0].vram, net[0].counters, [](std::uint64_t) {}, [] { return true; },
              [](std::uint64_t, std::uint64_t) {},
              {.come_here = [](std::uint32_t) { return false; },
               .epoch_of = [](std::uint32_t) { return 0u; }},
              {.room = [](const link::Message&) { return true; },
               .give = [](const link::Message&, link::Status, std::span<const std::uint8_t>,
                          std::uint64_t) {}},
              50'000'000'000, counts, [](std::uint32_t, bool, std::span<const std::byte>) {},
              [](const link::Message&) { return link::kDenied; }),
          forwarder(net[0].events, net[0].counters, counts, receiver.far(), due,
                    {.comes_here = [](std::uint32_t node) { return node == kPeer; },
                     .onward = [this](std::uint32_t node) -> LinkPort* {
                         return node == kEnd ? net[0].ports[1].get() : nullptr;
                     },
                     .is_stuck = [this](const LinkPort*, unsigned) { return stuck; },
                     .may_pass = {},
                     .lost = {},
                     .multicast = [this](std::uint32_t number) { return multicasts.find(number); },
                     .member = [this](const link::Message& message) { return multicasts.change(message); },
                     .reductions = &reductions,
                     .port = 0,
                     .drained = [this](std::uint32_t number) { drained += number; },
                     .cannot = [](const link::Message&, link::Status) {},
                     .answered = {}},
                    kSwitching, 50'000'000'000) {
        for (auto& port : net[1].ports)
            if (port) port->reset();
        net[1].route(kPeer, 0);
        net[1].ports[0]->set_grant(0, kGranted, kGrantBytes, kPeer);
        if (!net.up()) std::abort();
        net.forward();
    }
    void on(ModelTime) { good = good && forwarder.run().has_value(); }

    Net net;
    link::Counts counts;
    link::Multicasts multicasts;
    link::Reductions reductions{[] {}};
    link::Receiver receiver;
    Event due = Event::of<&Cards::on>(this);
    link::Forwarder forwarder;
    bool good = true;  // the peer's link is up
    bool stuck = false;
    unsigned drains = 0, drained = 0;
};

bool is_zero(const std::uint8_t* at, std::size_t bytes) {
    return at[0] == 0 && std::memcmp(at, at + 1, bytes - 1) == 0;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Cards cards;
    NetCard &between = cards.net[0], &end = cards.net[1];
    Input input(data, size);
    if (!cards.receiver.open()) std::abort();
    auto outbox = link::SharedArea::adopt(::dup(cards.receiver.fd()));
    if (!outbox) std::abort();
    link::Channel& far = outbox->operator->()->far;
    std::memset(far.payload, 0xff, 64);
    const bool frames = size % 4 == 3;
    cards.receiver.check_frames(frames);
    cards.multicasts.clear();
    cards.reductions.forget(0);
    cards.good = true;
    std::uint64_t produced = 0, payload_end = 0;
    ModelTime arrival = between.events.now();
    if (arrival > kNever / 8) std::abort();  // the clock goes on by what messages say, and they are limited
    for (unsigned step = 0; step < 64 && !input.empty() && cards.good; ++step) {
        link::Message m = message(input, kEnd, produced, payload_end, arrival);
        if (frames && m.noise % 8 != 0) m.crc = link::frame_crc(m, far);
        std::memcpy(&far.ring[produced % link::kRingEntries], &m, sizeof m);
        const auto how = input.take<std::uint8_t>();
        produced += how == 255 ? input.take<std::uint64_t>() : 1;
        std::atomic_ref(far.produced).store(produced, std::memory_order_release);
        if (how % 4 == 0) continue;
        if (how % 16 == 1) {
            cards.forwarder.drain(how % 64 == 1);
            ++cards.drains;
        }
        end.stuck = cards.stuck = how % 32 == 2;
        if (how % 32 == 3) cards.multicasts.clear();
        if (cards.forwarder.has_news()) cards.on(0);
        cards.net.run(between.events.now() + (ModelTime{1} << 40));
    }
    end.stuck = false;
    end.ports[0]->poke_room();
    cards.forwarder.close();
    cards.receiver.close();
    cards.net.run();
    // Whoever drains is told, and a bad peer takes no link of others along.
    if (cards.drained != cards.drains) std::abort();
    if (between.ports[1]->state() != ORR_LINK_UP || !between.ports[1]->forwards()) std::abort();
    if (!is_zero(end.vram.data(), kGranted)) std::abort();
    if (!is_zero(end.vram.data() + kGranted + kGrantBytes, end.vram.size() - kGranted - kGrantBytes))
        std::abort();
    end.pokes.clear();
    end.arrivals.clear();
    return 0;
}
