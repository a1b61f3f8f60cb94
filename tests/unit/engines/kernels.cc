// Kernels for the vector core tests: freestanding, for riscv64.
#include "tests/unit/engines/kernels.h"

#include <stdint.h>

#include <orrery/hw/kernel_abi.h>

#define CSR(number)                                               \
    ({                                                            \
        uint64_t value_;                                          \
        asm volatile("csrr %0, %1" : "=r"(value_) : "i"(number)); \
        value_;                                                   \
    })

namespace {

uint64_t item() {
    return CSR(ORR_CSR_GROUP_X) * CSR(ORR_CSR_BLOCK_X) + CSR(ORR_CSR_ITEM_X);
}
uint64_t items() {
    return CSR(ORR_CSR_GRID_X) * CSR(ORR_CSR_BLOCK_X);
}

// args: words, their number, out: each item's share of their sum
void sum(uint64_t* args) {
    const uint64_t* words = reinterpret_cast<const uint64_t*>(args[0]);
    uint64_t all = 0;
    for (uint64_t i = item(); i < args[1]; i += items())
        all += words[i];
    reinterpret_cast<uint64_t*>(args[2])[item()] = all;
}

// args: data, bytes, bins
void histogram(uint64_t* args) {
    const uint8_t* data = reinterpret_cast<const uint8_t*>(args[0]);
    uint32_t* bins = reinterpret_cast<uint32_t*>(args[2]);
    const uint64_t step = items();
    for (uint64_t i = item(); i < args[1]; i += step)
        __atomic_fetch_add(&bins[data[i]], 1, __ATOMIC_RELAXED);
}

// args: counter by AMO, counter by LR/SC, rounds
void atomics(uint64_t* args) {
    for (uint64_t i = 0; i < args[2]; ++i) {
        __atomic_fetch_add(&args[0], 1, __ATOMIC_RELAXED);
        uint64_t old = __atomic_load_n(&args[1], __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&args[1], &old, old + 1, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_RELAXED)) {
        }
    }
}

// out[group] = sum of what the group's items left in local memory; all-ones if it was not zero at first
void local(uint64_t* out) {
    uint64_t* mine = reinterpret_cast<uint64_t*>(ORR_LOCAL_BASE);
    const uint64_t self = CSR(ORR_CSR_ITEM_X), count = CSR(ORR_CSR_BLOCK_X);
    if (mine[self] != 0) mine[self] = ~uint64_t{0} / 2;
    mine[self] += self + 1;
    if (self + 1 < count) return;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; ++i)
        sum += mine[i];
    out[CSR(ORR_CSR_GROUP_X)] = sum;
}

// args: in, out (doubles)
void floats(uint64_t* args) {
    const double* in = reinterpret_cast<const double*>(args[0]);
    double* out = reinterpret_cast<double*>(args[1]);
    const uint64_t i = item();
    const float narrow = static_cast<float>(in[i]);
    out[i] = __builtin_sqrt(__builtin_fma(in[i], in[i], 1.0)) / 3.0 + static_cast<double>(narrow * narrow);
}

// out[linear item of the whole grid * 4 ..] = group x, y, z, item x + 1000 * y + 1000000 * z
void ids(uint64_t* out) {
    const uint64_t bx = CSR(ORR_CSR_BLOCK_X), by = CSR(ORR_CSR_BLOCK_Y), bz = CSR(ORR_CSR_BLOCK_Z);
    const uint64_t gx = CSR(ORR_CSR_GROUP_X), gy = CSR(ORR_CSR_GROUP_Y), gz = CSR(ORR_CSR_GROUP_Z);
    const uint64_t group = gx + CSR(ORR_CSR_GRID_X) * (gy + CSR(ORR_CSR_GRID_Y) * gz);
    const uint64_t ix = CSR(ORR_CSR_ITEM_X), iy = CSR(ORR_CSR_ITEM_Y), iz = CSR(ORR_CSR_ITEM_Z);
    uint64_t* at = out + 4 * (group * bx * by * bz + ix + bx * (iy + by * iz));
    at[0] = gx;
    at[1] = gy;
    at[2] = gz;
    at[3] = ix + 1000 * iy + 1000000 * iz + (CSR(ORR_CSR_GRID_Z) << 32);
}

