// What a hart sees of the world around it: memory by the page, everything else by the access.
//
// A hart calls its bus only from inside Hart::run(), on the thread that called run(). A bus may call back
// into the hart that is calling it: set_irq, request_stop, advance_cycles, flush_pages and flush_code are
// all safe there, and take effect before the next instruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "emulator/base/access.h"
#include "emulator/base/tlb_tags.h"

namespace orrery::emu {

enum class AmoFunction : std::uint8_t;

enum class PageKind : std::uint8_t {
    kFault,   // nothing there, or not for this access: the hart takes an access fault
    kMemory,  // `host` may be used directly, until flush_pages()
    kMmio,    // every access goes through load(), store(), compare_exchange(); a fetch is an access fault
};

// Whose memory backs a page, for what an access costs (Config::memory).
enum class PagePlace : std::uint8_t {
    kOwn,  // the hart's alone, or memory whose time the bus itself knows: nothing is counted
    kVram,
    kHost,
};

// What one hart's accesses ask of memory in common.
struct MemoryCosts {
    std::uint64_t l1_bytes = 0;  // of the cache in front of it; 0: nothing is counted and nothing waited for
    std::uint64_t vram_cycles = 0, host_cycles = 0;  // that a load of a line, or an atomic, waits
    std::size_t tlb_entries = 0;  // pages whose translation is at hand; 0: translations cost nothing
    // Bytes after which the hart stops, of VRAM, from the host and to it.
    static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
    std::uint64_t most_vram = kNoLimit, most_from_host = kNoLimit, most_to_host = kNoLimit;
};
struct MemoryCounts {
    std::uint64_t read = 0, written = 0;  // bytes
    std::uint64_t streamed = 0;           // of those read, in rows past the cache
    MemoryCounts& operator+=(const MemoryCounts& other) {
        read += other.read;
        written += other.written;
        streamed += other.streamed;
        return *this;
    }
    bool operator==(const MemoryCounts&) const = default;
};
struct AccessCounts {
    MemoryCounts vram, host;
    std::uint64_t waited = 0;  // cycles for the answers to loads and atomics that are not in rows
    TlbLookups tlb;
    MemoryCounts& of(PagePlace place) { return place == PagePlace::kHost ? host : vram; }
    AccessCounts& operator+=(const AccessCounts& other) {
        vram += other.vram;
        host += other.host;
        waited += other.waited;
        tlb += other.tlb;
        return *this;
    }
    bool operator==(const AccessCounts&) const = default;
};

// What Bus::accessed() is told.
enum class AccessKind : std::uint8_t {
    kLoad,
    kStore,
    kAtomicLoad,  // LR
    kAtomic,      // AMO, or SC that stored
    kFence,       // no access: `bytes` has the bits of the instruction
};
struct DoneAccess {
    std::uint64_t va = 0, bytes = 0;
    AccessKind kind = AccessKind::kLoad;
    bool acquires = false, releases = false;  // aq and rl of an atomic; what a fence orders
    // Of the elements of a vector instruction in a row; else `bytes`.
    std::uint32_t element = 0;
};

// The answer to Bus::translate for one 4 KiB page.
struct PageRef {
    PageKind kind = PageKind::kFault;
    // What the hart may do through `host` without asking again; it must include the access asked for, and
    // may include more. A page that is read directly but whose stores must be seen leaves kPageWrite out,
    // and answers kMmio when it is asked for a store.
    std::uint8_t rights = 0;
    // First byte of the 4,096 host bytes that back the page. The bus keeps them alive until it has called
    // Hart::flush_pages. 8-byte aligned. Others may write them at the same time: an aligned access of the
    // hart is one host access, and atomics are host atomics.
    std::uint8_t* host = nullptr;
    PagePlace place = PagePlace::kOwn;
    bool huge = false;  // a part of a page of 2 MiB, for what its translation costs
    // All of that page, in VRAM, is as this part is: its host bytes, too, are in a row.
    bool whole = false;

