#include <orrery/kernel.h>

ORR_KERNEL void twice(float* x) {
    for (int i = 0; i < 64; ++i)
        x[i] *= 2;
}
