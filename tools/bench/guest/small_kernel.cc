// A hundred instructions, with the return.
#include <orrery/kernel.h>

ORR_KERNEL void hundred(const void*) {
    asm volatile(".rept 99\n addi t0, t0, 1\n .endr" ::: "t0");
}
