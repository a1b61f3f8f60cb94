// The inside of a hart: what handlers work on. Not for anybody outside emulator/core but its tests.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "emulator/core/code_store.h"
#include "emulator/core/decode.h"
#include "emulator/core/hart.h"
#include "emulator/core/meter.h"
#include "emulator/core/op.h"
#include "emulator/core/overlay.h"
#include "emulator/core/vector/file.h"
#include "emulator/core/work_counts.h"

namespace orrery::emu {

inline constexpr std::uint64_t kPageOffset = kPageBytes - 1;
// Equal to no page address, nor to one with the low bits of a misaligned address (handlers_mem.cc's tag_of).
inline constexpr std::uint64_t kNoPage = 0x800;
// In a tag: accesses go through the meter's cache. Only handlers that look there know such a tag.
inline constexpr std::uint64_t kCountedPage = 0x400;
// In a tag: accesses are told to the bus. No handler knows such a tag, so all go through the slow paths.
inline constexpr std::uint64_t kToldPage = 0x200;
inline constexpr std::uint64_t kPageMarks = kCountedPage | kToldPage;

inline constexpr std::uint64_t kMstatusMie = 1u << 3;
inline constexpr std::uint64_t kMstatusMpie = 1u << 7;
inline constexpr std::uint64_t kMstatusMpp = 3u << 11;  // always machine mode
inline constexpr std::uint64_t kMstatusFs = 3u << 13;
inline constexpr std::uint64_t kMstatusFsInitial = 1u << 13;
inline constexpr std::uint64_t kMstatusVs = 3u << 9;
inline constexpr std::uint64_t kMstatusVsInitial = 1u << 9;
inline constexpr std::uint64_t kMstatusSd = 1ull << 63;
inline constexpr std::uint64_t kIrqMask = 1u << 3 | 1u << 7 | 1u << 11;

inline constexpr std::uint32_t kFlagNv = 16, kFlagDz = 8, kFlagOf = 4, kFlagUf = 2, kFlagNx = 1;

// One line of the page cache. A tag is the page's address if that access may go straight to
// host memory at va + addend, else kNoPage.
struct PageEntry {
    std::uint64_t load_tag = kNoPage;
    std::uint64_t store_tag = kNoPage;
    std::uintptr_t addend = 0;
    std::uint64_t rights = 0;  // and more (pages.cc)
    bool loads(std::uint64_t page) const { return (load_tag & ~kPageMarks) == page; }
    bool stores(std::uint64_t page) const { return (store_tag & ~kPageMarks) == page; }
    std::uint8_t* host(std::uint64_t va) const {
        // The sum is one of integers: `addend` alone points nowhere.
        return reinterpret_cast<std::uint8_t*>(addend + va);  // NOLINT(performance-no-int-to-ptr)
    }
};
inline constexpr std::size_t kPageEntries = 1024;
// In rights: PageRef::whole.
inline constexpr std::uint64_t kWholePage = 1 << 13;

// Decoded code of one page: what stood at `host` when it was decoded, for execution at `va`. `ops` has an Op
// for each halfword and two that leave the page.
inline constexpr std::size_t kSlots = kPageBytes / 2;
inline constexpr std::size_t kOpsPerPage = kSlots + 2;
inline constexpr std::size_t kCodeLine = kPageBytes / 64;
struct CodePage {
    std::uint64_t va = kNoPage;
    const std::uint8_t* host = nullptr;
    bool stale = true;  // nothing of what `ops` hold is to be used
    Op* ops = nullptr;
    std::uint8_t* bytes = nullptr;                   // what was decoded, as it was read
    std::uint64_t lines = 0;                         // bit: this line of `bytes` has been read
    std::array<std::uint64_t, kSlots / 64> decoded;  // bit: this slot is not op_decode
    CodePage() { decoded.fill(~std::uint64_t{0}); }
    // The straddling instruction in the last slot, as last decoded: spares decoding it again.
    std::uint32_t straddler_bits = 0;
    Handler straddler = nullptr;

