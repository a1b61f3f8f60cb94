#include "emulator/engines/copy_job.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <orrery/hw/mmu.h>

namespace orrery::emu {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kMaxTotal = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxPattern = 8;

// False: more than an engine moves, or than it counts.
bool set_size(CopyJob& job, std::uint64_t row_bytes, const CopyJob::Place& count) {
    job.row_bytes = row_bytes;
    job.count = count;
    if (row_bytes > kMaxTotal) return false;
    Wide rows = 1;
    for (const std::uint64_t number : count) {
        // Below 2^96, as each is 32 bits.
        rows *= number;
        if (rows >> 64 != 0) return false;
    }
    const Wide total = row_bytes * rows;
    if (total > kMaxTotal) return false;
    job.total = static_cast<std::uint64_t>(total);
    return rows != 0;
}
bool set_size(CopyJob& job, std::uint64_t row_bytes, std::uint64_t rows) {
    return set_size(job, row_bytes, {rows, 1, 1, 1});
}

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
    const Wide wide = Wide{a} * b;
    return wide >> 64 != 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(wide);
}

// Rows a pitch apart, in planes of so many.
CopyJob::Side side(std::uint64_t base, std::uint64_t pitch, std::uint64_t height = 0) {
    return {.base = base, .stride = {pitch, product(pitch, height)}};
}

std::optional<CopyJob> plain(const DescriptorWords& words) {
    const auto desc = std::bit_cast<orr_desc_copy>(words);
    CopyJob job;
    job.asid = desc.asid;
    job.src = side(desc.src, desc.src_pitch, desc.pattern & 0xffffffff);
    job.dst = side(desc.dst, desc.dst_pitch, desc.pattern >> 32);
    if (desc.pattern_bytes != 0 || (desc.planes <= 1 && desc.pattern != 0)) return {};
    if (!set_size(job, desc.row_bytes, {desc.rows, std::max(desc.planes, 1u), 1, 1})) return {};
    return job;
}

std::optional<CopyJob> fill(CopyJob job, std::uint64_t pattern, std::uint32_t pattern_bytes,
                            std::uint64_t row_bytes, std::uint32_t rows) {
    job.kind = CopyJob::Kind::kFill;
    job.pattern = pattern;
    job.pattern_bytes = pattern_bytes;
    if (pattern_bytes > kMaxPattern || !std::has_single_bit(pattern_bytes) ||
        row_bytes % pattern_bytes != 0 || job.dst.base % pattern_bytes != 0 ||
        !set_size(job, row_bytes, rows))
        return {};
    return job;
}

std::optional<CopyJob> fill(const DescriptorWords& words) {
    const auto desc = std::bit_cast<orr_desc_copy>(words);
    if (desc.src != 0 || desc.src_pitch != 0 || desc.planes != 0) return {};
    CopyJob job;
    job.asid = desc.asid;
    job.dst = side(desc.dst, desc.dst_pitch);
    return fill(job, desc.pattern, desc.pattern_bytes, desc.row_bytes, desc.rows);
}

std::optional<CopyJob> pattern(const DescriptorWords& words) {
    const auto desc = std::bit_cast<orr_desc_pattern>(words);
    if (desc.reserved0 != 0 || desc.reserved1[0] != 0 || desc.reserved1[1] != 0) return {};
    CopyJob job;
    job.asid = desc.asid;
    job.dst = side(desc.dst, desc.dst_pitch);
    return fill(job, desc.pattern, desc.pattern_bytes, desc.row_bytes, desc.rows);
}

std::optional<CopyJob> reduce(const DescriptorWords& words) {
    const auto desc = std::bit_cast<orr_desc_reduce>(words);
    CopyJob job;
    job.kind = CopyJob::Kind::kReduce;
    job.asid = desc.asid;
    job.src = side(desc.src, desc.src_pitch);
    job.dst = side(desc.dst, desc.dst_pitch);
    job.reduce = reduce_loop(desc.type, desc.function);
    if (job.reduce == nullptr || desc.reserved0 != 0 || desc.reserved1 != 0 ||
        !set_size(job, desc.row_bytes, desc.rows))
        return {};
    job.element_bytes = element_bytes(desc.type);
    job.how = {.type = desc.type, .function = desc.function};
    const std::uint64_t pitches = desc.rows > 1 ? desc.src_pitch | desc.dst_pitch : 0;
    if (((desc.src | desc.dst | desc.row_bytes | pitches) & (job.element_bytes - 1)) != 0) return {};
    return job;
}

