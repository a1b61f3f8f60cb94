#include "emulator/soc/ring_slots.h"

#include <algorithm>

namespace orrery::emu {

namespace {

constexpr std::uint32_t kStride = SOC_SLOT(1) - SOC_SLOT(0);
constexpr std::uint32_t kPacketBytes = sizeof(PacketWords);
static_assert(SOC_SLOT(SOC_SLOTS) == ORR_SOC_SIZE);

}  // namespace

RingSlots::RingSlots(const Sku& sku, EventQueue& events, Windows& windows, MemorySystem& memory,
                     Counters& counters, Errors& errors)
    : sku_(sku), events_(events), windows_(windows), memory_(memory), counters_(counters), errors_(errors) {}

void RingSlots::reset() {
    charge();
    std::ranges::fill(slots_, Slot{});
    waiting_ = 0;
}

void RingSlots::charge() {
    const ModelTime now = events_.now();
    counters_.add(ORR_CTR_RING_WAIT_PS, waiting_ * (now - charged_));
    charged_ = now;
}

bool RingSlots::read(std::uint32_t offset, std::uint64_t& value, ModelTime& wait) {
    const Slot& slot = slots_[offset / kStride];
    const std::uint32_t reg = offset % kStride;
    switch (reg) {
        case SOC_SLOT_RING:
            value = slot.ring;
            return true;
        case SOC_SLOT_MASK:
            value = slot.mask;
            return true;
        case SOC_SLOT_NEXT:
            value = slot.next;
            return true;
        case SOC_SLOT_LIMIT:
            value = slot.limit;
            return true;
        default:
            break;
    }
    if (reg >= SOC_SLOT_PACKET + kPacketBytes) return false;
    value = 0;
    if (slot.count == 0) {
        // Nothing is on its way: to wait would be for ever.
        errors_.guest("the firmware read packet {} of ring slot {}, whose limit is {}", slot.next,
                      offset / kStride, slot.limit);
        return true;
    }
    const Packet& packet = slot.packets[slot.next % SOC_SLOT_DEPTH];
    if (packet.ready > events_.now()) wait = packet.ready - events_.now();
    const std::uint32_t word = (reg - SOC_SLOT_PACKET) / 8;
    if (word == 0 && packet.fault != ORR_FAULT_NONE) windows_.set_fault(packet.fault, packet.address);
    value = packet.words[word];
    return true;
}

bool RingSlots::write(std::uint32_t offset, std::uint64_t value) {
    Slot& slot = slots_[offset / kStride];
    return changed(slot, [&] { return set(slot, offset % kStride, value); });
}

void RingSlots::drop(std::uint64_t number) {
    Slot& slot = slots_[number];
    changed(slot, [&] { return set(slot, SOC_SLOT_NEXT, slot.next + 1); });
}

bool RingSlots::set(Slot& slot, std::uint32_t reg, std::uint64_t value) {
    switch (reg) {
        case SOC_SLOT_RING:
            slot.ring = value;
            slot.next = slot.limit = 0;
            slot.count = 0;
            return true;
        case SOC_SLOT_MASK:
            slot.mask = value;
            return true;
        case SOC_SLOT_NEXT:
            move_to(slot, value);
            return true;
        case SOC_SLOT_LIMIT:
            if (value < slot.limit) {
                errors_.guest("the firmware lowered the limit of ring slot {} from {} to {}: ignored",
                              &slot - slots_.data(), slot.limit, value);
                return true;
            }
            slot.limit = value;
            prefetch(slot);
            return true;
        default:
            return false;
    }
}

const PacketWords* RingSlots::front(std::uint64_t number, ModelTime& wait) const {
    if (number >= SOC_SLOTS || slots_[number].count == 0) return nullptr;
    const Slot& slot = slots_[number];
    const Packet& packet = slot.packets[slot.next % SOC_SLOT_DEPTH];
    if (packet.ready > events_.now()) wait += packet.ready - events_.now();
    return packet.fault == ORR_FAULT_NONE ? &packet.words : nullptr;
}

void RingSlots::move_to(Slot& slot, std::uint64_t next) {
    if (next != slot.next + 1) {
        slot.count = 0;
    } else if (slot.count > 0) {
        --slot.count;
        counters_.add(ORR_CTR_RING_PACKETS);
    }
    slot.next = next;
    prefetch(slot);
}

void RingSlots::prefetch(Slot& slot) {
    while (slot.count < SOC_SLOT_DEPTH && slot.next < slot.limit && slot.count < slot.limit - slot.next) {
        const std::uint64_t index = slot.next + slot.count;
        fetch(slot.packets[index % SOC_SLOT_DEPTH], slot, index);
        ++slot.count;
    }
}

void RingSlots::fetch(Packet& packet, const Slot& slot, std::uint64_t index) {
    const Fetched found = windows_.fetch(slot.ring, index & slot.mask, packet.words);
    counters_.add(ORR_CTR_SLOT_PACKETS);
    packet.address = found.address;
    packet.fault = found.fault;
    Resource& way = found.host ? memory_.from_host() : memory_.vram(ORR_CTR_VRAM_CORE_BYTES);
    packet.ready = later(way.slip_in(events_.now(), kPacketBytes),
                         later(found.host ? sku_.host_load_ps : sku_.vram_load_ps, found.walk));
}

}  // namespace orrery::emu