    // --- of the pool ---
    std::uint32_t users = 0;  // entries that have it
    CodePage* same_hash = nullptr;
    CodePage* older = nullptr;  // among those that nobody has
    CodePage* newer = nullptr;
};

// A page of code as one hart executes it. Decoded code may be older than memory where somebody else has
// written, but never older than the time at which the hart last asked the bus for the page.
struct CodeEntry {
    std::uint64_t va = kNoPage;  // kNoPage: nothing, or to be asked for again
    Op* ops = nullptr;
    CodePage* page = nullptr;  // also when it is to be asked for again
    const std::uint8_t* host = nullptr;
    const std::uint8_t* next_host = nullptr;  // of the following page, once a straddling instruction asked
};

// The pages of one hart, or of several that decode for one another. There is one for each entry of each hart,
// so that one is always free.
class CodePool {
  public:
    CodePool() { ends_.older = ends_.newer = &ends_; }
    CodePool(const CodePool&) = delete;
    CodePool& operator=(const CodePool&) = delete;

    // Whether a hart of this configuration decodes as those before it; the first one decides.
    bool suits(const Config& config);
    // For the entries of one more hart. Afterwards nothing allocates.
    void add(std::size_t pages);
    // Gives `old` (nullptr: none) back, and the page for (va, host): as it was kept, or stale.
    CodePage* exchange(CodePage* old, std::uint64_t va, const std::uint8_t* host);
    void give_back(CodePage* page);
    void all_stale();
    // Of pages that a look-up walks through.
    std::size_t longest_chain() const;

    std::uint64_t decoded = 0;  // instructions, ever

  private:
    struct Block {
        std::unique_ptr<Op[]> ops;
        std::unique_ptr<std::uint8_t[]> bytes;
        std::vector<CodePage> pages;
    };
    // What decoded code depends on.
    struct DecodedFor {
        bool fp, vector, counted, has_exit_pc;
        std::uint64_t exit_pc;
        std::uint32_t first_csr_word;
        std::size_t csr_words;
        bool operator==(const DecodedFor&) const = default;
    };
    CodePage*& bucket(std::uint64_t va, const std::uint8_t* host);
    void unlink(CodePage& page);

    std::optional<DecodedFor> for_;
    std::vector<Block> blocks_;
    std::vector<CodePage*> buckets_;  // a power of two
    CodePage ends_;                   // of the ring of pages that nobody has: newer is the oldest
};

// Guest memory as the host accesses it.
using HostU16 [[gnu::may_alias]] = std::uint16_t;
using HostU32 [[gnu::may_alias]] = std::uint32_t;
using HostU64 [[gnu::may_alias]] = std::uint64_t;

struct Core {
    // --- what handlers touch most ---
    std::uint64_t x[33] = {};  // x[0] stays 0; x[kDumpRegister] takes results that nobody reads
    std::uint64_t f[32] = {};
    // The page that is executing.
    std::uint64_t code_va = kNoPage;
    Op* code_ops = nullptr;
    CodeEntry* code_pages = nullptr;
    std::uint64_t code_mask = 0;
    std::uint64_t mstatus = 0;
    std::uint8_t frm = 0;
    std::uint8_t fflags = 0;  // without those that are still in the host's status register (host_fp.h)
    WorkCounts work_counts;   // of scalar instructions; kInt is made by take_work()
    bool fp_wrapped = false;  // the host's FP status belongs to the guest just now
    bool f_unsure = true;     // f, frm or fflags may hold something although mstatus does not say so

    // --- reasons to leave the handlers; looked at by slow paths and by run() ---
    bool attention = false;  // any of: interrupts may have changed, caches were dropped, stop requested
    bool has_trap = false;   // `trap` waits to be taken
    bool has_stop = false;   // `stop` waits to be returned
    bool stop_requested = false;
    bool held = false;  // the instruction at pc must not be done yet: no matter what else it raised
    bool running = false;
    StopReason stop{};
    Trap trap;

    // What the host may still do before run() ends, in some 50 ns (Hart::allow).
    std::int64_t work_left = std::numeric_limits<std::int64_t>::max(), allowed = work_left;

