#include "tests/unit/riscv/programs/programs.h"

enum { kMost = 5000 };
static uint64_t x64[kMost], y64[kMost], out_vector[kMost + 1], out_scalar[kMost + 1], more_vector[kMost],
    more_scalar[kMost];
static uint32_t index32[kMost];
static uint16_t index16[kMost];
static float matrix_a[48 * 48], matrix_b[48 * 48];

static long system_call(unsigned long number, unsigned long a, unsigned long b, unsigned long c,
                        unsigned long d) {
    register unsigned long a0 __asm__("a0") = a;
    register unsigned long a1 __asm__("a1") = b;
    register unsigned long a2 __asm__("a2") = c;
    register unsigned long a3 __asm__("a3") = d;
    register unsigned long a4 __asm__("a4") = -1ul;
    register unsigned long a5 __asm__("a5") = 0;
    register unsigned long a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a7) : "memory");
    return (long)a0;
}
enum { kWrite = 64, kExit = 93, kMmap = 222 };

void* memcpy(void* to, const void* from, size_t n) {
    scalar_copy(n, from, to);
    return to;
}
void* memset(void* to, int value, size_t n) {
    for (size_t i = 0; i < n; ++i)
        ((volatile char*)to)[i] = (char)value;
    return to;
}

static uint64_t random_state = 1;
static uint64_t random_number(void) {
    random_state += 0x9e3779b97f4a7c15;
    uint64_t z = random_state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void report(const char* name, size_t n, const void* data, size_t bytes, int right) {
    char line[64];
    size_t at = 0;
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < bytes; ++i)
        hash = (hash ^ ((const uint8_t*)data)[i]) * 0x100000001b3;
    while (*name != 0)
        line[at++] = *name++;
    line[at++] = ' ';
    for (size_t digit = 1000; digit > 0; digit /= 10)
        line[at++] = (char)('0' + n / digit % 10);
    line[at++] = ' ';
    for (int shift = 60; shift >= 0; shift -= 4)
        line[at++] = "0123456789abcdef"[hash >> shift & 15];
    if (!right)
        for (const char* text = " WRONG"; *text != 0;)
            line[at++] = *text++;
    line[at++] = '\n';
    system_call(kWrite, 1, (unsigned long)line, at, 0);
}

/* Runs vector and scalar code on outputs that are the same before, and compares those of so many bytes. */
#define BOTH(name, n, bytes, call)                                                                           \
    do {                                                                                                     \
        clear();                                                                                             \
        {                                                                                                    \
            void *out = out_vector, *more = more_vector;                                                     \
            (void)out, (void)more;                                                                           \
            call(VECTOR_NAME(name));                                                                         \
        }                                                                                                    \
        {                                                                                                    \
            void *out = out_scalar, *more = more_scalar;                                                     \
            (void)out, (void)more;                                                                           \
            call(SCALAR_NAME(name));                                                                         \
        }                                                                                                    \
        report(#name, n, out_vector, bytes,                                                                  \
               equal(out_vector, out_scalar, bytes) && equal(more_vector, more_scalar, sizeof more_scalar)); \
    } while (0)

static int equal(const void* a, const void* b, size_t n) {
    for (size_t i = 0; i < n; ++i)
        if (((const char*)a)[i] != ((const char*)b)[i]) return 0;
    return 1;
}
static void clear(void) {
    for (size_t i = 0; i < kMost; ++i)
        out_vector[i] = out_scalar[i] = more_vector[i] = more_scalar[i] = i * 0x0101010101010101;
}

static void random_floats(float* x, size_t n) {
    for (size_t i = 0; i < n; ++i)
        x[i] = (float)(int64_t)random_number() * 0x1p-60f;
}

