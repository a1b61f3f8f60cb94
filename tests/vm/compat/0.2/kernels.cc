#include <orrery/kernel.h>

struct Args {
    uint32_t* words;
    uint32_t count;
    uint32_t add;
};

ORR_KERNEL void add(const Args* args) {
    const uint32_t i = orr::global_id();
    if (i < args->count) args->words[i] += args->add + orr::group_x();
}
