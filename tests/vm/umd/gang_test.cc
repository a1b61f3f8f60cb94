// A library on two cards, and launches over both.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include <orrery/embedded_kernel.hpp>

#include "tests/vm/umd/helpers.h"

ORR_EMBEDDED_KERNEL(umd_test_kernels);

namespace orrery::umd::vm {
namespace {

class TwoParts : public ::testing::Test {
  protected:
    static constexpr int kCards = 2;
    void SetUp() override {
        const auto image = umd_test_kernels_image();
        ASSERT_OK(orrLibraryLoadData(&library_, image.data(), image.size()));
        void* memory = nullptr;
        ASSERT_OK(orrMallocHost(&memory, 4096, 0));
        words_ = static_cast<std::uint64_t*>(memory);
        std::memset(words_, 0, 4096);
        for (int device = 0; device < kCards; ++device) {
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrOccupancyMaxActiveGroups(&cores_[device], kernel("meet"), {1, 1, 1}, 0, 0));
        }
        // A card's clock goes on also while the other one computes slowly: that is no reason to fail.
        make_streams(1'000'000'000);
    }
    // limit_us: of a launch; 0: the usual one.
    void make_streams(std::uint32_t limit_us) {
        orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
        attributes.limit_us = limit_us;
        for (int device = 0; device < kCards; ++device) {
            if (stream_[device] != nullptr) ASSERT_OK(orrStreamDestroy(stream_[device]));
            ASSERT_OK(orrSetDevice(device));
            ASSERT_OK(orrStreamCreateWithAttributes(&stream_[device], &attributes));
        }
    }
    void TearDown() override {
        for (orrStream_t stream : stream_)
            EXPECT_OK(orrStreamDestroy(stream));
        EXPECT_OK(orrLibraryUnload(library_));
        EXPECT_OK(orrFreeHost(words_));
    }
    orrFunction_t kernel(const char* name) const {
        orrFunction_t function = nullptr;
        EXPECT_OK(orrLibraryGetFunction(&function, library_, name));
        return function;
    }
    orrLaunchParams part(int device, const char* name, std::uint32_t groups, const TestArgs& args) const {
        orrLaunchParams params = ORR_INIT(orrLaunchParams);
        params.function = kernel(name);
        params.grid = {groups, 1, 1};
        params.block = {1, 1, 1};
        params.args = &args;
        params.bytes = sizeof(args);
        params.stream = stream_[device];
        return params;
    }
    static orrError_t launch(const orrLaunchParams& a, const orrLaunchParams& b) {
        const orrLaunchParams* const parts[] = {&a, &b};
        return orrLaunchGang(parts, 2, 0);
    }

