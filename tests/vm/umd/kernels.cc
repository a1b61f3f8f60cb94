// Kernels of the runtime's tests: some work, some go wrong in every way a kernel can.
#include <assert.h>
#include <orrery/kernel.h>

#include "kernels.h"

namespace {

// A table with addresses needs relocations, a variable needs a writable segment.
uint64_t triple(uint64_t x) {
    return 3 * x;
}
uint64_t square(uint64_t x) {
    return x * x;
}
uint64_t (*const volatile kFunctions[])(uint64_t) = {triple, square};
volatile uint64_t counter = 40;

}  // namespace

// Found by name; each module that is loaded has its own.
ORR_GLOBAL uint64_t shared_counter = 40;
ORR_GLOBAL uint64_t shared_table[1000];
ORR_GLOBAL extern const uint64_t shared_constants[3] = {2, 3, 5};

// Adds `value` to the counter, to the table's last word the constants; gives all three.
ORR_KERNEL void use_globals(const TestArgs* args) {
    shared_counter += args->value;
    for (uint64_t each : shared_constants)
        shared_table[999] += each;
    args->data[0] = shared_counter;
    args->data[1] = shared_table[999];
    args->data[2] = shared_table[0];
}

// Each group waits until all have come, `value` times: only if all of them run at one moment does it end.
ORR_KERNEL void meet(const TestArgs* args) {
    uint64_t* const arrived = args->data;
    for (uint64_t round = 1; round <= args->value; ++round) {
        __atomic_fetch_add(arrived, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(arrived, __ATOMIC_SEQ_CST) < round * args->count)
            asm volatile("");
    }
    args->data[1 + orr::group_x()] = args->value;
}

// Takes more model time than time of the host: each step is a way to pinned memory and back.
ORR_KERNEL void linger(const TestArgs* args) {
    for (uint64_t i = 0; i < args->count; ++i)
        __atomic_fetch_add(args->data, 1, __ATOMIC_SEQ_CST);
}

ORR_KERNEL void add_atomically(const TestArgs* args) {
    orr::atomic_add(args->data, args->value);
}

// data: a GridBarrier, a word for each of `count` groups, which may be those of several launches, and two
// counts. In each of `value` rounds all groups raise their word, and then expect that all have; the first
// count is of words that were wrong.
ORR_KERNEL void take_rounds(const TestArgs* args) {
    auto* const barrier = reinterpret_cast<orr::GridBarrier*>(args->data);
    uint64_t* const words = args->data + 1;
    const auto groups = static_cast<uint32_t>(args->count);
    uint64_t own = 0;
    if (orr::item_id() == 0) own = orr::atomic_add(&words[groups + 1], uint64_t{1});
    for (uint64_t round = 1; round <= args->value; ++round) {
        if (orr::item_id() == 0) words[own] = round;
        orr::grid_barrier(barrier, groups);
        for (uint64_t i = orr::item_id(); i < groups; i += orr::group_items()) {
            if (words[i] != round) orr::atomic_add(&words[groups], uint64_t{1});
        }
        orr::grid_barrier(barrier, groups);
    }
}

ORR_KERNEL void add_value(const TestArgs* args) {
    for (uint64_t i = orr::global_id(); i < args->count; i += orr::global_size())
        args->data[i] += args->value;
}

ORR_KERNEL void who_am_i(const TestArgs* args) {
    const uint64_t id = orr::global_id();
    if (id < args->count) {
        args->data[id] = uint64_t{orr::group_x()} << 48 | uint64_t{orr::item_x()} << 32 |
                         uint64_t{orr::grid_x()} << 16 | orr::block_x();
    }
}

ORR_KERNEL void call_table(const TestArgs* args) {
    args->data[0] = kFunctions[args->value & 1](args->data[0]);
    counter = counter + 1;
    args->data[1] = counter;
}

ORR_KERNEL void floating(const TestArgs* args) {
    auto* values = reinterpret_cast<double*>(args->data);
    for (uint64_t i = orr::global_id(); i < args->count; i += orr::global_size()) {
        values[i] = values[i] * 1.5 + static_cast<double>(args->value);
    }
}

ORR_KERNEL void group_sum(const TestArgs* args) {
    auto* local = orr::local<uint64_t>();
    *local += orr::item_x() + 1;
    if (orr::item_x() + 1 == orr::block_x()) orr::atomic_add(args->data, *local);
}

// out[group] = sum over the items' shares of `count` words behind it.
ORR_KERNEL void reduce_groups(const TestArgs* args) {
    uint64_t mine = 0;
    const uint64_t* words = args->data + orr::grid_x();
    for (uint64_t i = orr::global_id(); i < args->count; i += orr::global_size())
        mine += words[i];
    const uint64_t sum = orr::group_reduce_add(mine);
    if (orr::item_id() == 0) args->data[orr::group_x()] = sum;
}

