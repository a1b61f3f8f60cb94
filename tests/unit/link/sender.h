// A card of a net that writes to another until all of it has gone.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/link/net.h"

namespace orrery::emu::test {

inline constexpr std::uint64_t kSem = 0x700000;

// Writes so many bytes of a value to a node, waits for room, and signals at the end the semaphore that its
// card has there.
struct Sender {
    static constexpr std::uint64_t kPiece = 64 << 10;
    Sender(NetCard& its_card, std::uint32_t its_to, std::uint64_t its_at, std::uint64_t bytes,
           std::uint32_t its_value, std::uint64_t a_piece = kPiece)
        : card(its_card), to(its_to), at(its_at), left(bytes), piece(a_piece), value(its_value) {
        card.events.schedule(event, card.events.now());
    }
    void on(ModelTime now) {
        if (left == 0) {
            const std::uint32_t fault = card.signal(to, semaphore_of(card.node), 1);
            if (fault == ORR_FAULT_PEER_BUSY) card.events.schedule(event, now + 1'000'000);
            return;
        }
        const std::vector<std::byte> data(std::min(left, piece), std::byte(value));
        const LinkSend sent = card.write(to, at, data);
        ASSERT_EQ(sent.fault, ORR_FAULT_NONE);
        if (sent.bytes == 0) return card.peers.towards(to)->wait_for_room(to, event);
        left -= sent.bytes;
        at += sent.bytes;
        card.events.schedule(event, sent.sent_ps);
    }
    static std::uint64_t semaphore_of(std::uint32_t node) { return kSem + 16 * std::uint64_t{node}; }
    NetCard& card;
    std::uint32_t to;
    std::uint64_t at, left, piece;
    std::uint32_t value;
    Event event = Event::of<&Sender::on>(this);
};

// Of who sends to whom.
inline std::uint32_t value_of(std::uint32_t from, std::uint32_t to) {
    return 0x10 * from + to;
}

}  // namespace orrery::emu::test
