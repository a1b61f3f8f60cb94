#include "tools/scenario/observed.h"

#include <cstring>

#include <orrery/fw/boot_block.h>
#include <orrery/fw/queue.h>
#include <orrery/hw/mmu.h>
#include <orrery/hw/soc.h>

namespace orrery::scenario {

namespace {

std::string text_of(const orr_mbox_message& message) {
    char text[ORR_NAME_BYTES + 1] = {};
    std::memcpy(text, &message.arg[1], ORR_NAME_BYTES);
    return text;
}

}  // namespace

int Observed::queue_at(std::uint32_t number, std::uint64_t time_ps) const {
    int found = -1;
    for (std::size_t n = 0; n < queues.size(); ++n) {
        // A reply may come a little later than the end itself; the next one of that number is later still.
        if (queues[n].number == number && queues[n].created_ps <= time_ps) found = static_cast<int>(n);
    }
    return found;
}

int Observer::queue_of_ring(std::uint32_t asid, std::uint64_t va) const {
    for (std::size_t n = observed_.queues.size(); n-- > 0;) {
        const ObservedQueue& queue = observed_.queues[n];
        const std::uint64_t end = queue.ring_va + sizeof(orr_ring) + queue.create.arg[2] * ORR_PACKET_SIZE;
        if (queue.asid == asid && va >= queue.ring_va && va < end) return static_cast<int>(n);
    }
    return -1;
}

void Observer::see(const emu::PortAccess& access) {
    const std::uint64_t va = access.address;
    if (va - ORR_SOC_BASE < ORR_SOC_SIZE) return see_register(access);
    if (va >> 63 != 0) return see_host(va & ~(std::uint64_t{1} << 63), access);
    if (va >> 62 != 0) return see_context(access);
    if (!access.store) observed_.loads[va].emplace_back(access.time_ps, access.value);
}

void Observer::see_register(const emu::PortAccess& access) {
    const std::uint64_t offset = access.address - ORR_SOC_BASE;
    if (offset == SOC_BOOT_ARG && !access.store) observed_.boot_block = access.value;
    // A launch that was not refused moves its slot on.
    if (access.store && offset >= SOC_ENGINE(0) && offset < SOC_ENGINE(SOC_ENGINES_MAX) &&
        (offset - SOC_ENGINE(0)) % (SOC_ENGINE(1) - SOC_ENGINE(0)) == SOC_ENGINE_LAUNCH)
        launched_ = static_cast<std::size_t>(access.value >> 32);
    if (!access.store && offset == SOC_LAUNCH_RESULT && ~access.value != 0 && launched_ < slots_.size())
        ++slots_[launched_].next;
    // So does a signal that went from there: to memory of this card, or of a linked one, which has no name
    // here.
    if (access.store && offset == SOC_SEM_LAUNCH) signalled_ = static_cast<std::size_t>(access.value >> 32);
    if (!access.store && signalled_ < slots_.size() &&
        ((offset == SOC_SEM_MEMORY && ~access.value != 0) || offset == SOC_SEM_STATUS)) {
        if (offset == SOC_SEM_MEMORY || access.value == ORR_FAULT_NONE) ++slots_[signalled_].next;
        signalled_ = slots_.size();
    }
    if (offset < SOC_SLOT(0) || offset >= SOC_SLOT(SOC_SLOTS)) return;
    Slot& slot = slots_[(offset - SOC_SLOT(0)) / 0x200];
    const std::uint64_t reg = (offset - SOC_SLOT(0)) % 0x200;
    if (access.store && reg == SOC_SLOT_RING) {
        slot.next = 0;
        const auto asid = static_cast<std::uint32_t>(access.value >> 48 & 0x3fff);
        slot.queue = queue_of_ring(asid, access.value & 0xffffffffffff);
    } else if (access.store && reg == SOC_SLOT_NEXT) {
        slot.next = access.value;
    } else if (!access.store && reg < ORR_PACKET_SIZE && slot.queue >= 0) {
        ObservedQueue& queue = observed_.queues[static_cast<std::size_t>(slot.queue)];
        std::memcpy(reinterpret_cast<std::uint8_t*>(&queue.packets[slot.next]) + reg, &access.value, 8);
        queue.words[slot.next] |= 1u << reg / 8;
    }
}

void Observer::see_host(std::uint64_t bus, const emu::PortAccess& access) {
    if (observed_.boot_block != 0 && bus == observed_.boot_block + offsetof(orr_boot_block, command_ring) &&
        !access.store)
        commands_at_ = access.value;
    if (commands_at_ != 0 && bus - commands_at_ < sizeof(orr_mbox_ring)) {
        const std::uint64_t offset = bus - commands_at_;
        if (!access.store && offset >= offsetof(orr_mbox_ring, entry)) {
            std::memcpy(
                reinterpret_cast<std::uint8_t*>(ring_.data()) + (offset - offsetof(orr_mbox_ring, entry)),
                &access.value, 8);
        } else if (access.store && offset == offsetof(orr_mbox_ring, consumer)) {
            for (; commands_read_ != access.value; ++commands_read_)
                command(ring_[commands_read_ % ORR_MBOX_ENTRIES], access.time_ps);
        }
        return;
    }
    if (!access.store) observed_.loads[access.address].emplace_back(access.time_ps, access.value);
}

void Observer::see_context(const emu::PortAccess& access) {
    const auto asid = static_cast<std::uint32_t>(access.address >> 48 & 0x3fff);
    const std::uint64_t va = access.address & 0xffffffffffff;
    if (!access.store) {
        observed_.loads[access.address].emplace_back(access.time_ps, access.value);
        return;
    }
    // What a store costs tells where the ring is.
    if (const int queue = queue_of_ring(asid, va); queue >= 0)
        observed_.queues[static_cast<std::size_t>(queue)].ring_in_vram = access.stall_ps != host_store_ps_;
}

void Observer::command(const orr_mbox_message& message, std::uint64_t time_ps) {
    const auto number = static_cast<std::uint32_t>(message.arg[0]);
    const auto context_index = [&](std::uint32_t context) {
        for (std::size_t n = observed_.contexts.size(); n-- > 0;) {
            if (observed_.contexts[n].number == context) return n;
        }
        return ~std::size_t{0};
    };
    switch (message.opcode) {
        case ORR_MBOX_CONTEXT_CREATE:
            observed_.contexts.push_back({number, message, {}});
            return;
        case ORR_MBOX_QUEUE_CREATE: {
            ObservedQueue queue;
            queue.number = number;
            queue.asid = static_cast<std::uint32_t>(message.arg[0] >> 32);
            queue.slot = static_cast<std::uint32_t>(message.arg[3] & 0xffffffff);
            queue.ring_va = message.arg[1];
            queue.create = message;
            queue.created_ps = time_ps;
            queue.context = context_index(queue.asid);
            if (queue.context == ~std::size_t{0}) return;  // the firmware refuses it
            queue.page = static_cast<std::uint32_t>(observed_.contexts[queue.context].create.arg[2]);
            observed_.queues.push_back(queue);
            return;
        }
        case ORR_MBOX_NAME: {
            const bool of_queue = message.arg[0] >> 32 == ORR_NAME_QUEUE;
            if (of_queue) {
                const int queue = observed_.queue_at(number, time_ps);
                if (queue >= 0) observed_.queues[static_cast<std::size_t>(queue)].name = text_of(message);
            } else if (const std::size_t context = context_index(number); context != ~std::size_t{0}) {
                observed_.contexts[context].name = text_of(message);
            }
            return;
        }
        case ORR_MBOX_QUEUE_DESTROY:
        case ORR_MBOX_QUEUE_SET: {
            const int queue = observed_.queue_at(number, time_ps);
            if (queue < 0) return;
            if (message.opcode == ORR_MBOX_QUEUE_DESTROY)
                observed_.queues[static_cast<std::size_t>(queue)].destroyed_ps = time_ps;
            observed_.commands.push_back(
                {time_ps, message, static_cast<std::size_t>(queue), ~std::size_t{0}});
            return;
        }
        case ORR_MBOX_QUOTA_SET:
            if (const std::size_t context = context_index(number); context != ~std::size_t{0})
                observed_.commands.push_back({time_ps, message, ~std::size_t{0}, context});
            return;
        default:
            return;
    }
}

}  // namespace orrery::scenario
