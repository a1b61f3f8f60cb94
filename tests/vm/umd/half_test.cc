// 16-bit floating point from a compiler to a card.
#include <orrery/embedded_kernel.hpp>

#include <bit>

#include "tests/unit/umd/half_kernel.h"
#include "tests/vm/umd/helpers.h"

ORR_EMBEDDED_KERNEL(umd_half_kernel);

namespace orrery::umd::vm {
namespace {

// Of numbers that both formats hold: the host has no instructions for them.
std::uint16_t half(unsigned value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return value == 0 ? std::uint16_t{0} : static_cast<std::uint16_t>((bits >> 13) - (112u << 10));
}
std::uint16_t brain(unsigned value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

TEST(Half, ModuleOfHalvesRuns) {
    constexpr unsigned kCount = 600;
    const Card card(0);
    const auto image = umd_half_kernel_image();
    orrModule_t module = nullptr;
    ASSERT_OK(orrModuleLoadData(&module, image.data(), image.size()));
    orrFunction_t function = nullptr;
    ASSERT_OK(orrModuleGetFunction(&function, module, "scale"));
    void* memory = nullptr;
    ASSERT_OK(orrMallocHost(&memory, (2 * kCount + 1) * 2, 0));
    auto* const halves = static_cast<std::uint16_t*>(memory);
    std::uint16_t* const brains = halves + kCount + 1;
    for (unsigned i = 0; i < kCount; ++i) {
        halves[i] = half(i);
        brains[i] = brain(i % 64);
    }
    const test::ScaleArgs args{halves, brains, 3, kCount};
    EXPECT_OK(orrLaunchKernel(function, {1, 1, 1}, {1, 1, 1}, &args, sizeof(args), 0, card.stream));
    EXPECT_OK(orrStreamSynchronize(card.stream));
    for (unsigned i = 0; i < kCount; ++i) {
        ASSERT_EQ(halves[i], half(3 * i)) << i;
        ASSERT_EQ(brains[i], brain(3 * (i % 64))) << i;
    }
    EXPECT_EQ(halves[kCount], half(3));
    EXPECT_OK(orrModuleUnload(module));
    EXPECT_OK(orrFreeHost(memory));
}

}  // namespace
}  // namespace orrery::umd::vm
