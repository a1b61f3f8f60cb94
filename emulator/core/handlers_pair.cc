// Two instructions in one handler: one dispatch less, and what the first computes need not go through memory
// to the second. Each keeps its own Op, step and end of budget: whoever jumps to the second, or stops between
// them, sees no difference.
#include <array>
#include <utility>

#include "emulator/core/alu.h"
#include "emulator/core/decode.h"
#include "emulator/core/handler.h"
#include "emulator/core/page_access.h"

namespace orrery::emu {
namespace {

// --- what computes one value. `a`: of rs1 ---

template <OpCode kOf, class Function>
struct Imm {
    static constexpr OpCode kCode = kOf;
    static std::uint64_t of(Core*, const Op* op, std::uint64_t a) { return Function::of(a, sext(op->imm)); }
};
template <OpCode kOf, class Function>
struct Reg {
    static constexpr OpCode kCode = kOf;
    static std::uint64_t of(Core* core, const Op* op, std::uint64_t a) {
        return Function::of(a, core->x[op->rs2]);
    }
};
struct Move {
    static constexpr OpCode kCode = OpCode::kMv;
    static std::uint64_t of(Core*, const Op*, std::uint64_t a) { return a; }
};
struct Constant {
    static constexpr OpCode kCode = OpCode::kLi;
    static std::uint64_t of(Core*, const Op* op, std::uint64_t) { return sext(op->imm); }
};
struct Address {
    [[maybe_unused]] static constexpr OpCode kCode = OpCode::kLiu;
    static std::uint64_t of(Core*, const Op* op, std::uint64_t) {
        return static_cast<std::uint32_t>(op->imm);
    }
};

template <OpCode kOf, class T, class Signed>
struct Load {
    static constexpr OpCode kCode = kOf;
    // false: the page cache does not have it.
    static bool of(Core* core, std::uint64_t va, std::uint64_t& value) {
        const PageEntry& entry = core->page_entry(va);
        if (ORR_UNLIKELY(entry.load_tag != tag_of<T>(va))) return false;
        const auto* host = reinterpret_cast<const typename Host<T>::Type*>(entry.host(va));
        const T loaded = __atomic_load_n(host, __ATOMIC_RELAXED);
        value = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<Signed>(loaded)));
        return true;
    }
};
template <OpCode kOf, class T>
struct Store {
    static constexpr OpCode kCode = kOf;
    static bool of(Core* core, const Op* op, std::uint64_t va) {
        const PageEntry& entry = core->page_entry(va);
        if (ORR_UNLIKELY(entry.store_tag != tag_of<T>(va))) return false;
        auto* host = reinterpret_cast<typename Host<T>::Type*>(entry.host(va));
        __atomic_store_n(host, static_cast<T>(core->x[op->rs2]), __ATOMIC_RELAXED);
        return true;
    }
};
template <OpCode kOf, class Condition>
struct Branch {
    static constexpr OpCode kCode = kOf;
    static bool of(Core* core, const Op* op, std::uint64_t a) { return Condition::of(a, core->x[op->rs2]); }
};

struct Jump {
    static constexpr OpCode kCode = OpCode::kJNear;
};

template <class>
inline constexpr bool kIsLoad = false;
template <OpCode kOf, class T, class Signed>
inline constexpr bool kIsLoad<Load<kOf, T, Signed>> = true;
template <class>
inline constexpr bool kIsStore = false;
template <OpCode kOf, class T>
inline constexpr bool kIsStore<Store<kOf, T>> = true;
template <class>
inline constexpr bool kIsBranch = false;
template <OpCode kOf, class Condition>
inline constexpr bool kIsBranch<Branch<kOf, Condition>> = true;

// --- both ---

// The first one by itself: what it accesses is not for the page cache.
template <OpCode kCode, unsigned kLength>
ORR_COLD Next op_alone(Core* core, Op* op, Left left) {
    const Handler handler = core->handlers->of[static_cast<unsigned>(kCode)][kLength - 1];
    ORR_CALL(handler, core, op, left);
}