    // --- counting: valid while handlers run, left is then in a register ---
    std::uint64_t steps_end = 0;  // steps when left reaches 0
    std::int64_t left = 0;
    Left done = 0;                    // what the handlers counted in theirs
    std::uint64_t first_step = 0;     // steps when run() was called
    std::int64_t deferred = 0;        // budget that handlers do not know of
    std::uint64_t last_step = 0;      // the budget ends here at the latest (Hart::limit)
    std::uint64_t extra_cycles = 0;   // what instructions cost beyond one cycle each
    std::uint64_t counted_steps = 0;  // of those that work_counts has nothing of, or no longer
    // What to add to steps (modulo 2^64).
    std::uint64_t minstret_delta = 0;
    std::uint64_t mcycle_delta = 0;

    std::uint64_t pc = 0;  // valid outside handlers, and in them after publish()
    std::uint64_t mie = 0, mip = 0, mtvec = 0, mscratch = 0, mepc = 0, mcause = 0, mtval = 0;
    std::uint64_t reservation_address = 0, reservation_value = 0;
    std::uint8_t reservation_size = 0;
    bool waiting = false;

    std::array<PageEntry, kPageEntries> pages;
    // With an overlay: which of them were used since all were dropped, as far as there is room.
    std::array<std::uint16_t, 64> used_pages{};
    std::size_t used = 0;  // one more than there is room: more
    // Lines of the page cache that let stores through, counted by a hash of their host page: code that comes
    // to a page to which nobody stores has no need to look at all lines.
    std::array<std::uint16_t, kPageEntries> stored_pages{};

    std::unique_ptr<VectorFile> vector;  // nullptr: none

    Overlay* overlay = nullptr;         // this hart computes ahead of its time
    const Overlay* pages_of = nullptr;  // what `pages` hold is right with this one

    Meter meter;
    bool gathers = false;           // the loads of a vector instruction are asked for together
    std::uint64_t memory_wait = 0;  // cycles that slow paths have counted, and nobody has charged yet
    // For whoever wants to know what an instruction was that is done (Hart::Last). kNoPc: none was it since.
    static constexpr std::uint64_t kNoPc = ~std::uint64_t{0};
    std::uint64_t waited_pc = kNoPc, stopped_pc = kNoPc, paused_pc = kNoPc;
    const Op* jumped = nullptr;  // from where run() went on in another page, or ended

    Config config;
    Bus* bus = nullptr;
    const HandlerTable* handlers = nullptr;
    std::vector<CodeEntry> code;
    std::unique_ptr<CodePool> own_pool;  // nullptr: it is shared
    CodePool* pool = nullptr;
    std::vector<std::uint64_t> breakpoints;

    std::uint64_t steps() const { return steps_end - static_cast<std::uint64_t>(left); }

