/* Scalar: compiled without V. */
#include "tests/unit/riscv/programs/programs.h"

void scalar_saxpy(size_t n, float a, const float* x, float* y) {
    for (size_t i = 0; i < n; ++i)
        y[i] = __builtin_fmaf(a, x[i], y[i]);
}
int64_t scalar_sum(size_t n, const int32_t* x) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += x[i];
    return sum;
}
int32_t scalar_dot8(size_t n, const int8_t* x, const int8_t* y) {
    int32_t sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += x[i] * y[i];
    return sum;
}
uint16_t scalar_max16(size_t n, const uint16_t* x) {
    uint16_t max = 0;
    for (size_t i = 0; i < n; ++i)
        max = x[i] > max ? x[i] : max;
    return max;
}
float scalar_ordered_sum(size_t n, const float* x) {
    float sum = 0;
    for (size_t i = 0; i < n; ++i)
        sum += x[i];
    return sum;
}
size_t scalar_length(const char* text) {
    size_t n = 0;
    while (text[n] != 0)
        ++n;
    return n;
}
int scalar_compare(const char* a, const char* b) {
    while (*a != 0 && *a == *b)
        ++a, ++b;
    return (unsigned char)*a - (unsigned char)*b;
}
void scalar_planes(size_t n, const uint8_t* rgb, uint8_t* r, uint8_t* g, uint8_t* b) {
    for (size_t i = 0; i < n; ++i)
        r[i] = rgb[3 * i], g[i] = rgb[3 * i + 1], b[i] = rgb[3 * i + 2];
}
void scalar_pixels(size_t n, const uint8_t* r, const uint8_t* g, const uint8_t* b, uint8_t* rgb) {
    for (size_t i = 0; i < n; ++i)
        rgb[3 * i] = r[i], rgb[3 * i + 1] = g[i], rgb[3 * i + 2] = b[i];
}
void scalar_transpose8(size_t n, const uint32_t* from, uint32_t* to) {
    for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < 8; ++k)
            to[k * n + i] = from[8 * i + k];
}
void scalar_gather(size_t n, const uint32_t* index, const uint64_t* from, uint64_t* to) {
    for (size_t i = 0; i < n; ++i)
        to[i] = from[index[i]];
}
void scalar_scatter(size_t n, const uint16_t* index, const uint32_t* from, uint32_t* to) {
    for (size_t i = 0; i < n; ++i)
        to[index[i]] = from[i];
}
void scalar_columns(size_t n, ptrdiff_t stride, const uint8_t* from, uint16_t* to) {
    for (size_t i = 0; i < n; ++i)
        to[i] = *(const uint16_t*)(from + (ptrdiff_t)i * stride);
}
void scalar_reverse(size_t n, const uint8_t* from, uint8_t* to) {
    for (size_t i = 0; i < n; ++i)
        to[i] = from[n - 1 - i];
}
size_t scalar_filter(size_t n, const int32_t* from, int32_t* to) {
    size_t kept = 0;
    for (size_t i = 0; i < n; ++i)
        if (from[i] % 3 == 0) to[kept++] = from[i];
    return kept;
}
void scalar_prefix_sum(size_t n, const uint32_t* from, uint32_t* to) {
    uint32_t sum = 0;
    for (size_t i = 0; i < n; ++i)
        to[i] = sum += from[i];
}
size_t scalar_words(size_t n, const char* text) {
    size_t words = 0;
    for (size_t i = 0; i < n; ++i)
        words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
    return words;
}
void scalar_sgemm(size_t n, const float* a, const float* b, float* c) {
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
            float sum = 0;
            for (size_t k = 0; k < n; ++k)
                sum = __builtin_fmaf(a[i * n + k], b[k * n + j], sum);
            c[i * n + j] = sum;
        }
}
void scalar_divide(size_t n, const int64_t* a, const int64_t* b, int64_t* q, int64_t* r) {
    for (size_t i = 0; i < n; ++i)
        __asm__("div %0, %2, %3\n rem %1, %2, %3" : "=&r"(q[i]), "=&r"(r[i]) : "r"(a[i]), "r"(b[i]));
}
static int16_t saturated(int32_t x) {
    return (int16_t)(x > 32767 ? 32767 : x < -32768 ? -32768 : x);
}
void scalar_mix(size_t n, const int16_t* a, const int16_t* b, int16_t* out) {
    for (size_t i = 0; i < n; ++i) {
        const int32_t scaled = saturated((a[i] * b[i] + (1 << 14)) >> 15); /* rounded to nearest, up */
        out[i] = saturated(saturated(a[i] + scaled) - b[i]);
    }
}
void scalar_copy(size_t n, const uint8_t* from, uint8_t* to) {
    for (size_t i = 0; i < n; ++i)
        to[i] = from[i];
}
void scalar_polynomial(size_t n, const double* x, double* y) {
    for (size_t i = 0; i < n; ++i)
        y[i] = ((x[i] * 0.25 + 1.5) * x[i] - 3.0) * x[i] / (x[i] * x[i] + 1.0);
}
