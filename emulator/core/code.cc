// Decoded code: finding it, making it, forgetting it.
//
// A slot that is not decoded yet holds op_decode, which decodes it in place when it is first executed. Only
// the fetch of a page asks the bus; decoding reads the host memory that the bus gave, a line at a time, and
// keeps what it read: a page that comes back is decoded anew only if it has changed.
#include <algorithm>
#include <bit>

#include "emulator/core/decode.h"
#include "emulator/core/handler.h"
#include "emulator/core/host_fp.h"

namespace orrery::emu {
namespace {

CodeEntry& current_entry(Core* core) {
    return core->code_pages[core->code_va / kPageBytes & core->code_mask];
}
CodePage& current_page(Core* core) {
    return *current_entry(core).page;
}

std::uint16_t halfword(const std::uint8_t* host) {
    std::uint16_t value;
    std::memcpy(&value, host, sizeof value);
    return value;
}

// Has the line of code at `offset` in page.bytes.
void read_line(CodePage& page, std::size_t offset) {
    const std::size_t line = offset / kCodeLine;
    if ((page.lines >> line & 1) != 0) return;
    std::memcpy(page.bytes + line * kCodeLine, page.host + line * kCodeLine, kCodeLine);
    page.lines |= std::uint64_t{1} << line;
}

// Is what was decoded what stands there now?
bool still_good(const CodePage& page) {
    if (page.stale) return false;
    for (std::uint64_t left = page.lines; left != 0; left &= left - 1) {
        const std::size_t at = static_cast<std::size_t>(std::countr_zero(left)) * kCodeLine;
        if (std::memcmp(page.bytes + at, page.host + at, kCodeLine) != 0) return false;
    }
    return true;
}

Decoded decode_at(const Core* core, const Op* op, std::uint32_t bits) {
    const bool four = is_four_bytes(static_cast<std::uint16_t>(bits));
    const std::uint32_t expanded = four ? bits : expand_compressed(static_cast<std::uint16_t>(bits));
    Decoded d = decode(expanded, core->pc_of(op), core->config.fp, core->vector != nullptr);
    constexpr unsigned kWrites = 1;  // see decode.h
    const std::uint32_t word = static_cast<std::uint32_t>(d.imm) - core->config.first_csr_word;
    if (d.code == OpCode::kCsr && (d.aux & 3u) != kWrites && d.rs1 == 0 &&
        word < core->config.csr_words.size()) {
        d.code = OpCode::kCsrWord;
        d.imm = static_cast<std::int32_t>(word);
        if (d.rd == 0) d.rd = kDumpRegister;
    }
    return d;
}

// All of *op but its handler.
void fill(Op* op, const Decoded& d, std::uint32_t bits) {
    op->imm = d.code == OpCode::kIllegal ? static_cast<std::int32_t>(bits) : d.imm;
    op->rd = d.rd;
    op->rs1 = d.rs1;
    op->rs2 = d.rs2;
    op->aux = d.aux;
}

// Decodes `bits` into everything of *op but its handler, which is returned.
Handler decode_into(const Core* core, Op* op, std::uint32_t bits) {
    const Decoded d = decode_at(core, op, bits);
    fill(op, d, bits);
    return core->handlers
        ->of[static_cast<unsigned>(d.code)][is_four_bytes(static_cast<std::uint16_t>(bits)) ? 1 : 0];
}

bool stops_at(const Core* core, std::uint64_t pc) {
    return (core->config.has_exit_pc && pc == core->config.exit_pc) ||
           std::find(core->breakpoints.begin(), core->breakpoints.end(), pc) != core->breakpoints.end();
}

// A fault is told in its time, and decoding looks at memory that others see too.
bool may_not_fetch_ahead(Core* core, const PageRef& ref) {
    if (core->overlay == nullptr) return false;
    core->held =
        ref.kind != PageKind::kMemory || (ref.rights & kPageExec) == 0 || core->overlay->wrote(ref.host);
    return core->held;
}

// A four-byte instruction of which two bytes are in the next page. The second half is read each time.
Next op_straddle(Core* core, Op* op, Left left) {
    CodeEntry& entry = current_entry(core);
    CodePage& page = *entry.page;
    const std::uint16_t low = halfword(page.bytes + kPageBytes - 2);
    if (entry.next_host == nullptr) {
        core->publish(op, left);
        const std::uint64_t next_va = core->code_va + kPageBytes;
        const HostFpPause pause(core);
        const PageRef ref = core->bus->translate(next_va, Access::kFetch);
        if (may_not_fetch_ahead(core, ref)) ORR_STOP();
        if (ref.kind != PageKind::kMemory || ref.host == nullptr || (ref.rights & kPageExec) == 0) {
            core->raise(Cause::kFetchAccess, next_va);
            ORR_STOP();
        }
        entry.next_host = ref.host;
        if (core->attention) core->only_this_one(left);
    }
    const std::uint32_t bits = low | static_cast<std::uint32_t>(halfword(entry.next_host)) << 16;
    if (page.straddler == nullptr || page.straddler_bits != bits) {
        page.straddler = decode_into(core, op, bits);
        page.straddler_bits = bits;
    }
    const Handler handler = page.straddler;
    ORR_CALL(handler, core, op, left);
}

// The instruction in this slot, which is not the last one.
std::uint32_t bits_at(CodePage& page, std::size_t slot) {
    read_line(page, 2 * slot);
    const std::uint16_t first = halfword(page.bytes + 2 * slot);
    if (!is_four_bytes(first)) return first;
    read_line(page, 2 * slot + 2);
    return first | static_cast<std::uint32_t>(halfword(page.bytes + 2 * slot + 2)) << 16;
}

// The handler of the instruction at op and the one behind it together, whose Op gets all but its handler;
bool is_memory(OpCode code) {
    return code >= OpCode::kLb && code <= OpCode::kFsd;
}

// nullptr: there is none.
Handler fuse(const Core* core, CodePage& page, Op* op, const Decoded& first, unsigned length) {
    if (!begins_pair(first.code)) return nullptr;
    // Pairs know nothing of the meter; the second of one is handed to its own handler.
    if (core->meter.on() && is_memory(first.code)) return nullptr;
    Op* const next = op + length;
    const auto slot = static_cast<std::size_t>(next - page.ops);
    if (slot >= kSlots - 1 || stops_at(core, core->pc_of(next))) return nullptr;
    const std::uint32_t bits = bits_at(page, slot);
    const Decoded second = decode_at(core, next, bits);
    const unsigned second_length = is_four_bytes(static_cast<std::uint16_t>(bits)) ? 2 : 1;
    const Handler handler = pair_handler(first, length, second, second_length);
    if (handler != nullptr) fill(next, second, bits);
    return handler;
}

// The real handler of the instruction at op; the rest of *op is filled in.
Handler decode_slot(Core* core, Op* op) {
    CodePage& page = current_page(core);
    const auto slot = static_cast<std::size_t>(op - page.ops);
    if (slot == kSlots - 1) {
        page.straddler = nullptr;
        read_line(page, 2 * slot);
        const std::uint16_t only = halfword(page.bytes + 2 * slot);
        return is_four_bytes(only) ? op_straddle : decode_into(core, op, only);
    }
    const std::uint32_t bits = bits_at(page, slot);
    const Decoded d = decode_at(core, op, bits);
    fill(op, d, bits);
    const unsigned length = is_four_bytes(static_cast<std::uint16_t>(bits)) ? 2 : 1;
    const Handler pair = fuse(core, page, op, d, length);
    return pair != nullptr ? pair : core->handlers->of[static_cast<unsigned>(d.code)][length - 1];
}

Next op_breakpoint(Core* core, Op* op, Left left) {
    // Where a run() starts there is no stop, or it would never get away.
    if (core->steps_end - static_cast<std::uint64_t>(steps_left(left)) != core->first_step) {
        core->publish(op, left);
        core->has_stop = true;
        core->stop = StopReason::kBreakpoint;
        ORR_STOP();
    }
    const Handler handler = decode_slot(core, op);
    ORR_CALL(handler, core, op, left);
}

// run() knows the exit address.
Next op_exit(Core* core, Op* op, Left left) {
    ORR_CALL(leave, core, op, left);
}

Next op_decode(Core* core, Op* op, Left left) {
    const std::uint64_t pc = core->pc_of(op);
    CodePage& page = current_page(core);
    const auto slot = static_cast<std::size_t>(op - page.ops);
    page.decoded[slot / 64] |= std::uint64_t{1} << slot % 64;
    ++core->pool->decoded;
    if (core->config.has_exit_pc && pc == core->config.exit_pc) {
        op->fn = op_exit;
    } else if (std::find(core->breakpoints.begin(), core->breakpoints.end(), pc) != core->breakpoints.end()) {
        op->fn = op_breakpoint;
    } else {
        op->fn = decode_slot(core, op);
    }
    ORR_DISPATCH_SLOW(core, op, left);
}

// Behind the last slots of a page. Costs no budget.
Next op_page_end(Core* core, Op* op, Left left) {
    const std::uint64_t pc = core->pc_of(op);
    const CodeEntry& entry = core->code_pages[pc / kPageBytes & core->code_mask];
    if (entry.va != (pc & ~kPageOffset)) ORR_CALL(leave, core, op, left);
    core->code_va = entry.va;
    core->code_ops = entry.ops;
    Op* const next = entry.ops + (pc & kPageOffset) / 2;
    ORR_DISPATCH(core, next, left);
}

// Only what was decoded has to be forgotten: a page of which little was executed costs little.
void clear_page(CodePage& page) {
    for (std::size_t word = 0; word < page.decoded.size(); ++word) {
        for (std::uint64_t left = page.decoded[word]; left != 0; left &= left - 1)
            page.ops[word * 64 + static_cast<std::size_t>(std::countr_zero(left))].fn = op_decode;
    }
    page.ops[kSlots].fn = op_page_end;
    page.ops[kSlots + 1].fn = op_page_end;
    page.decoded.fill(0);
    page.lines = 0;
    page.straddler = nullptr;
    page.straddler_bits = 0;
    page.stale = false;
}

bool overlap(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b, std::size_t b_size) {
    const auto a_begin = reinterpret_cast<std::uintptr_t>(a);
    const auto b_begin = reinterpret_cast<std::uintptr_t>(b);
    return a_begin < b_begin + b_size && b_begin < a_begin + a_size;
}

}  // namespace

Op* find_op(Core* core) {
    const std::uint64_t va = core->pc & ~kPageOffset;
    CodeEntry& entry = core->code_pages[va / kPageBytes & core->code_mask];
    if (entry.va != va) {
        const HostFpPause pause(core);
        const PageRef ref = core->bus->translate(core->pc, Access::kFetch);
        if (may_not_fetch_ahead(core, ref)) return nullptr;
        if (ref.kind != PageKind::kMemory || ref.host == nullptr || (ref.rights & kPageExec) == 0) {
            core->raise(Cause::kFetchAccess, core->pc);
            return nullptr;
        }
        if (entry.page == nullptr || entry.page->va != va || entry.page->host != ref.host)
            entry.page = core->pool->exchange(entry.page, va, ref.host);
        if (!still_good(*entry.page)) clear_page(*entry.page);
        entry = {.va = va, .ops = entry.page->ops, .page = entry.page, .host = ref.host};
        // From now on slow_store() has to see every store to it.
        refuse_stores(core, ref.host);
    }
    core->code_va = va;
    core->code_ops = entry.ops;
    return entry.ops + (core->pc & kPageOffset) / 2;
}

void run_ops(Core* core, Op* op, Left left) {
#if defined(__clang__)
    op->fn(core, op, left);
#else
    Next next{op, left};
    do {
        next = next.op->fn(core, next.op, next.left);
    } while (next.op != nullptr);
#endif
}

bool holds_code(const Core* core, const std::uint8_t* host, std::size_t size) {
    return std::any_of(core->code.begin(), core->code.end(), [&](const CodeEntry& entry) {
        return entry.va != kNoPage && overlap(host, size, entry.host, kPageBytes);
    });
}

void forget_code(Core* core, const std::uint8_t* host, std::size_t size) {
    for (const CodeEntry& entry : core->code) {
        if (entry.va == kNoPage || !overlap(host, size, entry.host, kPageBytes)) continue;
        CodePage& page = *entry.page;
        // Two four-byte instructions of which the first begins six bytes before are hit too
        // (handlers_pair.cc).
        const auto page_begin = reinterpret_cast<std::uintptr_t>(page.host);
        const auto begin = reinterpret_cast<std::uintptr_t>(host);
        const std::size_t first = begin < page_begin + 6 ? 0 : (begin - page_begin - 6) / 2;
        const std::size_t last = std::min<std::size_t>((begin + size - 1 - page_begin) / 2, kSlots - 1);
        for (std::size_t slot = first; slot <= last; ++slot)
            page.ops[slot].fn = op_decode;
        // The rest of the line stays as it was decoded.
        const std::uint8_t* const from = std::max(host, page.host);
        const std::uint8_t* const to = std::min(host + size, page.host + kPageBytes);
        for (const std::uint8_t* byte = from; byte < to; ++byte) {
            const auto at = static_cast<std::size_t>(byte - page.host);
            if ((page.lines >> at / kCodeLine & 1) != 0) page.bytes[at] = *byte;
        }
    }
}

void raise_illegal(Core* core, const Op* op) {
    const CodePage& page = current_page(core);
    const auto slot = static_cast<std::size_t>(op - core->code_ops);
    if (slot == kSlots - 1 && page.straddler != nullptr) {
        core->raise(Cause::kIllegal, page.straddler_bits);
        return;
    }
    const std::uint8_t* bytes = page.bytes + 2 * slot;
    const std::uint16_t first = halfword(bytes);
    const std::uint32_t second = is_four_bytes(first) ? halfword(bytes + 2) : 0;
    core->raise(Cause::kIllegal, first | second << 16);
}

void drop_code(Core* core) {
    for (CodeEntry& entry : core->code)
        entry.va = kNoPage;
    core->attention = true;
}

const HandlerTable& handler_table(bool counted) {
    const auto make = [](bool with_meter) {
        HandlerTable t{};
        add_int_handlers(t);
        add_jump_handlers(t);
        add_mem_handlers(t, with_meter);
        add_atomic_handlers(t);
        add_fp_handlers(t);
        add_sys_handlers(t);
        add_vector_handlers(t);
        return t;
    };
    static const HandlerTable plain = make(false), metered = make(true);
    return counted ? metered : plain;
}

}  // namespace orrery::emu
