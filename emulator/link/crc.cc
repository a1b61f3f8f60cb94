#include "emulator/link/crc.h"

#include <array>
#include <cstring>

namespace orrery::emu::link {

namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // bits in reverse

constexpr std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
        table[byte] = crc;
    }
    return table;
}();

#ifdef __x86_64__
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t crc, const std::uint8_t* at,
                                                               std::size_t bytes) {
    std::uint64_t wide = ~crc;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, at, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    auto narrow = static_cast<std::uint32_t>(wide);
    if (bytes >= 4) {
        std::uint32_t word = 0;
        std::memcpy(&word, at, sizeof word);
        narrow = __builtin_ia32_crc32si(narrow, word);
        at += 4;
        bytes -= 4;
    }
    for (; bytes != 0; ++at, --bytes)
        narrow = __builtin_ia32_crc32qi(narrow, *at);
    return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::uint32_t crc, const void* data, std::size_t bytes) {
    const auto* at = static_cast<const std::uint8_t*>(data);
    crc = ~crc;
    for (; bytes != 0; ++at, --bytes)
        crc = crc >> 8 ^ kTable[(crc ^ *at) & 0xff];
    return ~crc;
}

std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t bytes) {
#ifdef __x86_64__
    static const bool has = __builtin_cpu_supports("sse4.2") != 0;
    if (has) return by_instruction(crc, static_cast<const std::uint8_t*>(data), bytes);
#endif
    return crc32c_by_table(crc, data, bytes);
}

}  // namespace orrery::emu::link