std::optional<CopyJob> list(const DescriptorWords& words) {
    const auto desc = std::bit_cast<orr_desc_copies>(words);
    CopyJob job;
    job.kind = CopyJob::Kind::kList;
    job.asid = desc.asid;
    job.total = desc.bytes;
    job.list = desc.list;
    job.entries = desc.entries;
    if (desc.reserved0 != 0 || desc.reserved1 != 0 || desc.reserved2 != 0 ||
        std::ranges::any_of(desc.reserved3, [](std::uint64_t word) { return word != 0; }))
        return {};
    if (desc.list % sizeof(orr_copy_entry) != 0 || desc.bytes > kMaxTotal || desc.entries == 0) return {};
    return job;
}

std::optional<CopyJob> box(const orr_desc_box& desc, std::uint32_t asid) {
    if (desc.dimensions == 0 || desc.dimensions > ORR_BOX_DIMENSIONS || desc.asid != 0) return {};
    CopyJob job;
    job.asid = asid;
    job.src.base = desc.src;
    job.dst.base = desc.dst;
    CopyJob::Place count{1, 1, 1, 1};
    for (std::size_t n = 0; n < ORR_BOX_DIMENSIONS; ++n) {
        if (n < desc.dimensions) {
            count[n] = desc.count[n];
            job.src.stride[n] = desc.src_stride[n];
            job.dst.stride[n] = desc.dst_stride[n];
        } else if (desc.count[n] != 0 || desc.src_stride[n] != 0 || desc.dst_stride[n] != 0) {
            return {};
        }
    }
    if (!set_size(job, desc.row_bytes, count) || job.rows() > kMaxTotal) return {};
    return job;
}

std::optional<CopyJob> tell(const orr_desc_tell& desc, std::uint32_t asid) {
    constexpr std::uint64_t kEnd = std::uint64_t{1} << (ORR_VA_BITS - 1);
    if (desc.asid != 0 || desc.what < ORR_TELL_HEAP || desc.what > ORR_TELL_FREED || desc.bytes == 0 ||
        desc.va >= kEnd || desc.bytes > kEnd - desc.va)
        return {};
    CopyJob job;
    job.kind = CopyJob::Kind::kTell;
    job.asid = asid;
    job.tell = {desc.what, desc.va, desc.bytes};
    return job;
}

}  // namespace

bool CopyJob::wraps(const Side& side) const {
    Wide end = Wide{side.base} + row_bytes;
    for (std::size_t n = 0; n < count.size(); ++n)
        end += Wide{side.stride[n]} * (count[n] - 1);
    return end >> 64 != 0;
}

CopyJob::Place CopyJob::place_of(std::uint64_t row) const {
    Place place{};
    for (std::size_t n = 0; n < place.size(); ++n) {
        place[n] = row % count[n];
        row /= count[n];
    }
    return place;
}

std::uint64_t CopyJob::row_of(const Place& place) const {
    std::uint64_t row = 0;
    for (std::size_t n = place.size(); n-- > 0;)
        row = row * count[n] + place[n];
    return row;
}

std::optional<CopyJob> copy_job(const DescriptorWords& words) {
    switch (words[0] & 0xffff) {
        case ORR_DESC_COPY:
            return plain(words);
        case ORR_DESC_FILL:
            return fill(words);
        case ORR_DESC_PATTERN:
            return pattern(words);
        case ORR_DESC_REDUCE:
            return reduce(words);
        case ORR_DESC_COPIES:
            return list(words);
        default:
            return {};
    }
}

std::optional<CopyJob> long_copy_job(std::span<const std::uint64_t> words, std::uint32_t asid) {
    const auto is = [&](std::uint16_t op, std::size_t bytes) {
        return (words[0] & 0xffff) == op && words.size_bytes() == bytes;
    };
    if (is(ORR_DESC_BOX, sizeof(orr_desc_box))) {
        orr_desc_box desc;
        std::memcpy(&desc, words.data(), sizeof desc);
        return box(desc, asid);
    }
    if (is(ORR_DESC_TELL, sizeof(orr_desc_tell))) {
        orr_desc_tell desc;
        std::memcpy(&desc, words.data(), sizeof desc);
        return tell(desc, asid);
    }
    return {};
}

}  // namespace orrery::emu
