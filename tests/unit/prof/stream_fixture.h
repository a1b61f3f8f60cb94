// A stream with a name, and memory for its work.
#pragma once

#include <gtest/gtest.h>
#include <orrery/orrery.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <mutex>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {

class NamedStream : public ::testing::Test {
  protected:
    void SetUp() override {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.name = "main";
        ASSERT_OK(orrStreamCreateWithAttributes(&stream_, &attributes));
        ASSERT_OK(orrMalloc(&memory_, 4096));
    }
    void fill(std::size_t bytes) { ASSERT_OK(orrMemsetAsync(memory_, 1, bytes, stream_)); }
    void synchronize() { ASSERT_OK(orrStreamSynchronize(stream_)); }
    void copy(std::size_t bytes) {
        ASSERT_OK(orrMemcpyAsync(memory_, at(memory_, 2048), bytes, orrMemcpyDeviceToDevice, stream_));
    }
    void with_card(const std::function<void(FakeCard& card)>& what) {
        FakeCard& card = system_.card();
        const std::lock_guard lock(card.mutex());
        what(card);
    }
    // Until so many queues of the card wait.
    void until_waits(std::ptrdiff_t count) {
        for (std::ptrdiff_t waiting = -1; waiting != count;)
            with_card([&](const FakeCard& card) {
                waiting = std::ranges::count_if(card.queues, [](const auto& queue) { return queue.waiting; });
            });
    }

    FakeSystem system_;
    orrStream_t stream_ = nullptr;
    void* memory_ = nullptr;
};

}  // namespace orrery::umd::test
