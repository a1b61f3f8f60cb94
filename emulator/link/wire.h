// What two cards on one host share: the handshake on their socket, and the memory of a link.
//
// Each side makes one inbox (a sealed memfd), maps it, and hands it to its peer, which maps it as its outbox.
// Both can write all of it, so neither believes what stands in it: the receiver copies a message out before
// it looks at it, and the sender checks the consumer's words before it counts on them. Little-endian hosts
// only.
#pragma once

#include <array>
#include <cstdint>

#include <orrery/hw/bar0.h>
#include <orrery/hw/link.h>
#include <orrery/hw/switches.h>

#include "emulator/link/switch_words.h"

namespace orrery::emu::link {

inline constexpr std::uint64_t kHelloMagic = 0x4b4e494c5952524full;  // "ORRYLINK"
inline constexpr std::uint32_t kVersion = 17;

inline constexpr std::uint32_t kRingEntries = 16384;
inline constexpr std::uint64_t kPayloadBytes = 4u << 20;
inline constexpr std::uint64_t kMaxWriteBytes = 256u << 10;  // payload of one message
inline constexpr std::uint64_t kMaxReadBytes = 32u << 10;    // that one request asks for
inline constexpr std::uint64_t kLeastBytes = 64;             // what a message takes of the wire at least
inline constexpr std::uint16_t kMostHops = 8;                // how often one is passed on
inline constexpr std::uint32_t kMostDamaged = 64;            // how often one is damaged on the wire

// Messages on the SOCK_SEQPACKET socket.
inline constexpr std::uint32_t kHello = 1;  // carries the sender's inbox as its one descriptor
inline constexpr std::uint32_t kReady = 2;  // the peer's hello was good and its inbox is mapped
inline constexpr std::uint32_t kWake = 3;   // look at your inbox

inline constexpr std::uint32_t kFrames = 1;  // Hello::flags: the sender's messages have CRCs (frame.h)
inline constexpr std::uint32_t kMostLanes = 64;
inline constexpr std::uint32_t kSwitch = 2;            // Hello::flags: the sender is a switch, of a level
inline constexpr std::uint32_t kLevelShift = 8;        // 8 bits; a card's is 0
inline constexpr std::uint32_t kMostSwitchPorts = 32;  // of one

struct Hello {
    std::uint32_t kind;
    std::uint32_t version;
    std::uint64_t magic;
    std::uint64_t uid;  // the card's, neither 0 nor all ones
    std::uint32_t port;
    std::uint32_t lanes;        // that the sender has for this link: both use the fewer
    std::uint32_t lane_mbps;    // payload rate of one, in Mbit/s: both use the lower
    std::uint32_t flags;        // kFrames, kSwitch
    std::uint64_t inbox_bytes;  // sizeof(Inbox): a second check that both mean the same layout
    std::uint64_t clock_ps;     // the sender's system time: the later of the two is both's from now on
};
static_assert(sizeof(Hello) == 56);

// Operations of a message. Requests, in the channels `near` and `far`:
inline constexpr std::uint32_t kOpWrite = 1;   // `bytes` from the payload area to VRAM `offset`
inline constexpr std::uint32_t kOpSignal = 2;  // {value, arrival} to the semaphore at VRAM `offset`
inline constexpr std::uint32_t kOpRead = 3;    // `bytes` from VRAM `offset` to whoever asks; of none, which
                                               // no grant need allow, only the answer: all before it is done
inline constexpr std::uint32_t kOpAtomic = 4;  // `function` on the word of `bytes` at VRAM `offset`
inline constexpr std::uint32_t kOpNote =
    16;  // ORR_NOTE_BYTES from the payload area to the driver of `destination`; of no epoch
inline constexpr std::uint32_t kOpArrive = 6;  // at round `value` of the barrier in slot `offset`
inline constexpr std::uint32_t kOpLeave =
    7;  // it has failed for the sender after round `compare`, with `value`
inline constexpr std::uint32_t kOpMember =
    8;  // for the switch alone that is the peer: a member of the multicast `destination` (multicast.h)
// And answers, in `near_back` and `far_back`:
inline constexpr std::uint32_t kOpAnswer = 5;  // to a read (with its bytes), an atomic (the old value), or a
                                               // write or signal that was refused (tag 0)

// Message::status of an answer.
enum Status : std::uint16_t {
    kDone = 0,
    kDenied = 1,      // no grant of the owner's allows it
    kBadKey = 2,      // one would, with another key
    kNoRoute = 3,     // a card on the way knows none
    kAnswerLost = 4,  // the answer was, or a card on the way sends nothing on
    kBusy = 5,        // a switch has no room for one more reduction: ask again
    kStatuses = 6,
};

// Message::function of a read, and its answer: how the answers of a multicast's members are combined by the
// switch; 0: not. One owner has nothing to combine. With kPart it is one member's alone, and the switch waits
// for it.
inline constexpr std::uint16_t kPart = 0x8000;
constexpr std::uint16_t reduction_of(std::uint32_t type, std::uint32_t function) {
    return static_cast<std::uint16_t>((type & 0xff) | (function & 0x7f) << 8);
}

struct alignas(64) Message {
    std::uint32_t op;
    std::uint32_t bytes;    // kOpWrite: 1 .. kMaxWriteBytes; kOpRead: 0 .. kMaxReadBytes; kOpAtomic: 4 or
                            // 8; kOpNote: ORR_NOTE_BYTES; kOpAnswer: of payload, 0 .. kMaxReadBytes; else 0
    std::uint64_t index;    // of this message in its channel since the link came up, from 0
    std::uint64_t send_ps;  // the sender's system time when it was given to the port
    std::uint64_t arrival_ps;  // send + waiting + serialisation + latency; never falls
    std::uint64_t offset;  // in the VRAM of `destination`; kOpArrive, kOpLeave: a slot of its barrier unit;
                           // kOpMember: where in the member's VRAM the multicast's offset 0 is
    std::uint64_t value;   // kOpSignal, kOpArrive, kOpLeave; kOpAtomic: the operand; kOpAnswer: the old
                           // value; kOpMember: node | epoch << 16, 0: no members from now on; else 0
    std::uint32_t payload_at;   // with payload: where in the payload area it begins, else 0; it goes on at 0
    std::uint16_t source;       // the node that sent it
    std::uint16_t destination;  // the node for which it is
    std::uint64_t payload_end;  // bytes of the payload area used since the link came up, up to this message
    std::uint64_t head_ps;      // when its first byte arrives
    std::uint64_t key;          // of the grant, or barrier, that a request goes by, 0: none was given;
                                // kOpMember: for copies to that member; kOpNote, kOpAnswer: 0
    std::uint64_t compare;      // kOpAtomic: of ORR_ATOMIC_COMPARE_SWAP; kOpLeave; else 0
    std::uint32_t tag;          // of a read or atomic, and its answer; else 0
    std::uint16_t function;     // kOpAtomic: ORR_ATOMIC_*; kOpRead, kOpAnswer: reduction_of(), kPart; else 0
    std::uint16_t status;       // kOpAnswer: Status, else 0
    std::uint16_t epoch;        // of the way between the two, as the sender has it
    std::uint16_t hops;         // cards that have passed it on, at most kMostHops
    // The frame around it (frame.h), with kFrames, else 0.
    std::uint32_t crc;      // of all above and the payload
    std::uint32_t damaged;  // how often the wire damages it before it comes as it is, at most kMostDamaged
    std::uint64_t noise;    // says which bits
};
static_assert(sizeof(Message) == 128);

// A word between barrier units.
constexpr bool is_barrier(std::uint32_t op) {
    return op == kOpArrive || op == kOpLeave;
}
constexpr bool has_payload(std::uint32_t op) {
    return op == kOpWrite || op == kOpAnswer || op == kOpNote;
}
// Bytes in the payload area.
constexpr std::uint64_t payload_of(const Message& message) {
    return has_payload(message.op) ? message.bytes : 0;
}
// What it is counted and charged for; a message takes kLeastBytes of the wire at least.
constexpr std::uint64_t wire_bytes_of(const Message& message) {
    const std::uint64_t bytes = payload_of(message);
    return bytes != 0 ? bytes : sizeof(orr_semaphore);
}

static_assert(kPayloadBytes <= std::uint64_t{1} << 32 && ORR_NODES <= 1u << 16);

struct Grant {
    std::uint64_t base;
    std::uint64_t size;    // 0: slot not in use
    std::uint64_t node;    // who may go there
    std::uint64_t rights;  // ORR_LINK_RIGHT_*
};

// What a switch says of a node that can be reached by it. Whoever reads this may find a word of a moment ago
// beside one of now, and takes it for what it is: a hint, of which no message depends.
struct Reach {
    std::uint64_t how;     // as ORR_R_REACH: 0: not reachable
    std::uint64_t fabric;  // the switch to which that card is joined
    std::uint64_t mbps;    // of the slowest link on the way
    bool operator==(const Reach&) const = default;
};

// Messages in order, with room of their own. Words of one writer share a cache line with nobody else's.
struct Channel {
    // by the sender
    alignas(64) std::uint64_t produced;  // messages, counts up for ever; stored with release
    // by the owner
    alignas(64) std::uint64_t consumed;  // messages executed, or passed on
    std::uint64_t payload_consumed;      // Message::payload_end of the last of them
    alignas(64) Message ring[kRingEntries];
    // by the owner: when the sender hears that each of these was taken, by system time: the owner's latency
    // after it, as it promises all others; 0 of one that does not keep step
    alignas(64) std::uint64_t heard_ps[kRingEntries];
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
    std::uint32_t credit_in_step;  // likewise, of a sender that keeps step: it has to be told of the next
                                   // credit's time
    // by the owner: its card's node, and what may be written to. Copies for the sender's information.
    alignas(64) std::uint64_t node;
    std::uint64_t grants_end;      // slots from there on are not in use
    std::uint64_t grants_version;  // changes behind each change of them
    std::uint64_t lives;           // changes behind each setting of `node`, also to the same
    // by the sender: how often it has asked the owner, a switch, to have all arrive that is on its way
    alignas(64) std::uint64_t drains_wanted;
    std::uint64_t drains_forced;  // up to which of these nothing that finds no room is waited for
    // by the owner: how often that has been done
    alignas(64) std::uint64_t drains_done;
    std::uint64_t reach_version;     // changes behind each change of `reach`
    std::uint64_t switches_version;  // and of `switches`; odd while they are being changed
    alignas(64) Reach reach[ORR_NODES];
    alignas(64) std::array<SwitchWords, ORR_SWITCHES_PLACES> switches;  // behind the last: uid 0
    alignas(64) Grant grants[ORR_LINK_GRANT_SLOTS];
    Channel near;  // requests for the owner
    Channel far;   // requests for other nodes: what the owner passes on
    // Answers, likewise. They wait for no request: a card has room for all answers that it has asked for.
    Channel near_back;
    Channel far_back;
};
static_assert(sizeof(Inbox) % 4096 == 0);

}  // namespace orrery::emu::link
