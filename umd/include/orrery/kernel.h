/* SPDX-License-Identifier: MIT */
/**
 * For kernels compiled by orrery-cc: what a work-item knows about itself.
 *
 *   #include <orrery/kernel.h>
 *   struct Args { const float* x; float* y; float a; uint32_t n; };
 *   ORR_KERNEL void saxpy(const Args* args) {
 *       uint32_t i = orr::global_id();
 *       if (i < args->n) args->y[i] += args->a * args->x[i];
 *   }
 */
#ifndef ORRERY_KERNEL_H
#define ORRERY_KERNEL_H

#include <orrery/hw/kernel_abi.h>
#include <stdint.h>

#define ORR_KERNEL extern "C" __attribute__((visibility("default"), used))
/**
 * A variable that programs find by its name (orrModuleGetGlobal), outside of all namespaces:
 * `ORR_GLOBAL float table[256];`. A constant too needs the word extern: `ORR_GLOBAL extern const int kSize =
 * 3;`
 */
#define ORR_GLOBAL __attribute__((visibility("protected"), used, retain))

#ifdef ORR_ASSERTION_CALL
static_assert(ORR_ASSERTION_CALL == ORR_CALL_ASSERT);
#endif

namespace orr {

#define ORR_CSR_STRING_2(csr) #csr
#define ORR_CSR_STRING(csr) ORR_CSR_STRING_2(csr)
/* asm without volatile: these values do not change within a work-item. */
#define ORR_CSR_READER(name, csr)                           \
    inline uint32_t name() {                                \
        uint64_t value;                                     \
        asm("csrr %0, " ORR_CSR_STRING(csr) : "=r"(value)); \
        return static_cast<uint32_t>(value);                \
    }

ORR_CSR_READER(group_x, ORR_CSR_GROUP_X)
ORR_CSR_READER(group_y, ORR_CSR_GROUP_Y)
ORR_CSR_READER(group_z, ORR_CSR_GROUP_Z)
ORR_CSR_READER(item_x, ORR_CSR_ITEM_X)
ORR_CSR_READER(item_y, ORR_CSR_ITEM_Y)
ORR_CSR_READER(item_z, ORR_CSR_ITEM_Z)
ORR_CSR_READER(grid_x, ORR_CSR_GRID_X)
ORR_CSR_READER(grid_y, ORR_CSR_GRID_Y)
ORR_CSR_READER(grid_z, ORR_CSR_GRID_Z)
ORR_CSR_READER(block_x, ORR_CSR_BLOCK_X)
ORR_CSR_READER(block_y, ORR_CSR_BLOCK_Y)
ORR_CSR_READER(block_z, ORR_CSR_BLOCK_Z)
ORR_CSR_READER(core, ORR_CSR_CORE)
#undef ORR_CSR_READER

/** Number of this item over all groups, for one-dimensional launches. It wraps around after 2^32 items: for
 * more, compute it in 64 bits. */
inline uint32_t global_id() {
    return group_x() * block_x() + item_x();
}
/** All items of a one-dimensional launch. */
inline uint32_t global_size() {
    return grid_x() * block_x();
}

/** Memory shared by the items of a work-group, zero when the group's first item starts. */
template <typename T>
inline T* local() {
    return reinterpret_cast<T*>(ORR_LOCAL_BASE);
}

/** Atomic over all cores of the card, and in another card's memory of all cards; returns the old value. */
template <typename T>
inline T atomic_add(T* address, T value) {
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

}  // namespace orr

#include <orrery/kernel_group.h>
#include <orrery/kernel_output.h>

#endif /* ORRERY_KERNEL_H */
