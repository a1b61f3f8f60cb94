// What a peer writes into an inbox is anything: no crash, no access beside the grants, and no answer for what
// was not asked.
#include <cstdlib>

#include "emulator/link/frame.h"
#include "emulator/link/receiver.h"
#include "emulator/link/replies.h"
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
              {.come_here = [](std::uint32_t node) { return node == kPeer; },
               .epoch_of = [](std::uint32_t) { return 0u; }},
              {.room = [](const link::Message&) { return true; },
               .give =
                   [this](const link::Message&, link::Status, std::span<const std::uint8_t> data,
                          std::uint64_t) {
                       const auto* first = vram.data() + kGranted;
                       if (!data.empty() &&
                           (data.data() < first || data.data() + data.size() > first + kGrantBytes))
                           std::abort();
                   }},
              50'000'000'000, counts, [](std::uint32_t, bool, std::span<const std::byte>) {},
              [](const link::Message& word) {
                  if (word.source != kPeer || word.offset >= ORR_BARRIER_SLOTS) std::abort();
                  return word.key == 5 ? link::kDone : link::kBadKey;
              }),
          replies(events, counters, counts, receiver.near_back(), requests,
                  {.comes_here = [](std::uint32_t node, std::uint32_t) { return node == kPeer; },
                   .node = [] { return kOwner; },
                   .refused = [](std::uint32_t, std::uint32_t) {}},
                  50'000'000'000) {
        receiver.set_node(kOwner);
        const auto grant = [](std::uint64_t base, std::uint64_t bytes, std::uint64_t key) {
            return link::OwnGrant{
                .grant = {.base = base, .size = bytes, .node = kPeer, .rights = ORR_LINK_RIGHTS}, .key = key};
        };
        receiver.set_grant(0, grant(kGranted, 0x1000, 0));
        receiver.set_grant(1, grant(kGranted + 0x1000, kGrantBytes - 0x1000, 5));
    }
    EventQueue events;
    Vram vram;
    Counters counters;
    link::Counts counts;
    link::Receiver receiver;
    link::Requests requests;
    link::Replies replies;
};

// Who asked for 64 bytes gets them or a fault, once.
struct Ears final : Asker {
    void answered(std::uint32_t, const LinkAnswer&) override {
        if (++calls > 1) std::abort();
    }
    void ways_changed() override {}
    unsigned calls = 0;
    std::array<std::byte, 66> bytes{};
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
    std::uint64_t produced = 0, payload_end = 0, back = 0, back_end = 0;
    card.requests.end([](const auto&) { return true; }, [](std::uint32_t, Asker&) {});
    Ears ears;
    const std::uint32_t tag =
        card.requests.add({.asker = &ears, .node = kPeer, .to = std::span(ears.bytes).subspan(1, 64)});
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
        if (how % 8 == 2) {
            ModelTime then = card.events.now();
            link::Message answer = message(input, kOwner, back, back_end, then);
            if (how % 16 == 2) {
                answer.op = link::kOpAnswer;
                answer.tag = how % 64 == 2 ? answer.tag : tag;
                answer.bytes = how % 32 == 2 ? 64 : answer.bytes % 100;
                answer.key = 0;
                answer.payload_end = back_end += answer.bytes;
            }
            if (frames) answer.crc = link::frame_crc(answer, inbox.near_back);
            std::memcpy(&inbox.near_back.ring[back % link::kRingEntries], &answer, sizeof answer);
            inbox.near_back.produced = ++back;
            if (!card.replies.pump()) break;
        }
        // A semaphore of this card is closed, with or without the peer's pokes taken.
        if (how % 16 == 1) static_cast<void>(card.receiver.hurry_to(kGranted + 16 * (how / 16)));
        if (how % 32 == 1) card.receiver.give_owed();
        // The short way of a signal, if it is one.
        if (how % 64 >= 32 && !card.receiver.held()) {
            const auto [first, wrong] = card.receiver.first();
            if (first != nullptr && first->arrival_ps <= card.events.system_now())
                static_cast<void>(card.receiver.take_signal(*first));
        }
        while (card.receiver.pump() == link::Receiver::Pumped::kDid) {
        }
        const ModelTime wanted = card.receiver.wanted();
        if (wanted != kNever && wanted < card.events.now() + (ModelTime{1} << 40))
            card.events.advance_to(wanted);
    }
    if (!is_zero(card.vram.data(), kGranted)) std::abort();
    if (!is_zero(card.vram.data() + kGranted + kGrantBytes, card.vram.size() - kGranted - kGrantBytes))
        std::abort();
    if (ears.bytes.front() != std::byte{0} || ears.bytes.back() != std::byte{0}) std::abort();
    card.requests.end([](const auto&) { return true; }, [](std::uint32_t, Asker&) {});
    card.receiver.close();
    return 0;
}
