#include "emulator/core/vector/simd.h"

namespace orrery::emu {

const char* to_string(Simd simd) {
    switch (simd) {
        case Simd::kPortable:
            return "portable";
        case Simd::kAvx2:
            return "AVX2";
        case Simd::kAvx512:
            return "AVX-512";
    }
    return "unknown";
}

bool simd_usable([[maybe_unused]] Simd simd) {
#if defined(__x86_64__)
    // What simd.cmake compiles them for.
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
                      __builtin_cpu_supports("bmi2");
    if (simd == Simd::kAvx2) return avx2;
#if defined(ORR_SIMD_AVX512)
    if (simd == Simd::kAvx512) {
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512cd");
    }
#endif
#endif
    return simd == Simd::kPortable;
}

Simd best_simd() {
    static const Simd best = simd_usable(Simd::kAvx512) ? Simd::kAvx512
                             : simd_usable(Simd::kAvx2) ? Simd::kAvx2
                                                        : Simd::kPortable;
    return best;
}

}  // namespace orrery::emu
