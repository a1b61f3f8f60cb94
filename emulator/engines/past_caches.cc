#include "emulator/engines/past_caches.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orrery::emu {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kStep = 4 * kLine;  // several loads are under way at a time

using Body = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

// `to` is aligned to a line, `bytes` a multiple of kStep, and the ranges have nothing in common.
__attribute__((target("avx2"))) void by_avx2(std::byte* to, const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kStep / 2) {
        __m256i part[4];
        for (std::size_t n = 0; n < 4; ++n)
            part[n] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + 32 * n));
        for (std::size_t n = 0; n < 4; ++n)
            _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + 32 * n), part[n]);
    }
}

__attribute__((target("avx512f"))) void by_avx512(std::byte* to, const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kStep) {
        __m512i part[4];
        for (std::size_t n = 0; n < 4; ++n)
            part[n] = _mm512_loadu_si512(from + at + 64 * n);
        for (std::size_t n = 0; n < 4; ++n)
            _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at + 64 * n), part[n]);
    }
}

// Narrower stores gain nothing over memmove.
Body widest() {
    if (__builtin_cpu_supports("avx512f")) return by_avx512;
    if (__builtin_cpu_supports("avx2")) return by_avx2;
    return nullptr;
}

}  // namespace

void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
    static const Body body = widest();
    const auto a = reinterpret_cast<std::uintptr_t>(to);
    const auto b = reinterpret_cast<std::uintptr_t>(from);
    const std::size_t head = (kLine - a % kLine) % kLine;
    if (body == nullptr || bytes < head + kStep || (a < b + bytes && b < a + bytes)) {
        std::memmove(to, from, bytes);
        return;
    }
    const std::size_t middle = (bytes - head) / kStep * kStep;
    std::memcpy(to, from, head);
    body(to + head, from + head, middle);
    std::memcpy(to + head + middle, from + head + middle, bytes - head - middle);
}

void fence_past_caches() {
    _mm_sfence();
}

#else

void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::memmove(to, from, bytes);
}

void fence_past_caches() {}

#endif

}  // namespace orrery::emu
