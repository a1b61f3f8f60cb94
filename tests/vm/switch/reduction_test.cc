// One card reads what all others have, combined by a switch, by the driver and the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/orrery.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>

#define ASSERT_OK(call) ASSERT_EQ((call), orrSuccess) << orrGetLastErrorText()
#define EXPECT_OK(call) EXPECT_EQ((call), orrSuccess) << orrGetLastErrorText()

namespace {

constexpr std::size_t kBytes = 8 << 20;
constexpr std::size_t kSmall = 100'000;

std::vector<std::uint8_t> random_bytes(std::size_t bytes, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> made(bytes);
    for (std::uint8_t& byte : made)
        byte = static_cast<std::uint8_t>(random());
    return made;
}
// Whose sums depend on their order.
std::vector<float> floats(std::size_t count, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> mantissa(-1, 1);
    std::vector<float> made(count);
    for (float& one : made)
        one = std::ldexp(mantissa(random), static_cast<int>(random() % 40));
    return made;
}

// Of all cards of the VM: 2, 4 or 8.
class Reduction : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrGetDeviceCount(&cards_));
        ASSERT_GE(cards_, 2);
        memory_.resize(static_cast<std::size_t>(cards_));
        for (int device = cards_ - 1; device >= 0; --device) {
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrIpcMalloc(&memory(device), kBytes, 0));
        }
        ASSERT_OK(orrStreamCreate(&stream_, 0));
        ASSERT_OK(orrSemaphoreCreate(&gate_, 0));
        ASSERT_OK(orrMalloc(&result_, kBytes));
    }
    void TearDown() override {
        orrStreamDestroy(stream_);
        EXPECT_OK(orrSemaphoreDestroy(gate_));
        EXPECT_OK(orrFree(result_));
        for (void* one : memory_)
            EXPECT_OK(orrFree(one));
    }
    void*& memory(int device) { return memory_[static_cast<std::size_t>(device)]; }
    void* make(unsigned flags = orrMulticastReadable) {
        void* all = nullptr;
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrMulticastCreate(&all, memory_.data() + 1, cards_ - 1, kBytes, flags));
        return all;
    }
    template <class T>
    void put(void* to, const std::vector<T>& what) {
        ASSERT_OK(orrMemcpy(to, what.data(), what.size() * sizeof(T), orrMemcpyHostToDevice));
    }
    template <class T>
    std::vector<T> get(const void* from, std::size_t count) {
        std::vector<T> got(count);
        EXPECT_OK(orrMemcpy(got.data(), from, count * sizeof(T), orrMemcpyDeviceToHost));
        return got;
    }
    template <class Work>
    double time_us(Work work) {
        orrEvent_t begun = nullptr, done = nullptr;
        EXPECT_OK(orrEventCreate(&begun, 0));
        EXPECT_OK(orrEventCreate(&done, 0));
        // All of it stands on the card before it begins.
        EXPECT_OK(orrStreamWaitSemaphore(stream_, gate_, ++round_, nullptr));
        EXPECT_OK(orrEventRecord(begun, stream_));
        work();
        EXPECT_OK(orrEventRecord(done, stream_));
        EXPECT_OK(orrSemaphoreSignal(gate_, round_));
        EXPECT_OK(orrStreamSynchronize(stream_));
        std::uint64_t from = 0, to = 0;
        EXPECT_OK(orrEventGetModelTime(&from, begun));
        EXPECT_OK(orrEventGetModelTime(&to, done));
        EXPECT_OK(orrEventDestroy(begun));
        EXPECT_OK(orrEventDestroy(done));
        return static_cast<double>(to - from) * 1e-6;
    }

    int cards_ = 0;
    std::vector<void*> memory_;
    void* result_ = nullptr;
    orrStream_t stream_ = nullptr;
    orrSemaphore_t gate_ = nullptr;
    std::uint64_t round_ = 0;
};

