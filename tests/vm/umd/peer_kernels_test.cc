// Kernels in the memory of other cards, over the links of all that there are.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

class PeerKernels : public ::testing::Test {
  protected:
    void SetUp() override {
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        ASSERT_GE(count, 2);
        for (int device = 0; device < count; ++device)
            cards_.push_back(std::make_unique<Card>(device, kNoLimitUs));
        for (int device = 0; device < count; ++device) {
            for (int peer = 0; peer < count; ++peer) {
                if (peer == device) continue;
                ASSERT_OK(orrSetDevice(device));
                ASSERT_OK(orrDeviceEnablePeerAccess(peer, 0));
            }
        }
    }
    static std::uint64_t* words_on(int device, std::size_t words, int byte = 0) {
        void* memory = nullptr;
        EXPECT_OK(orrSetDevice(device));
        EXPECT_OK(orrMalloc(&memory, 8 * words));
        EXPECT_OK(orrMemset(memory, byte, 8 * words));
        return static_cast<std::uint64_t*>(memory);
    }
    static void put(std::uint64_t* to, const std::vector<std::uint64_t>& words) {
        ASSERT_OK(orrMemcpy(to, words.data(), 8 * words.size(), orrMemcpyHostToDevice));
    }
    static std::vector<std::uint64_t> get(const std::uint64_t* from, std::size_t words) {
        std::vector<std::uint64_t> got(words);
        EXPECT_OK(orrMemcpy(got.data(), from, 8 * words, orrMemcpyDeviceToHost));
        return got;
    }
    // As the kernels have it.
    static std::uint64_t va(const std::uint64_t* words) { return reinterpret_cast<std::uintptr_t>(words); }
    int last() const { return static_cast<int>(cards_.size()) - 1; }

    std::vector<std::unique_ptr<Card>> cards_;
};

TEST_F(PeerKernels, SumWhatStandsOnAnotherCard) {
    constexpr std::uint64_t kWords = 3000;
    std::vector<std::uint64_t> words(kWords);
    for (int owner = 0; owner <= last(); ++owner) {
        std::iota(words.begin(), words.end(), 1000 * owner);
        std::uint64_t* const there = words_on(owner, kWords);
        put(there, words);
        std::vector<std::uint64_t*> sums;
        for (auto& card : cards_) {
            sums.push_back(words_on(card->device, 1));
            ASSERT_OK(card->launch("sum_there", {sums.back(), kWords, va(there)}, 8, 4));
        }
        for (auto& card : cards_)
            ASSERT_OK(orrStreamSynchronize(card->stream));
        for (std::uint64_t* sum : sums) {
            EXPECT_EQ(get(sum, 1)[0], std::accumulate(words.begin(), words.end(), std::uint64_t{0}));
            ASSERT_OK(orrFree(sum));
        }
        ASSERT_OK(orrFree(there));
    }
}

// After the synchronize they are there: also three links away, and for another card's kernel.
TEST_F(PeerKernels, WriteToAnotherCard) {
    constexpr std::uint64_t kWords = 5000;
    std::uint64_t* const there = words_on(last(), kWords);
    std::uint64_t* const here = words_on(0, kWords);
    std::vector<std::uint64_t> words(kWords);
    for (unsigned round = 0; round < 3; ++round) {
        std::iota(words.begin(), words.end(), round);
        put(here, words);
        ASSERT_OK(cards_[0]->launch("write_there", {here, kWords, va(there)}, 8, 4));
        ASSERT_OK(orrStreamSynchronize(cards_[0]->stream));
        std::ranges::for_each(words, [](std::uint64_t& word) { ++word; });
        EXPECT_EQ(get(there, kWords), words);
    }
    ASSERT_OK(orrFree(there));
    ASSERT_OK(orrFree(here));
}

TEST_F(PeerKernels, AllCountInOneCardsBins) {
    constexpr std::uint64_t kWords = 600, kGroups = 8, kItems = 2;
    std::uint64_t* const bins = words_on(0, 17);
    std::vector<std::uint64_t> expected(17), words(kWords);
    std::vector<std::uint64_t*> inputs;
    std::mt19937_64 random(3);
    for (auto& card : cards_) {
        for (std::uint64_t& word : words) {
            word = random();
            ++expected[word % 16];
        }
        inputs.push_back(words_on(card->device, kWords));
        put(inputs.back(), words);
    }
    expected[16] = kGroups * kItems * cards_.size();
    for (auto& card : cards_)
        ASSERT_OK(card->launch("count_there",
                               {inputs[static_cast<std::size_t>(card->device)], kWords, va(bins)}, kGroups,
                               kItems));
    for (auto& card : cards_)
        ASSERT_OK(orrStreamSynchronize(card->stream));
    EXPECT_EQ(get(bins, 17), expected);
    for (std::uint64_t* input : inputs)
        ASSERT_OK(orrFree(input));
    ASSERT_OK(orrFree(bins));
}

