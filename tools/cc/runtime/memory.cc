// The four functions that a compiler may call on its own, in freestanding code too. Linked into every module;
// what is not called is dropped.
#include <stddef.h>
#include <stdint.h>

extern "C" {

__attribute__((used)) void* memcpy(void* __restrict dst, const void* __restrict src, size_t bytes) {
    auto* d = static_cast<unsigned char*>(dst);
    const auto* s = static_cast<const unsigned char*>(src);
    // Words where both sides are aligned: an interpreted byte costs as much as an interpreted word.
    if (((reinterpret_cast<uintptr_t>(d) | reinterpret_cast<uintptr_t>(s)) & 7) == 0) {
        for (; bytes >= 8; bytes -= 8, d += 8, s += 8) {
            *reinterpret_cast<uint64_t __attribute__((may_alias))*>(d) =
                *reinterpret_cast<const uint64_t __attribute__((may_alias))*>(s);
        }
    }
    for (; bytes != 0; --bytes)
        *d++ = *s++;
    return dst;
}

__attribute__((used)) void* memmove(void* dst, const void* src, size_t bytes) {
    auto* d = static_cast<unsigned char*>(dst);
    const auto* s = static_cast<const unsigned char*>(src);
    if (d <= s || d >= s + bytes) {
        for (; bytes != 0; --bytes)
            *d++ = *s++;
    } else {
        while (bytes-- != 0)
            d[bytes] = s[bytes];
    }
    return dst;
}

__attribute__((used)) void* memset(void* dst, int value, size_t bytes) {
    auto* d = static_cast<unsigned char*>(dst);
    const uint64_t pattern = static_cast<unsigned char>(value) * 0x0101010101010101ull;
    if ((reinterpret_cast<uintptr_t>(d) & 7) == 0) {
        for (; bytes >= 8; bytes -= 8, d += 8) {
            *reinterpret_cast<uint64_t __attribute__((may_alias))*>(d) = pattern;
        }
    }
    for (; bytes != 0; --bytes)
        *d++ = static_cast<unsigned char>(value);
    return dst;
}

__attribute__((used)) int memcmp(const void* left, const void* right, size_t bytes) {
    const auto* l = static_cast<const unsigned char*>(left);
    const auto* r = static_cast<const unsigned char*>(right);
    for (; bytes != 0; --bytes, ++l, ++r) {
        if (*l != *r) return *l - *r;
    }
    return 0;
}

}  // extern "C"
