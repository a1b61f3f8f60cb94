// Shared by the tests that run in a guest.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/orrery.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/vm/umd/kernels.h"

#define ASSERT_OK(call) ASSERT_EQ((call), orrSuccess) << orrGetLastErrorText()
#define EXPECT_OK(call) EXPECT_EQ((call), orrSuccess) << orrGetLastErrorText()
#define EXPECT_FAIL(call, code, part)                                   \
    do {                                                                \
        EXPECT_EQ((call), code) << orrGetLastErrorText();               \
        EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr(part)); \
    } while (false)

namespace orrery::umd::vm {

std::vector<std::uint8_t> random_bytes(std::size_t size, std::uint32_t seed);

inline std::byte* at(void* base, std::size_t offset) {
    return static_cast<std::byte*>(base) + offset;
}

// The tests' module on a device, with a stream. Makes the device current.
class Card {
  public:
    // limit_us: of the stream's kernels; 0: the usual one, which passes in the host's time while one waits
    // for another card.
    explicit Card(int device, std::uint32_t limit_us = 0);
    ~Card();
    Card(const Card&) = delete;
    Card& operator=(const Card&) = delete;

    orrFunction_t kernel(const char* name) const;
    orrError_t launch(const char* name, const TestArgs& args, std::uint32_t groups = 1,
                      std::uint32_t items = 1, std::size_t local = 0) const;
    // A new stream in place of one that stopped.
    void renew_stream();

    int device;
    orrModule_t module = nullptr;
    orrStream_t stream = nullptr;

  private:
    void make_stream();
    std::uint32_t limit_us_;
};
// For kernels that wait for another card: no time of the host ends them.
inline constexpr std::uint32_t kNoLimitUs = 1'000'000'000;

// Starts this program again as `worker` (workers.h); its process id.
pid_t start_worker(const std::string& worker);
// Its exit status; 128 + signal.
int wait_for(pid_t worker);

}  // namespace orrery::umd::vm