// Sorts `count` = block words a group in work-group memory, odd and even places in turn.
ORR_KERNEL void sort_groups(const TestArgs* args) {
    auto* shared = orr::local<uint64_t>();
    const uint32_t self = orr::item_id(), items = orr::group_items();
    uint64_t* mine = args->data + orr::global_id();
    shared[self] = *mine;
    orr::barrier();
    for (uint32_t round = 0; round < items; ++round) {
        if (self % 2 == round % 2 && self + 1 < items && shared[self] > shared[self + 1]) {
            const uint64_t kept = shared[self];
            shared[self] = shared[self + 1];
            shared[self + 1] = kept;
        }
        orr::barrier();
    }
    *mine = shared[self];
}

// Of each item 6 words: what all group operations give.
ORR_KERNEL void group_operations(const TestArgs* args) {
    const uint32_t self = orr::item_id();
    uint64_t* out = args->data + 6 * orr::global_id();
    const double real = 1.0 / (self + 1);
    out[0] = __builtin_bit_cast(uint64_t, orr::group_reduce_add(real));
    out[1] =
        orr::group_reduce_min(self * 7 % 5) + 100 * orr::group_reduce_max<int>(static_cast<int>(self) - 3);
    out[2] = orr::group_shuffle(self * self, (self + 1) % orr::group_items());
    out[3] = orr::group_broadcast(static_cast<uint8_t>(self + 3), 2);
    out[4] = orr::group_scan_add(uint64_t{self} + 1);
    out[5] =
        orr::group_count(self % 3 == 0) + 1000 * orr::group_any(self == 1) + 2000 * orr::group_all(self < 3);
}

ORR_KERNEL void leave_barrier(const TestArgs* args) {
    if (orr::item_id() != args->value) orr::barrier();
}
ORR_KERNEL void take_other_barrier(const TestArgs* args) {
    if (orr::item_id() == args->value)
        orr::barrier();
    else
        orr::barrier();
}
// `value` bytes of stack, behind a barrier.
ORR_KERNEL void use_stack(const TestArgs* args) {
    orr::barrier();
    auto* bytes = static_cast<volatile char*>(__builtin_alloca(args->value));
    for (uint64_t i = args->value; i-- > 0;)
        bytes[i] = 1;
    orr::barrier();
}
ORR_ITEM_STACK(use_more_stack, 16384);
ORR_KERNEL void use_more_stack(const TestArgs* args) {
    use_stack(args);
}

ORR_KERNEL void say(const TestArgs* args) {
    for (uint64_t i = 0; i < args->count; ++i)
        orr::printf("group %u item %2d: %s %.3f %#lx %c%%\n", orr::group_x(), static_cast<int>(orr::item_x()),
                    "line", 0.5 + static_cast<double>(i), args->value, 'a' + static_cast<int>(i));
}
// Writes over the ring of all that is printed: at random, or its indices.
ORR_KERNEL void scribble_on_output(const TestArgs* args) {
    auto* words = reinterpret_cast<volatile uint64_t*>(orr::detail::output);
    uint64_t x = args->value;
    for (uint64_t i = 0; i < args->count; ++i) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        words[x >> 33 & (sizeof(orr_output) / 8 - 1)] = x;
    }
    words[0] = x;
}

ORR_KERNEL void spin_for_ever(const TestArgs*) {
    for (;;)
        asm volatile("");
}

// args: words of "has begun", then of results, one a group; steps; seed.
ORR_KERNEL void count_up(const TestArgs* args) {
    const uint64_t group = orr::group_x();
    args->data[group] = 1;
    uint64_t x = args->value + group;
    for (uint64_t i = 0; i < args->count; ++i) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        asm volatile("" : "+r"(x));
    }
    args->data[orr::grid_x() + group] = x;
}

ORR_KERNEL void trap(const TestArgs*) {
    __builtin_trap();
}

ORR_KERNEL void fail_assertion(const TestArgs* args) {
    assert(args->value == 12345);
}

ORR_KERNEL void jump_out(const TestArgs* args) {
    reinterpret_cast<void (*)()>(args->value)();
}

ORR_KERNEL void store_to(const TestArgs* args) {
    *reinterpret_cast<volatile uint64_t*>(args->value) = 1;
}

