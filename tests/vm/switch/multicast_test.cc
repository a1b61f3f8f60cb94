// One card writes to seven others through a switch, by the driver and the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/orrery.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <thread>
#include <vector>

#include <fmt/format.h>

#define ASSERT_OK(call) ASSERT_EQ((call), orrSuccess) << orrGetLastErrorText()
#define EXPECT_OK(call) EXPECT_EQ((call), orrSuccess) << orrGetLastErrorText()

namespace {

constexpr std::size_t kBytes = 8 << 20;
constexpr int kCards = 8;

std::vector<std::uint8_t> pattern(std::uint32_t seed) {
    std::vector<std::uint8_t> bytes(kBytes);
    for (std::size_t n = 0; n < kBytes; ++n)
        bytes[n] = static_cast<std::uint8_t>((n * 2654435761u + seed) >> 13);
    return bytes;
}

class Multicast : public ::testing::Test {
  protected:
    void SetUp() override {
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        ASSERT_EQ(count, kCards);
        for (int device = kCards - 1; device >= 0; --device) {
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrStreamCreate(&stream_[device], 0));
            ASSERT_OK(orrIpcMalloc(&memory_[device], kBytes, 0));
            ASSERT_OK(orrMemset(memory_[device], 0, kBytes));
        }
        ASSERT_OK(orrSemaphoreCreate(&gate_, 0));
    }
    void TearDown() override {
        for (int device = 0; device < kCards; ++device) {
            EXPECT_OK(orrSetDevice(device));
            orrStreamDestroy(stream_[device]);
            EXPECT_OK(orrFree(memory_[device]));
        }
        EXPECT_OK(orrSemaphoreDestroy(gate_));
    }
    // By device 0, of all others.
    void* make() {
        void* all = nullptr;
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrMulticastCreate(&all, memory_ + 1, kCards - 1, kBytes, 0));
        return all;
    }
    void fill_source(std::uint32_t seed) {
        data_ = pattern(seed);
        ASSERT_OK(orrMemcpy(memory_[0], data_.data(), kBytes, orrMemcpyHostToDevice));
    }
    void expect_everywhere() {
        std::vector<std::uint8_t> back(kBytes);
        for (int device = 1; device < kCards; ++device) {
            ASSERT_OK(orrMemcpy(back.data(), memory_[device], kBytes, orrMemcpyDeviceToHost));
            EXPECT_TRUE(back == data_) << device;
        }
    }
    // Model time from the beginning of what `copy` queues on device 0 until the last member's stream goes on.
    template <class Copy>
    double time_us(std::vector<orrStream_t> streams, Copy copy) {
        orrEvent_t begun = nullptr;
        std::vector<orrEvent_t> done(streams.size());
        orrEvent_t there[kCards] = {};
        EXPECT_OK(orrSetDevice(0));
        EXPECT_OK(orrEventCreate(&begun, 0));
        EXPECT_OK(orrStreamWaitSemaphore(streams[0], gate_, ++round_, nullptr));
        EXPECT_OK(orrEventRecord(begun, streams[0]));
        for (std::size_t n = 0; n < streams.size(); ++n) {
            if (n != 0) {
                EXPECT_OK(orrStreamWaitEvent(streams[n], begun, 0));
            }
            copy(n, streams[n]);
            EXPECT_OK(orrEventCreate(&done[n], 0));
            EXPECT_OK(orrEventRecord(done[n], streams[n]));
        }
        for (int device = 1; device < kCards; ++device) {
            EXPECT_OK(orrSetDevice(device));
            EXPECT_OK(orrStreamWaitEvent(
                stream_[device], done[streams.size() == 1 ? 0 : static_cast<std::size_t>(device - 1)], 0));
            EXPECT_OK(orrEventCreate(&there[device], 0));
            EXPECT_OK(orrEventRecord(there[device], stream_[device]));
        }
        EXPECT_OK(orrSemaphoreSignal(gate_, round_));
        std::uint64_t first = 0, last = 0;
        for (int device = 1; device < kCards; ++device) {
            std::uint64_t ps = 0;
            EXPECT_OK(orrStreamSynchronize(stream_[device]));
            EXPECT_OK(orrEventGetModelTime(&ps, there[device]));
            last = std::max(last, ps);
            EXPECT_OK(orrEventDestroy(there[device]));
        }
        for (const orrStream_t stream : streams)
            EXPECT_OK(orrStreamSynchronize(stream));
        EXPECT_OK(orrEventGetModelTime(&first, begun));
        EXPECT_OK(orrEventDestroy(begun));
        for (const orrEvent_t event : done)
            EXPECT_OK(orrEventDestroy(event));
        return static_cast<double>(last - first) * 1e-6;
    }

    orrStream_t stream_[kCards] = {};
    void* memory_[kCards] = {};
    orrSemaphore_t gate_ = nullptr;
    std::uint64_t round_ = 0;
    std::vector<std::uint8_t> data_;
};

