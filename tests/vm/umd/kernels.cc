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

ORR_KERNEL void overwrite_code(const TestArgs*) {
    *reinterpret_cast<volatile uint32_t*>(reinterpret_cast<uintptr_t>(&trap)) = 0;
}
