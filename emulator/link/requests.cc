#include "emulator/link/requests.h"

#include <algorithm>

namespace orrery::emu::link {

template <class Which>
std::uint32_t Requests::count(Which which) const {
    return static_cast<std::uint32_t>(std::ranges::count_if(
        std::span(slots_).first(end_), [&](const Slot& slot) { return slot.used && which(slot); }));
}

std::uint32_t Requests::abandoned(std::uint32_t node) const {
    return count([node](const Slot& one) { return one.request.node == node && !one.waits(); });
}

std::uint32_t Requests::add(const Request& request) {
    const auto same = [&](const Slot& one) { return one.request.node == request.node; };
    if (used_ != waits_ && count(same) >= kSlots - used_) return 0;
    std::uint32_t slot = 0;
    while (slot < end_ && slots_[slot].used)
        ++slot;
    if (slot == kSlots) return 0;
    end_ = std::max(end_, slot + 1);
    slots_[slot].request = request;
    slots_[slot].used = true;
    ++used_;
    ++waits_;
    return tag_of(slot);
}

Requests::Slot* Requests::find(std::uint32_t tag) {
    Slot& slot = slots_[tag % kSlots];
    return slot.used && tag == tag_of(tag % kSlots) ? &slot : nullptr;
}

void Requests::free(std::uint32_t slot) {
    if (slots_[slot].waits()) --waits_;
    slots_[slot].request = {};
    slots_[slot].used = slots_[slot].aside = false;
    --used_;
    slots_[slot].round = slots_[slot].round % (kRounds - 1) + 1;
}

std::optional<Requests::Request> Requests::take(std::uint32_t tag, std::uint32_t node) {
    const Slot* slot = find(tag);
    if (slot == nullptr || slot->request.node != node) return std::nullopt;
    const Request request = slot->request;
    free(tag % kSlots);
    return request;
}

void Requests::abandon(std::uint32_t tag) {
    Slot* slot = find(tag);
    if (slot == nullptr || slot->request.asker == nullptr) return;
    if (slot->waits()) --waits_;
    // Its place is kept for the answer, which is no news then.
    slot->request.asker = nullptr;
    slot->request.to = {};
}

void Requests::put_aside(std::uint32_t tag, bool aside) {
    Slot* slot = find(tag);
    if (slot == nullptr || slot->request.asker == nullptr || slot->aside == aside) return;
    slot->aside = aside;
    if (aside)
        --waits_;
    else
        ++waits_;
}

}  // namespace orrery::emu::link
