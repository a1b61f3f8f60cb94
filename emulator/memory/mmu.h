// The MMU of orrery/hw/mmu.h: an address space an ASID, tables in VRAM that nobody trusts, a TLB.
//
// Card thread only, but for page_ahead(). Translations hand out host pointers; they are good until
// generation() changes, which happens only between two events (a flush, a root that goes, a DMA range that
// goes, a reset), never during a call of an engine. Whoever keeps a pointer from one event to the next
// compares generations first.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <orrery/hw/mmu.h>

#include "emulator/base/access.h"
#include "emulator/base/tlb_tags.h"
#include "emulator/memory/host_memory.h"
#include "emulator/memory/vram.h"
#include "emulator/probes/counters.h"

namespace orrery::emu {

struct MmuFault {
    std::uint32_t code = ORR_FAULT_NONE;  // ORR_FAULT_*
    std::uint64_t va = 0;                 // first address that failed
};

struct Translation {
    std::uint8_t target = ORR_TARGET_VRAM;  // ORR_TARGET_*
    std::uint8_t rights = 0;                // kPage* of the first page
    bool huge = false;                      // of pages of 2 MiB
    std::uint16_t node = 0;                 // for ORR_TARGET_PEER: who has it
    std::uint8_t* host = nullptr;           // the bytes; nullptr for ORR_TARGET_PEER
    std::uint64_t address = 0;              // VRAM offset, bus address, or the peer's VRAM offset
    std::uint64_t bytes = 0;                // contiguous from there on; 1 .. what was asked for
};

class Mmu {
  public:
    Mmu(Vram& vram, HostMemory& host, Counters& counters);

    // --- control, for the card ---
    // Fault code, or ORR_FAULT_NONE. asid 0 and beyond ORR_ASIDS: ORR_FAULT_NO_CONTEXT; a root that is not a
    // page inside VRAM: ORR_FAULT_TABLE_RANGE. Flushes the address space.
    std::uint32_t set_root(std::uint64_t asid, std::uint64_t vram_offset);
    std::uint32_t clear_root(std::uint64_t asid);
    void flush_asid(std::uint64_t asid);
    void flush_range(std::uint64_t asid, std::uint64_t va, std::uint64_t bytes);
    // A DMA range is going, or what host memory allows changes: forgets every translation into it.
    void flush_host();
    // Reset: no roots, nothing cached.
    void reset();

    void set_faults(Faults* faults) { faults_ = faults; }
    // Called before anything here changes: who uses it, or its pointers, beside the card thread is done then.
    void before_change(std::function<void()> hook) { before_change_ = std::move(hook); }

    // How often the address space got another root, or none: another process may have it then.
    std::uint64_t root_changes(std::uint64_t asid) const {
        return asid < root_changes_.size() ? root_changes_[asid] : 0;
    }
    // Changes with everything above.
    std::uint64_t generation() const { return generation_; }
    // What the card's software has had forgotten: all of the above but flush_host(), which is the host's
    // matter.
    const Invalidations& invalidations() const { return invalidations_; }

    // --- use, for engines ---
    // Translates `va` for `access` and merges what follows without a gap (pages of the same kind, size and
    // rights), up to `bytes` (>= 1) and kMaxRun. A range that leaves the 48 bits ends there; the next call
    // faults. Each page looked at counts as a TLB hit or miss, each fault as a fault. Loads and fetches of a
    // peer: ORR_FAULT_PEER_READ.
    std::expected<Translation, MmuFault> translate(std::uint32_t asid, std::uint64_t va, std::uint64_t bytes,
                                                   Access access);

    // The page that holds `va`, for a hart's page cache: `host` is the start of the 4 KiB page, `address` its
    // address. `bytes` is ORR_PAGE_SIZE.
    std::expected<Translation, MmuFault> translate_page(std::uint32_t asid, std::uint64_t va, Access access);

    // The same for a debugger's eyes: nothing is counted, cached, or made to fail.
    std::expected<Translation, MmuFault> peek_page(std::uint32_t asid, std::uint64_t va, Access access);
    // How many bytes from `va` on one entry of the tables stands for, also one that maps nothing.
    std::uint64_t reach(std::uint32_t asid, std::uint64_t va) const;
    // The same for threads beside the card's, which may ask while the card's thread changes nothing here
    // (before_change): without the TLB, and nothing is counted. Nothing: a fault, or a peer's memory.
    std::optional<Translation> page_ahead(std::uint32_t asid, std::uint64_t va, Access access) const;

    static constexpr std::uint64_t kMaxRun = std::uint64_t{16} << 20;

  private:
    // One cached leaf, 4 KiB or 2 MiB. Host pointers are not cached: a DMA range may end inside a page.
    struct TlbEntry {
        std::uint64_t tag = 0;  // see tag_of(); 0: empty
        std::uint64_t pte = 0;
    };
    // What one access finds at its address.
    struct Leaf {
        std::uint64_t pte = 0;
        std::uint64_t address = 0;     // of the byte
        std::uint64_t bytes = 0;       // from there to the end of the page, or of its host range
        std::uint8_t* host = nullptr;  // of the byte
        std::uint8_t rights = 0;       // of the page, and of the memory behind it
        bool huge = false;
    };

    void change();
    std::uint32_t lookup(std::uint32_t asid, std::uint64_t va, Access access, Leaf& leaf);
    std::uint32_t read_entry(std::uint64_t table, unsigned level, std::uint64_t va,
                             std::uint64_t& entry) const;
    std::uint64_t leaf_table(std::uint32_t asid, std::uint64_t va) const;
    std::uint32_t walk(std::uint32_t asid, std::uint64_t va, std::uint64_t& pte, bool& huge) const;
    // `find`: HostMemory::find() or peek().
    template <class Find>
    std::uint32_t resolve(std::uint64_t va, std::uint64_t pte, bool huge, Access access, Leaf& leaf,
                          Find find) const;
    std::uint32_t resolve(std::uint64_t va, std::uint64_t pte, bool huge, Access access, Leaf& leaf);
    const TlbEntry* probe(std::uint64_t tag) const;
    void fill(std::uint64_t tag, std::uint64_t pte);

    static constexpr unsigned kWays = 4;
    static constexpr unsigned kSets = 1024;

    Vram& vram_;
    HostMemory& host_;
    Counters& counters_;
    Faults* faults_ = nullptr;
    std::uint64_t generation_ = 1;
    Invalidations invalidations_;
    std::function<void()> before_change_;
    std::vector<std::uint64_t> roots_;  // by asid; kNoRoot: none
    std::vector<std::uint64_t> root_changes_;
    std::vector<TlbEntry> tlb_;         // kSets * kWays
    std::vector<std::uint8_t> victim_;  // next way of each set
};

}  // namespace orrery::emu
