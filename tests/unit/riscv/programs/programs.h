/*
 * Programs whose result must not depend on VLEN: kernels.c is vector code, by intrinsics and by the compiler,
 * reference.c the same in scalar code, and main.c compares them and prints a hash of each result.
 */
#ifndef ORRERY_TESTS_RISCV_PROGRAMS_H
#define ORRERY_TESTS_RISCV_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>

/* Defined twice, as vector_NAME and as scalar_NAME. */
#ifndef KERNEL
#define KERNEL(name) vector_##name
#endif

#define DECLARE(name)                                                                                \
    void name(saxpy)(size_t n, float a, const float* x, float* y);                                   \
    int64_t name(sum)(size_t n, const int32_t* x);                                                   \
    int32_t name(dot8)(size_t n, const int8_t* x, const int8_t* y);                                  \
    uint16_t name(max16)(size_t n, const uint16_t* x);                                               \
    float name(ordered_sum)(size_t n, const float* x);                                               \
    size_t name(length)(const char* text);                                                           \
    int name(compare)(const char* a, const char* b);                                                 \
    void name(planes)(size_t n, const uint8_t* rgb, uint8_t* r, uint8_t* g, uint8_t* b);             \
    void name(pixels)(size_t n, const uint8_t* r, const uint8_t* g, const uint8_t* b, uint8_t* rgb); \
    void name(transpose8)(size_t n, const uint32_t* from, uint32_t* to);                             \
    void name(gather)(size_t n, const uint32_t* index, const uint64_t* from, uint64_t* to);          \
    void name(scatter)(size_t n, const uint16_t* index, const uint32_t* from, uint32_t* to);         \
    void name(columns)(size_t n, ptrdiff_t stride, const uint8_t* from, uint16_t* to);               \
    void name(reverse)(size_t n, const uint8_t* from, uint8_t* to);                                  \
    size_t name(filter)(size_t n, const int32_t* from, int32_t* to);                                 \
    void name(prefix_sum)(size_t n, const uint32_t* from, uint32_t* to);                             \
    size_t name(words)(size_t n, const char* text);                                                  \
    void name(sgemm)(size_t n, const float* a, const float* b, float* c);                            \
    void name(divide)(size_t n, const int64_t* a, const int64_t* b, int64_t* q, int64_t* r);         \
    void name(mix)(size_t n, const int16_t* a, const int16_t* b, int16_t* out);                      \
    void name(copy)(size_t n, const uint8_t* from, uint8_t* to);                                     \
    void name(polynomial)(size_t n, const double* x, double* y)

#define VECTOR_NAME(name) vector_##name
#define SCALAR_NAME(name) scalar_##name
DECLARE(VECTOR_NAME);
DECLARE(SCALAR_NAME);

/* Only in vector code: what is scalar of these needs instructions that the cores have not. */
void vector_half(size_t n, const float* x, float* y);
void vector_bfloat(size_t n, const float* x, float* y);
void vector_estimate(size_t n, const float* x, float* y);

#endif
