#include "emulator/memory/mmu.h"

#include <algorithm>
#include <atomic>

#include <orrery/hw/link.h>

namespace orrery::emu {

namespace {

constexpr std::uint64_t kNoRoot = ~std::uint64_t{0};
constexpr std::uint64_t kVaLimit = std::uint64_t{1} << ORR_VA_BITS;
constexpr unsigned kPageShift = 12;
constexpr unsigned kHugeShift = 21;
constexpr unsigned kLevelBits = 9;
constexpr std::uint64_t kBarrierEnd = std::uint64_t{ORR_BARRIER_SLOTS} * ORR_PAGE_SIZE;
static_assert(TlbTags::kLevels == ORR_MMU_LEVELS);

// asid (10 bits) << 37 | page number (36 bits) << 1 | huge; never 0, as asid 0 is never valid.
std::uint64_t tag_of(std::uint32_t asid, std::uint64_t va, bool huge) {
    const std::uint64_t page = huge ? va >> kHugeShift : va >> kPageShift;
    return std::uint64_t{asid} << 37 | page << 1 | (huge ? 1u : 0u);
}

std::uint64_t first_va(std::uint64_t tag) {
    const std::uint64_t page = (tag >> 1) & ((std::uint64_t{1} << 36) - 1);
    return page << ((tag & 1) != 0 ? kHugeShift : kPageShift);
}

std::uint64_t page_bytes_of(bool huge) {
    return huge ? ORR_HUGE_PAGE_SIZE : ORR_PAGE_SIZE;
}

unsigned set_of(std::uint64_t tag, unsigned sets) {
    return static_cast<unsigned>((tag * 0x9e3779b97f4a7c15ull) >> 40) & (sets - 1);
}

std::uint64_t right_for(Access access) {
    switch (access) {
        case Access::kLoad:
        case Access::kPull:
            return ORR_PTE_READ;
        case Access::kStore:
        case Access::kSignal:
            return ORR_PTE_WRITE;
        case Access::kFetch:
            return ORR_PTE_EXEC;
    }
    return 0;
}

std::uint8_t page_rights(std::uint64_t pte) {
    unsigned rights = 0;
    if ((pte & ORR_PTE_READ) != 0) rights |= kPageRead;
    if ((pte & ORR_PTE_WRITE) != 0) rights |= kPageWrite;
    if ((pte & ORR_PTE_EXEC) != 0) rights |= kPageExec;
    return static_cast<std::uint8_t>(rights);
}

std::uint8_t target_of(std::uint64_t pte) {
    return static_cast<std::uint8_t>((pte >> ORR_PTE_TARGET_SHIFT) & 3u);
}

// Everything in an entry that two merged pages must share: rights, target and node.
constexpr std::uint64_t kSameKind = ORR_PTE_READ | ORR_PTE_WRITE | ORR_PTE_EXEC |
                                    (std::uint64_t{3} << ORR_PTE_TARGET_SHIFT) | ORR_PTE_NODE_MASK;
constexpr std::uint64_t kLeafOnly = kSameKind;

}  // namespace

Mmu::Mmu(Vram& vram, HostMemory& host, Counters& counters)
    : vram_(vram),
      host_(host),
      counters_(counters),
      roots_(ORR_ASIDS, kNoRoot),
      root_changes_(ORR_ASIDS),
      tlb_(std::size_t{kSets} * kWays),
      victim_(kSets) {}

std::uint32_t Mmu::set_root(std::uint64_t asid, std::uint64_t vram_offset) {
    if (asid == 0 || asid >= ORR_ASIDS) return ORR_FAULT_NO_CONTEXT;
    if (vram_offset % ORR_PAGE_SIZE != 0 || !vram_.contains(vram_offset, ORR_PAGE_SIZE)) {
        return ORR_FAULT_TABLE_RANGE;
    }
    flush_asid(asid);
    roots_[asid] = vram_offset;
    ++root_changes_[asid];
    return ORR_FAULT_NONE;
}

std::uint32_t Mmu::clear_root(std::uint64_t asid) {
    if (asid == 0 || asid >= ORR_ASIDS) return ORR_FAULT_NO_CONTEXT;
    flush_asid(asid);
    roots_[asid] = kNoRoot;
    ++root_changes_[asid];
    return ORR_FAULT_NONE;
}

void Mmu::change() {
    if (before_change_) before_change_();
    ++generation_;
}

void Mmu::flush_asid(std::uint64_t asid) {
    change();
    if (asid < ORR_ASIDS)
        invalidations_.add({.space = static_cast<std::uint32_t>(asid), .last = ~std::uint64_t{0}});
    for (TlbEntry& entry : tlb_) {
        if (entry.tag >> 37 == asid) entry = {};
    }
}

void Mmu::flush_range(std::uint64_t asid, std::uint64_t va, std::uint64_t bytes) {
    change();
    if (bytes == 0) return;
    const std::uint64_t last = va + bytes - 1 < va ? ~std::uint64_t{0} : va + bytes - 1;
    if (asid < ORR_ASIDS)
        invalidations_.add({.space = static_cast<std::uint32_t>(asid), .first = va, .last = last});
    for (TlbEntry& entry : tlb_) {
        if (entry.tag >> 37 != asid) continue;
        const std::uint64_t first = first_va(entry.tag);
        if (first <= last && first + (page_bytes_of((entry.tag & 1) != 0) - 1) >= va) entry = {};
    }
}

void Mmu::flush_host() {
    // Entries hold bus addresses, which are looked up again at each use: only pointers handed out go stale.
    change();
}

void Mmu::reset() {
    change();
    invalidations_.add({.space = Invalidations::kAll});
    std::fill(roots_.begin(), roots_.end(), kNoRoot);
    std::fill(tlb_.begin(), tlb_.end(), TlbEntry{});
    std::fill(victim_.begin(), victim_.end(), std::uint8_t{0});
}

const Mmu::TlbEntry* Mmu::probe(std::uint64_t tag) const {
    const TlbEntry* set = &tlb_[std::size_t{set_of(tag, kSets)} * kWays];
    for (unsigned way = 0; way < kWays; ++way) {
        if (set[way].tag == tag) return &set[way];
    }
    return nullptr;
}

void Mmu::fill(std::uint64_t tag, std::uint64_t pte) {
    const unsigned set = set_of(tag, kSets);
    std::uint8_t& way = victim_[set];
    tlb_[std::size_t{set} * kWays + way] = {tag, pte};
    way = static_cast<std::uint8_t>((way + 1u) % kWays);
}

// The entry of `va` in a table at `level`, whose VRAM offset is `table`: a fault, or a checked entry.
std::uint32_t Mmu::read_entry(std::uint64_t table, unsigned level, std::uint64_t va,
                              std::uint64_t& entry) const {
    std::uint8_t* page = vram_.at(table, ORR_PAGE_SIZE);
    if (page == nullptr) return ORR_FAULT_TABLE_RANGE;
    const std::uint64_t index = (va >> (kPageShift + kLevelBits * level)) & 511u;
    // The guest may rewrite its tables at this moment: read an entry once.
    entry = std::atomic_ref(reinterpret_cast<std::uint64_t*>(page)[index]).load(std::memory_order_relaxed);
    if ((entry & ORR_PTE_VALID) == 0) return ORR_FAULT_NOT_MAPPED;
    if ((entry & ORR_PTE_RESERVED) != 0) return ORR_FAULT_RESERVED_BIT;
    if ((entry & ORR_PTE_LEAF) == 0) {
        return level == 0 || (entry & kLeafOnly) != 0 ? ORR_FAULT_RESERVED_BIT : ORR_FAULT_NONE;
    }
    if (level > 1) return ORR_FAULT_RESERVED_BIT;
    if (level == 1 && (entry & ORR_PTE_ADDR_MASK) % ORR_HUGE_PAGE_SIZE != 0) return ORR_FAULT_RESERVED_BIT;
    if (target_of(entry) == ORR_TARGET_PEER) return ORR_FAULT_NONE;
    const bool no_slot =
        target_of(entry) == ORR_TARGET_BARRIER && (level != 0 || (entry & ORR_PTE_ADDR_MASK) >= kBarrierEnd);
    return no_slot || (entry & ORR_PTE_NODE_MASK) != 0 ? ORR_FAULT_RESERVED_BIT : ORR_FAULT_NONE;
}

std::uint32_t Mmu::walk(std::uint32_t asid, std::uint64_t va, std::uint64_t& pte, bool& huge) const {
    if (faults_ != nullptr && faults_->at(FaultPoint::kWalk, asid)) return ORR_FAULT_NOT_MAPPED;
    std::uint64_t table = roots_[asid];
    for (unsigned level = ORR_MMU_LEVELS; level-- > 0;) {
        if (const std::uint32_t fault = read_entry(table, level, va, pte); fault != ORR_FAULT_NONE)
            return fault;
        if ((pte & ORR_PTE_LEAF) != 0) {
            huge = level == 1;
            return ORR_FAULT_NONE;
        }
        table = pte & ORR_PTE_ADDR_MASK;
    }
    return ORR_FAULT_NOT_MAPPED;
}

// The level 0 table of `va`, so that a long range reads its entries one after another instead of walking for
// each.
std::uint64_t Mmu::leaf_table(std::uint32_t asid, std::uint64_t va) const {
    std::uint64_t table = roots_[asid];
    for (unsigned level = ORR_MMU_LEVELS; --level > 0;) {
        std::uint64_t entry = 0;
        if (read_entry(table, level, va, entry) != ORR_FAULT_NONE || (entry & ORR_PTE_LEAF) != 0)
            return kNoRoot;
        table = entry & ORR_PTE_ADDR_MASK;
    }
    return table;
}

template <class Find>
std::uint32_t Mmu::resolve(std::uint64_t va, std::uint64_t pte, bool huge, Access access, Leaf& leaf,
                           Find find) const {
    if ((pte & right_for(access)) == 0) return ORR_FAULT_PERMISSION;
    const std::uint64_t page_bytes = page_bytes_of(huge);
    const std::uint64_t inside = va & (page_bytes - 1);
    leaf.pte = pte;
    leaf.address = (pte & ORR_PTE_ADDR_MASK) + inside;
    leaf.bytes = page_bytes - inside;
    leaf.host = nullptr;
    leaf.rights = page_rights(pte);
    leaf.huge = huge;
    switch (target_of(pte)) {
        case ORR_TARGET_VRAM:
            // The page must lie inside as a whole, so that a page is good or bad and not both.
            if (!vram_.contains(pte & ORR_PTE_ADDR_MASK, page_bytes)) return ORR_FAULT_PAGE_RANGE;
            leaf.host = vram_.data() + leaf.address;
            return ORR_FAULT_NONE;
        case ORR_TARGET_HOST: {
            const HostMemory::Span span = find(leaf.address, leaf.bytes, writes(access));
            if (span.data == nullptr) return ORR_FAULT_PAGE_RANGE;
            leaf.host = span.data;
            if (!span.readable) leaf.rights &= static_cast<std::uint8_t>(~(kPageRead | kPageExec));
            if (!span.writable) leaf.rights &= static_cast<std::uint8_t>(~kPageWrite);
            if (!host_.atomics()) leaf.rights |= kPageNoAtomics;
            leaf.bytes = span.bytes;
            return ORR_FAULT_NONE;
        }
        case ORR_TARGET_BARRIER:
            return access == Access::kSignal ? ORR_FAULT_NONE : ORR_FAULT_PERMISSION;
        default:
            return writes(access) || access == Access::kPull ? ORR_FAULT_NONE : ORR_FAULT_PEER_READ;
    }
}

std::uint32_t Mmu::resolve(std::uint64_t va, std::uint64_t pte, bool huge, Access access, Leaf& leaf) {
    return resolve(va, pte, huge, access, leaf,
                   [this](std::uint64_t address, std::uint64_t bytes, bool write) {
                       return host_.find(address, bytes, write);
                   });
}

std::optional<Translation> Mmu::page_ahead(std::uint32_t asid, std::uint64_t va, Access access) const {
    if (va >= kVaLimit || asid == 0 || asid >= ORR_ASIDS || roots_[asid] == kNoRoot || faults_ != nullptr)
        return std::nullopt;
    const auto find = [this](std::uint64_t address, std::uint64_t bytes, bool write) {
        return std::as_const(host_).peek(address, bytes, write);
    };
    std::uint64_t pte = 0;
    bool huge = false;
    Leaf leaf;
    const std::uint64_t page = va & ~std::uint64_t{ORR_PAGE_SIZE - 1};
    if (walk(asid, page, pte, huge) != ORR_FAULT_NONE) return std::nullopt;
    if (resolve(page, pte, huge, access, leaf, find) != ORR_FAULT_NONE) return std::nullopt;
    if (leaf.host == nullptr || leaf.bytes < ORR_PAGE_SIZE) return std::nullopt;
    return Translation{.target = target_of(leaf.pte),
                       .rights = leaf.rights,
                       .huge = leaf.huge,
                       .host = leaf.host,
                       .address = leaf.address,
                       .bytes = ORR_PAGE_SIZE};
}

std::uint32_t Mmu::lookup(std::uint32_t asid, std::uint64_t va, Access access, Leaf& leaf) {
    if (va >= kVaLimit) return ORR_FAULT_NON_CANONICAL;
    if (asid == 0 || asid >= ORR_ASIDS || roots_[asid] == kNoRoot) return ORR_FAULT_NO_CONTEXT;
    const std::uint64_t small_tag = tag_of(asid, va, false);
    if (const TlbEntry* entry = probe(small_tag)) {
        counters_.add(ORR_CTR_MMU_TLB_HITS);
        return resolve(va, entry->pte, false, access, leaf);
    }
    const std::uint64_t huge_tag = tag_of(asid, va, true);
    if (const TlbEntry* entry = probe(huge_tag)) {
        counters_.add(ORR_CTR_MMU_TLB_HITS);
        return resolve(va, entry->pte, true, access, leaf);
    }
    counters_.add(ORR_CTR_MMU_TLB_MISSES);
    std::uint64_t pte = 0;
    bool huge = false;
    if (const std::uint32_t fault = walk(asid, va, pte, huge); fault != ORR_FAULT_NONE) return fault;
    fill(huge ? huge_tag : small_tag, pte);
    return resolve(va, pte, huge, access, leaf);
}

std::expected<Translation, MmuFault> Mmu::translate(std::uint32_t asid, std::uint64_t va, std::uint64_t bytes,
                                                    Access access) {
    Leaf leaf;
    if (const std::uint32_t fault = lookup(asid, va, access, leaf); fault != ORR_FAULT_NONE) {
        counters_.add(ORR_CTR_MMU_FAULTS);
        return std::unexpected(MmuFault{fault, va});
    }
    Translation result;
    result.target = target_of(leaf.pte);
    result.node = static_cast<std::uint16_t>((leaf.pte & ORR_PTE_NODE_MASK) >> ORR_PTE_NODE_SHIFT);
    result.rights = leaf.rights;
    result.huge = leaf.huge;
    result.host = leaf.host;
    result.address = leaf.address;
    result.bytes = leaf.bytes;
    bytes = std::min(bytes, kMaxRun);
    std::uint64_t table = kNoRoot;
    while (result.bytes < bytes) {
        Leaf next;
        const std::uint64_t at = va + result.bytes;
        // A range of small pages reads each table's line of entries once, and leaves the TLB to others.
        if (at % ORR_HUGE_PAGE_SIZE == 0) table = kNoRoot;
        if (table == kNoRoot && at < kVaLimit) table = leaf_table(asid, at);
        // What stops here is judged when the caller comes to it.
        if (table != kNoRoot) {
            std::uint64_t pte = 0;
            if (read_entry(table, 0, at, pte) != ORR_FAULT_NONE) break;
            if (resolve(at, pte, false, access, next) != ORR_FAULT_NONE) break;
            counters_.add(ORR_CTR_MMU_TLB_HITS);
        } else if (lookup(asid, at, access, next) != ORR_FAULT_NONE) {
            break;
        }
        if (((next.pte ^ leaf.pte) & kSameKind) != 0 || next.huge != leaf.huge ||
            next.address != result.address + result.bytes)
            break;
        if (result.host != nullptr && next.host != result.host + result.bytes) break;
        result.bytes += next.bytes;
    }
    result.bytes = std::min(result.bytes, bytes);
    return result;
}

std::expected<Translation, MmuFault> Mmu::peek_page(std::uint32_t asid, std::uint64_t va, Access access) {
    const auto refuse = [va](std::uint32_t fault) { return std::unexpected(MmuFault{fault, va}); };
    if (va >= kVaLimit) return refuse(ORR_FAULT_NON_CANONICAL);
    if (asid == 0 || asid >= ORR_ASIDS || roots_[asid] == kNoRoot) return refuse(ORR_FAULT_NO_CONTEXT);
    std::uint64_t table = roots_[asid], pte = 0;
    unsigned level = ORR_MMU_LEVELS;
    do {
        if (level-- == 0) return refuse(ORR_FAULT_NOT_MAPPED);
        if (const std::uint32_t fault = read_entry(table, level, va, pte); fault != ORR_FAULT_NONE)
            return refuse(fault);
        table = pte & ORR_PTE_ADDR_MASK;
    } while ((pte & ORR_PTE_LEAF) == 0);
    Leaf leaf;
    const std::uint64_t page = va & ~std::uint64_t{ORR_PAGE_SIZE - 1};
    if (const std::uint32_t fault = resolve(page, pte, level == 1, access, leaf); fault != ORR_FAULT_NONE)
        return refuse(fault);
    if (leaf.bytes < ORR_PAGE_SIZE) return refuse(ORR_FAULT_PAGE_RANGE);
    return Translation{.target = target_of(pte),
                       .rights = leaf.rights,
                       .huge = leaf.huge,
                       .node = 0,
                       .host = leaf.host,
                       .address = leaf.address,
                       .bytes = ORR_PAGE_SIZE};
}

std::uint64_t Mmu::reach(std::uint32_t asid, std::uint64_t va) const {
    if (va >= kVaLimit) return 0 - va;
    if (asid == 0 || asid >= ORR_ASIDS || roots_[asid] == kNoRoot) return kVaLimit - va;
    std::uint64_t table = roots_[asid], entry = 0;
    unsigned level = ORR_MMU_LEVELS - 1;
    while (level != 0 && read_entry(table, level, va, entry) == ORR_FAULT_NONE &&
           (entry & ORR_PTE_LEAF) == 0) {
        table = entry & ORR_PTE_ADDR_MASK;
        --level;
    }
    const std::uint64_t bytes = std::uint64_t{ORR_PAGE_SIZE} << (kLevelBits * level);
    return bytes - va % bytes;
}

std::expected<Translation, MmuFault> Mmu::translate_page(std::uint32_t asid, std::uint64_t va,
                                                         Access access) {
    const std::uint64_t page = va & ~std::uint64_t{ORR_PAGE_SIZE - 1};
    auto result = translate(asid, page, ORR_PAGE_SIZE, access);
    if (!result) {
        return std::unexpected(MmuFault{result.error().code, va});
    }
    // DMA ranges are whole pages; a client's crooked one is no page.
    if (result->bytes != ORR_PAGE_SIZE) {
        counters_.add(ORR_CTR_MMU_FAULTS);
        return std::unexpected(MmuFault{ORR_FAULT_PAGE_RANGE, va});
    }
    return result;
}

}  // namespace orrery::emu
