// What this card has asked the cards behind a port for: a slot for each request until its answer has come, so
// an answer always has where to go, and one that nobody waits for does nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "emulator/link/wire.h"
#include "emulator/memory/peer.h"

namespace orrery::emu::link {

class Requests {
  public:
    static constexpr std::uint32_t kSlots = PeerPort::kMostRequests;

    // Those of all ports of a card have different tags.
    explicit Requests(std::uint32_t port = 0) : port_(port % kPorts) {}

    struct Request {
        Asker* asker = nullptr;  // nullptr: abandoned
        std::uint16_t node = 0;
        std::uint16_t epoch = 0;
        std::span<std::byte> to{};  // of a read
    };

    // The tag of a new one; 0: all slots are taken. While there are abandoned ones, whose answers may never
    // come, a node has no more slots than are free: so some are left for the others.
    std::uint32_t add(const Request& request);
    // To that node, which nobody waits for any more, or which are put aside.
    std::uint32_t abandoned(std::uint32_t node) const;
    // What an answer with this tag is for; nothing: for no request. The slot is free then.
    std::optional<Request> take(std::uint32_t tag, std::uint32_t node);
    void abandon(std::uint32_t tag);
    void put_aside(std::uint32_t tag, bool aside);
    bool waits() const { return waits_ != 0; }

    // No answer comes to these any more: `ended` is called with the tag of each that somebody waits for.
    template <class Which, class Ended>
    void end(Which which, Ended ended) {
        for (std::uint32_t slot = 0; slot < end_; ++slot) {
            if (!slots_[slot].used || !which(slots_[slot].request)) continue;
            const Request request = slots_[slot].request;
            const std::uint32_t tag = tag_of(slot);
            free(slot);
            if (request.asker != nullptr) ended(tag, *request.asker);
        }
    }
    template <class Call>
    void each_asker(Call call) {
        for (std::uint32_t slot = 0; slot < end_; ++slot)
            if (slots_[slot].used && slots_[slot].request.asker != nullptr) call(*slots_[slot].request.asker);
    }

  private:
    struct Slot {
        Request request{};
        std::uint32_t round = 1;  // in the upper bits of the tag: an old answer is for nobody
        bool used = false, aside = false;
        bool waits() const { return used && !aside && request.asker != nullptr; }
    };
    static constexpr std::uint32_t kPorts = ORR_LINK_MAX_PORTS;
    static constexpr std::uint32_t kRounds = (std::uint32_t{1} << 23) / kPorts;
    std::uint32_t tag_of(std::uint32_t slot) const {
        return (slots_[slot].round * kPorts + port_) * kSlots + slot;
    }
    Slot* find(std::uint32_t tag);
    template <class Which>
    std::uint32_t count(Which which) const;
    void free(std::uint32_t slot);

    std::uint32_t port_;
    std::array<Slot, kSlots> slots_{};
    std::uint32_t end_ = 0;  // slots from there on were never used
    std::uint32_t used_ = 0;
    std::uint32_t waits_ = 0;  // of them, those for which somebody waits
};

}  // namespace orrery::emu::link
