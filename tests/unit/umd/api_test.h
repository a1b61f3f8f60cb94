// Shorthands for tests of the C API.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/orrery.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#define ASSERT_OK(call) ASSERT_EQ((call), orrSuccess) << orrGetLastErrorText()
#define EXPECT_OK(call) EXPECT_EQ((call), orrSuccess) << orrGetLastErrorText()
// The code, and a text that contains `part`.
#define EXPECT_FAIL(call, code, part)                                   \
    do {                                                                \
        EXPECT_EQ((call), code) << orrGetLastErrorText();               \
        EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr(part)); \
    } while (false)

namespace orrery::umd::test {

inline std::vector<std::uint8_t> random_bytes(std::size_t size, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> bytes(size);
    for (auto& byte : bytes)
        byte = static_cast<std::uint8_t>(random());
    return bytes;
}

inline std::byte* at(void* base, std::size_t offset) {
    return static_cast<std::byte*>(base) + offset;
}

}  // namespace orrery::umd::test
