// Counts byte values. Each work-item counts its slice into the group's own histogram; the group's last
// item adds that to the result: one atomic addition a group and bin instead of one a byte.
#include <orrery/kernel.h>

#include "kernels.h"

namespace {

// Items of a group run one after the other (kernel_abi.h), so the group's counters need no atomics.
inline void count(uint32_t* bins, const uint8_t* data, uint64_t bytes) {
    while (bytes != 0 && (reinterpret_cast<uintptr_t>(data) & 7) != 0) {
        ++bins[*data++];
        --bytes;
    }
    for (; bytes >= 8; bytes -= 8, data += 8) {
        uint64_t word = *reinterpret_cast<const uint64_t*>(data);
        for (int i = 0; i < 8; ++i, word >>= 8)
            ++bins[word & 0xff];
    }
    while (bytes-- != 0)
        ++bins[*data++];
}

}  // namespace

ORR_KERNEL void histogram(const HistogramArgs* args) {
    uint32_t* bins = orr::local<uint32_t>();
    // In whole words, so that only the last item meets a crooked end.
    const uint64_t items = orr::global_size();
    const uint64_t slice = ((args->bytes + items - 1) / items + 7) & ~7ull;
    const uint64_t begin = slice * orr::global_id();
    if (begin < args->bytes) {
        const uint64_t left = args->bytes - begin;
        count(bins, args->data + begin, left < slice ? left : slice);
    }
    if (orr::item_x() + 1 != orr::block_x()) return;
    for (unsigned bin = 0; bin < kHistogramBins; ++bin) {
        if (bins[bin] != 0) orr::atomic_add(&args->bins[bin], uint64_t{bins[bin]});
    }
}

// bins[i] += the sum of the partial results' bin i; one item a bin.
ORR_KERNEL void merge(const MergeArgs* args) {
    const uint32_t bin = orr::global_id();
    if (bin >= kHistogramBins) return;
    uint64_t sum = args->bins[bin];
    for (uint32_t part = 0; part < args->parts; ++part)
        sum += args->partial[part * kHistogramBins + bin];
    args->bins[bin] = sum;
}
