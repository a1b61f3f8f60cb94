#include "emulator/soc/windows.h"

#include <atomic>
#include <cstring>

#include <orrery/hw/soc.h>

#include "emulator/memory/semaphore.h"
#include "emulator/memory/tlb_counters.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

constexpr std::uint64_t kHostBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kContextBit = std::uint64_t{1} << 62;
constexpr std::uint64_t kVaMask = (std::uint64_t{1} << ORR_VA_BITS) - 1;

// The memory is shared with the guest: each access is one access of the host, and the core's stores become
// visible in their order.
template <class T>
std::uint64_t load_as(const std::uint8_t* from) {
    return std::atomic_ref(*reinterpret_cast<T*>(const_cast<std::uint8_t*>(from)))
        .load(std::memory_order_acquire);
}
template <class T>
void store_as(std::uint8_t* to, std::uint64_t value) {
    std::atomic_ref(*reinterpret_cast<T*>(to)).store(static_cast<T>(value), std::memory_order_release);
}

std::uint64_t load_bytes(const std::uint8_t* from, unsigned size) {
    switch (size) {
        case 1:
            return load_as<std::uint8_t>(from);
        case 2:
            return load_as<std::uint16_t>(from);
        case 4:
            return load_as<std::uint32_t>(from);
        default:
            return load_as<std::uint64_t>(from);
    }
}

void store_bytes(std::uint8_t* to, unsigned size, std::uint64_t value) {
    switch (size) {
        case 1:
            store_as<std::uint8_t>(to, value);
            break;
        case 2:
            store_as<std::uint16_t>(to, value);
            break;
        case 4:
            store_as<std::uint32_t>(to, value);
            break;
        default:
            store_as<std::uint64_t>(to, value);
            break;
    }
}

// Memory that a program mapped crookedly for DMA; its two words cannot be exchanged at once.
bool is_crooked(const std::uint8_t* at) {
    return reinterpret_cast<std::uintptr_t>(at) % sizeof(orr_semaphore) != 0;
}

}  // namespace

Windows::Windows(Vram& vram, HostMemory& host, Mmu& mmu, const Peers& peers, EventQueue& events,
                 MemorySystem& memory, Counters& counters, const Sku& sku)
    : vram_(vram),
      host_(host),
      mmu_(mmu),
      peers_(peers),
      events_(events),
      memory_(memory),
      counters_(counters),
      sku_(sku),
      tlb_(sku.core_tlb_entries) {}

bool Windows::covers(std::uint64_t address) {
    return address >= kContextBit || address - ORR_VRAM_WINDOW < ORR_VRAM_WINDOW_SIZE;
}

void Windows::reset() {
    fault_ = ORR_FAULT_NONE;
    fault_address_ = 0;
}

void Windows::set_fault(std::uint32_t code, std::uint64_t address) {
    if (fault_ != ORR_FAULT_NONE) return;
    fault_ = code;
    fault_address_ = address;
}

unsigned Windows::walks(std::uint32_t asid, std::uint64_t va, bool huge) {
    tlb_.follow(mmu_.invalidations(), asid);
    if (!tlb_.on()) return 0;
    const unsigned entries = tlb_.use(asid, va, huge);
    TlbLookups one;
    one.add(entries);
    count_lookups(counters_, ORR_CTR_CORE_TLB_LOOKUPS, one);
    return entries;
}

ModelTime Windows::read_tables(unsigned entries) {
    if (entries == 0) return 0;
    memory_.vram(ORR_CTR_VRAM_CORE_BYTES).slip_in(events_.now(), entries * kMemoryLine);
    return entries * sku_.vram_load_ps;
}