// In whatever order they come, all of the atomics that there are, with 64 and with 32 bits.
template <typename Unsigned>
struct Combined {
    using Signed = std::make_signed_t<Unsigned>;
    std::array<Unsigned, kCombined> words{};
    Combined() {
        words[kMin] = static_cast<Unsigned>(std::numeric_limits<Signed>::max());
        words[kMax] = static_cast<Unsigned>(std::numeric_limits<Signed>::min());
        words[kUmin] = words[kAnd] = std::numeric_limits<Unsigned>::max();
    }
    void take(Unsigned value) {
        words[kSwapped] += value;  // with what is left in kSwap
        words[kAdd] += value;
        words[kCompareSwap] += value;
        const auto with_sign = [&](Unsigned which) { return static_cast<Signed>(words[which]); };
        words[kMin] = static_cast<Unsigned>(std::min(with_sign(kMin), static_cast<Signed>(value)));
        words[kMax] = static_cast<Unsigned>(std::max(with_sign(kMax), static_cast<Signed>(value)));
        words[kUmin] = std::min(words[kUmin], value);
        words[kUmax] = std::max(words[kUmax], value);
        words[kAnd] &= value;
        words[kOr] |= value;
        words[kXor] ^= value;
    }
    void expect(Combined got) const {
        got.words[kSwapped] += std::exchange(got.words[kSwap], Unsigned{0});
        EXPECT_EQ(got.words, words);
    }
};

TEST_F(PeerKernels, AllCombineInOneCardsWords) {
    constexpr std::uint64_t kInputs = 48, kGroups = 4, kItems = 2;
    struct Both {
        Combined<std::uint64_t> wide;
        Combined<std::uint32_t> narrow;
    };
    Both expected, got;
    static_assert(sizeof(Both) == 12 * kCombined + 4, "narrow follows wide");
    std::uint64_t* const there = words_on(0, (sizeof(Both) + 7) / 8);
    ASSERT_OK(orrMemcpy(there, &expected, sizeof expected, orrMemcpyHostToDevice));
    std::vector<std::uint64_t> words(kInputs);
    std::vector<std::uint64_t*> inputs;
    std::mt19937_64 random(7);
    for (auto& card : cards_) {
        for (std::uint64_t& word : words) {
            // Some bits stand in all of them, and some in none.
            word = (random() | 0x0000'1000'0000'1000) & ~std::uint64_t{0x0010'0000'0010'0000};
            expected.wide.take(word);
            expected.narrow.take(static_cast<std::uint32_t>(word));
        }
        inputs.push_back(words_on(card->device, kInputs));
        put(inputs.back(), words);
    }
    for (auto& card : cards_)
        ASSERT_OK(card->launch("combine_there",
                               {inputs[static_cast<std::size_t>(card->device)], kInputs, va(there)}, kGroups,
                               kItems));
    for (auto& card : cards_)
        ASSERT_OK(orrStreamSynchronize(card->stream));
    ASSERT_OK(orrMemcpy(&got, there, sizeof got, orrMemcpyDeviceToHost));
    expected.wide.expect(got.wide);
    expected.narrow.expect(got.narrow);
    for (std::uint64_t* input : inputs)
        ASSERT_OK(orrFree(input));
    ASSERT_OK(orrFree(there));
}