TEST_F(Multicast, IsSixTimesAsFastAsSevenCopies) {
    void* const all = make();
    ASSERT_NE(all, nullptr);
    for (int device = 1; device < kCards; ++device)
        ASSERT_OK(orrDeviceEnablePeerAccess(device, 0));
    std::vector<orrStream_t> seven(kCards - 1);
    for (orrStream_t& stream : seven)
        ASSERT_OK(orrStreamCreate(&stream, 0));
    double one = 0, at_once = 0, in_turn = 0;
    // The first round finds tables that nobody has used.
    for (std::uint32_t round = 0; round < 2; ++round) {
        fill_source(3 * round);
        one = time_us({stream_[0]}, [&](std::size_t, orrStream_t stream) {
            EXPECT_OK(orrMemcpyAsync(all, memory_[0], kBytes, orrMemcpyDefault, stream));
        });
        expect_everywhere();
        fill_source(3 * round + 1);
        at_once = time_us(seven, [&](std::size_t n, orrStream_t stream) {
            EXPECT_OK(orrMemcpyAsync(memory_[n + 1], memory_[0], kBytes, orrMemcpyDefault, stream));
        });
        expect_everywhere();
        fill_source(3 * round + 2);
        in_turn = time_us({stream_[0]}, [&](std::size_t, orrStream_t stream) {
            for (int device = 1; device < kCards; ++device)
                EXPECT_OK(orrMemcpyAsync(memory_[device], memory_[0], kBytes, orrMemcpyDefault, stream));
        });
        expect_everywhere();
    }
    fmt::print(
        "8 MiB to seven cards: {:.1f} us by a multicast, {:.1f} by seven copies at once, {:.1f} in turn; "
        "{:.2f} and {:.2f} times\n",
        one, at_once, in_turn, at_once / one, in_turn / one);
    EXPECT_GE(at_once / one, 6.0);
    EXPECT_GE(in_turn / one, 6.0);
    for (const orrStream_t stream : seven)
        EXPECT_OK(orrStreamDestroy(stream));
    EXPECT_OK(orrFree(all));
}

