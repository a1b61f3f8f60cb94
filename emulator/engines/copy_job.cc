#include "emulator/engines/copy_job.h"

#include <algorithm>
#include <bit>

namespace orrery::emu {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kMaxTotal = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxPattern = 8;

// False: more than an engine moves.
bool set_size(CopyJob& job, std::uint64_t row_bytes, std::uint64_t rows, std::uint64_t planes) {
    job.row_bytes = row_bytes;
    job.rows = rows;
    job.planes = planes;
    if (row_bytes > kMaxTotal) return false;
    // Below 2^64, as both are 32 bits.
    const Wide total = Wide{row_bytes} * (rows * planes);
    if (total > kMaxTotal) return false;
    job.total = static_cast<std::uint64_t>(total);
    return rows != 0;
}

std::optional<CopyJob> plain(const DescriptorWords& words) {
    const auto desc = std::bit_cast<orr_desc_copy>(words);
    CopyJob job;
    job.asid = desc.asid;
    job.src = {.base = desc.src, .pitch = desc.src_pitch, .height = desc.pattern & 0xffffffff};
    job.dst = {.base = desc.dst, .pitch = desc.dst_pitch, .height = desc.pattern >> 32};
    if (desc.pattern_bytes != 0 || (desc.planes <= 1 && desc.pattern != 0)) return {};
    if (!set_size(job, desc.row_bytes, desc.rows, std::max(desc.planes, 1u))) return {};
    return job;
}

std::optional<CopyJob> fill(CopyJob job, std::uint64_t pattern, std::uint32_t pattern_bytes,
                            std::uint64_t row_bytes, std::uint32_t rows) {
    job.kind = CopyJob::Kind::kFill;
    job.pattern = pattern;
    job.pattern_bytes = pattern_bytes;
    if (pattern_bytes > kMaxPattern || !std::has_single_bit(pattern_bytes) ||
        row_bytes % pattern_bytes != 0 || job.dst.base % pattern_bytes != 0 ||
        !set_size(job, row_bytes, rows, 1))
        return {};
    return job;
}

std::optional<CopyJob> fill(const DescriptorWords& words) {
    const auto desc = std::bit_cast<orr_desc_copy>(words);
    if (desc.src != 0 || desc.src_pitch != 0 || desc.planes != 0) return {};
    CopyJob job;
    job.asid = desc.asid;
    job.dst = {.base = desc.dst, .pitch = desc.dst_pitch};
    return fill(job, desc.pattern, desc.pattern_bytes, desc.row_bytes, desc.rows);
}

std::optional<CopyJob> pattern(const DescriptorWords& words) {
    const auto desc = std::bit_cast<orr_desc_pattern>(words);
    if (desc.reserved0 != 0 || desc.reserved1[0] != 0 || desc.reserved1[1] != 0) return {};
    CopyJob job;
    job.asid = desc.asid;
    job.dst = {.base = desc.dst, .pitch = desc.dst_pitch};
    return fill(job, desc.pattern, desc.pattern_bytes, desc.row_bytes, desc.rows);
}

std::optional<CopyJob> reduce(const DescriptorWords& words) {
    const auto desc = std::bit_cast<orr_desc_reduce>(words);
    CopyJob job;
    job.kind = CopyJob::Kind::kReduce;
    job.asid = desc.asid;
    job.src = {.base = desc.src, .pitch = desc.src_pitch};
    job.dst = {.base = desc.dst, .pitch = desc.dst_pitch};
    job.reduce = reduce_loop(desc.type, desc.function);
    if (job.reduce == nullptr || desc.reserved0 != 0 || desc.reserved1 != 0 ||
        !set_size(job, desc.row_bytes, desc.rows, 1))
        return {};
    job.element_bytes = element_bytes(desc.type);
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

}  // namespace

bool CopyJob::wraps(const Side& side) const {
    const std::uint64_t last = (planes - 1) * side.height + rows - 1;
    return (Wide{side.pitch} * last + side.base + row_bytes) >> 64 != 0;
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

}  // namespace orrery::emu