// kForward: rs1 of the second is rd of the first.
template <class First, class Second, bool kForward, unsigned kFirst, unsigned kSecond>
Next op_pair(Core* core, Op* op, Left left) {
    std::uint64_t value = 0;
    if constexpr (kIsStore<First>) {
        if (ORR_UNLIKELY(!First::of(core, op, core->x[op->rs1] + sext(op->imm)))) {
            const Handler alone = op_alone<First::kCode, kFirst>;
            ORR_CALL(alone, core, op, left);
        }
    } else if constexpr (kIsLoad<First>) {
        if (ORR_UNLIKELY(!First::of(core, core->x[op->rs1] + sext(op->imm), value))) {
            const Handler alone = op_alone<First::kCode, kFirst>;
            ORR_CALL(alone, core, op, left);
        }
    } else {
        value = First::of(core, op, core->x[op->rs1]);
    }
    if constexpr (!kIsStore<First>) core->x[op->rd] = value;
    op += kFirst;
    constexpr Left kWhat = kIsStore<First> ? kLeftStore : kIsLoad<First> ? kLeftLoad : kLeftStep;
    if (ORR_UNLIKELY(was_last(left, kWhat))) ORR_CALL(leave, core, op, left);

    const std::uint64_t a = kForward ? value : core->x[op->rs1];
    if constexpr (Second::kCode == OpCode::kJNear) {
        op += op->imm;
        ORR_NEXT_AS(core, op, left, kLeftJump);
    } else if constexpr (kIsBranch<Second>) {
        if (Second::of(core, op, a)) {
            op += op->imm;
            asm volatile("" : "+r"(op));  // see handlers_jump.cc
            ORR_NEXT_AS(core, op, left, kLeftJump);
        }
    } else if constexpr (kIsLoad<Second>) {
        std::uint64_t loaded = 0;
        // What the page cache does not have is for the instruction's own handler.
        if (ORR_UNLIKELY(!Second::of(core, a + sext(op->imm), loaded))) ORR_DISPATCH(core, op, left);
        core->x[op->rd] = loaded;
    } else if constexpr (kIsStore<Second>) {
        if (ORR_UNLIKELY(!Second::of(core, op, a + sext(op->imm)))) ORR_DISPATCH(core, op, left);
    } else {
        core->x[op->rd] = Second::of(core, op, a);
    }
    op += kSecond;
    constexpr Left kSecondWhat = kIsBranch<Second>  ? kLeftJump
                                 : kIsLoad<Second>  ? kLeftLoad
                                 : kIsStore<Second> ? kLeftStore
                                                    : kLeftStep;
    ORR_NEXT_AS(core, op, left, kSecondWhat);
}

// --- which there are ---

using std::uint32_t, std::uint64_t, std::uint8_t, std::uint16_t, std::int64_t, std::int32_t;
using Ld = Load<OpCode::kLd, uint64_t, int64_t>;
using Lw = Load<OpCode::kLw, uint32_t, int32_t>;
using Lwu = Load<OpCode::kLwu, uint32_t, uint32_t>;
using Lbu = Load<OpCode::kLbu, uint8_t, uint8_t>;
using Lhu = Load<OpCode::kLhu, uint16_t, uint16_t>;
using Sd = Store<OpCode::kSd, uint64_t>;
using Sw = Store<OpCode::kSw, uint32_t>;
using Addi = Imm<OpCode::kAddi, Add>;
using Slli = Imm<OpCode::kSlli, Sll>;
using Srli = Imm<OpCode::kSrli, Srl>;
using Andi = Imm<OpCode::kAndi, And>;
using Addiw = Imm<OpCode::kAddiw, Addw>;
using AddR = Reg<OpCode::kAdd, Add>;
using SubR = Reg<OpCode::kSub, Sub>;
using AndR = Reg<OpCode::kAnd, And>;
using OrR = Reg<OpCode::kOr, Or>;
using XorR = Reg<OpCode::kXor, Xor>;
using SltuR = Reg<OpCode::kSltu, Sltu>;

