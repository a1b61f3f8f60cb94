// Tasks that do nothing.
#include <orrery/kernel.h>

struct NothingArgs {
    void* datum;
};

ORR_KERNEL void nothing(const NothingArgs*) {}
