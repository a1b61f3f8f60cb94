// A vector unit over a small memory system, with the test kernels in its VRAM.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <vector>

#include <orrery/hw/kernel_abi.h>

#include "tests/unit/engines/kernels.h"
#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {

inline constexpr std::uint64_t kData = 0x10'0000'0000;  // -> VRAM offset 16 MiB
inline constexpr std::uint64_t kDataOffset = 16 << 20;
inline constexpr std::uint64_t kDataBytes = 8 << 20;
inline constexpr std::uint64_t kHostData = 0x20'0000'0000;

// The kernels of these tests, memory of the card for their data, and so much of the host.
inline void load_image(Rig& rig, std::uint64_t host_bytes = 1 << 20) {
    std::ifstream file(ORRERY_TEST_KERNELS, std::ios::binary);
    const std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    ASSERT_GT(image.size(), kKernels * sizeof(std::uint64_t));
    std::memcpy(rig.vram.data(), image.data(), image.size());
    rig.map(kImageBase, 64 << 10, ORR_TARGET_VRAM, 0, ORR_PTE_READ | ORR_PTE_EXEC);
    rig.map(kData, kDataBytes, ORR_TARGET_VRAM, kDataOffset);
    rig.map(kHostData, host_bytes, ORR_TARGET_HOST, Rig::kHostBase);
}

inline std::uint64_t entry_of(const Rig& rig, Kernel kernel) {
    std::uint64_t address = 0;
    std::memcpy(&address, rig.vram.data() + kernel * sizeof address, sizeof address);
    return address;
}
inline orr_desc_kernel kernel_desc(const Rig& rig, Kernel kernel, std::uint64_t args, std::uint32_t groups,
                                   std::uint16_t items) {
    orr_desc_kernel d{};
    d.op = ORR_DESC_KERNEL;
    d.asid = 1;
    d.entry = entry_of(rig, kernel);
    d.args = args;
    d.grid_x = groups;
    d.grid_y = d.grid_z = 1;
    d.block_x = items;
    d.block_y = d.block_z = 1;
    return d;
}
// With its arguments at `at` in the data.
inline orr_desc_kernel kernel_desc(Rig& rig, Kernel kernel, std::uint64_t at,
                                   std::initializer_list<std::uint64_t> args, std::uint32_t groups,
                                   std::uint16_t items) {
    std::ranges::copy(args, reinterpret_cast<std::uint64_t*>(rig.vram.data() + kDataOffset + at));
    return kernel_desc(rig, kernel, kData + at, groups, items);
}
// A ring of pointers, a line each and far from one another.
inline void link_ring(std::uint64_t* memory, std::uint64_t va, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
        memory[i * 37 % count * (kMemoryLine / 8)] = va + (i + 1) * 37 % count * kMemoryLine;
}
// Where counts are held against what a test knows: a cycle is a nanosecond.
inline VectorConfig counted_config(unsigned threads = 0) {
    VectorConfig config;
    config.vlen = 2048;
    config.datapath_bits = 2048;
    config.hz = 1'000'000'000;
    config.l1_bytes = 32 << 10;
    config.tlb_entries = 16;
    config.in_flight = 512;
    config.threads = threads;
    return config;
}

class VectorUnitTest : public testing::Test {
  protected:
    VectorUnitTest() : unit(std::make_unique<VectorUnit>(config(), rig.context)) { load_image(rig); }

    static VectorConfig config() {
        VectorConfig config;
        config.first_port = 2;
        return config;
    }
    std::uint64_t entry(Kernel kernel) const { return entry_of(rig, kernel); }
    orr_desc_kernel desc(Kernel kernel, std::uint64_t args, std::uint32_t groups, std::uint16_t items) const {
        return kernel_desc(rig, kernel, args, groups, items);
    }
    Completion run(const orr_desc_kernel& d) { return rig.run_one(unit->port(0), d); }
    std::uint64_t* data(std::uint64_t at = 0) {
        return reinterpret_cast<std::uint64_t*>(rig.vram.data() + kDataOffset + at);
    }
    // Runs until a completion is there, and takes it.
    Completion next() {
        while (rig.done.empty() && rig.events.run_next(kNever - 1)) {
        }
        EXPECT_FALSE(rig.done.empty());
        if (rig.done.empty()) return {};
        const Completion first = rig.done.front();
        rig.done.erase(rig.done.begin());
        return first;
    }
    void expect_end(const Completion& done, std::uint32_t status, std::uint64_t fault, std::uint64_t detail) {
        EXPECT_EQ(done.status, status);
        EXPECT_EQ(done.fault, fault);
        EXPECT_EQ(done.detail, detail);
    }

    Rig rig;
    std::unique_ptr<VectorUnit> unit;
};

}  // namespace orrery::emu::test