// What the core waits for an access. It goes between what engines move, and a load waits until it is through.
ModelTime Windows::cost(const Place& place, bool write) {
    if (place.in_tables) return sku_.vram_load_ps;
    const ModelTime least = place.in_host ? (write ? sku_.host_store_ps : sku_.host_load_ps)
                                          : (write ? sku_.vram_store_ps : sku_.vram_load_ps);
    if (place.host == nullptr) return later(least, read_tables(place.walks));
    Resource& way = !place.in_host ? memory_.vram(ORR_CTR_VRAM_CORE_BYTES)
                    : write        ? memory_.to_host()
                                   : memory_.from_host();
    const ModelTime now = events_.now();
    const ModelTime through = way.slip_in(now, kMemoryLine);
    if (write) return later(least, read_tables(place.walks));
    const ModelTime alone = later(now, duration_ps(kMemoryLine, way.bytes_per_second()));
    const ModelTime takes = least + (through > alone ? through - alone : 0);
    return later(takes, read_tables(place.walks));
}

Windows::Found Windows::find(std::uint64_t address, unsigned size, bool write, Place& place) {
    if ((address & kHostBit) != 0) {
        const auto span = host_.find(address & ~kHostBit, size, write);
        place.in_host = true;
        if (span.data == nullptr || span.bytes < size) {
            place.fault = ORR_FAULT_PAGE_RANGE;
            return Found::kFault;
        }
        place.host = span.data;
        return Found::kYes;
    }
    if ((address & kContextBit) != 0) {
        const auto asid = static_cast<std::uint32_t>((address & ~kContextBit) >> ORR_VA_BITS);
        const auto found =
            mmu_.translate(asid, address & kVaMask, size, write ? Access::kStore : Access::kLoad);
        if (!found) {
            place.in_tables = true;
            place.fault = found.error().code;
            return Found::kFault;
        }
        place.walks = walks(asid, address & kVaMask, found->huge);
        place.host = found->host;
        place.node = found->node;
        place.address = found->address;
        place.in_host = found->target != ORR_TARGET_VRAM;
        if (found->bytes < size) {  // a DMA range that ends inside a word
            place.fault = ORR_FAULT_PAGE_RANGE;
            return Found::kFault;
        }
        return Found::kYes;
    }
    const std::uint64_t offset = address - ORR_VRAM_WINDOW;
    place.host = offset < ORR_VRAM_WINDOW_SIZE ? vram_.at(offset, size) : nullptr;
    return place.host != nullptr ? Found::kYes : Found::kTrap;
}

bool Windows::load(std::uint64_t address, unsigned size, std::uint64_t& value, ModelTime& stall) {
    Place place;
    const Found found = find(address, size, false, place);
    if (found == Found::kTrap) return false;
    stall = cost(place, false);
    if (found == Found::kFault) set_fault(place.fault, address);
    value = found == Found::kYes ? load_bytes(place.host, size) : 0;
    return true;
}

bool Windows::store(std::uint64_t address, unsigned size, std::uint64_t value, ModelTime& stall) {
    Place place;
    const Found found = find(address, size, true, place);
    if (found == Found::kTrap) return false;
    stall = cost(place, true);
    if (found == Found::kFault) {
        set_fault(place.fault, address);
        return true;
    }
    if (place.host != nullptr) {
        store_bytes(place.host, size, value);
    } else if (const std::uint32_t code = store_to_peer(place, size, value); code != ORR_FAULT_NONE) {
        set_fault(code, address);
    }
    return true;
}

Fetched Windows::fetch(std::uint64_t base, std::uint64_t entry, PacketWords& words) {
    constexpr std::uint64_t kBytes = sizeof words;
    words = {};
    Fetched result{.address = base};
    if (base % kBytes != 0) {
        result.fault = ORR_FAULT_MISALIGNED;
        return result;
    }
    // The entry must lie in the window, and in the address space, that the array is in.
    const bool in_host = (base & kHostBit) != 0;
    const bool in_context = !in_host && (base & kContextBit) != 0;
    result.host = in_host;
    if (!in_host && !in_context && base - ORR_VRAM_WINDOW >= ORR_VRAM_WINDOW_SIZE) {
        result.fault = ORR_FAULT_PAGE_RANGE;
        return result;
    }
    const std::uint64_t start = in_host      ? base & ~kHostBit
                                : in_context ? base & kVaMask
                                             : base - ORR_VRAM_WINDOW;
    const std::uint64_t size = in_host ? kHostBit : in_context ? kVaMask + 1 : ORR_VRAM_WINDOW_SIZE;
    if (entry > (size - start) / kBytes - 1) {
        result.fault = in_context ? ORR_FAULT_NON_CANONICAL : ORR_FAULT_PAGE_RANGE;
        return result;
    }
    result.address = base + entry * kBytes;
    Place place;
    const Found found = find(result.address, kBytes, false, place);
    result.host = place.in_host;
    result.walk = read_tables(place.walks);
    if (found == Found::kYes) {
        for (std::size_t i = 0; i < words.size(); ++i)
            words[i] = load_as<std::uint64_t>(place.host + 8 * i);
    } else {
        result.fault = found == Found::kTrap ? ORR_FAULT_PAGE_RANGE : place.fault;
    }
    return result;
}

