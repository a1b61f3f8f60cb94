// What a peer writes into an inbox is anything: no crash, no write beside the grants.
#include <cstdlib>

#include "emulator/link/frame.h"
#include "emulator/link/receiver.h"
#include "emulator/link/shared_area.h"
#include "tests/fuzz/link/messages.h"

namespace {

using namespace orrery::emu;
using namespace orrery::emu::test;

struct Card {
    Card()
        : vram(*Vram::create(1 << 20)),
          receiver(
              events, vram, counters, [](std::uint64_t) {}, [] { return true; },
              [](std::uint64_t, std::uint64_t) {},
              [](std::uint32_t node, std::uint32_t epoch) { return node == kPeer && epoch == 0; },
              50'000'000'000, counts, [](std::uint32_t, std::span<const std::byte>) {}) {
        receiver.set_node(kOwner);
        receiver.set_grant(0, {kGranted, 0x1000, kPeer});
        receiver.set_grant(1, {kGranted + 0x1000, kGrantBytes - 0x1000, kPeer});
    }
    EventQueue events;
    Vram vram;
    Counters counters;
    link::Counts counts;
    link::Receiver receiver;
};

bool is_zero(const std::uint8_t* at, std::size_t bytes) {
    return at[0] == 0 && std::memcmp(at, at + 1, bytes - 1) == 0;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Card card;
    Input input(data, size);
    if (!card.receiver.open()) std::abort();
    auto outbox = link::SharedArea::adopt(::dup(card.receiver.fd()));
    if (!outbox) std::abort();
    link::Inbox& inbox = *outbox->operator->();
    std::memset(inbox.near.payload, 0xff, 64);
    const bool frames = size % 4 == 3;
    card.receiver.check_frames(frames);
    std::uint64_t produced = 0, payload_end = 0;
    ModelTime arrival = card.events.now();
    if (arrival > kNever / 8) std::abort();  // the clock goes on by what messages say, and they are limited
    for (unsigned step = 0; step < 64 && !input.empty(); ++step) {
        link::Message m = message(input, kOwner, produced, payload_end, arrival);
        if (frames && m.noise % 8 != 0) m.crc = link::frame_crc(m, inbox.near);
        std::memcpy(&inbox.near.ring[produced % link::kRingEntries], &m, sizeof m);
        const auto how = input.take<std::uint8_t>();
        produced += how == 255 ? input.take<std::uint64_t>() : 1;
        inbox.near.produced = produced;
        if (how % 4 == 0) continue;
        // A semaphore of this card is closed, with or without the peer's pokes taken.
        if (how % 16 == 1) static_cast<void>(card.receiver.hurry_to(kGranted + 16 * (how / 16)));
        if (how % 32 == 1) card.receiver.give_owed();
        for (auto done = card.receiver.pump(); done && *done; done = card.receiver.pump()) {
        }
        const ModelTime wanted = card.receiver.wanted();
        if (wanted != kNever && wanted < card.events.now() + (ModelTime{1} << 40))
            card.events.advance_to(wanted);
    }
    if (!is_zero(card.vram.data(), kGranted)) std::abort();
    if (!is_zero(card.vram.data() + kGranted + kGrantBytes, card.vram.size() - kGranted - kGrantBytes))
        std::abort();
    card.receiver.close();
    return 0;
}