ORR_KERNEL void obey(const TestArgs* args) {
    volatile uint64_t* words = args->data;
    words[1] = 1;
    const bool scribbles = args->count == kObeyScribble || args->count == kObeyScribbleOn;
    while (words[0] == 0 || args->count == kObeySpin || args->count == kObeyScribbleOn) {
        for (int i = 0; i < 1000; ++i)
            asm volatile("");
        if (scribbles) *reinterpret_cast<volatile uint64_t*>(args->value) = ~uint64_t{0};
    }
    if (args->count == kObeyTrap) __builtin_trap();
    if (args->count == kObeyStore) *reinterpret_cast<volatile uint64_t*>(args->value) = 1;
}

ORR_KERNEL void load_from(const TestArgs* args) {
    args->data[0] = *reinterpret_cast<volatile uint64_t*>(args->value);
}

// `value`: words in the memory of any card, here and below.
ORR_KERNEL void sum_there(const TestArgs* args) {
    const auto* words = reinterpret_cast<const uint64_t*>(args->value);
    uint64_t sum = 0;
    for (uint64_t i = orr::global_id(); i < args->count; i += orr::global_size())
        sum += words[i];
    orr::atomic_add(args->data, sum);
}

ORR_KERNEL void write_there(const TestArgs* args) {
    auto* words = reinterpret_cast<uint64_t*>(args->value);
    for (uint64_t i = orr::global_id(); i < args->count; i += orr::global_size())
        words[i] = args->data[i] + 1;
}

// 16 bins, and behind them a count that is made by compare and swap.
ORR_KERNEL void count_there(const TestArgs* args) {
    auto* bins = reinterpret_cast<uint64_t*>(args->value);
    for (uint64_t i = orr::global_id(); i < args->count; i += orr::global_size())
        orr::atomic_add(&bins[args->data[i] % 16], uint64_t{1});
    uint64_t old = __atomic_load_n(&bins[16], __ATOMIC_RELAXED);
    while (
        !__atomic_compare_exchange_n(&bins[16], &old, old + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
}

namespace {
template <typename Unsigned, typename Signed>
void combine(Unsigned* to, Unsigned value) {
    orr::atomic_add(&to[kSwapped], __atomic_exchange_n(&to[kSwap], value, __ATOMIC_RELAXED));
    orr::atomic_add(&to[kAdd], value);
    Unsigned old = __atomic_load_n(&to[kCompareSwap], __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&to[kCompareSwap], &old, old + value, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    auto* const with_sign = reinterpret_cast<Signed*>(to);
    __atomic_fetch_min(&with_sign[kMin], static_cast<Signed>(value), __ATOMIC_RELAXED);
    __atomic_fetch_max(&with_sign[kMax], static_cast<Signed>(value), __ATOMIC_RELAXED);
    __atomic_fetch_min(&to[kUmin], value, __ATOMIC_RELAXED);
    __atomic_fetch_max(&to[kUmax], value, __ATOMIC_RELAXED);
    __atomic_fetch_and(&to[kAnd], value, __ATOMIC_RELAXED);
    __atomic_fetch_or(&to[kOr], value, __ATOMIC_RELAXED);
    __atomic_fetch_xor(&to[kXor], value, __ATOMIC_RELAXED);
}
}  // namespace

// Every atomic that crosses links, on words of both widths.
ORR_KERNEL void combine_there(const TestArgs* args) {
    auto* const wide = reinterpret_cast<uint64_t*>(args->value);
    auto* const narrow = reinterpret_cast<uint32_t*>(wide + kCombined);
    for (uint64_t i = orr::global_id(); i < args->count; i += orr::global_size()) {
        combine<uint64_t, int64_t>(wide, args->data[i]);
        combine<uint32_t, int32_t>(narrow, static_cast<uint32_t>(args->data[i]));
    }
}

ORR_KERNEL void poll_there(const TestArgs* args) {
    const auto* word = reinterpret_cast<const uint64_t*>(args->value);
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) {
    }
    args->data[0] = word[0];
}

// Loads, stores or adds there until data[0] says so; data[1] counts what has been done.
ORR_KERNEL void cross_there(const TestArgs* args) {
    auto* word = reinterpret_cast<uint64_t*>(args->value);
    for (uint64_t n = 1; __atomic_load_n(&args->data[0], __ATOMIC_ACQUIRE) == 0; ++n) {
        if (args->count == kCrossLoad)
            static_cast<void>(__atomic_load_n(word, __ATOMIC_ACQUIRE));
        else if (args->count == kCrossStore)
            __atomic_store_n(word, n, __ATOMIC_RELEASE);
        else
            orr::atomic_add(word, uint64_t{1});
        __atomic_store_n(&args->data[1], n, __ATOMIC_RELEASE);
    }
}

ORR_KERNEL void overwrite_code(const TestArgs*) {
    *reinterpret_cast<volatile uint32_t*>(reinterpret_cast<uintptr_t>(&trap)) = 0;
}