std::uint32_t Windows::store_to_peer(const Place& place, unsigned size, std::uint64_t value) {
    PeerPort* peer = peers_.towards(place.node);
    if (peer == nullptr) return peers_.fault_of(place.node);
    std::array<std::byte, 8> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    return peer->post(place.node, place.address, std::span(bytes).first(size));
}

std::uint64_t memory_of(const Translation& found) {
    switch (found.target) {
        case ORR_TARGET_VRAM:
            return ORR_VRAM_WINDOW + found.address;
        case ORR_TARGET_HOST:
            return ORR_HOST_WINDOW(found.address);
        default:
            return ~std::uint64_t{0};
    }
}

Signalled Windows::signal(std::uint32_t asid, std::uint64_t va, std::uint64_t value, ModelTime now) {
    if (va % sizeof(orr_semaphore) != 0) return {.fault = ORR_FAULT_MISALIGNED};
    const auto found = mmu_.translate(asid, va, sizeof(orr_semaphore), Access::kSignal);
    if (!found) return {.fault = found.error().code};
    Signalled done{.walk = walk(asid, va, found->huge)};
    const auto refused = [&done](std::uint32_t fault) {
        done.fault = fault;
        return done;
    };
    if (found->bytes < sizeof(orr_semaphore)) return refused(ORR_FAULT_PAGE_RANGE);
    counters_.add(ORR_CTR_SEMAPHORE_SIGNALS);
    if (found->target == ORR_TARGET_PEER) {
        PeerPort* peer = peers_.towards(found->node);
        return refused(peer != nullptr ? peer->signal(found->node, found->address, value)
                                       : peers_.fault_of(found->node));
    }
    if (found->target == ORR_TARGET_BARRIER) {
        const bool first = found->address % ORR_PAGE_SIZE == 0;
        return refused(first && arrivals_ != nullptr
                           ? arrivals_->arrive(found->address / ORR_PAGE_SIZE, value)
                           : ORR_FAULT_PAGE_RANGE);
    }
    if (is_crooked(found->host)) return refused(ORR_FAULT_PAGE_RANGE);
    raise_semaphore(found->host, value, now);
    done.memory = memory_of(*found);
    return done;
}

std::uint32_t Windows::close(std::uint64_t address) {
    if (address % sizeof(orr_semaphore) != 0) return ORR_FAULT_MISALIGNED;
    const bool in_host = (address & kHostBit) != 0;
    if (!in_host && (address & kContextBit) != 0) return ORR_FAULT_PAGE_RANGE;
    Place place;
    if (const Found found = find(address, sizeof(orr_semaphore), true, place); found != Found::kYes)
        return found == Found::kFault ? place.fault : ORR_FAULT_PAGE_RANGE;
    if (is_crooked(place.host)) return ORR_FAULT_PAGE_RANGE;
    // What has been signalled over a link, and is not there yet, was signalled before this.
    for (PeerPort* peer : peers_.ports()) {
        if (!in_host && peer != nullptr && !peer->settle(address - ORR_VRAM_WINDOW))
            return ORR_FAULT_PEER_BUSY;
    }
    close_semaphore(place.host);
    return ORR_FAULT_NONE;
}

}  // namespace orrery::emu
