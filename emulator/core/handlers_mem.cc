// Loads and stores, integer and FP: the page cache's hits here, everything else in pages.cc.
#include "emulator/core/handler.h"
#include "emulator/core/page_access.h"

namespace orrery::emu {
namespace {

// Where a loaded value goes.
template <class Signed>
struct ToSigned {
    static void put(Core* core, const Op* op, std::uint64_t value) {
        core->x[op->rd] = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<Signed>(value)));
    }
    static bool allowed(Core*) { return true; }
};
struct ToUnsigned {
    static void put(Core* core, const Op* op, std::uint64_t value) { core->x[op->rd] = value; }
    static bool allowed(Core*) { return true; }
};
// FP registers are out of reach while mstatus.FS is off.
struct ToHalf {
    static void put(Core* core, const Op* op, std::uint64_t value) {
        core->f[op->rd] = value | 0xffffffffffff0000u;
        core->mstatus |= kMstatusFs;
    }
    static bool allowed(Core* core) { return (core->mstatus & kMstatusFs) != 0; }
};
struct ToSingle {
    static void put(Core* core, const Op* op, std::uint64_t value) {
        core->f[op->rd] = value | 0xffffffff00000000u;
        core->mstatus |= kMstatusFs;
    }
    static bool allowed(Core* core) { return (core->mstatus & kMstatusFs) != 0; }
};
struct ToDouble {
    static void put(Core* core, const Op* op, std::uint64_t value) {
        core->f[op->rd] = value;
        core->mstatus |= kMstatusFs;
    }
    static bool allowed(Core* core) { return (core->mstatus & kMstatusFs) != 0; }
};

template <class T, class To, unsigned kLength>
ORR_COLD Next load_slow(Core* core, Op* op, Left left) {
    core->publish(op, left);
    if (!To::allowed(core)) {
        raise_illegal(core, op);
        ORR_STOP();
    }
    std::uint64_t value = 0;
    if (!slow_load(core, core->x[op->rs1] + sext(op->imm), sizeof(T), value)) ORR_STOP();
    core->charge_wait(left);
    To::put(core, op, static_cast<T>(value));
    op += kLength;
    ORR_NEXT_SLOW_AS(core, op, left, kLeftLoad);
}

// The page cache has the page, and the meter has nothing to count.
template <class T, bool kCounted>
bool may_load(const Core* core, const PageEntry& entry, std::uint64_t va) {
    if (kCounted && entry.load_tag == (tag_of<T>(va) | kCountedPage)) return core->meter.has(va);
    return entry.load_tag == tag_of<T>(va);
}
template <class T, bool kCounted>
bool may_store(const Core* core, const PageEntry& entry, std::uint64_t va) {
    if (kCounted && entry.store_tag == (tag_of<T>(va) | kCountedPage)) return core->meter.has_written(va);
    return entry.store_tag == tag_of<T>(va);
}

template <class T, class To>
void load_host(Core* core, const Op* op, const PageEntry& entry, std::uint64_t va) {
    const auto* host = reinterpret_cast<const typename Host<T>::Type*>(entry.host(va));
    To::put(core, op, __atomic_load_n(host, __ATOMIC_RELAXED));
}

// The line may be there without being the last of its set that was used.
template <class T, class To, unsigned kLength>
Next load_behind(Core* core, Op* op, Left left) {
    const std::uint64_t va = core->x[op->rs1] + sext(op->imm);
    const PageEntry& entry = core->page_entry(va);
    if (ORR_UNLIKELY(entry.load_tag != (tag_of<T>(va) | kCountedPage) || !To::allowed(core) ||
                     !core->meter.has_behind(va))) {
        const Handler slow = load_slow<T, To, kLength>;
        ORR_CALL(slow, core, op, left);
    }
    load_host<T, To>(core, op, entry, va);
    op += kLength;
    ORR_NEXT_AS(core, op, left, kLeftLoad);
}

template <class T, class To, unsigned kLength, bool kCounted>
Next op_load(Core* core, Op* op, Left left) {
    const std::uint64_t va = core->x[op->rs1] + sext(op->imm);
    const PageEntry& entry = core->page_entry(va);
    if (ORR_UNLIKELY(!(may_load<T, kCounted>(core, entry, va)) || !To::allowed(core))) {
        const Handler slow = kCounted ? load_behind<T, To, kLength> : load_slow<T, To, kLength>;
        ORR_CALL(slow, core, op, left);
    }
    load_host<T, To>(core, op, entry, va);
    op += kLength;
    ORR_NEXT_AS(core, op, left, kLeftLoad);
}