// args[0] = or of all registers that have to be zero; [1] = sp, [2] = ra, [3] = fcsr
[[gnu::naked]] void registers(uint64_t*) {
    asm volatile(
        "sd sp, 8(a0)\n sd ra, 16(a0)\n"
        "or t0, t0, gp\n or t0, t0, tp\n or t0, t0, t1\n or t0, t0, t2\n or t0, t0, s0\n or t0, t0, s1\n"
        "or t0, t0, a1\n or t0, t0, a2\n or t0, t0, a3\n or t0, t0, a4\n or t0, t0, a5\n or t0, t0, a6\n"
        "or t0, t0, a7\n or t0, t0, s2\n or t0, t0, s3\n or t0, t0, s4\n or t0, t0, s5\n or t0, t0, s6\n"
        "or t0, t0, s7\n or t0, t0, s8\n or t0, t0, s9\n or t0, t0, s10\n or t0, t0, s11\n or t0, t0, t3\n"
        "or t0, t0, t4\n or t0, t0, t5\n or t0, t0, t6\n"
        "csrr t1, fcsr\n sd t1, 24(a0)\n"
        "fmv.x.d t1, f0\n or t0, t0, t1\n fmv.x.d t1, f9\n or t0, t0, t1\n fmv.x.d t1, f31\n or t0, t0, t1\n"
        "csrr t1, mscratch\n or t0, t0, t1\n"
        "ld t1, 0(a0)\n or t0, t0, t1\n sd t0, 0(a0)\n"
        // Leave dirt for the next item.
        "li s11, 77\n li t6, 78\n li a5, 79\n fmv.d.x f9, t6\n csrwi fcsr, 31\n csrw mscratch, t6\n"
        "ret\n");
}

// out[4 * item] = time, cycle, instret, core
void clock(uint64_t* out) {
    uint64_t* at = out + 4 * item();
    at[0] = CSR(0xc01);
    at[1] = CSR(0xc00);
    at[2] = CSR(0xc02);
    at[3] = CSR(ORR_CSR_CORE);
}

[[gnu::naked]] void illegal(uint64_t*) {
    asm volatile(".word 0\n");
}
[[gnu::naked]] void ecall(uint64_t*) {
    asm volatile("ecall\n ret\n");
}
[[gnu::naked]] void loop(uint64_t*) {
    asm volatile("1: j 1b\n");
}
[[gnu::naked]] void jump(uint64_t*) {
    asm volatile("jr a0\n");
}
[[gnu::naked]] void load(uint64_t*) {
    asm volatile("lw a1, 0(a0)\n ret\n");
}
[[gnu::naked]] void store(uint64_t*) {
    asm volatile("sw a0, 0(a0)\n ret\n");
}
[[gnu::naked]] void misaligned_atomic(uint64_t*) {
    asm volatile("addi a0, a0, 2\n amoadd.w a1, a0, (a0)\n ret\n");
}
[[gnu::naked]] void recurse(uint64_t*) {
    asm volatile("1: addi sp, sp, -256\n sd ra, 0(sp)\n j 1b\n");
}
[[gnu::naked]] void wait_forever(uint64_t*) {
    asm volatile("wfi\n ret\n");
}

void mark(uint64_t* out) {
    out[item()] += 1;
}

// args: rounds
void spin(uint64_t* args) {
    uint64_t sum = item();
    const uint64_t rounds = args[0];
    for (uint64_t i = 0; i < rounds; ++i) {
        sum = sum * 5 + (sum >> 3 ^ i);
        asm volatile("" : "+r"(sum));
    }
    if (sum == 1) args[1] = sum;
}

// args: rounds, out, counter. What a preemption must not lose: registers, floating point, a stack in use, and
// work-group memory that one item leaves to the next. out[item] depends on every round.
void mix(uint64_t* args) {
    volatile uint64_t stack[600];
    uint64_t* shared = reinterpret_cast<uint64_t*>(ORR_LOCAL_BASE);
    const uint64_t rounds = args[0], self = item();
    uint64_t sum = self * 0x9e3779b97f4a7c15;
    double real = static_cast<double>(self) + 0.25;
    for (uint64_t i = 0; i < 600; ++i)
        stack[i] = sum + i;
    for (uint64_t i = 0; i < rounds; ++i) {
        const uint64_t at = sum % 600;
        sum = (sum << 7 | sum >> 57) ^ stack[at] ^ shared[sum % 1000];
        stack[(at + i) % 600] = sum + i;
        shared[i % 1000] += sum;
        real = real * 1.0000001 + 1.0 / (real + static_cast<double>(i));
        if (i % 64 == 0) __atomic_fetch_add(&args[2], 1, __ATOMIC_RELAXED);
    }
    reinterpret_cast<uint64_t*>(args[1])[self] = sum ^ __builtin_bit_cast(uint64_t, real);
}

