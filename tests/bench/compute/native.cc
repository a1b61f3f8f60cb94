#include "tests/bench/compute/native.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/bench/compute/shape.h"
#include "tools/bench/thread_clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define ORR_BEST_OF_HOST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ORR_BEST_OF_HOST
#endif

namespace orrery::bench {
namespace {

ORR_BEST_OF_HOST void saxpy(float* __restrict y, const float* __restrict x, float a) {
    for (std::uint64_t i = 0; i < kElements; ++i)
        y[i] += a * x[i];
}
ORR_BEST_OF_HOST void triad(float* __restrict z, const float* __restrict x, const float* __restrict y,
                            float a) {
    for (std::uint64_t i = 0; i < kElements; ++i)
        z[i] = x[i] + a * y[i];
}
// As many partial sums as a vector of the widest kind and its latency want.
ORR_BEST_OF_HOST float sum(const float* x) {
    constexpr std::uint64_t kSums = 64;
    float sums[kSums] = {};
    for (std::uint64_t i = 0; i < kElements; i += kSums)
        for (std::uint64_t k = 0; k < kSums; ++k)
            sums[k] += x[i + k];
    float all = 0;
    for (const float one : sums)
        all += one;
    return all;
}

constexpr std::uint64_t kN = kMatrix;

void sgemm_plainly(const float* a, const float* b, float* c) {
    std::fill(c, c + kN * kN, 0.0f);
    for (std::uint64_t row = 0; row < kN; ++row)
        for (std::uint64_t k = 0; k < kN; ++k)
            for (std::uint64_t column = 0; column < kN; ++column)
                c[row * kN + column] += a[row * kN + k] * b[k * kN + column];
}

#if defined(__x86_64__)
// Tiles of 8 rows and two vectors stay in registers, as in the card's kernel.
constexpr std::uint64_t kRows = 8, kTwo = 2;

__attribute__((target("avx512f"))) void sgemm_avx512(const float* a, const float* b, float* c) {
    for (std::uint64_t row = 0; row < kN; row += kRows) {
        for (std::uint64_t column = 0; column < kN; column += kTwo * 16) {
            __m512 sums[kRows][kTwo];
            for (auto& of_row : sums)
                of_row[0] = of_row[1] = _mm512_setzero_ps();
            for (std::uint64_t k = 0; k < kN; ++k) {
                const __m512 left = _mm512_loadu_ps(b + k * kN + column);
                const __m512 right = _mm512_loadu_ps(b + k * kN + column + 16);
                for (std::uint64_t r = 0; r < kRows; ++r) {
                    const __m512 factor = _mm512_set1_ps(a[(row + r) * kN + k]);
                    sums[r][0] = _mm512_fmadd_ps(factor, left, sums[r][0]);
                    sums[r][1] = _mm512_fmadd_ps(factor, right, sums[r][1]);
                }
            }
            for (std::uint64_t r = 0; r < kRows; ++r) {
                _mm512_storeu_ps(c + (row + r) * kN + column, sums[r][0]);
                _mm512_storeu_ps(c + (row + r) * kN + column + 16, sums[r][1]);
            }
        }
    }
}
__attribute__((target("avx2,fma"))) void sgemm_avx2(const float* a, const float* b, float* c) {
    constexpr std::uint64_t kFewer = kRows / 2;  // there are 16 registers only
    for (std::uint64_t row = 0; row < kN; row += kFewer) {
        for (std::uint64_t column = 0; column < kN; column += kTwo * 8) {
            __m256 sums[kFewer][kTwo];
            for (auto& of_row : sums)
                of_row[0] = of_row[1] = _mm256_setzero_ps();
            for (std::uint64_t k = 0; k < kN; ++k) {
                const __m256 left = _mm256_loadu_ps(b + k * kN + column);
                const __m256 right = _mm256_loadu_ps(b + k * kN + column + 8);
                for (std::uint64_t r = 0; r < kFewer; ++r) {
                    const __m256 factor = _mm256_set1_ps(a[(row + r) * kN + k]);
                    sums[r][0] = _mm256_fmadd_ps(factor, left, sums[r][0]);
                    sums[r][1] = _mm256_fmadd_ps(factor, right, sums[r][1]);
                }
            }
            for (std::uint64_t r = 0; r < kFewer; ++r) {
                _mm256_storeu_ps(c + (row + r) * kN + column, sums[r][0]);
                _mm256_storeu_ps(c + (row + r) * kN + column + 8, sums[r][1]);
            }
        }
    }
}
#endif

void sgemm(const float* a, const float* b, float* c) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return sgemm_avx512(a, b, c);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return sgemm_avx2(a, b, c);
#endif
    sgemm_plainly(a, b, c);
}

}  // namespace

Native::Native()
    : x_(kElements, 1), y_(kElements, 2), z_(kElements, 3), a_(kN * kN, 1), b_(kN * kN, 1), c_(kN * kN) {
    sgemm(a_.data(), b_.data(), c_.data());
    if (std::ranges::any_of(c_, [](float got) { return got != kMatrix; }))
        throw std::runtime_error("the native matrix product is wrong");
}

Seconds Native::seconds_of(std::string_view work) {
    const auto copy = [&] { std::memcpy(z_.data(), x_.data(), kElements * sizeof(float)); };
    const std::map<std::string_view, std::function<void()>> all = {
        {"saxpy", [&] { saxpy(y_.data(), x_.data(), kFactor); }},
        {"triad", [&] { triad(z_.data(), x_.data(), y_.data(), kFactor); }},
        {"reduction", [&] { z_[0] = sum(x_.data()); }},
        {"memcpy", copy},
        {"memcpy in a row",
         [&] {
             for (int i = 0; i < kInARow; ++i) {
                 copy();
                 written();
             }
         }},
        {"sgemm", [&] { sgemm(a_.data(), b_.data(), c_.data()); }},
    };
    const auto& run = all.at(work);
    const auto began = std::chrono::steady_clock::now();
    const double cpu = thread_seconds_of([&] {
        run();
        written();
    });
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(), cpu};
}

}  // namespace orrery::bench
