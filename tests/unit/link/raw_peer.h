// A peer that speaks the link protocol by hand, and so can break it anywhere.
#pragma once

#include <atomic>
#include <cstring>

#include "emulator/link/shared_area.h"
#include "emulator/link/socket.h"
#include "tests/unit/link/two_cards.h"

namespace orrery::emu::test {

class RawPeer {
  public:
    explicit RawPeer(const std::string& path) : socket_(*link::Socket::create(false, path)) {}

    static link::Hello hello(std::uint32_t flags = 0) {
        return {.kind = link::kHello,
                .version = link::kVersion,
                .magic = link::kHelloMagic,
                .uid = 0xbad,
                .port = 1,
                .lanes = 4,
                .lane_mbps = 100'000,
                .flags = flags,
                .inbox_bytes = sizeof(link::Inbox),
                .clock_ps = 0};
    }
    // Waits until connected. false: never.
    bool attach(LinkCard& card) {
        for (int i = 0; i < 500 && !socket_.connected(); ++i) {
            card.wait(1);
            link::Socket::Received received;
            if (socket_.next(received) == link::SocketEvent::kTick) ::usleep(1000);
        }
        card.wait(1);
        return socket_.connected();
    }
    bool send(const void* data, std::size_t bytes, int fd = -1) { return socket_.send(data, bytes, fd); }
    // The whole handshake as it should be. `card` is up afterwards.
    bool handshake(LinkCard& card) {
        if (!attach(card)) return false;
        inbox = std::move(*link::SharedArea::create());
        inbox->node = kB;
        inbox->grants_end = ~0ull;  // nobody believes that
        const link::Hello mine = hello(flags);
        const std::uint32_t ready = link::kReady;
        if (!send(&mine, sizeof mine, inbox.fd()) || !send(&ready, sizeof ready)) return false;
        for (int i = 0; i < 500 && (!outbox || card.port->state() != ORR_LINK_UP); ++i) {
            card.wait(1);
            link::Socket::Received received;
            if (socket_.next(received) == link::SocketEvent::kMessage && received.fd) {
                outbox = std::move(*link::SharedArea::adopt(received.fd.release()));
            }
        }
        return card.port->state() == ORR_LINK_UP;
    }
    // A write of 8 bytes as it should be, for the slot that is next.
    link::Message good() const {
        return {.op = link::kOpWrite,
                .bytes = 8,
                .index = next,
                .send_ps = 1000,
                .arrival_ps = 2000,
                .offset = 0x100,
                .value = 0,
                .payload_at = 0,
                .source = kB,
                .destination = kA,
                .payload_end = (next + 1) * 64,
                .head_ps = 2000,
                .key = 0,
                .compare = 0,
                .tag = 0,
                .function = 0,
                .status = 0,
                .epoch = 0,
                .hops = 0,
                .crc = 0,
                .damaged = 0,
                .noise = 0};
    }
    void push(const link::Message& message) {
        std::memcpy(&outbox->near.ring[next % link::kRingEntries], &message, sizeof message);
        std::atomic_ref(outbox->near.produced).store(++next, std::memory_order_release);
    }

    // A step of the handshake; done once there is an outbox.
    void take(std::uint32_t node) {
        link::Socket::Received received;
        const link::SocketEvent event = socket_.next(received);
        if (!inbox && socket_.connected()) {
            inbox = std::move(*link::SharedArea::create());
            inbox->node = node;
            const link::Hello mine = hello(flags);
            const std::uint32_t ready = link::kReady;
            send(&mine, sizeof mine, inbox.fd());
            send(&ready, sizeof ready);
        }
        if (event == link::SocketEvent::kMessage && received.fd)
            outbox = std::move(*link::SharedArea::adopt(received.fd.release()));
    }
    // A signal for another node, for the slot of the far channel that is next.
    link::Message good_far(std::uint64_t value) const {
        link::Message message = good();
        message.op = link::kOpSignal;
        message.bytes = 0;
        message.index = next_far;
        message.value = value;
        message.payload_end = 0;
        return message;
    }
    void push_far(const link::Message& message) {
        std::memcpy(&outbox->far.ring[next_far % link::kRingEntries], &message, sizeof message);
        std::atomic_ref(outbox->far.produced).store(++next_far, std::memory_order_release);
    }

    link::SharedArea inbox;   // what the card sends to
    link::SharedArea outbox;  // the card's inbox
    std::uint64_t next = 0, next_far = 0;
    std::uint32_t flags = 0;  // of the hello

  private:
    link::Socket socket_;
};

}  // namespace orrery::emu::test