// Only what is live goes to the stack: the asm claims all other registers.
[[gnu::always_inline]] inline void barrier(uint64_t place) {
    register uint64_t a0 asm("a0") = place;
    register uint64_t a7 asm("a7") = ORR_CALL_BARRIER;
    asm volatile(
        "addi sp, sp, -16\n sd s0, 0(sp)\n sd s1, 8(sp)\n ecall\n ld s0, 0(sp)\n ld s1, 8(sp)\n addi sp, sp, "
        "16\n"
        : "+r"(a0), "+r"(a7)
        :
        : "memory", "ra", "t0", "t1", "t2", "a1", "a2", "a3", "a4", "a5", "a6", "s2", "s3", "s4", "s5", "s6",
          "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6", "f0", "f1", "f2", "f3", "f4", "f5", "f6",
          "f7", "f8", "f9", "f10", "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19", "f20",
          "f21", "f22", "f23", "f24", "f25", "f26", "f27", "f28", "f29", "f30", "f31");
}

// args: rounds, out. Each round sums up what all items of the group put into work-group memory, by a tree;
// each item keeps a sum and a real number over the barriers. out[item] depends on every one of them.
void tree(uint64_t* args) {
    volatile uint64_t stack[40];
    uint64_t* shared = reinterpret_cast<uint64_t*>(ORR_LOCAL_BASE);
    const uint64_t rounds = args[0], self = CSR(ORR_CSR_ITEM_X), count = CSR(ORR_CSR_BLOCK_X);
    uint64_t sum = item() * 0x9e3779b97f4a7c15;
    double real = static_cast<double>(self);
    for (uint64_t i = 0; i < 40; ++i)
        stack[i] = sum + i;
    for (uint64_t round = 0; round < rounds; ++round) {
        shared[self] = sum;
        barrier(1);
        for (uint64_t step = 1; step < count; step *= 2) {
            const uint64_t other = self + step < count ? shared[self + step] : round;
            barrier(2);
            shared[self] += other * 3;
            barrier(3);
        }
        sum = (sum << 9 | sum >> 55) ^ shared[0] ^ stack[sum % 40];
        stack[round % 40] = stack[round % 40] + sum;
        real = real * 1.0000001 + static_cast<double>(shared[self] % 1000);
        barrier(4);
    }
    reinterpret_cast<uint64_t*>(args[1])[item()] = sum ^ __builtin_bit_cast(uint64_t, real);
}

// args[0]: the item that does otherwise
void barrier_ended(uint64_t* args) {
    if (CSR(ORR_CSR_ITEM_X) != args[0]) barrier(5);
}
void barrier_late(uint64_t* args) {
    if (CSR(ORR_CSR_ITEM_X) == args[0]) barrier(6);
}
void barrier_other(uint64_t* args) {
    barrier(7);
    if (CSR(ORR_CSR_ITEM_X) == args[0])
        barrier(8);
    else
        barrier(9);
}

// args[0]: bytes of stack that the last item of a group writes, behind a barrier
void deep(uint64_t* args) {
    barrier(10);
    if (CSR(ORR_CSR_ITEM_X) + 1 < CSR(ORR_CSR_BLOCK_X)) return;
    char* top;
    asm("mv %0, sp" : "=r"(top));
    for (uint64_t i = 8; i < args[0]; i += 8)
        *reinterpret_cast<volatile uint64_t*>(top - i) = i;
}

// out[item] = fcsr behind a barrier; each item had set its own
void rounding(uint64_t* out) {
    asm volatile("csrw fcsr, %0" : : "r"(item() % 4 << 5 | item() % 32));
    barrier(11);
    out[item()] = CSR(0x003);
}

[[gnu::naked]] void fail_assert(uint64_t*) {
    asm volatile("li a7, %0\n li a0, 0x1234\n ecall\n ret\n" : : "i"(ORR_CALL_ASSERT));
}