    static PageRef fault() { return {}; }
    static PageRef mmio() { return {PageKind::kMmio, 0, nullptr}; }
    static PageRef memory(std::uint8_t* page, std::uint8_t page_rights, PagePlace place = PagePlace::kOwn,
                          bool huge = false, bool whole = false) {
        return {PageKind::kMemory, page_rights, page, place, huge, whole};
    }
};

class Bus {
  public:
    virtual ~Bus() = default;

    // Which memory backs the page that holds `va` (any address in the page; all 64 bits count).
    virtual PageRef translate(std::uint64_t va, Access access) = 0;

    // One access to a kMmio page: `va` is aligned to `size` (1, 2, 4 or 8 bytes; a misaligned one raises an
    // address-misaligned exception without a call). load() returns the value zero-extended; the hart
    // sign-extends. false is an access fault, and must leave nothing changed.
    virtual bool load(std::uint64_t va, unsigned size, std::uint64_t& value) = 0;
    virtual bool store(std::uint64_t va, unsigned size, std::uint64_t value) = 0;

    // An atomic (AMO, SC) to a kMmio page: if the `size` (4 or 8) bytes at `va` equal `expected` then store
    // `desired`; in either case put what was there into `observed`. false is an access fault. The default
    // goes through load() and store(); a bus whose memory is shared with others overrides it.
    virtual bool compare_exchange(std::uint64_t va, unsigned size, std::uint64_t expected,
                                  std::uint64_t desired, std::uint64_t& observed) {
        if (!load(va, size, observed)) return false;
        return observed != expected || store(va, size, desired);
    }

    // An AMO to a kMmio page whose memory carries it out itself, once: false is an access fault. Nothing: it
    // does not, and the hart goes by compare_exchange().
    virtual std::optional<bool> amo(std::uint64_t va, unsigned size, AmoFunction function,
                                    std::uint64_t operand, std::uint64_t& old) {
        (void)va;
        (void)size;
        (void)function;
        (void)operand;
        (void)old;
        return std::nullopt;
    }

    // A vector load has stopped before its end (Hart::hold()), and will want these bytes of any pages; `row`:
    // and nothing else. False: no more of them.
    virtual bool foresee(std::uint64_t va, std::uint64_t bytes, bool row) {
        (void)va;
        (void)bytes;
        (void)row;
        return false;
    }

    // With Config::tells_acquires: a fence that orders stores, or an atomic that releases, is to be done.
    // False, with Hart::hold(): not yet.
    virtual bool releases() { return true; }
    // With Config::tells_acquires: a fence, or an atomic that acquires, has been done.
    virtual void acquired() {}

    // An atomic at `va` has met a page with kPageNoAtomics; the access fault follows.
    virtual void atomic_refused(std::uint64_t va) { (void)va; }

    // With Config::tells_accesses: an access to a kMemory page, or a fence, has just been done. Hart::pc() is
    // the instruction's. Computes with integers only, and must not flush.
    virtual void accessed(const DoneAccess&) {}

    // CSRs that the hart itself does not have (anything outside docs/riscv.md's table), for example the
    // card's own user CSRs at 0xCC0–0xCFF, or `time` (0xC01). false is an illegal instruction. A CSR whose
    // number has bits 11:10 set is read-only: the hart refuses a write to it without a call. CSRRW with rd =
    // x0 does not read; CSRRS and CSRRC with rs1 = x0 (or immediate 0) do not write. Both calls compute with
    // integers only: kernels read such registers often, and the host's FP status is the guest's then.
    virtual bool read_csr(std::uint32_t number, std::uint64_t& value) {
        (void)number;
        (void)value;
        return false;
    }
    virtual bool write_csr(std::uint32_t number, std::uint64_t value) {
        (void)number;
        (void)value;
        return false;
    }
};

}  // namespace orrery::emu
