// What kernels printed behind a record that one of them has not completed: it comes when nobody can.
#include <orrery/kernel_output.h>

#include <cstring>
#include <string_view>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/context.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd::test {
namespace {

class KernelOutput : public ::testing::Test {
  protected:
    static constexpr std::uint64_t kText = 0x7000'0000;

    void SetUp() override {
        constexpr std::string_view text("plain\n\0", 7);
        std::vector<std::byte> code(text.size());
        std::memcpy(code.data(), text.data(), text.size());
        context().add_code(kText, "m", code, {});
        const auto va = context().output_ring();
        ASSERT_TRUE(va);
        ring_ = reinterpret_cast<orr_output*>(*va);  // NOLINT(performance-no-int-to-ptr)
        ASSERT_OK(orrSemaphoreCreate(&semaphore_, 0));
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        ASSERT_OK(orrStreamWaitSemaphore(stream_, semaphore_, 1, nullptr));
    }
    Context& context() { return **(*Runtime::get())->context(0); }
    void put(bool complete) {
        std::uint64_t* const record = ring_->words + ring_->head;
        record[1] = kText;
        if (complete) record[0] = ORR_OUTPUT_RECORD | ORR_OUTPUT_RECORD_HEAD;
        ring_->head += ORR_OUTPUT_RECORD_HEAD;
    }
    std::string print() {
        ::testing::internal::CaptureStdout();
        context().print_output();
        return ::testing::internal::GetCapturedStdout();
    }

    FakeSystem system_{1};
    orr_output* ring_ = nullptr;
    orrSemaphore_t semaphore_ = nullptr;
    orrStream_t stream_ = nullptr;
};

TEST_F(KernelOutput, ComesWhenTheWorkOfThatTimeIsDone) {
    put(false);
    put(true);
    EXPECT_EQ(print(), "");
    // Later work does not count.
    orrStream_t later = nullptr;
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    ASSERT_OK(orrStreamCreate(&later, 0));
    ASSERT_OK(orrStreamWaitSemaphore(later, gate, 1, nullptr));
    EXPECT_EQ(print(), "");
    ::testing::internal::CaptureStdout();
    ASSERT_OK(orrSemaphoreSignal(semaphore_, 1));
    ASSERT_OK(orrStreamSynchronize(stream_));
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "plain\n");
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    ASSERT_OK(orrStreamSynchronize(later));
}

TEST_F(KernelOutput, ComesWhenTheStreamHasStopped) {
    put(false);
    put(true);
    EXPECT_EQ(print(), "");
    ASSERT_OK(orrStreamAbort(stream_));
    EXPECT_EQ(print(), "plain\n");
}

// With a driver that does not switch them on, which those before 1.4 do not, the ring is in card memory:
// there kernels may use atomics.
TEST(KernelOutputWithoutHostAtomics, IsInCardMemory) {
    FakeSystem system(2);
    system.card(1).host_atomics = false;
    system.card(1).driver_version = ORR_MAKE_VERSION(1, 3, 9);
    for (const auto& [device, in_card] : {std::pair(0, false), std::pair(1, true)}) {
        FakeCard& card = system.card(static_cast<std::size_t>(device));
        Context& context = **(*Runtime::get())->context(device);
        const std::uint64_t before = card.vram_used;
        const auto va = context.output_ring();
        ASSERT_TRUE(va);
        EXPECT_EQ(card.vram_used - before >= sizeof(orr_output), in_card) << device;
        EXPECT_EQ(*context.output_ring(), *va) << "one ring";
        std::uint64_t fault = 0;
        auto* const ring = reinterpret_cast<orr_output*>(
            card.translate(*va, sizeof(orr_output), ORR_BIND_READ | ORR_BIND_WRITE, &fault));
        ASSERT_NE(ring, nullptr);
        EXPECT_EQ(ring->head, 0u);
        constexpr std::string_view text("plain\n\0", 7);
        std::vector<std::byte> code(text.size());
        std::memcpy(code.data(), text.data(), text.size());
        context.add_code(0x7100'0000, "m", code, {});
        ring->words[1] = 0x7100'0000;
        ring->words[0] = ORR_OUTPUT_RECORD | ORR_OUTPUT_RECORD_HEAD;
        ring->head = ORR_OUTPUT_RECORD_HEAD;
        ::testing::internal::CaptureStdout();
        context.print_output();
        EXPECT_EQ(::testing::internal::GetCapturedStdout(), "plain\n") << device;
    }
}

}  // namespace
}  // namespace orrery::umd::test