TEST_F(Multicast, CopiesAndFillsParts) {
    void* const all = make();
    ASSERT_NE(all, nullptr);
    fill_source(9);
    ASSERT_OK(orrMemcpy(all, memory_[0], kBytes, orrMemcpyDefault));
    auto* const begin = static_cast<std::byte*>(all);
    ASSERT_OK(orrMemset(begin + 77, 0x5a, 100'000));
    std::fill_n(data_.begin() + 77, 100'000, std::uint8_t{0x5a});
    expect_everywhere();
    EXPECT_OK(orrFree(all));
}

TEST_F(Multicast, SaysWhatItCannotDo) {
    void* all = nullptr;
    ASSERT_OK(orrSetDevice(0));
    EXPECT_EQ(orrMulticastCreate(&all, memory_, kCards, kBytes, 0), orrErrorInvalidValue);
    EXPECT_THAT(orrGetLastErrorText(), testing::HasSubstr("members are memory of other devices than 0"));
    void* const twice[] = {memory_[1], memory_[1]};
    EXPECT_EQ(orrMulticastCreate(&all, twice, 2, kBytes, 0), orrErrorInvalidValue);
    EXPECT_EQ(orrMulticastCreate(&all, memory_ + 1, 7, kBytes + 1, 0), orrErrorInvalidValue);
    EXPECT_EQ(orrMulticastCreate(&all, memory_ + 1, 0, kBytes, 0), orrErrorInvalidValue);
    EXPECT_EQ(orrMulticastCreate(&all, memory_ + 1, 7, 0, 0), orrErrorInvalidValue);
    EXPECT_EQ(orrMulticastCreate(&all, memory_ + 1, 7, kBytes, 2), orrErrorInvalidValue);
    all = make();
    ASSERT_NE(all, nullptr);
    EXPECT_EQ(orrMemcpy(memory_[0], all, 64, orrMemcpyDefault), orrErrorInvalidValue);
    EXPECT_THAT(orrGetLastErrorText(), testing::HasSubstr("a multicast, which can be written only"));
    EXPECT_OK(orrFree(all));
    // As many as one user may have; what is freed makes room.
    std::vector<void*> many;
    while (orrMulticastCreate(&all, memory_ + 1, 7, 4096, 0) == orrSuccess)
        many.push_back(all);
    EXPECT_EQ(many.size(), 12u);
    EXPECT_THAT(orrGetLastErrorText(), testing::HasSubstr("free one"));
    for (void* one : many)
        EXPECT_OK(orrFree(one));
    all = make();
    ASSERT_NE(all, nullptr);
    fill_source(4);
    ASSERT_OK(orrMemcpy(all, memory_[0], kBytes, orrMemcpyDefault));
    expect_everywhere();
    EXPECT_OK(orrFree(all));
}

// Copies keep the card's port full all the time.
TEST_F(Multicast, IsMadeBesideABusyPort) {
    fill_source(7);
    orrStream_t two[2] = {};
    ASSERT_OK(orrSetDevice(0));
    for (orrStream_t& stream : two)
        ASSERT_OK(orrStreamCreate(&stream, 0));
    for (int device = 1; device < kCards; ++device)
        ASSERT_OK(orrDeviceEnablePeerAccess(device, 0));
    void* all = nullptr;
    bool busy = false;
    // A process that stands still finds the port idle already: again, with more.
    for (int rounds = 32; !busy && rounds <= 256; rounds *= 2) {
        if (all != nullptr) EXPECT_OK(orrFree(all));
        for (int round = 0; round < rounds; ++round)
            for (int n = 0; n < 2; ++n)
                ASSERT_OK(orrMemcpyAsync(memory_[n + 1], memory_[0], kBytes, orrMemcpyDefault, two[n]));
        all = make();
        ASSERT_NE(all, nullptr);
        busy = orrStreamQuery(two[0]) == orrErrorNotReady;
        for (const orrStream_t stream : two)
            EXPECT_OK(orrStreamSynchronize(stream));
    }
    EXPECT_TRUE(busy) << "the port was idle each time";
    for (const orrStream_t stream : two)
        EXPECT_OK(orrStreamDestroy(stream));
    ASSERT_OK(orrMemcpy(all, memory_[0], kBytes, orrMemcpyDefault));
    expect_everywhere();
    EXPECT_OK(orrFree(all));
}

// Behind another card's, so that numbers are others than they were in the card's last life (again.sh).
TEST_F(Multicast, EachOfTwelveWorks) {
    void* before = nullptr;
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMulticastCreate(&before, memory_, 1, kBytes, 0));
    ASSERT_OK(orrSetDevice(0));
    std::vector<void*> twelve(12);
    for (void*& one : twelve)
        ASSERT_OK(orrMulticastCreate(&one, memory_ + 1, kCards - 1, kBytes, 0));
    for (std::size_t n = 0; n < twelve.size(); ++n) {
        ASSERT_OK(orrMemset(memory_[0], static_cast<int>(n + 1), 4096));
        ASSERT_OK(orrMemcpy(twelve[n], memory_[0], 4096, orrMemcpyDefault));
        for (int device = 1; device < kCards; ++device) {
            std::uint8_t last = 0;
            ASSERT_OK(
                orrMemcpy(&last, static_cast<std::byte*>(memory_[device]) + 4095, 1, orrMemcpyDeviceToHost));
            EXPECT_EQ(last, n + 1) << device;
        }
    }
    for (void* one : twelve)
        EXPECT_OK(orrFree(one));
    EXPECT_OK(orrFree(before));
}

// A member's cable goes and comes again: it is cut for all, and another one works.
TEST_F(Multicast, IsCutWhenAMembersLinkGoes) {
    void* const all = make();
    ASSERT_NE(all, nullptr);
    fill_source(5);
    ASSERT_OK(orrMemcpyAsync(all, memory_[0], kBytes, orrMemcpyDefault, stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    expect_everywhere();
    std::ofstream("/sys/class/accel/accel3/device/links/0/reset") << "1" << std::flush;
    orrError_t state = orrSuccess;
    for (int tries = 0; tries < 200 && state == orrSuccess; ++tries) {
        fill_source(100 + static_cast<std::uint32_t>(tries));
        state = orrMemcpyAsync(all, memory_[0], kBytes, orrMemcpyDefault, stream_[0]);
        if (state == orrSuccess) state = orrStreamSynchronize(stream_[0]);
        // What is done is there.
        if (state == orrSuccess) expect_everywhere();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(state, orrErrorPeerAccess) << orrGetLastErrorText();
    fmt::print("cut: {}\n", orrGetLastErrorText());
    orrStreamDestroy(stream_[0]);
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrStreamCreate(&stream_[0], 0));
    EXPECT_OK(orrFree(all));
    void* again = nullptr;
    state = orrErrorPeerAccess;
    for (int tries = 0; tries < 12'000 && state == orrErrorPeerAccess; ++tries) {
        state = orrMulticastCreate(&again, memory_ + 1, kCards - 1, kBytes, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_OK(state);
    fill_source(6);
    ASSERT_OK(orrMemcpyAsync(again, memory_[0], kBytes, orrMemcpyDefault, stream_[0]));
    ASSERT_OK(orrStreamSynchronize(stream_[0]));
    expect_everywhere();
    EXPECT_OK(orrFree(again));
}

}  // namespace