template <class... Each>
struct List {
    static constexpr std::size_t kSize = sizeof...(Each);
};
#ifdef ORRERY_FEW_PAIRS
// All of them take minutes to compile with sanitizers.
using Firsts = List<Addi, AddR, Move, Constant, Ld, Lbu, Sd>;
using Seconds = List<Branch<OpCode::kBeqNear, Eq>, Branch<OpCode::kBltuNear, Ltu>, Ld, Lbu, Sd, Addi, AddR,
                     Move, Constant, Jump>;
#else
using Firsts = List<Addi, Slli, Srli, Andi, Addiw, AddR, SubR, AndR, OrR, XorR, SltuR, Move, Constant,
                    Address, Ld, Lw, Lwu, Lbu, Lhu, Sd, Sw>;
using Seconds =
    List<Branch<OpCode::kBeqNear, Eq>, Branch<OpCode::kBneNear, Ne>, Branch<OpCode::kBltNear, Lt>,
         Branch<OpCode::kBgeNear, Ge>, Branch<OpCode::kBltuNear, Ltu>, Branch<OpCode::kBgeuNear, Geu>, Ld, Lw,
         Lwu, Lbu, Lhu, Sd, Sw, Store<OpCode::kSb, uint8_t>, Addi, Slli, Srli, Andi, Addiw, AddR, SubR, AndR,
         OrR, XorR, Move, Constant, Jump>;
#endif

// By kForward, and the two lengths in halfwords less one.
using Forms = std::array<Handler, 8>;
template <class First, class Second>
constexpr Forms forms() {
    return {op_pair<First, Second, false, 1, 1>, op_pair<First, Second, false, 1, 2>,
            op_pair<First, Second, false, 2, 1>, op_pair<First, Second, false, 2, 2>,
            op_pair<First, Second, true, 1, 1>,  op_pair<First, Second, true, 1, 2>,
            op_pair<First, Second, true, 2, 1>,  op_pair<First, Second, true, 2, 2>};
}
using Row = std::array<Forms, Seconds::kSize>;
template <class First, class... Second>
constexpr Row row(List<Second...>) {
    return {forms<First, Second>()...};
}
template <class... First>
constexpr std::array<Row, sizeof...(First)> rows(List<First...>) {
    return {row<First>(Seconds())...};
}
constexpr auto kRows = rows(Firsts());

// Place of a code in a list; kNone: it is not there.
constexpr std::uint8_t kNone = 0xff;
using Places = std::array<std::uint8_t, static_cast<std::size_t>(OpCode::kCount)>;
template <class... Each>
constexpr Places places(List<Each...>) {
    Places all{};
    all.fill(kNone);
    std::uint8_t n = 0;
    ((all[static_cast<std::size_t>(Each::kCode)] = n++), ...);
    return all;
}
constexpr Places kFirst = places(Firsts());
constexpr Places kSecond = places(Seconds());

}  // namespace

bool begins_pair(OpCode code) {
    return kFirst[static_cast<std::size_t>(code)] != kNone;
}

Handler pair_handler(const Decoded& first, unsigned first_length, const Decoded& second,
                     unsigned second_length) {
    const std::uint8_t a = kFirst[static_cast<std::size_t>(first.code)];
    const std::uint8_t b = kSecond[static_cast<std::size_t>(second.code)];
    if (a == kNone || b == kNone) return nullptr;
    const unsigned forward = second.rs1 == first.rd && first.rd != 0 ? 4 : 0;
    return kRows[a][b][forward | (first_length - 1) << 1 | (second_length - 1)];
}

std::vector<Handler> pair_handlers(OpCode first, unsigned first_length) {
    std::vector<Handler> all;
    const std::uint8_t a = kFirst[static_cast<std::size_t>(first)];
    if (a == kNone) return all;
    for (const Forms& forms : kRows[a])
        for (std::size_t form = 0; form < forms.size(); ++form)
            if ((form >> 1 & 1) == first_length - 1) all.push_back(forms[form]);
    return all;
}

}  // namespace orrery::emu
