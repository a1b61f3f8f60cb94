// Messages as a peer may write them into an inbox.
#pragma once

#include <cstdint>

#include <orrery/hw/engine.h>

#include "emulator/link/wire.h"
#include "emulator/time/event_queue.h"
#include "tests/fuzz/engines/input.h"

namespace orrery::emu::test {

constexpr std::uint64_t kGranted = 0x10000, kGrantBytes = 0x4000;
constexpr std::uint16_t kOwner = 1, kPeer = 3;

// Anything, most of it made right: from the peer for that node, with what an inbox expects next.
inline link::Message message(Input& input, std::uint16_t destination, std::uint64_t index,
                             std::uint64_t& payload_end, ModelTime& arrival) {
    auto m = input.take<link::Message>();
    const auto keep = input.take<std::uint8_t>();
    if ((keep & 1) == 0) {
        m.op = m.op % 8 == 7 ? link::kOpNote : 1 + m.op % (link::kOpAtomic + 2);
        if (m.op > link::kOpAtomic) m.op += link::kOpArrive - link::kOpAnswer;
        if (m.op == link::kOpLeave && m.value % 2 != 0) m.op = link::kOpMember;
    }
    if ((keep & 2) == 0) m.index = index;
    const bool note = m.op == link::kOpNote;
    const bool asks = m.op == link::kOpRead || m.op == link::kOpAtomic;
    if ((keep & 4) == 0) {
        m.bytes = m.op == link::kOpSignal || m.op == link::kOpMember || link::is_barrier(m.op) ? 0
                  : note                    ? ORR_NOTE_BYTES
                  : m.op == link::kOpAtomic ? 4 + m.bytes % 2 * 4
                                            : 1 + m.bytes % 0x5000;
        m.tag = asks ? m.tag | 1 : 0;
    }
    if ((keep & 8) == 0) {
        m.arrival_ps = arrival + m.arrival_ps % 1000;
        m.send_ps = m.arrival_ps / 2;
    }
    if ((keep & 16) == 0) {
        m.payload_at = link::has_payload(m.op) ? m.payload_at % link::kPayloadBytes : 0;
        m.payload_end = payload_end + link::payload_of(m);
    }
    if ((keep & 128) == 0) {
        m.source = kPeer;
        m.destination = destination;
    }
    if ((keep & 32) == 0) m.offset = kGranted - 0x1000 + m.offset % 0x6000;
    if ((keep & 64) == 0) {
        if (link::has_payload(m.op) || m.op == link::kOpRead) m.value = 0;
        if (note) m.offset = m.hops = 0;
        m.function = m.op == link::kOpAtomic ? 1 + m.function % (ORR_ATOMIC_FUNCTIONS - 1)
                     : m.op == link::kOpRead && m.function % 2 != 0
                         ? link::reduction_of(ORR_TYPE_I8 + m.function / 2 % ORR_TYPE_F64, ORR_REDUCE_ADD)
                         : 0;
        if (m.function != ORR_ATOMIC_COMPARE_SWAP && m.op != link::kOpLeave) m.compare = 0;
        m.status = 0;
        if (m.op == link::kOpAtomic) m.offset &= ~std::uint64_t{7};
    }
    if ((keep & 64) == 0 && m.op == link::kOpSignal) m.offset &= ~std::uint64_t{15};
    if ((keep & 64) == 0 && link::is_barrier(m.op)) {
        m.offset %= ORR_BARRIER_SLOTS;
        m.value = m.op == link::kOpLeave ? m.value | ORR_SEM_FAILED : m.value & ~ORR_SEM_FAILED;
    }
    if ((keep & 64) == 0 && m.op == link::kOpMember) {
        m.hops = 0;
        m.key = 0;
        m.offset &= ~std::uint64_t{ORR_PAGE_SIZE - 1};
        m.value = 1 + m.value % 4 + (m.value & 0x10000);
    }
    m.damaged %= link::kMostDamaged + 2;
    payload_end = m.payload_end;
    arrival = m.arrival_ps;
    return m;
}

}  // namespace orrery::emu::test
