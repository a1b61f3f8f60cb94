/* SPDX-License-Identifier: MIT */
/**
 * Kernels whose work-items work together: barriers, and what is built of them. <orrery/kernel.h> includes
 * this.
 *
 *   ORR_KERNEL void sum(const Args* args) {
 *       float mine = 0;
 *       for (uint32_t i = orr::global_id(); i < args->n; i += orr::global_size()) mine += args->x[i];
 *       const float all = orr::group_reduce_add(mine);
 *       if (orr::item_id() == 0) args->out[orr::group_x()] = all;
 *   }
 *
 * All items of a group must come to each of these calls, or none: an item that ends or goes another way while
 * others wait ends the kernel with an error that names both places. Results are the same bits at each run:
 * items are taken in the order of their numbers.
 */
#ifndef ORRERY_KERNEL_GROUP_H
#define ORRERY_KERNEL_GROUP_H

#include <orrery/hw/kernel_abi.h>
#include <stdint.h>

/** Stack of each item of `kernel` that waits at barriers, if 4 KiB are too few; at file level. At most 512
 * KiB; a number or a macro of one, as the assembler reads it. */
#define ORR_ITEM_STACK(kernel, bytes)                                         \
    static_assert((bytes) > 0 && (bytes) <= ORR_ITEM_STACK_MAX_PAGES * 4096); \
    asm(".globl orr_item_stack." #kernel "\n.set orr_item_stack." #kernel ", " ORR_CSR_STRING(bytes))

// What __builtin_source_location() gives; freestanding code has no <source_location>.
namespace std {
class source_location {
  public:
    struct __impl {
        const char* _M_file_name;
        const char* _M_function_name;
        unsigned _M_line;
        unsigned _M_column;
    };
};
}  // namespace std

namespace orr {

/** Where a call stands in the source; as a default argument, the place of the caller. */
using Place = const std::source_location::__impl*;

/** Number of this item in its group, x fastest. */
inline uint32_t item_id() {
    return item_x() + block_x() * (item_y() + block_y() * item_z());
}
/** Items of a group. */
inline uint32_t group_items() {
    return block_x() * block_y() * block_z();
}

/**
 * Waits for all items of the group. What they wrote before it, all can read behind it. Vector registers are
 * lost, as at any call. It costs as much as what is live at it, which goes to the item's stack and back.
 */
[[gnu::always_inline]] inline void barrier(Place place = __builtin_source_location()) {
    register uint64_t id asm("a0") = reinterpret_cast<uint64_t>(place);
    register uint64_t call asm("a7") = ORR_CALL_BARRIER;
    // s0 and s1 may be frame and base pointer, which asm cannot claim. The symbol tells the loader.
    asm volatile(
        ".weak orr_uses_barriers\n.set orr_uses_barriers, 1\n"
        "addi sp, sp, -16\n sd s0, 0(sp)\n sd s1, 8(sp)\n ecall\n"
        "ld s0, 0(sp)\n ld s1, 8(sp)\n addi sp, sp, 16\n"
        : "+r"(id), "+r"(call)
        :
        : "memory", "ra", "t0", "t1", "t2", "a1", "a2", "a3", "a4", "a5", "a6", "s2", "s3", "s4", "s5", "s6",
          "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", "f0", "f1", "f2", "f3", "f4", "f5", "f6",
          "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19", "f20",
          "f21", "f22", "f23", "f24", "f25", "f26", "f27", "f28", "f29", "f30", "f31", "v0", "v1", "v2", "v3",
          "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18",
          "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "vl",
          "vtype");
}

namespace detail {

// Two words above each item's stack, which the card sets aside for this: what the item gives, and what it
// gets.
template <typename T>
inline volatile T* slot(uint32_t item, uint32_t word) {
    static_assert(__is_scalar(T) && sizeof(T) <= 8, "numbers and pointers, of at most 8 bytes an item");
    return reinterpret_cast<volatile T*>(ORR_ITEM_STACKS + (item + 1ull) * ORR_ITEM_STACK_STRIDE -
                                         ORR_ITEM_SLOT_BYTES + word * 8);
}

}  // namespace detail

/** The value that item `from` (below group_items()) gave. */
template <typename T>
inline T group_shuffle(T value, uint32_t from, Place place = __builtin_source_location()) {
    if (group_items() == 1) return value;
    *detail::slot<T>(item_id(), 0) = value;
    barrier(place);
    const T got = *detail::slot<T>(from, 0);
    barrier(place);
    return got;
}

/** The same value for all: that of item `from`. */
template <typename T>
inline T group_broadcast(T value, uint32_t from = 0, Place place = __builtin_source_location()) {
    return group_shuffle(value, from, place);
}

/** join(join(join(value of item 0, of item 1), of item 2), …), for all items. */
template <typename T, typename Join>
inline T group_reduce(T value, Join join, Place place = __builtin_source_location()) {
    const uint32_t items = group_items(), self = item_id();
    if (items == 1) return value;
    *detail::slot<T>(self, 0) = value;
    barrier(place);
    if (self == 0) {
        for (uint32_t i = 1; i < items; ++i)
            value = join(value, static_cast<T>(*detail::slot<T>(i, 0)));
        *detail::slot<T>(0, 1) = value;
    }
    barrier(place);
    return *detail::slot<T>(0, 1);
}

template <typename T>
inline T group_reduce_add(T value, Place place = __builtin_source_location()) {
    return group_reduce(value, [](T a, T b) { return static_cast<T>(a + b); }, place);
}
template <typename T>
inline T group_reduce_min(T value, Place place = __builtin_source_location()) {
    return group_reduce(value, [](T a, T b) { return b < a ? b : a; }, place);
}
template <typename T>
inline T group_reduce_max(T value, Place place = __builtin_source_location()) {
    return group_reduce(value, [](T a, T b) { return a < b ? b : a; }, place);
}

/** Sum of the values of the items before this one; 0 for item 0. */
template <typename T>
inline T group_scan_add(T value, Place place = __builtin_source_location()) {
    const uint32_t items = group_items(), self = item_id();
    if (items == 1) return T{};
    *detail::slot<T>(self, 0) = value;
    barrier(place);
    if (self == 0) {
        T sum{};
        for (uint32_t i = 0; i < items; ++i) {
            *detail::slot<T>(i, 1) = sum;
            sum = static_cast<T>(sum + *detail::slot<T>(i, 0));
        }
    }
    barrier(place);
    return *detail::slot<T>(self, 1);
}

/** Votes: for how many items, for any, for all it is so. */
inline uint32_t group_count(bool yes, Place place = __builtin_source_location()) {
    return group_reduce_add<uint32_t>(yes ? 1 : 0, place);
}
inline bool group_any(bool yes, Place place = __builtin_source_location()) {
    return group_count(yes, place) != 0;
}
inline bool group_all(bool yes, Place place = __builtin_source_location()) {
    return group_count(yes, place) == group_items();
}

/**
 * What the groups of a launch count at, in memory that all of them reach: zeros before its first use, and set
 * to zeros again after a launch that failed.
 */
struct GridBarrier {
    uint32_t arrived;
    uint32_t round;
};

/** Work-groups of the launch. */
inline uint32_t grid_groups() {
    return grid_x() * grid_y() * grid_z();
}

/**
 * Waits for all items of all groups. What they wrote before it, all can read behind it. Only for cooperative
 * launches (orrLaunchCooperative): else some groups may wait for others that get no core. In a launch over
 * several devices (orrLaunchGang) `groups` must be the number of all parts' groups, as grid_groups() is of
 * one part only, and `barrier` in memory of orrMallocHost.
 */
inline void grid_barrier(GridBarrier* barrier, uint32_t groups = grid_groups(),
                         Place place = __builtin_source_location()) {
    const bool alone = group_items() == 1;
    if (!alone) orr::barrier(place);
    if (item_id() == 0) {
        const uint32_t round = __atomic_load_n(&barrier->round, __ATOMIC_RELAXED);
        if (__atomic_fetch_add(&barrier->arrived, 1, __ATOMIC_ACQ_REL) + 1 == groups) {
            __atomic_store_n(&barrier->arrived, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
        } else {
            /* PAUSE: the core counts it as waiting, which no look is. */
            while (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round)
                __asm__ volatile(".4byte 0x0100000f");
        }
    }
    if (!alone) orr::barrier(place);
}

}  // namespace orr

#endif /* ORRERY_KERNEL_GROUP_H */