static void run_size(size_t n) {
    for (size_t i = 0; i < n; ++i) {
        x64[i] = random_number();
        y64[i] = i % 7 == 0 ? 0 : i % 11 == 0 ? -1ul : random_number() >> i % 60;
        index32[i] = (uint32_t)(random_number() % n);
        index16[i] = (uint16_t)(random_number() % n);
    }
    x64[n / 2] = 1ul << 63;
    float* const floats = (float*)y64;
#define CALL(f) f(n, 0.75f, (const float*)x64, out)
    random_floats(floats, n);
    random_floats((float*)x64, n);
    BOTH(saxpy, n, 4 * n, CALL);
#undef CALL
#define CALL(f) *(int64_t*)out = f(n, (const int32_t*)x64)
    BOTH(sum, n, 8, CALL);
#undef CALL
#define CALL(f) *(int32_t*)out = f(n, (const int8_t*)x64, (const int8_t*)y64)
    BOTH(dot8, n, 8, CALL);
#undef CALL
#define CALL(f) *(uint16_t*)out = f(n, (const uint16_t*)x64)
    BOTH(max16, n, 8, CALL);
#undef CALL
#define CALL(f) *(float*)out = f(n, floats)
    BOTH(ordered_sum, n, 8, CALL);
#undef CALL
#define CALL(f) f(n, (const uint8_t*)x64, out, more, (uint8_t*)more + kMost)
    BOTH(planes, n, n, CALL);
#undef CALL
#define CALL(f) f(n, (const uint8_t*)x64, (const uint8_t*)y64, (const uint8_t*)x64 + 1, out)
    BOTH(pixels, n, 3 * n, CALL);
#undef CALL
#define CALL(f) f(n / 8, (const uint32_t*)x64, out)
    BOTH(transpose8, n, 4 * n, CALL);
#undef CALL
#define CALL(f) f(n, index32, x64, out)
    BOTH(gather, n, 8 * n, CALL);
#undef CALL
#define CALL(f) f(n, index16, (const uint32_t*)x64, out)
    BOTH(scatter, n, 4 * n, CALL);
#undef CALL
#define CALL(f) f(n, -6, (const uint8_t*)x64 + 6 * n, out)
    BOTH(columns, n, 2 * n, CALL);
#undef CALL
#define CALL(f) f(n, (const uint8_t*)x64, out)
    BOTH(reverse, n, n, CALL);
    BOTH(copy, n, n, CALL);
#undef CALL
#define CALL(f) *(size_t*)more = f(n, (const int32_t*)x64, out)
    BOTH(filter, n, 4 * n, CALL);
#undef CALL
#define CALL(f) f(n, (const uint32_t*)x64, out)
    BOTH(prefix_sum, n, 4 * n, CALL);
#undef CALL
    char* const text = (char*)x64;
    for (size_t i = 0; i < n; ++i)
        text[i] = random_number() % 4 == 0 ? ' ' : 'a';
#define CALL(f) *(size_t*)out = f(n, text)
    BOTH(words, n, 8, CALL);
#undef CALL
    for (size_t i = 0; i < n; ++i)
        x64[i] = random_number();
    x64[0] = 1ul << 63;
    y64[0] = -1ul;
#define CALL(f) f(n, (const int64_t*)x64, (const int64_t*)y64, out, more)
    BOTH(divide, n, 8 * n, CALL);
#undef CALL
#define CALL(f) f(n, (const int16_t*)x64, (const int16_t*)y64, out)
    BOTH(mix, n, 2 * n, CALL);
#undef CALL
    for (size_t i = 0; i < n; ++i)
        ((double*)x64)[i] = (double)(int64_t)random_number() * 0x1p-58;
#define CALL(f) f(n, (const double*)x64, out)
    BOTH(polynomial, n, 8 * n, CALL);
#undef CALL
    random_floats(floats, n);
    vector_half(n, floats, (float*)out_vector);
    report("half", n, out_vector, 4 * n, 1);
    vector_bfloat(n, floats, (float*)out_vector);
    report("bfloat", n, out_vector, 4 * n, 1);
    vector_estimate(n, floats, (float*)out_vector);
    report("estimate", n, out_vector, 4 * n, 1);
}

/* Texts that end with the last byte that is mapped. */
static void run_texts(void) {
    enum { kPage = 0x1000 };
    char* const page = (char*)system_call(kMmap, 0x50000000, 2 * kPage, 3, 0x32);
    char* const other = (char*)system_call(kMmap, 0x50010000, 2 * kPage, 3, 0x32);
    for (size_t n = 1; n < 2 * kPage; n = n * 3 + 1) {
        char *const text = page + 2 * kPage - n, *const twin = other + 2 * kPage - n;
        for (size_t i = 0; i + 1 < n; ++i)
            text[i] = twin[i] = (char)(1 + random_number() % 255);
        text[n - 1] = twin[n - 1] = 0;
#define CALL(f) *(size_t*)out = f(text)
        BOTH(length, n, 8, CALL);
#undef CALL
#define CALL(f) *(int*)out = f(text, twin)
        BOTH(compare, n, 8, CALL);
        twin[n / 2] ^= 1;
        BOTH(compare, n, 8, CALL);
#undef CALL
    }
}

#define READ(csr)                                         \
    ({                                                    \
        uint64_t value;                                   \
        __asm__ volatile("csrr %0, " #csr : "=r"(value)); \
        value;                                            \
    })
#define WRITE(csr, value) __asm__ volatile("csrw " #csr ", %0" ::"r"((uint64_t)(value)))

/* The CSRs as instructions see them. */
static void run_csrs(void) {
    uint64_t* out = out_vector;
    __asm__ volatile(".option push\n.option arch, +v\n vsetivli zero, 5, e16, m2, ta, mu\n.option pop");
    *out++ = READ(vl);
    *out++ = READ(vtype);
    WRITE(vstart, 101);
    *out++ = READ(vstart);
    __asm__ volatile(".option push\n.option arch, +v\n vsetvli zero, zero, e16, m2, ta, ma\n.option pop");
    *out++ = READ(vstart);
    *out++ = READ(vtype);
    WRITE(vcsr, 7);
    *out++ = READ(vxrm) << 8 | READ(vxsat);
    WRITE(vxrm, -2l);
    WRITE(vxsat, -2l);
    *out++ = READ(vcsr);
    WRITE(vxsat, -1l);
    *out++ = READ(vcsr);
    __asm__ volatile(".option push\n.option arch, +v\n vsetivli zero, 5, e64, mf8, ta, mu\n.option pop");
    *out++ = READ(vl);
    *out++ = READ(vtype);
    report("csrs", 0, out_vector, (size_t)((char*)out - (char*)out_vector), 1);
}

__attribute__((used)) void run(void) {
    run_csrs();
    static const size_t sizes[] = {1, 7, 64, 333, 1000, 4999};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
        run_size(sizes[i]);
    run_texts();
    random_floats(matrix_a, 48 * 48);
    random_floats(matrix_b, 48 * 48);
    for (size_t n = 1; n <= 48; n = n * 3 + 1) {
#define CALL(f) f(n, matrix_a, matrix_b, out)
        BOTH(sgemm, n, 4 * n * n, CALL);
#undef CALL
    }
    for (;;)
        system_call(kExit, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start: andi sp, sp, -16\n call run\n");