// args: place, out. Every atomic of both widths on the words at `place`, which begin as 6 and 6: what each
// saw, and in the end what stands there.
void every_atomic(uint64_t* args) {
    uint64_t* const wide = reinterpret_cast<uint64_t*>(args[0]);
    uint32_t* const narrow = reinterpret_cast<uint32_t*>(wide + 1);
    uint64_t* out = reinterpret_cast<uint64_t*>(args[1]);
    const auto all = [&](auto* at, auto minus) {
        uint64_t seen = 0;
#define ORR_ATOMIC(operation, value)                                                             \
    if constexpr (sizeof minus == 8)                                                             \
        asm volatile(operation ".d %0, %1, (%2)" : "=r"(seen) : "r"(value), "r"(at) : "memory"); \
    else                                                                                         \
        asm volatile(operation ".w %0, %1, (%2)" : "=r"(seen) : "r"(value), "r"(at) : "memory"); \
    *out++ = seen;
        ORR_ATOMIC("amoadd", 5)
        ORR_ATOMIC("amoxor", 0xff)
        ORR_ATOMIC("amoand", 0xf0)
        ORR_ATOMIC("amoor", 0x101)
        ORR_ATOMIC("amomin", minus)
        ORR_ATOMIC("amomax", 7)
        ORR_ATOMIC("amomaxu", minus)
        ORR_ATOMIC("amominu", 9)
        ORR_ATOMIC("amoswap", 6)
#undef ORR_ATOMIC
        auto old = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(at, &old, old + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        }
        *out++ = *at;
    };
    *wide = 6;
    *narrow = 6;
    all(wide, int64_t{-2});
    all(narrow, int32_t{-2});
}

// args: rounds, out. Each item leaves a vector register at out + its number * vlenb, after so many rounds of
// work that lives in vector registers alone.
[[gnu::naked]] void vectors(uint64_t*) {
    asm volatile(
        ".option push\n .option arch, +v\n"
        "ld a1, 8(a0)\n ld a0, 0(a0)\n"
        "csrr t0, 0xcc0\n csrr t1, 0xcc9\n mul t0, t0, t1\n csrr t1, 0xcc3\n add t0, t0, t1\n"
        "vsetvli t1, zero, e64, m1, ta, ma\n csrr t2, vlenb\n mul t2, t2, t0\n add a1, a1, t2\n"
        "vid.v v8\n vadd.vx v8, v8, t0\n vmv.v.i v31, 3\n"
        "1: vsll.vi v16, v8, 3\n vxor.vv v8, v8, v16\n vadd.vv v8, v8, v31\n vadd.vi v31, v31, 1\n"
        "addi a0, a0, -1\n bnez a0, 1b\n"
        "vse64.v v8, (a1)\n ret\n"
        ".option pop\n");
}

// args: a, b, c, elements of a group: a = b + c, in 64-bit integers
[[gnu::naked]] void triad(uint64_t*) {
    asm volatile(
        ".option push\n .option arch, +v\n"
        "csrr t0, 0xcc0\n ld t1, 24(a0)\n mul t0, t0, t1\n slli t0, t0, 3\n"
        "ld a1, 0(a0)\n ld a2, 8(a0)\n ld a3, 16(a0)\n add a1, a1, t0\n add a2, a2, t0\n add a3, a3, t0\n"
        "1: vsetvli t2, t1, e64, m8, ta, ma\n vle64.v v8, (a2)\n vle64.v v16, (a3)\n"
        "vadd.vv v24, v8, v16\n vse64.v v24, (a1)\n sub t1, t1, t2\n slli t2, t2, 3\n"
        "add a1, a1, t2\n add a2, a2, t2\n add a3, a3, t2\n bnez t1, 1b\n ret\n"
        ".option pop\n");
}

// args: A, B, C, k: four rows of C a group, as wide as four registers; floats, rows of B and C a KiB apart
[[gnu::naked]] void product(uint64_t*) {
    asm volatile(
        ".option push\n .option arch, +v\n"
        "csrr t0, 0xcc0\n ld a1, 0(a0)\n ld a2, 8(a0)\n ld a3, 16(a0)\n ld a4, 24(a0)\n"
        "slli t0, t0, 2\n slli t1, a4, 2\n mul t2, t0, t1\n add a1, a1, t2\n slli t0, t0, 10\n"
        "add a3, a3, t0\n add a5, a1, t1\n add a6, a5, t1\n add a7, a6, t1\n"
        "vsetvli t0, zero, e32, m4, ta, ma\n vmv.v.i v0, 0\n vmv.v.i v4, 0\n vmv.v.i v8, 0\n"
        "vmv.v.i v12, 0\n"
        "1: vle32.v v16, (a2)\n flw fa0, 0(a1)\n flw fa1, 0(a5)\n flw fa2, 0(a6)\n flw fa3, 0(a7)\n"
        "vfmacc.vf v0, fa0, v16\n vfmacc.vf v4, fa1, v16\n vfmacc.vf v8, fa2, v16\n"
        "vfmacc.vf v12, fa3, v16\n addi a1, a1, 4\n addi a5, a5, 4\n addi a6, a6, 4\n addi a7, a7, 4\n"
        "addi a2, a2, 1024\n addi a4, a4, -1\n bnez a4, 1b\n"
        "vse32.v v0, (a3)\n addi a3, a3, 1024\n vse32.v v4, (a3)\n addi a3, a3, 1024\n"
        "vse32.v v8, (a3)\n addi a3, a3, 1024\n vse32.v v12, (a3)\n ret\n"
        ".option pop\n");
}

