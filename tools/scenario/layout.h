// Where things are in the memory of a scenario's card, in host memory, and in every context's address space.
#pragma once

#include <cstdint>

namespace orrery::scenario {

// VRAM offsets. Page tables come from the top; what is not named is handed out in between.
inline constexpr std::uint64_t kCodeOffset = 0x0;
inline constexpr std::uint64_t kSemaphoreOffset = 0x10000;
inline constexpr std::uint64_t kBoardOffset = 0x20000;  // gangs: boards, and the tables of their peers
inline constexpr std::uint64_t kFreeOffset = 0x200000;
inline constexpr std::uint64_t kSmallBytes = 0x10000;  // of each of the above
inline constexpr std::uint64_t kDataBytes =
    4u << 20;  // source and destination of copies; longer copies go round

// Bus addresses.
inline constexpr std::uint64_t kRamBase = 0x4000'0000;
inline constexpr std::uint64_t kBootBlock = kRamBase;
inline constexpr std::uint64_t kCommands = kRamBase + 0x10000;
inline constexpr std::uint64_t kMessages = kRamBase + 0x20000;
inline constexpr std::uint64_t kStatus = kRamBase + 0x30000;
inline constexpr std::uint64_t kImageBus = kRamBase + 0x100000;
inline constexpr std::uint64_t kHostFree = kRamBase + 0x800000;

// Virtual addresses.
inline constexpr std::uint64_t kCodeVa = 0x10000;
inline constexpr std::uint64_t kSemaphoreVa = 0x20000;
inline constexpr std::uint64_t kBoardVa = 0x30000;
inline constexpr std::uint64_t kStampVa = 0x40000;  // where TIMESTAMP packets write
constexpr std::uint64_t peer_va(std::uint32_t card) {
    return 0x1000'0000 + card * 0x100'0000ull;  // the peer's semaphores, boards and data, in this order
}
inline constexpr std::uint64_t kPeerBoards = kSmallBytes;
inline constexpr std::uint64_t kPeerData = 0x200000;
inline constexpr std::uint64_t kVramDataVa = 0x4000'0000;  // source, then destination
inline constexpr std::uint64_t kHostDataVa = 0x5000'0000;
inline constexpr std::uint64_t kRingVa = 0x1'0000'0000;
inline constexpr std::uint64_t kRingStride = 0x100'0000;  // a queue

}  // namespace orrery::scenario
