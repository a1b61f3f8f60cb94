/* Runs in qemu-riscv64: executes single instructions on states that the host sends, see wire.h. */
#include "tests/unit/riscv/guest/wire.h"

typedef unsigned long u64;
typedef unsigned int u32;

extern u32 slots[kWireMaxSteps][2];
extern char after_step[];
void run_step(struct wire_state* state, u32* slot);

static struct wire_state state;
static unsigned char program[1 << 21];
static char signal_stack[1 << 16] __attribute__((aligned(16)));

static long system_call(u64 number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
    register u64 a0 __asm__("a0") = a;
    register u64 a1 __asm__("a1") = b;
    register u64 a2 __asm__("a2") = c;
    register u64 a3 __asm__("a3") = d;
    register u64 a4 __asm__("a4") = e;
    register u64 a5 __asm__("a5") = f;
    register u64 a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a7) : "memory");
    return (long)a0;
}
enum { kRead = 63, kWrite = 64, kExit = 93, kSigaltstack = 132, kSigaction = 134, kMmap = 222 };

static void leave(int status) {
    for (;;)
        system_call(kExit, status, 0, 0, 0, 0, 0);
}
static void all(u64 call, int file, void* data, u64 bytes) {
    while (bytes > 0) {
        const long done = system_call(call, file, (u64)data, bytes, 0, 0, 0);
        if (done <= 0) leave(call == kRead && done == 0 ? 0 : 3);
        data = (char*)data + done;
        bytes -= done;
    }
}
static void copy(unsigned char* to, const unsigned char* from, u64 bytes) {
    for (u64 i = 0; i < bytes; ++i)
        to[i] = from[i];
}

/* siginfo.si_addr is at 16; the pc is the first register of uc_mcontext, at 176. */
static void on_signal(int number, u64* info, u64* context) {
    state.signal = number;
    state.address = info[2];
    context[176 / 8] = (u64)after_step;
}

static u32 jump(u32* from, const char* to) {
    const u32 offset = (u32)(to - (const char*)from);
    return 0x6f | (offset & 0xff000) | (offset >> 11 & 1) << 20 | (offset >> 1 & 0x3ff) << 21 |
           (offset >> 20 & 1) << 31;
}

static void run_program(u64 bytes, u64 vlenb) {
    u32 steps = 0;
    for (u64 at = 0; at < bytes;) {
        const u64 word = *(u64*)(program + at);
        at += 8;
        if ((word & 0xff) == kWirePatch) {
            at += 8 + (word >> 8);
        } else {
            if (steps == kWireMaxSteps) leave(4);
            slots[steps][0] = (u32)(word >> 32);
            slots[steps][1] = jump(&slots[steps][1], after_step);
            ++steps;
        }
    }
    __asm__ volatile("fence.i" ::: "memory");
    steps = 0;
    for (u64 at = 0; at < bytes;) {
        const u64 word = *(u64*)(program + at);
        at += 8;
        if ((word & 0xff) == kWirePatch) {
            const u64 offset = *(u64*)(program + at), length = word >> 8;
            unsigned char* to = offset >= kWireMemory ? (unsigned char*)(kWireWindow + offset - kWireMemory)
                                                      : (unsigned char*)&state + offset;
            copy(to, program + at + 8, length);
            at += 8 + length;
        } else {
            state.signal = 0;
            state.address = 0;
            run_step(&state, slots[steps++]);
            all(kWrite, 1, &state, __builtin_offsetof(struct wire_state, v) + 32 * vlenb);
            if (word >> 8 & 1) all(kWrite, 1, (void*)kWireWindow, kWireWindowBytes);
        }
    }
}

void run(void) {
    const u64 stack[3] = {(u64)signal_stack, 0, sizeof signal_stack};
    system_call(kSigaltstack, (u64)stack, 0, 0, 0, 0, 0);
    const u64 action[3] = {(u64)on_signal, 4 | 0x08000000 | 0x40000000, 0}; /* SIGINFO, ONSTACK, NODEFER */
    static const int signals[] = {4, 7, 11};
    for (int i = 0; i < 3; ++i)
        system_call(kSigaction, signals[i], (u64)action, 0, 8, 0, 0);
    if (system_call(kMmap, kWireWindow, kWireWindowBytes, 3, 0x32, -1, 0) != kWireWindow) leave(5);
    u64 vlenb;
    __asm__ volatile("csrr %0, vlenb" : "=r"(vlenb));
    for (;;) {
        u64 bytes;
        all(kRead, 0, &bytes, sizeof bytes);
        if (bytes > sizeof program) leave(6);
        all(kRead, 0, program, bytes);
        run_program(bytes, vlenb);
    }
}