// args: where the first pointer is, how many to follow
[[gnu::naked]] void chase(uint64_t*) {
    asm volatile("ld a1, 8(a0)\n ld a0, 0(a0)\n1: ld a0, 0(a0)\n addi a1, a1, -1\n bnez a1, 1b\n ret\n");
}

// args: base, stride, loads a round, rounds, vtype, where the last load's elements go (0: nowhere)
// args: out, in, rows of all that eight registers hold, what is behind each: 0: nothing, 1: a fence, 2: an
// atomic that acquires in this card's memory, 3: an LR that does
[[gnu::naked]] void copy_rows(uint64_t*) {
    asm volatile(
        ".option push\n .option arch, +v\n"
        "ld a1, 0(a0)\n ld a2, 8(a0)\n ld a3, 16(a0)\n ld a4, 24(a0)\n"
        "vsetvli t2, zero, e64, m8, ta, ma\n slli t2, t2, 3\n"
        "1: vle64.v v8, (a2)\n vse64.v v8, (a1)\n add a1, a1, t2\n add a2, a2, t2\n"
        "beqz a4, 2f\n addi t0, a4, -2\n beqz t0, 3f\n bgtz t0, 4f\n fence r, rw\n"
        "2: addi a3, a3, -1\n bnez a3, 1b\n ret\n"
        "3: amoor.w.aq t0, zero, (a0)\n j 2b\n 4: lr.w.aq t0, (a0)\n j 2b\n"
        ".option pop\n");
}
[[gnu::naked]] void gather(uint64_t*) {
    asm volatile(
        ".option push\n .option arch, +v\n"
        "ld a1, 0(a0)\n ld a2, 8(a0)\n ld a3, 16(a0)\n ld a4, 24(a0)\n ld a5, 32(a0)\n ld a6, 40(a0)\n"
        "vsetvl t2, zero, a5\n mul t3, t2, a2\n"
        "1: mv t0, a1\n mv t1, a3\n"
        "2: vlse8.v v8, (t0), a2\n add t0, t0, t3\n addi t1, t1, -1\n bnez t1, 2b\n"
        "addi a4, a4, -1\n bnez a4, 1b\n beqz a6, 3f\n vse8.v v8, (a6)\n 3: ret\n"
        ".option pop\n");
}

// args: rounding mode, instructions, vtype
[[gnu::naked]] void fused(uint64_t*) {
    asm volatile(
        ".option push\n .option arch, +v\n"
        "ld a1, 0(a0)\n ld a2, 8(a0)\n ld a3, 16(a0)\n fsrm a1\n vsetvl t0, zero, a3\n"
        "1: vfmacc.vv v8, v16, v24\n addi a2, a2, -1\n bnez a2, 1b\n ret\n"
        ".option pop\n");
}

// args: words, mask of the first 64 of them
[[gnu::naked]] void masked(uint64_t*) {
    asm volatile(
        ".option push\n .option arch, +v\n"
        "ld a1, 0(a0)\n ld a2, 8(a0)\n vsetvli t0, zero, e64, m8, ta, ma\n vmv.s.x v0, a2\n"
        "vle64.v v8, (a1), v0.t\n ret\n"
        ".option pop\n");
}

