// What two cards on one host share: the handshake on their socket, and the memory of a link.
//
// Each side makes one inbox (a sealed memfd), maps it, and hands it to its peer, which maps it as its outbox.
// Both can write all of it, so neither believes what stands in it: the receiver copies a message out before
// it looks at it, and the sender checks the consumer's words before it counts on them. Little-endian hosts
// only.
#pragma once

#include <cstdint>

#include <orrery/hw/bar0.h>
#include <orrery/hw/link.h>

namespace orrery::emu::link {

inline constexpr std::uint64_t kHelloMagic = 0x4b4e494c5952524full;  // "ORRYLINK"
inline constexpr std::uint32_t kVersion = 6;

inline constexpr std::uint32_t kRingEntries = 16384;
inline constexpr std::uint64_t kPayloadBytes = 4u << 20;
inline constexpr std::uint64_t kMaxWriteBytes = 256u << 10;  // payload of one message
inline constexpr std::uint64_t kLeastBytes = 64;             // what a message takes of the wire at least
inline constexpr std::uint16_t kMostHops = 8;                // how often one is passed on
inline constexpr std::uint32_t kMostDamaged = 64;            // how often one is damaged on the wire

// Messages on the SOCK_SEQPACKET socket.
inline constexpr std::uint32_t kHello = 1;  // carries the sender's inbox as its one descriptor
inline constexpr std::uint32_t kReady = 2;  // the peer's hello was good and its inbox is mapped
inline constexpr std::uint32_t kWake = 3;   // look at your inbox

inline constexpr std::uint32_t kFrames = 1;  // Hello::flags: the sender's messages have CRCs (frame.h)
inline constexpr std::uint32_t kMostLanes = 64;

struct Hello {
    std::uint32_t kind;
    std::uint32_t version;
    std::uint64_t magic;
    std::uint64_t uid;  // the card's, neither 0 nor all ones
    std::uint32_t port;
    std::uint32_t lanes;        // that the sender has for this link: both use the fewer
    std::uint32_t lane_mbps;    // payload rate of one, in Mbit/s: both use the lower
    std::uint32_t flags;        // kFrames
    std::uint64_t inbox_bytes;  // sizeof(Inbox): a second check that both mean the same layout
    std::uint64_t clock_ps;     // the sender's system time: the later of the two is both's from now on
};
static_assert(sizeof(Hello) == 56);

// Operations of a message.
inline constexpr std::uint32_t kOpWrite = 1;   // `bytes` from the payload area to VRAM `offset`
inline constexpr std::uint32_t kOpSignal = 2;  // {value, arrival} to the semaphore at VRAM `offset`

struct alignas(64) Message {
    std::uint32_t op;
    std::uint32_t bytes;        // kOpWrite: 1 .. kMaxWriteBytes; kOpSignal: 0
    std::uint64_t index;        // of this message in its channel since the link came up, from 0
    std::uint64_t send_ps;      // the sender's system time when it was given to the port
    std::uint64_t arrival_ps;   // send + waiting + serialisation + latency; never falls
    std::uint64_t offset;       // in the VRAM of `destination`
    std::uint64_t value;        // kOpSignal, else 0
    std::uint32_t payload_at;   // kOpWrite: where in the payload area it begins, else 0; it goes on at 0
    std::uint16_t source;       // the node that sent it
    std::uint16_t destination;  // the node for which it is
    std::uint64_t payload_end;  // bytes of the payload area used since the link came up, up to this message
    std::uint64_t head_ps;      // when its first byte arrives
    std::uint16_t epoch;        // of the way between the two, as the sender has it
    std::uint16_t hops;         // cards that have passed it on, at most kMostHops
    // The frame around it (frame.h), with kFrames, else 0.
    std::uint32_t crc;      // of all above and the payload
    std::uint32_t damaged;  // how often the wire damages it before it comes as it is, at most kMostDamaged
    std::uint64_t noise;    // says which bits
};
static_assert(sizeof(Message) == 128);

static_assert(kPayloadBytes <= std::uint64_t{1} << 32 && ORR_NODES <= 1u << 16);

struct Grant {
    std::uint64_t base;
    std::uint64_t size;  // 0: slot not in use
    std::uint64_t node;  // who may write there
};

// Messages in order, with room of their own. Words of one writer share a cache line with nobody else's.
struct Channel {
    // by the sender
    alignas(64) std::uint64_t produced;  // messages, counts up for ever; stored with release
    // by the owner
    alignas(64) std::uint64_t consumed;  // messages executed, or passed on
    std::uint64_t payload_consumed;      // Message::payload_end of the last of them
    std::uint64_t held;  // the next message is due, and waits for what the owner's card has to do first
    alignas(64) Message ring[kRingEntries];
    alignas(4096) std::uint8_t payload[kPayloadBytes];
};

// One direction.
struct Inbox {
    // by the owner
    alignas(64) std::uint64_t alive;  // changes whenever the owner looks at the link
    // by both: the owner sets it before it blocks, the sender takes it back with a wake
    alignas(64) std::uint32_t need_wakeup;
    // by both: the sender sets it before it blocks without room, the owner takes it back with a wake
    alignas(64) std::uint32_t need_credit;
    // by the owner: its card's node, and what may be written to. Copies for the sender's information.
    alignas(64) std::uint64_t node;
    std::uint64_t grants_end;      // slots from there on are not in use
    std::uint64_t grants_version;  // changes behind each change of them
    alignas(64) Grant grants[ORR_LINK_GRANT_SLOTS];
    Channel near;  // for the owner
    Channel far;   // for other nodes: what the owner passes on
};
static_assert(sizeof(Inbox) % 4096 == 0);

}  // namespace orrery::emu::link
