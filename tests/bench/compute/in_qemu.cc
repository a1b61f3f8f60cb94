// A program for qemu-riscv64 without a library: says of each loop, in turns, how many nanoseconds it took.
#include "tests/bench/compute/loops.h"
#include "tests/bench/compute/shape.h"

namespace {

enum : long { kWrite = 64, kExit = 93, kClockGettime = 113, kMmap = 222 };

long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
    register long a0 asm("a0") = a;
    register long a1 asm("a1") = b;
    register long a2 asm("a2") = c;
    register long a3 asm("a3") = d;
    register long a4 asm("a4") = e;
    register long a5 asm("a5") = f;
    register long a7 asm("a7") = number;
    asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a7) : "memory");
    return a0;
}

struct Time {
    long s, ns;
};
long now() {
    constexpr long kMonotonic = 1;
    Time time{};
    call(kClockGettime, kMonotonic, reinterpret_cast<long>(&time));
    return time.s * 1'000'000'000 + time.ns;
}

float* array() {
    constexpr long kReadWrite = 3, kPrivateAnonymous = 0x22;
    const long at = call(kMmap, 0, kElements * sizeof(float), kReadWrite, kPrivateAnonymous, -1, 0);
    if (at < 0) call(kExit, 1);
    auto* const floats = reinterpret_cast<float*>(at);
    for (uint64_t i = 0; i < kElements; i += 512)
        floats[i] = 1;
    return floats;
}

template <class Work>
void tell(const char* name, const Work& work) {
    const long began = now();
    work();
    char line[64];
    char* at = line + sizeof line;
    *--at = '\n';
    for (long ns = now() - began; ns > 0; ns /= 10)
        *--at = static_cast<char>('0' + ns % 10);
    *--at = ' ';
    const char* end = name;
    while (*end != 0)
        ++end;
    while (end != name)
        *--at = *--end;
    call(kWrite, 1, reinterpret_cast<long>(at), line + sizeof line - at);
}

}  // namespace

extern "C" [[noreturn]] void _start() {
    float* const x = array();
    float* const y = array();
    float* const z = array();
    for (int turn = 0; turn < 3; ++turn) {
        tell("saxpy", [&] { loops::saxpy(y, x, kFactor, kElements); });
        tell("triad", [&] { loops::triad(z, x, y, kFactor, kElements); });
        tell("reduction", [&] { z[0] = loops::sum(x, kElements); });
    }
    call(kExit, 0);
    __builtin_unreachable();
}