// args: a Sharing, where
void share(uint64_t* args) {
    volatile uint64_t* const words = reinterpret_cast<volatile uint64_t*>(args[1]);
    uint64_t* const word = reinterpret_cast<uint64_t*>(args[1]);
    const bool local = args[1] >= ORR_LOCAL_BASE;
    const uint64_t self = local ? CSR(ORR_CSR_ITEM_X) : item(), all = local ? CSR(ORR_CSR_BLOCK_X) : items();
    switch (args[0]) {
        case orrery::emu::test::kNeighbour:
            words[self] = self;
            (void)words[(self + 1) % all];
            break;
        case orrery::emu::test::kNeighbourBarrier:
            words[self] = self;
            barrier(12);
            (void)words[(self + 1) % all];
            break;
        case orrery::emu::test::kRounds:
            for (unsigned round = 0; round < 2; ++round) {
                words[self] = self;
                barrier(13);
                (void)words[(self + 1) % all];
            }
            break;
        case orrery::emu::test::kOneWord:
            words[0] = self;
            break;
        case orrery::emu::test::kCount:
        case orrery::emu::test::kCountAndRead:
            __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
            if (args[0] == orrery::emu::test::kCountAndRead && self + 1 == all) (void)words[0];
            break;
        case orrery::emu::test::kMessage:
            if (self == 0) {
                words[1] = 5;
                __atomic_store_n(word, 1, __ATOMIC_RELEASE);
            } else if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 1) {
                (void)words[1];
            }
            break;
        case orrery::emu::test::kMessageRelaxed:
            if (self == 0) {
                words[1] = 5;
                __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
            } else if (__atomic_fetch_add(word, 0, __ATOMIC_ACQUIRE) == 1) {
                (void)words[1];
            }
            break;
        case orrery::emu::test::kTicket:
            __atomic_fetch_add(word, 1, __ATOMIC_ACQUIRE);
            words[1] = words[1] + 1;
            __atomic_fetch_add(word + 2, 1, __ATOMIC_RELAXED);
            __atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
            break;
        case orrery::emu::test::kTicketRelaxed:
            __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
            words[1] = words[1] + 1;
            __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
            break;
        case orrery::emu::test::kFences:
            __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            words[1] = words[1] + 1;
            __atomic_thread_fence(__ATOMIC_RELEASE);
            __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
            break;
        case orrery::emu::test::kBytes:
            reinterpret_cast<volatile uint8_t*>(args[1])[self] = 1;
            break;
        case orrery::emu::test::kHalves: {
            volatile uint8_t* const bytes = reinterpret_cast<volatile uint8_t*>(args[1]);
            bytes[self] = 1;
            bytes[self + 1] = 1;
            break;
        }
        case orrery::emu::test::kNoSum:
            for (unsigned i = 0; i < 64; ++i)
                (void)words[i];
            break;
        case orrery::emu::test::kOutsideLocal:
            reinterpret_cast<volatile uint32_t*>(ORR_LOCAL_BASE)[25] = 1;
            break;
        case orrery::emu::test::kBelowStack:
            asm volatile("sw zero, -32(sp)" : : : "memory");
            break;
        default: {
            volatile uint64_t stack[8];
            stack[self % 4] = 1;
            (void)stack[5];
            break;
        }
    }
}

// args: from, to, bytes of a group's part: copies its part as vectors of bytes, and one byte more
[[gnu::naked]] void share_rows(uint64_t*) {
    asm volatile(
        ".option push\n .option arch, +v\n"
        "csrr t0, 0xcc0\n ld t1, 16(a0)\n mul t0, t0, t1\n addi t1, t1, 1\n"
        "ld a1, 0(a0)\n ld a2, 8(a0)\n add a1, a1, t0\n add a2, a2, t0\n"
        "1: vsetvli t2, t1, e8, m8, ta, ma\n vle8.v v8, (a1)\n vse8.v v8, (a2)\n"
        "sub t1, t1, t2\n add a1, a1, t2\n add a2, a2, t2\n bnez t1, 1b\n ret\n"
        ".option pop\n");
}

// Work that takes so many rounds.
uint64_t work(uint64_t sum, uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; ++i) {
        sum = sum * 5 + (sum >> 3 ^ i);
        asm volatile("" : "+r"(sum));
    }
    return sum;
}

// args: out, step, rounds. Each item leaves one 32-bit number at out + 4 * step * its number.
void write_one(uint64_t* args) {
    reinterpret_cast<uint32_t*>(args[0])[item() * args[1]] = static_cast<uint32_t>(work(item(), args[2]));
}

// args: rounds, out. As mix(), but nothing is shared, and what stands at `out` counts.
void mix_alone(uint64_t* args) {
    volatile uint64_t stack[600];
    uint64_t* shared = reinterpret_cast<uint64_t*>(ORR_LOCAL_BASE);
    const bool local = CSR(ORR_CSR_BLOCK_X) > 2;
    const uint64_t rounds = args[0], self = item();
    uint64_t* out = reinterpret_cast<uint64_t*>(args[1]) + self * 64;
    uint64_t sum = self * 0x9e3779b97f4a7c15;
    double real = static_cast<double>(self) + 0.25;
    for (uint64_t i = 0; i < 600; ++i)
        stack[i] = sum + i;
    for (uint64_t i = 0; i < rounds; ++i) {
        const uint64_t at = sum % 600;
        sum = (sum << 7 | sum >> 57) ^ stack[at] ^ out[sum % 64];
        stack[(at + i) % 600] = sum + i;
        if (local) shared[i % 1000] += sum;
        real = real * 1.0000001 + 1.0 / (real + static_cast<double>(i));
        if (i % 16 == 0) out[i / 16 % 64] += sum ^ __builtin_bit_cast(uint64_t, real);
    }
}