// The host adds in the same order.
TEST_F(Reduction, SumsAreThoseOfTheHost) {
    constexpr std::size_t kCount = 100'001;
    void* const all = make();
    ASSERT_NE(all, nullptr);
    std::vector<float> expected;
    for (int device = 1; device < cards_; ++device) {
        const std::vector<float> part = floats(kCount, static_cast<std::uint32_t>(device));
        put(memory(device), part);
        if (device == 1) {
            expected = part;
            continue;
        }
        for (std::size_t n = 0; n < kCount; ++n)
            expected[n] += part[n];
    }
    const std::vector<float> own = floats(kCount, 77);
    for (std::size_t n = 0; n < kCount; ++n)
        expected[n] = own[n] + expected[n];
    for (int round = 0; round < 2; ++round) {
        put(result_, own);
        ASSERT_OK(orrMemcpyReduceAsync(result_, all, kCount, orrFloat32, orrReduceSum, 0, stream_));
        ASSERT_OK(orrStreamSynchronize(stream_));
        const std::vector<float> got = get<float>(result_, kCount);
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), kCount * sizeof(float)), 0);
    }
    EXPECT_OK(orrFree(all));
}

// Each type and function, of any bits, at odd places, against copies and reductions of one card.
TEST_F(Reduction, BitsAreThoseOfOneCard) {
    void* const all = make();
    ASSERT_NE(all, nullptr);
    constexpr std::size_t kUnits[] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8};
    constexpr std::size_t kAt = 8 * 37;
    void *one = nullptr, *members = nullptr, *own = nullptr;
    ASSERT_OK(orrMalloc(&one, kBytes));
    ASSERT_OK(orrMalloc(&members, kBytes));
    ASSERT_OK(orrMalloc(&own, kBytes));
    std::vector<std::vector<std::uint8_t>> data;
    for (int device = 0; device < cards_; ++device) {
        data.push_back(random_bytes(kSmall, static_cast<std::uint32_t>(device)));
        put(memory(device), data.back());
    }
    for (unsigned type = orrInt8; type <= orrFloat64; ++type) {
        const std::size_t unit = kUnits[type - orrInt8], count = (kSmall - kAt) / unit;
        const auto its = static_cast<orrDataType>(type);
        for (const orrReduceOp op : {orrReduceSum, orrReduceMin, orrReduceMax, orrReduceProd}) {
            const auto skip = [](void* begin) { return static_cast<std::byte*>(begin) + kAt; };
            put(members, data[1]);
            for (int device = 2; device < cards_; ++device) {
                put(one, data[static_cast<std::size_t>(device)]);
                ASSERT_OK(orrMemcpyReduce(skip(members), skip(one), count, its, op, 0));
            }
            put(own, data[0]);
            ASSERT_OK(orrMemcpyReduce(skip(own), skip(members), count, its, op, 0));
            put(result_, data[0]);
            ASSERT_OK(orrMemcpyReduce(skip(result_), skip(all), count, its, op, 0));
            EXPECT_TRUE(get<std::uint8_t>(result_, kSmall) == get<std::uint8_t>(own, kSmall))
                << type << " " << op;
        }
    }
    for (void* memory : {one, members, own, all})
        EXPECT_OK(orrFree(memory));
}

TEST_F(Reduction, IsFasterThanReadingEach) {
    constexpr std::size_t kCount = kBytes / sizeof(float);
    void* const all = make();
    ASSERT_NE(all, nullptr);
    for (int device = 1; device < cards_; ++device)
        ASSERT_OK(orrDeviceEnablePeerAccess(device, 0));
    double one = 0, each = 0;
    // The first round finds tables that nobody has used.
    for (int round = 0; round < 2; ++round) {
        one = time_us([&] {
            EXPECT_OK(orrMemcpyReduceAsync(result_, all, kCount, orrFloat32, orrReduceSum, 0, stream_));
        });
        each = time_us([&] {
            for (int device = 1; device < cards_; ++device)
                EXPECT_OK(orrMemcpyReduceAsync(result_, memory(device), kCount, orrFloat32, orrReduceSum, 0,
                                               stream_));
        });
    }
    fmt::print("8 MiB of {} cards: {:.1f} us in one read, {:.1f} us card by card; {:.2f} times\n", cards_ - 1,
               one, each, each / one);
    EXPECT_GE(each / one, 0.9 * (cards_ - 1));
    EXPECT_OK(orrFree(all));
}