    orrLibrary_t library_ = nullptr;
    std::uint64_t* words_ = nullptr;
    orrStream_t stream_[kCards] = {};
    std::uint32_t cores_[kCards] = {};
};

TEST_F(TwoParts, OneLibraryRunsOnBothCards) {
    std::fill_n(words_, 20, 1);
    for (int device = 0; device < kCards; ++device) {
        const TestArgs args{words_ + 10 * device, 10, 5};
        ASSERT_OK(orrLaunchKernel(kernel("add_value"), {1, 1, 1}, {4, 1, 1}, &args, sizeof(args), 0,
                                  stream_[device]));
        ASSERT_OK(orrStreamSynchronize(stream_[device]));
    }
    EXPECT_TRUE(std::all_of(words_, words_ + 20, [](std::uint64_t word) { return word == 6; }));
    // Both have their own variables.
    for (int device = 0; device < kCards; ++device) {
        const TestArgs args{words_, 0, 2};
        ASSERT_OK(orrLaunchKernel(kernel("use_globals"), {1, 1, 1}, {1, 1, 1}, &args, sizeof(args), 0,
                                  stream_[device]));
        ASSERT_OK(orrStreamSynchronize(stream_[device]));
        EXPECT_EQ(words_[0], 42u) << device;
    }
}

TEST_F(TwoParts, GroupsOfBothCardsWaitForEachOther) {
    const std::uint32_t all = cores_[0] + cores_[1];
    for (std::uint64_t round = 1; round <= 5; ++round) {
        std::memset(words_, 0, 4096);
        const TestArgs args{words_, all, 3};
        ASSERT_OK(launch(part(0, "meet", cores_[0], args), part(1, "meet", cores_[1], args)));
        for (orrStream_t stream : stream_)
            ASSERT_OK(orrStreamSynchronize(stream));
        EXPECT_EQ(words_[0], 3u * all) << round;
    }
}

TEST_F(TwoParts, GridBarriersHoldBothCards) {
    constexpr std::uint64_t kRounds = 10;
    const std::uint32_t all = cores_[0] + cores_[1];
    const TestArgs args{words_, all, kRounds};
    ASSERT_OK(launch(part(0, "take_rounds", cores_[0], args), part(1, "take_rounds", cores_[1], args)));
    for (orrStream_t stream : stream_)
        ASSERT_OK(orrStreamSynchronize(stream));
    for (std::uint32_t group = 0; group < all; ++group)
        EXPECT_EQ(words_[1 + group], kRounds) << group;
    EXPECT_EQ(words_[1 + all], 0u) << "a group was behind others";
}

// A card that ran a slow kernel is ahead of the other, which goes to its time in one jump: no limit of the
// launch over both passes by that.
TEST_F(TwoParts, StartTogetherRightAfterASlowKernel) {
    constexpr std::uint64_t kSteps = 4'000'000;
    make_streams(0);
    orrStreamAttributes attributes = ORR_INIT(orrStreamAttributes);
    attributes.limit_us = 1'000'000'000;
    for (int round = 0; round < 4; ++round) {
        const int slow = round % kCards;
        orrStream_t alone = nullptr;
        ASSERT_OK(orrSetDevice(slow));
        ASSERT_OK(orrStreamCreateWithAttributes(&alone, &attributes));
        orrEvent_t begin = nullptr, end = nullptr;
        ASSERT_OK(orrEventCreate(&begin, 0));
        ASSERT_OK(orrEventCreate(&end, 0));
        std::memset(words_, 0, 4096);
        const TestArgs wait{words_, kSteps, 0};
        ASSERT_OK(orrEventRecord(begin, alone));
        ASSERT_OK(orrLaunchKernel(kernel("linger"), {1, 1, 1}, {1, 1, 1}, &wait, sizeof(wait), 0, alone));
        ASSERT_OK(orrEventRecord(end, alone));
        ASSERT_OK(orrStreamSynchronize(alone));
        double ns = 0;
        ASSERT_OK(orrEventElapsedModelTime(&ns, begin, end));
        EXPECT_GT(ns, 1.1e9) << "no longer than the limit of a launch";
        std::memset(words_, 0, 4096);
        const TestArgs args{words_, 2, 3};
        ASSERT_OK(launch(part(0, "meet", 1, args), part(1, "meet", 1, args)));
        for (orrStream_t stream : stream_)
            ASSERT_OK(orrStreamSynchronize(stream)) << "round " << round;
        EXPECT_EQ(words_[0], 6u);
        EXPECT_OK(orrEventDestroy(begin));
        EXPECT_OK(orrEventDestroy(end));
        EXPECT_OK(orrStreamDestroy(alone));
    }
}

TEST_F(TwoParts, NoPartOutlivesAnotherOnesTrap) {
    const TestArgs args{words_, 1, 1};
    ASSERT_OK(launch(part(0, "spin_for_ever", 2, args), part(1, "trap", 2, args)));
    EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorIllegalInstruction,
                "had a part of the same launch over several devices: kernel 'trap'");
    EXPECT_FAIL(orrStreamSynchronize(stream_[1]), orrErrorIllegalInstruction, "kernel 'trap'");
}

TEST_F(TwoParts, NoPartStartsWithoutTheOther) {
    // Card 1 stops before it comes to its part.
    const TestArgs bad{words_, 1, 8};
    ASSERT_OK(orrLaunchKernel(kernel("store_to"), {1, 1, 1}, {1, 1, 1}, &bad, sizeof(bad), 0, stream_[1]));
    const TestArgs args{words_, 1, 1};
    const orrError_t given = launch(part(0, "meet", 1, args), part(1, "meet", 1, args));
    EXPECT_EQ(orrStreamSynchronize(stream_[1]), orrErrorIllegalAddress);
    if (given == orrSuccess) {
        EXPECT_FAIL(orrStreamSynchronize(stream_[0]), orrErrorIllegalAddress, "kernel 'store_to'");
    } else {  // it was faster, perhaps while card 0 had its part already
        EXPECT_EQ(given, orrErrorIllegalAddress);
        const orrError_t other = orrStreamSynchronize(stream_[0]);
        EXPECT_TRUE(other == orrSuccess || other == given) << orrGetLastErrorText();
    }
    EXPECT_EQ(words_[0], 0u);
}

// Another user's kernel on one card, which has all its cores and lasts longer than ports are ever held.
class TwoPartsBesideAnother : public TwoParts {
  protected:
    void SetUp() override {
        TwoParts::SetUp();
        for (const char* file : {"/tmp/cores-kept", "/tmp/cores-free"})
            ::unlink(file);
    }
    void start(const char* worker) {
        other_ = start_worker(worker);
        while (::access("/tmp/cores-kept", F_OK) != 0) {
            ASSERT_EQ(::waitpid(other_, nullptr, WNOHANG), 0) << "the other one has ended";
            ::usleep(1000);
        }
    }
    void end_other() {
        std::ofstream("/tmp/cores-free") << "1\n";
        EXPECT_EQ(wait_for(other_), 0);
    }
    void launch_over_both() {
        const std::uint32_t all = cores_[0] + cores_[1];
        std::memset(words_, 0, 4096);
        const TestArgs args{words_, all, 3};
        ASSERT_OK(launch(part(0, "meet", cores_[0], args), part(1, "meet", cores_[1], args)));
    }
    void expect_it_has_run() {
        for (orrStream_t stream : stream_)
            ASSERT_OK(orrStreamSynchronize(stream));
        EXPECT_EQ(words_[0], 3u * (cores_[0] + cores_[1]));
    }
    void expect_turns_beside(const char* worker) {
        start(worker);
        if (HasFatalFailure()) return;
        for (int round = 0; round < 3; ++round) {
            launch_over_both();
            expect_it_has_run();
        }
        EXPECT_EQ(::waitpid(other_, nullptr, WNOHANG), 0) << "it should not have ended";
        end_other();
    }
    pid_t other_ = -1;
};

// High priority goes first for 5 ms, and then makes room.
TEST_F(TwoPartsBesideAnother, OfHighPriorityThatDoesNotEnd) {
    expect_turns_beside("keep-cores-high");
}

// A launch as they are, of another user: it makes room at the end of its slice, and goes on behind.
TEST_F(TwoPartsBesideAnother, WithALaunchOfItsOwnThatDoesNotEnd) {
    expect_turns_beside("keep-cores-gang");
}

}  // namespace
}  // namespace orrery::umd::vm