// args: words, how many, rounds. Groups read and write words of each other's, by chance.
void race(uint64_t* args) {
    uint64_t* words = reinterpret_cast<uint64_t*>(args[0]);
    const uint64_t count = args[1], rounds = args[2];
    uint64_t sum = item() * 0x9e3779b97f4a7c15 + 1;
    for (uint64_t i = 0; i < rounds; ++i) {
        sum = sum * 6364136223846793005 + 1442695040888963407;
        if (i % 32 != 0) continue;
        const uint64_t old = words[(sum >> 33) % count];
        if ((sum >> 60) < 8) words[(sum >> 20) % count] = sum ^ old;
        if ((sum >> 60) == 9) reinterpret_cast<uint8_t*>(words)[(sum >> 20) % (8 * count)] = 1;
        sum ^= old >> 7;
    }
}

// args: words, rounds. The last group writes after so many rounds; the others wait for it.
void hand_over(uint64_t* args) {
    volatile uint64_t* words = reinterpret_cast<volatile uint64_t*>(args[0]);
    const uint64_t group = CSR(ORR_CSR_GROUP_X), last = CSR(ORR_CSR_GRID_X) - 1;
    const uint64_t first = words[8 * last];
    if (group == last) {
        words[8 * last] = work(group, args[1]) | 1;
        return;
    }
    uint64_t looks = 0;
    while (words[8 * last] == first && ++looks < 1000000) {
    }
    words[8 * group] = looks;
}

// args: out, group, rounds, address. That group loads from the address after so many rounds; 1: it has no
// code there. All leave something before it.
void stop_at(uint64_t* args) {
    uint64_t* out = reinterpret_cast<uint64_t*>(args[0]) + 64 * CSR(ORR_CSR_GROUP_X);
    for (uint64_t i = 0; i < args[2]; i += 64)
        out[i / 64 % 64] = work(i, 64);
    if (CSR(ORR_CSR_GROUP_X) != args[1]) return;
    if (args[3] == 1) asm volatile(".word 0");
    *out = *reinterpret_cast<volatile uint32_t*>(args[3]);
}

// args: out, rounds, words. Sums up what stands on the stack before anybody has written there.
void old_stack(uint64_t* args) {
    uint64_t* out = reinterpret_cast<uint64_t*>(args[0]) + 8 * item();
    char* top;
    asm("mv %0, sp" : "=r"(top));
    uint64_t sum = work(item(), args[1]);
    for (uint64_t i = 1; i <= args[2]; ++i)
        sum = sum * 3 + *reinterpret_cast<volatile uint64_t*>(top - 8 * i - 512);
    *out = sum;
}

// args: words, rounds. Every other group leaves a word at once; the next one begins with it and works long.
void follow(uint64_t* args) {
    volatile uint64_t* words = reinterpret_cast<volatile uint64_t*>(args[0]);
    const uint64_t group = CSR(ORR_CSR_GROUP_X);
    words[8 * group] = group % 2 == 0 ? group * 77 + 1 : work(words[8 * (group - 1)], args[1]);
}

// args: words, rounds, how. Groups change words by atomics whose old value nobody wants. how: 1: each looks
// at what it alone changes, 2: groups change a word in different ways, 3: one only looks, 4: each releases.
void post(uint64_t* args) {
    uint64_t* words = reinterpret_cast<uint64_t*>(args[0]);
    const uint64_t group = CSR(ORR_CSR_GROUP_X);
    uint64_t sum = item() + 1;
    if (args[2] == 3 && group == 3) {
        words[1024 * group] = *static_cast<volatile uint64_t*>(words + 98);
        return;
    }
    for (uint64_t i = 0; i < args[1]; ++i) {
        sum = work(sum, 20);
        const int32_t half = static_cast<int32_t>(sum >> 7);
        __atomic_fetch_add(words + sum % 64, sum, __ATOMIC_RELAXED);
        __atomic_fetch_add(reinterpret_cast<uint32_t*>(words + 80) + sum % 16, 1, __ATOMIC_RELAXED);
        __atomic_fetch_or(words + 96, sum << group, __ATOMIC_RELAXED);
        __atomic_fetch_and(words + 97, sum | 1, __ATOMIC_RELAXED);
        __atomic_fetch_xor(words + 98, sum, __ATOMIC_RELAXED);
        __atomic_fetch_min(reinterpret_cast<int64_t*>(words + 99), static_cast<int64_t>(sum),
                           __ATOMIC_RELAXED);
        __atomic_fetch_max(reinterpret_cast<int64_t*>(words + 100), static_cast<int64_t>(sum),
                           __ATOMIC_RELAXED);
        __atomic_fetch_min(words + 101, sum, __ATOMIC_RELAXED);
        __atomic_fetch_max(words + 102, sum, __ATOMIC_RELAXED);
        __atomic_fetch_min(reinterpret_cast<int32_t*>(words + 103), half, __ATOMIC_RELAXED);
        __atomic_fetch_max(reinterpret_cast<int32_t*>(words + 104) + 1, half, __ATOMIC_RELAXED);
    }
    if (args[2] == 1) {
        uint64_t* const own = words + 1024 * (group + 1);
        __atomic_fetch_add(own, sum, __ATOMIC_RELAXED);
        own[8] = *static_cast<volatile uint64_t*>(own);
    }
    if (args[2] == 4) __atomic_fetch_add(words + 1024 * (group + 1), 1, __ATOMIC_RELEASE);
    if (args[2] == 2 && group % 2 == 0) __atomic_fetch_add(words + 2000, sum, __ATOMIC_RELAXED);
    if (args[2] == 2 && group % 2 != 0) __atomic_fetch_xor(words + 2000, sum, __ATOMIC_RELAXED);
}