TEST_F(Reduction, SaysWhatItCannotDo) {
    void* const only_written = make(0);
    void* const all = make();
    ASSERT_NE(only_written, nullptr);
    ASSERT_NE(all, nullptr);
    EXPECT_EQ(orrMemcpyReduce(result_, only_written, 16, orrFloat32, orrReduceSum, 0), orrErrorInvalidValue);
    EXPECT_THAT(orrGetLastErrorText(), testing::HasSubstr("orrMulticastReadable"));
    EXPECT_EQ(orrMemcpy(result_, all, 64, orrMemcpyDefault), orrErrorInvalidValue);
    EXPECT_THAT(orrGetLastErrorText(), testing::HasSubstr("copies with reduction only"));
    EXPECT_EQ(orrMemcpyReduce(memory(1), all, 16, orrFloat32, orrReduceSum, 0), orrErrorPeerAccess);
    EXPECT_EQ(orrMemcpyReduce(all, result_, 16, orrFloat32, orrReduceSum, 0), orrErrorInvalidValue);
    // It is written, too.
    ASSERT_OK(orrMemset(result_, 3, 64));
    ASSERT_OK(orrMemcpy(all, result_, 64, orrMemcpyDefault));
    for (int device = 1; device < cards_; ++device)
        EXPECT_EQ(get<std::uint8_t>(memory(device), 64), std::vector<std::uint8_t>(64, 3)) << device;
    EXPECT_OK(orrFree(all));
    EXPECT_OK(orrFree(only_written));
}

// A member's cable goes and comes again: who reads hears of it in the end, and never gets anything else.
TEST_F(Reduction, EndsWhenAMembersLinkGoes) {
    constexpr std::size_t kCount = kBytes / sizeof(std::uint32_t);
    void* const all = make();
    ASSERT_NE(all, nullptr);
    for (int device = 1; device < cards_; ++device)
        ASSERT_OK(orrMemset(memory(device), 1, kBytes));
    std::atomic<bool> cut{false};
    std::thread cutter([&] {
        std::ofstream("/sys/class/accel/accel1/device/links/0/reset") << "1" << std::flush;
        cut.store(true);
    });
    const std::vector<std::uint32_t> expected(kCount, 0x01010101u * static_cast<std::uint32_t>(cards_ - 1));
    orrError_t state = orrSuccess;
    for (int tries = 0; tries < 200 && state == orrSuccess; tries += cut.load() ? 1 : 0) {
        ASSERT_OK(orrMemset(result_, 0, kBytes));
        state = orrMemcpyReduceAsync(result_, all, kCount, orrUint32, orrReduceSum, 0, stream_);
        if (state == orrSuccess) state = orrStreamSynchronize(stream_);
        if (state == orrSuccess) {
            EXPECT_TRUE(get<std::uint32_t>(result_, kCount) == expected);
        }
    }
    cutter.join();
    EXPECT_EQ(state, orrErrorPeerAccess) << orrGetLastErrorText();
    fmt::print("cut: {}\n", orrGetLastErrorText());
    orrStreamDestroy(stream_);
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrStreamCreate(&stream_, 0));
    EXPECT_OK(orrFree(all));
    void* again = nullptr;
    state = orrErrorPeerAccess;
    for (int tries = 0; tries < 12'000 && state == orrErrorPeerAccess; ++tries) {
        state = orrMulticastCreate(&again, memory_.data() + 1, cards_ - 1, kBytes, orrMulticastReadable);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_OK(state);
    ASSERT_OK(orrMemset(result_, 0, kBytes));
    ASSERT_OK(orrMemcpyReduce(result_, again, kCount, orrUint32, orrReduceSum, 0));
    EXPECT_TRUE(get<std::uint32_t>(result_, kCount) == expected);
    EXPECT_OK(orrFree(again));
}

}  // namespace