// Each load looks anew.
TEST_F(PeerKernels, PollAnothersWord) {
    std::uint64_t* const there = words_on(last(), 1);
    std::uint64_t* const here = words_on(0, 1);
    ASSERT_OK(cards_[0]->launch("poll_there", {here, 1, va(there)}));
    ::usleep(20'000);
    EXPECT_EQ(orrStreamQuery(cards_[0]->stream), orrErrorNotReady);
    ASSERT_OK(orrSetDevice(last()));
    ASSERT_OK(orrMemset(there, 7, 8));
    ASSERT_OK(orrStreamSynchronize(cards_[0]->stream));
    EXPECT_EQ(get(here, 1)[0], 0x0707'0707'0707'0707);
    ASSERT_OK(orrFree(there));
    ASSERT_OK(orrFree(here));
}

// While one waits for answers, others have their turn: a time slice takes it off its cores.
TEST_F(PeerKernels, LetOthersHaveTheirTurn) {
    std::uint64_t* const there = words_on(last(), 1);
    std::uint64_t* const here = words_on(0, 1);
    std::uint64_t* const counted = words_on(last(), 17);
    constexpr std::uint64_t kWords = 64;
    std::uint64_t* const zeros = words_on(0, kWords);
    // On all cores, and some more.
    ASSERT_OK(cards_[0]->launch("poll_there", {here, 1, va(there)}, 512));
    Card other(0, kNoLimitUs);
    for (unsigned round = 0; round < 5; ++round)
        ASSERT_OK(other.launch("count_there", {zeros, kWords, va(counted)}, 4));
    ASSERT_OK(orrStreamSynchronize(other.stream));
    EXPECT_EQ(orrStreamQuery(cards_[0]->stream), orrErrorNotReady);
    EXPECT_EQ(get(counted, 17)[0], 5 * kWords);
    EXPECT_EQ(get(counted, 17)[16], 5u * 4);
    ASSERT_OK(orrSetDevice(last()));
    ASSERT_OK(orrMemset(there, 1, 8));
    ASSERT_OK(orrStreamSynchronize(cards_[0]->stream));
    for (std::uint64_t* words : {there, here, counted, zeros})
        ASSERT_OK(orrFree(words));
}

// Time slices take those that count off their cores, again and again: nothing is counted twice or not at all.
TEST_F(PeerKernels, CountInTurns) {
    // All cores, for several slices.
    constexpr std::uint64_t kWords = 8'192, kRounds = 2, kGroups = 8;
    std::uint64_t* const counted = words_on(last(), 17);
    std::uint64_t* const zeros = words_on(0, kWords);
    const auto preemptions = [] {
        std::uint64_t number = 0;
        std::ifstream("/sys/class/accel/accel0/device/counters/preemptions") >> number;
        return number;
    };
    const std::uint64_t before = preemptions();
    Card other(0, kNoLimitUs);
    // All is queued before any of it begins: else a process that stands still in between lets them never
    // meet.
    orrSemaphore_t gate = nullptr;
    ASSERT_OK(orrSetDevice(0));
    ASSERT_OK(orrSemaphoreCreate(&gate, 0));
    for (const Card* card : {cards_[0].get(), &other})
        ASSERT_OK(orrStreamWaitSemaphore(card->stream, gate, 1, nullptr));
    for (unsigned round = 0; round < kRounds; ++round) {
        ASSERT_OK(cards_[0]->launch("count_there", {zeros, kWords, va(counted)}, kGroups));
        ASSERT_OK(other.launch("count_there", {zeros, kWords, va(counted)}, kGroups));
    }
    ASSERT_OK(orrSemaphoreSignal(gate, 1));
    ASSERT_OK(orrStreamSynchronize(cards_[0]->stream));
    ASSERT_OK(orrStreamSynchronize(other.stream));
    EXPECT_EQ(get(counted, 17)[0], 2 * kRounds * kWords);
    EXPECT_EQ(get(counted, 17)[16], 2 * kRounds * kGroups);
    EXPECT_GT(preemptions(), before);
    ASSERT_OK(orrSemaphoreDestroy(gate));
    for (std::uint64_t* words : {counted, zeros})
        ASSERT_OK(orrFree(words));
}

TEST_F(PeerKernels, LearnThatTheLinkWent) {
    std::uint64_t* const there = words_on(1, 1);
    std::uint64_t* const here = words_on(0, 1);
    ASSERT_OK(cards_[0]->launch("poll_there", {here, 1, va(there)}));
    ::usleep(20'000);
    EXPECT_EQ(orrStreamQuery(cards_[0]->stream), orrErrorNotReady);
    bool cut = false;
    for (const char* port : {"0", "1"}) {
        const std::string link = std::string("/sys/class/accel/accel0/device/links/") + port + "/";
        const int fd = ::open((link + "reset").c_str(), O_WRONLY);
        if (fd < 0) continue;
        cut |= ::write(fd, "1", 1) == 1;
        ::close(fd);
    }
    ASSERT_TRUE(cut);
    EXPECT_FAIL(orrStreamSynchronize(cards_[0]->stream), orrErrorPeerAccess, "kernel 'poll_there' accessed");
    EXPECT_THAT(orrGetLastErrorText(),
                ::testing::HasSubstr("over a link that is down (memory of device 1; the link from port "));
    ASSERT_OK(orrSetDevice(1));
    ASSERT_OK(orrMemset(there, 1, 8)) << "its owner is not concerned";
    // And when the link is up again, it goes on.
    cards_[0]->renew_stream();
    int can = 0;
    for (int tries = 0; tries < 12'000 && can == 0; ++tries) {
        ::usleep(5'000);
        ASSERT_OK(orrDeviceCanAccessPeer(&can, 0, 1));
    }
    ASSERT_EQ(can, 1);
    ASSERT_OK(cards_[0]->launch("poll_there", {here, 1, va(there)}));
    ASSERT_OK(orrStreamSynchronize(cards_[0]->stream));
    EXPECT_EQ(get(here, 1)[0], 0x0101'0101'0101'0101);
    for (std::uint64_t* words : {there, here})
        ASSERT_OK(orrFree(words));
}

}  // namespace
}  // namespace orrery::umd::vm