// args: flag, word, out. Groups wait until somebody sets the flag, and look at the word only then.
void mailbox(uint64_t* args) {
    asm volatile("1: ld t0, (%0)\n beqz t0, 1b" : : "r"(args[0]) : "t0", "memory");
    uint64_t* const out = reinterpret_cast<uint64_t*>(args[2]) + 8 * item();
    out[0] += *reinterpret_cast<uint64_t*>(args[1]);
    asm volatile("rdtime %0" : "=r"(out[1]));
}

// args: words that are zero, rounds, seed, 1: without atomics. In every round each group works for a time by
// chance, waits for all others, and reads what one of them wrote.
void take_turns(uint64_t* args) {
    auto* const words = reinterpret_cast<volatile uint64_t*>(args[0]);
    const uint64_t group = CSR(ORR_CSR_GROUP_X), groups = CSR(ORR_CSR_GRID_X);
    const auto wait = [&](uint64_t turn) {
        if (args[3] == 1) {
            words[8 * (group + 1)] = turn;
            for (uint64_t i = 0; i < groups; ++i)
                while (words[8 * (i + 1)] < turn) {
                }
            return;
        }
        __atomic_fetch_add(words, 1, __ATOMIC_ACQ_REL);
        while (__atomic_load_n(words, __ATOMIC_ACQUIRE) < turn * groups) {
        }
    };
    uint64_t sum = args[2] + group;
    for (uint64_t round = 1; round <= args[1]; ++round) {
        sum = work(sum, sum % 1024);
        words[1024 + 3 * group] = sum;
        wait(2 * round - 1);
        sum = work(sum ^ words[1024 + 3 * ((group + round) % groups)], 3);
        wait(2 * round);
    }
    words[2048 + group] = sum;
}

// args: word, flag, value, how: 0: the word is stored and then the flag, 1: behind a release, 2: an atomic
// that releases, 3: 1 twice
void publish(uint64_t* args) {
    uint64_t* const flag = reinterpret_cast<uint64_t*>(args[1]);
    *reinterpret_cast<volatile uint64_t*>(args[0]) = args[2];
    if (args[3] == 0) __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
    if (args[3] == 2) __atomic_fetch_add(flag, 1, __ATOMIC_RELEASE);
    if (args[3] == 1 || args[3] == 3) __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    if (args[3] == 3) asm volatile("fence rw, rw\n fence rw, rw" : : : "memory");
}

// args: how many
[[gnu::naked]] void pauses(uint64_t*) {
    asm volatile("ld a1, 0(a0)\n 1: .4byte 0x0100000f\n addi a1, a1, -1\n bnez a1, 1b\n ret\n");
}

using Entry = void (*)(uint64_t*);
[[gnu::section(".table"), gnu::used]] constinit const Entry table[orrery::emu::test::kKernels] = {
    histogram,    atomics,       local,   floats,     ids,         registers, clock,
    illegal,      ecall,         loop,    jump,       load,        store,     misaligned_atomic,
    recurse,      wait_forever,  mark,    spin,       mix,         tree,      barrier_ended,
    barrier_late, barrier_other, deep,    rounding,   fail_assert, vectors,   every_atomic,
    triad,        chase,         gather,  fused,      masked,      share,     share_rows,
    write_one,    mix_alone,     race,    hand_over,  stop_at,     old_stack, follow,
    post,         mailbox,       product, take_turns, sum,         copy_rows, publish,
    pauses,
};

}  // namespace
