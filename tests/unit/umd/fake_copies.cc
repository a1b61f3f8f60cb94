// What a card of the fake copies and reduces.
#include <orrery/hw/engine.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {

std::uint64_t FakeCard::copy(std::uint64_t to, std::uint64_t from, std::uint64_t count,
                             std::uint64_t* fault) {
    auto* src = translate(from, count, ORR_BIND_READ, fault);
    if (src == nullptr) return from;
    const std::vector<std::byte> bytes(src, src + count);
    const bool written =
        write(to, count, fault, [bytes](std::byte* dst) { std::memcpy(dst, bytes.data(), bytes.size()); });
    return written ? 0 : to;
}

// The types and functions that tests of the runtime use; false: another.
bool FakeCard::reduce(std::byte* dst, const std::byte* src, const orr_packet_reduce& packet) {
    const auto each = [&]<typename T>(T, auto function) {
        for (std::uint64_t i = 0; i < packet.row_bytes; i += sizeof(T)) {
            T a, b;
            std::memcpy(&a, dst + i, sizeof a);
            std::memcpy(&b, src + i, sizeof b);
            a = function(a, b);
            std::memcpy(dst + i, &a, sizeof a);
        }
        return true;
    };
    const auto by_function = [&](auto type) {
        if (packet.function == ORR_REDUCE_ADD) return each(type, [](auto a, auto b) { return a + b; });
        if (packet.function == ORR_REDUCE_MAX)
            return each(type, [](auto a, auto b) { return std::max(a, b); });
        return false;
    };
    if (packet.type == ORR_TYPE_F32) return by_function(float{});
    if (packet.type == ORR_TYPE_U64) return by_function(std::uint64_t{});
    return false;
}

FakeOutcome FakeCard::copy_box(const orr_packet& packet) {
    const auto p = std::bit_cast<orr_packet_long>(packet);
    std::uint64_t fault = 0;
    orr_desc_box box;
    const auto* memory = translate(p.descriptor, sizeof box, ORR_BIND_READ, &fault);
    if (memory == nullptr || p.descriptor % 8 != 0 || p.bytes != sizeof box)
        return {ORR_QERR_FAULT, p.descriptor, fault};
    std::memcpy(&box, memory, sizeof box);
    bool good = box.op == ORR_DESC_BOX && box.asid == 0 && box.dimensions >= 1 &&
                box.dimensions <= ORR_BOX_DIMENSIONS;
    std::uint64_t rows = 1;
    for (std::uint32_t i = 0; good && i < ORR_BOX_DIMENSIONS; ++i) {
        const bool used = i < box.dimensions;
        good = used ? box.count[i] != 0 : (box.count[i] | box.src_stride[i] | box.dst_stride[i]) == 0;
        if (used) rows *= box.count[i];
    }
    if (!good) return {ORR_QERR_BAD_DESC, 0, 0};
    for (std::uint64_t row = 0; row < rows; ++row) {
        std::uint64_t to = box.dst, from = box.src, left = row;
        for (std::uint32_t i = 0; i < box.dimensions; left /= box.count[i++]) {
            to += left % box.count[i] * box.dst_stride[i];
            from += left % box.count[i] * box.src_stride[i];
        }
        if (const std::uint64_t bad = copy(to, from, box.row_bytes, &fault); bad != 0)
            return {ORR_QERR_FAULT, bad, fault};
    }
    model_ps_ += box.row_bytes * rows * 10;
    return {};
}

}  // namespace orrery::umd::test