    std::uint64_t pc_of(const Op* op) const {
        return code_va + (reinterpret_cast<std::uintptr_t>(op) - reinterpret_cast<std::uintptr_t>(code_ops)) /
                             (sizeof(Op) / 2);
    }
    // Makes pc and counters valid for code outside the handlers.
    void publish(const Op* op, Left now_left) {
        pc = pc_of(op);
        keep(now_left);
    }
    // The last ones before the handlers end say what was done.
    void keep(Left now_left) {
        left = steps_left(now_left);
        done = now_left & kLeftCounts;
    }
    void count_done() {
        constexpr Left kOne = (Left{1} << kLeftField) - 1;
        work_counts.of(ScalarClass::kJumps) += done & kOne;
        work_counts.of(ScalarClass::kLoads) += done >> kLeftField & kOne;
        work_counts.of(ScalarClass::kStores) += done >> 2 * kLeftField;
        done = 0;
    }
    void raise(Cause cause, std::uint64_t tval) {
        trap = {cause, tval, pc};
        has_trap = true;
    }
    void stop_soon() { stop_requested = attention = true; }
    void spend(std::uint64_t work) {
        work_left -= static_cast<std::int64_t>(work);
        if (work_left <= 0) stop_soon();
    }
    void drop_reservation() { reservation_address = reservation_value = reservation_size = 0; }
    // Gives the handlers a budget for one instruction: run() looks at `attention` after it. (Leaving before
    // it might make no progress for ever, with a bus that always asks for attention.)
    void only_this_one(Left& now_left) {
        const std::int64_t others = steps_left(now_left) - 1;
        deferred += others;
        steps_end -= static_cast<std::uint64_t>(others);
        now_left = with_steps_left(now_left, 1);
    }
    // An instruction takes so many cycles, at least one, of which the caller's ORR_NEXT counts the last.
    void charge(Left& now_left, std::uint64_t cycles) {
        const std::uint64_t extra = cycles - 1;
        extra_cycles += extra;
        mcycle_delta += extra;
        const auto taken = std::min(extra, static_cast<std::uint64_t>(steps_left(now_left) - 1));
        now_left -= taken << kLeftShift;
        steps_end -= taken;
        deferred -= static_cast<std::int64_t>(std::min(extra - taken, static_cast<std::uint64_t>(deferred)));
    }
    // After slow paths, and publish().
    void charge_wait(Left& now_left) {
        if (memory_wait == 0) return;
        waited_pc = pc;
        charge(now_left, 1 + std::exchange(memory_wait, 0));
    }
    PageEntry& page_entry(std::uint64_t va) { return pages[va / kPageBytes % kPageEntries]; }
};

// Loads and stores that the page cache cannot serve (pages.cc). `value` is zero-extended. False: an exception
// was raised and nothing changed. publish() first.
bool slow_load(Core* core, std::uint64_t va, unsigned size, std::uint64_t& value);
bool slow_store(Core* core, std::uint64_t va, unsigned size, std::uint64_t value);
// Host memory at va for elements of `size` bytes, and how many bytes of it follow in the page; nullptr: they
// have to go through slow_load() or slow_store(), which say why. To be used before the bus is called again;
// stored() after stores to it. publish() first.
std::uint8_t* span_of(Core* core, std::uint64_t va, unsigned size, Access access, std::uint64_t& bytes);
void stored(Core* core, const std::uint8_t* host, std::size_t size);
// An access in a row with others (pages.cc counts those of slow_load() and slow_store() as single ones).
void count_stream(Core* core, std::uint64_t va, std::uint64_t bytes, bool store);
// To the bus, if it wants to know (Config::tells_accesses). publish() first.
void tell_access(Core* core, const DoneAccess& access);
// Host memory for an aligned atomic; nullptr with `mmio` true: go through the bus; with false: raised.
std::uint8_t* atomic_host(Core* core, std::uint64_t va, unsigned size, bool is_lr, bool& mmio);

// An AMO whose old value nobody wants, of a hart that computes ahead; false: not so. publish() first.
bool posted_ahead(Core* core, std::uint64_t va, unsigned size, AmoFunction function, std::uint64_t operand);

// Code (code.cc). find_op gives the Op at core->pc and makes its page current, or raises and gives nullptr.
Op* find_op(Core* core);
void run_ops(Core* core, Op* op, Left left);
// Does [host, host + size) overlap a page of decoded code?
bool holds_code(const Core* core, const std::uint8_t* host, std::size_t size);
// Those bytes were written: instructions decoded from them are forgotten.
void forget_code(Core* core, const std::uint8_t* host, std::size_t size);
// Asks the bus anew for each page of code.
void drop_code(Core* core);
// After publish(): raises kIllegal with the bits of the instruction at op. Not after calls of the bus.
void raise_illegal(Core* core, const Op* op);
void drop_pages(Core* core);
// What the line of the page cache for `va` holds.
void drop_page(Core* core, std::uint64_t va);
// From now on slow_store() sees every store to this page of the host.
void refuse_stores(Core* core, const std::uint8_t* host);

// CSRs (csr.cc). False: illegal.
bool read_csr(Core* core, std::uint32_t number, std::uint64_t& value);
bool write_csr(Core* core, std::uint32_t number, std::uint64_t value);
std::uint64_t legal_mstatus(const Config& config, std::uint64_t value);
std::uint64_t legal_mtvec(std::uint64_t value);

}  // namespace orrery::emu