// Where a stored value comes from.
struct FromX {
    static std::uint64_t get(const Core* core, const Op* op) { return core->x[op->rs2]; }
    static bool allowed(Core*) { return true; }
};
struct FromF {
    static std::uint64_t get(const Core* core, const Op* op) { return core->f[op->rs2]; }
    static bool allowed(Core* core) { return (core->mstatus & kMstatusFs) != 0; }
};

template <class T, class From, unsigned kLength>
ORR_COLD Next store_slow(Core* core, Op* op, Left left) {
    core->publish(op, left);
    if (!From::allowed(core)) {
        raise_illegal(core, op);
        ORR_STOP();
    }
    if (!slow_store(core, core->x[op->rs1] + sext(op->imm), sizeof(T), From::get(core, op))) ORR_STOP();
    core->charge_wait(left);
    op += kLength;
    ORR_NEXT_SLOW_AS(core, op, left, kLeftStore);
}

template <class T, class From>
void store_host(const Core* core, const Op* op, const PageEntry& entry, std::uint64_t va) {
    auto* host = reinterpret_cast<typename Host<T>::Type*>(entry.host(va));
    __atomic_store_n(host, static_cast<T>(From::get(core, op)), __ATOMIC_RELAXED);
}

template <class T, class From, unsigned kLength>
Next store_behind(Core* core, Op* op, Left left) {
    const std::uint64_t va = core->x[op->rs1] + sext(op->imm);
    const PageEntry& entry = core->page_entry(va);
    if (ORR_UNLIKELY(entry.store_tag != (tag_of<T>(va) | kCountedPage) || !From::allowed(core) ||
                     !core->meter.has_written_behind(va))) {
        const Handler slow = store_slow<T, From, kLength>;
        ORR_CALL(slow, core, op, left);
    }
    store_host<T, From>(core, op, entry, va);
    op += kLength;
    ORR_NEXT_AS(core, op, left, kLeftStore);
}

template <class T, class From, unsigned kLength, bool kCounted>
Next op_store(Core* core, Op* op, Left left) {
    const std::uint64_t va = core->x[op->rs1] + sext(op->imm);
    const PageEntry& entry = core->page_entry(va);
    if (ORR_UNLIKELY(!(may_store<T, kCounted>(core, entry, va)) || !From::allowed(core))) {
        const Handler slow = kCounted ? store_behind<T, From, kLength> : store_slow<T, From, kLength>;
        ORR_CALL(slow, core, op, left);
    }
    store_host<T, From>(core, op, entry, va);
    op += kLength;
    ORR_NEXT_AS(core, op, left, kLeftStore);
}

template <bool kCounted>
void add_all(HandlerTable& table) {
    using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;
#define LOAD(code, type, to) \
    table.set(OpCode::code, op_load<type, to, 1, kCounted>, op_load<type, to, 2, kCounted>)
#define STORE(code, type, from) \
    table.set(OpCode::code, op_store<type, from, 1, kCounted>, op_store<type, from, 2, kCounted>)
    LOAD(kLb, uint8_t, ToSigned<std::int8_t>);
    LOAD(kLh, uint16_t, ToSigned<std::int16_t>);
    LOAD(kLw, uint32_t, ToSigned<std::int32_t>);
    LOAD(kLd, uint64_t, ToUnsigned);
    LOAD(kLbu, uint8_t, ToUnsigned);
    LOAD(kLhu, uint16_t, ToUnsigned);
    LOAD(kLwu, uint32_t, ToUnsigned);
    LOAD(kFlh, uint16_t, ToHalf);
    LOAD(kFlw, uint32_t, ToSingle);
    LOAD(kFld, uint64_t, ToDouble);
    STORE(kSb, uint8_t, FromX);
    STORE(kSh, uint16_t, FromX);
    STORE(kSw, uint32_t, FromX);
    STORE(kSd, uint64_t, FromX);
    STORE(kFsh, uint16_t, FromF);
    STORE(kFsw, uint32_t, FromF);
    STORE(kFsd, uint64_t, FromF);
#undef LOAD
#undef STORE
}

}  // namespace

void add_mem_handlers(HandlerTable& table, bool counted) {
    if (counted)
        add_all<true>(table);
    else
        add_all<false>(table);
}

}  // namespace orrery::emu
