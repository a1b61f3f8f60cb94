#include "emulator/link/replies.h"

#include <algorithm>
#include <utility>

#include <orrery/hw/mmu.h>

#include "emulator/link/shared_area.h"
#include "emulator/time/rate.h"

namespace orrery::emu::link {

std::uint32_t fault_of(std::uint16_t status) {
    switch (status) {
        case kDone:
            return ORR_FAULT_NONE;
        case kDenied:
            return ORR_FAULT_PEER_DENIED;
        case kBadKey:
            return ORR_FAULT_PEER_KEY;
        case kNoRoute:
            return ORR_FAULT_NO_ROUTE;
        case kBusy:
            return ORR_FAULT_PEER_BUSY;
        default:
            return ORR_FAULT_PEER_DOWN;
    }
}

Replies::Replies(EventQueue& events, Counters& counters, Counts& counts, Reader& reader, Requests& requests,
                 Hooks hooks, std::uint64_t bytes_per_second)
    : events_(events),
      counters_(counters),
      counts_(counts),
      reader_(reader),
      requests_(requests),
      hooks_(std::move(hooks)),
      bytes_per_second_(bytes_per_second) {}

void Replies::take(const Message& message) {
    counters_.add(ORR_CTR_LINK_RX_MESSAGES);
    counters_.add(ORR_CTR_LINK_RX_BYTES, wire_bytes_of(message));
    counts_.rx_messages.add();
    counts_.rx_bytes.add(wire_bytes_of(message));
    if (message.arrival_ps < events_.system_now()) counters_.add(ORR_CTR_LINK_STRAGGLERS);
    // A member's own was for the switch.
    const bool good = message.destination == hooks_.node() && (message.function & kPart) == 0 &&
                      hooks_.comes_here(message.source, message.epoch);
    if (good && message.tag == 0 && message.status != kDone)
        return hooks_.refused(message.source, fault_of(message.status));
    auto request = good ? requests_.take(message.tag, message.source) : std::nullopt;
    if (!request) {
        // Forged, or it comes twice.
        counters_.add(ORR_CTR_LINK_DENIED);
        return;
    }
    if (request->asker == nullptr) return;
    LinkAnswer answer{.fault = fault_of(message.status),
                      .value = message.value,
                      .began = events_.from_system(message.head_ps),
                      .came = events_.from_system(message.arrival_ps)};
    // Of an owner that gives more or less than it was asked for nothing is taken.
    if (answer.fault == ORR_FAULT_NONE && message.bytes != request->to.size())
        answer.fault = ORR_FAULT_PEER_DENIED;
    if (answer.fault == ORR_FAULT_NONE && message.bytes != 0)
        get_payload(reader_.channel(), message.payload_at, request->to.data(), message.bytes);
    request->asker->answered(message.tag, answer);
}

std::expected<void, std::string> Replies::look() {
    const auto due = reader_.next_due(events_);
    wanted_ = due.value_or(kNever);
    if (!due) return std::unexpected(due.error());
    return {};
}

std::expected<bool, std::string> Replies::pump() {
    wanted_ = kNever;
    ModelTime time_on_wire = 0;
    for (unsigned done = 0;; ++done) {
        const auto [next, wrong] = reader_.next();
        if (wrong) return std::unexpected(reader_.why());
        if (next == nullptr) return done > 0;
        const Message& message = *next;
        if (message.arrival_ps > events_.system_now()) {
            wanted_ = events_.from_system(message.arrival_ps);
            return done > 0;
        }
        // As in Receiver: a peer that sends without end takes time.
        if (done == kBatchMessages) {
            wanted_ = later(events_.now(), time_on_wire);
            return true;
        }
        take(message);
        reader_.take();
        time_on_wire += duration_ps(kLeastBytes + payload_of(message), bytes_per_second_);
    }
}

}  // namespace orrery::emu::link
