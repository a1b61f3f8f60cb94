// Subscribers are told of each call, once at its beginning and once at its end.

// Some C++ programs include headers of C like this, so it has to compile.
extern "C" {
#include <orrery/prof.h>
#include <orrery/prof_calls.h>
}

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "tests/unit/prof/heard.h"
#include "tests/unit/umd/fake_winsys.h"
#include "umd/prof/profiler.h"

extern "C" std::size_t bytes_of_memset(const orrProfRecord* record);

namespace orrery::umd::test {
namespace {

orrError_t code(const orrProfRecord& record) {
    return *static_cast<const orrError_t*>(record.result);
}

TEST(Callbacks, TellCallParametersAndResult) {
    FakeSystem system;
    void *memory = nullptr, *allocated = nullptr;
    std::size_t bytes = 0;
    std::vector<orrError_t> codes;
    Heard heard;
    heard.and_then = [&](const orrProfRecord& record) {
        EXPECT_EQ(record.size, sizeof(orrProfRecord));
        if (record.kind == orrProfEnter) {
            EXPECT_EQ(record.result, nullptr);
            bytes += bytes_of_memset(&record);
        } else if (record.call == orrProfCall_orrGetErrorName) {
            EXPECT_STREQ(*static_cast<const char* const*>(record.result), "orrSuccess");
        } else {
            codes.push_back(code(record));
            if (record.call == orrProfCall_orrMalloc)
                allocated = *static_cast<const orrMalloc_params*>(record.params)->ptr;
        }
    };
    ASSERT_EQ(orrMalloc(&memory, 64), orrSuccess);
    ASSERT_EQ(orrMemsetAsync(memory, 1, 48, nullptr), orrSuccess);
    ASSERT_EQ(orrDeviceSynchronize(), orrSuccess);
    ASSERT_EQ(orrFree(&heard), orrErrorInvalidValue);
    EXPECT_STREQ(orrGetErrorName(orrSuccess), "orrSuccess");
    heard.end();
    EXPECT_EQ(heard.words, (Words{"+orrMalloc", "-orrMalloc", "+orrMemsetAsync", "-orrMemsetAsync",
                                  "+orrDeviceSynchronize", "-orrDeviceSynchronize", "+orrFree", "-orrFree",
                                  "+orrGetErrorName", "-orrGetErrorName"}));
    EXPECT_EQ(codes, (std::vector{orrSuccess, orrSuccess, orrSuccess, orrErrorInvalidValue}));
    EXPECT_EQ(allocated, memory);
    EXPECT_EQ(bytes, 48u);
    EXPECT_EQ(heard.records[4].params, nullptr) << "orrDeviceSynchronize has no parameters";
}

TEST(Callbacks, NumberCallsAndNameTheirThread) {
    FakeSystem system;
    Heard heard;
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    ASSERT_OK(orrGetDeviceCount(&count));
    const auto& all = heard.records;
    ASSERT_EQ(all.size(), 4u);
    EXPECT_GT(all[0].correlation, 0u);
    EXPECT_EQ(all[1].correlation, all[0].correlation);
    EXPECT_EQ(all[2].correlation, all[0].correlation + 1);
    EXPECT_EQ(all[3].correlation, all[2].correlation);
    for (const orrProfRecord& record : all)
        EXPECT_EQ(record.thread, static_cast<std::uint64_t>(::gettid()));
    EXPECT_LE(all[0].host_ns, all[1].host_ns);
    EXPECT_LE(all[1].host_ns, all[2].host_ns);
}

TEST(Callbacks, OfTwoSubscribersAreWithinEachOther) {
    FakeSystem system;
    Words order;
    Heard first, second;
    const auto note = [&](const char* who) {
        return [&order, who](const orrProfRecord& record) {
            order.push_back(who + std::string(record.kind == orrProfEnter ? "+" : "-"));
            if (record.kind == orrProfEnter) {
                EXPECT_EQ(*record.data, 0u);
                *record.data = static_cast<std::uint64_t>(who[0]);
            }
            EXPECT_EQ(*record.data, static_cast<std::uint64_t>(who[0])) << "each has a word of its own";
        };
    };
    first.and_then = note("a");
    second.and_then = note("b");
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    EXPECT_EQ(order, (Words{"a+", "b+", "b-", "a-"}));
    EXPECT_EQ(first.records[0].correlation, second.records[0].correlation);
}

TEST(Callbacks, AreNotToldOfCallsThatTheyMake) {
    FakeSystem system;
    Heard first, second;
    first.and_then = [&](const orrProfRecord& record) {
        int device = 0;
        if (record.kind == orrProfEnter) EXPECT_EQ(orrGetDevice(&device), orrSuccess);
    };
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    EXPECT_EQ(first.words, (Words{"+orrGetDeviceCount", "-orrGetDeviceCount"}));
    // The other one is.
    EXPECT_EQ(second.words,
              (Words{"+orrGetDevice", "-orrGetDevice", "+orrGetDeviceCount", "-orrGetDeviceCount"}));
    EXPECT_NE(second.records[0].correlation, second.records[2].correlation);
}

TEST(Callbacks, OfTwoThatBothCallTheApiComeToAnEnd) {
    FakeSystem system;
    Heard first, second;
    const auto call = [](const orrProfRecord&) {
        int device = 0;
        EXPECT_EQ(orrGetDevice(&device), orrSuccess);
    };
    first.and_then = call;
    second.and_then = call;
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    // Its own two; and for each of the other's two the call that it makes, in which that one hears nothing.
    EXPECT_EQ(first.words.size(), 6u);
    EXPECT_EQ(second.words.size(), 6u);
}

// Whether calls of tools fail is not to be seen by the program, nor by each other.
TEST(Callbacks, LeaveTheProgramItsErrorText) {
    FakeSystem system;
    Heard first, second;
    const auto fails = [](const orrProfRecord& record) {
        if (record.call == orrProfCall_orrMalloc && record.kind == orrProfLeave) {
            EXPECT_THAT(orrGetLastErrorText(), ::testing::HasSubstr("null")) << "of the call that failed";
        }
        int none = 0;
        EXPECT_EQ(orrFree(&none), orrErrorInvalidValue);
        EXPECT_THAT(orrGetLastErrorText(),
                    ::testing::HasSubstr(fmt::format("{}", static_cast<const void*>(&none))));
    };
    first.and_then = fails;
    second.and_then = fails;
    EXPECT_EQ(orrMalloc(nullptr, 64), orrErrorInvalidValue);
    const char* const text = orrGetLastErrorText();
    EXPECT_THAT(text, ::testing::HasSubstr("null"));
    int count = 0;
    EXPECT_EQ(orrGetDeviceCount(&count), orrSuccess);
    EXPECT_THAT(text, ::testing::HasSubstr("null")) << "it is valid until the thread's next failure";
    EXPECT_EQ(orrGetLastErrorText(), text);
}

TEST(Callbacks, TellNobodyOfTheEndWhoWasNotToldOfTheBeginning) {
    FakeSystem system;
    std::unique_ptr<Heard> late;
    Heard first;
    first.and_then = [&](const orrProfRecord& record) {
        // The slot before is free, and the one behind: whichever it takes.
        if (record.kind == orrProfLeave && late == nullptr) late = std::make_unique<Heard>();
    };
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    ASSERT_NE(late, nullptr);
    EXPECT_TRUE(late->words.empty());
    ASSERT_OK(orrGetDeviceCount(&count));
    EXPECT_EQ(late->words, (Words{"+orrGetDeviceCount", "-orrGetDeviceCount"}));
}

// The slot of one that ended within the call is another one's at its end.
TEST(Callbacks, OfASlotThatIsGivenOutAnewAreTheNewOnes) {
    FakeSystem system;
    auto before = std::make_unique<Heard>();
    std::unique_ptr<Heard> after;
    Heard second;
    second.and_then = [&](const orrProfRecord&) {
        if (before == nullptr) return;
        EXPECT_EQ(before->words, (Words{"+orrGetDeviceCount"}));
        before.reset();
        after = std::make_unique<Heard>();
    };
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    EXPECT_TRUE(after->words.empty());
}

TEST(Callbacks, ComeNoMoreWhenTheirSubscriptionEnded) {
    FakeSystem system;
    Heard heard;
    const auto subscription = heard.subscription();
    heard.end();
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    EXPECT_EQ(count, 1);
    EXPECT_TRUE(heard.words.empty());
    EXPECT_FAIL(orrProfUnsubscribe(subscription), orrErrorInvalidHandle, "is not a subscription");
}

TEST(Callbacks, MayEndTheirOwnSubscription) {
    FakeSystem system;
    orrProfSubscription_t subscription = nullptr;
    int told = 0;
    struct State {
        orrProfSubscription_t& subscription;
        int& told;
    } state{subscription, told};
    ASSERT_OK(orrProfSubscribe(
        &subscription,
        [](void* user, const orrProfRecord*) {
            auto& in = *static_cast<State*>(user);
            ++in.told;
            EXPECT_OK(orrProfUnsubscribe(in.subscription));
        },
        &state, nullptr));
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    ASSERT_OK(orrGetDeviceCount(&count));
    EXPECT_EQ(told, 1) << "not even of the end";
}

TEST(Callbacks, AreOfAsManySubscriptionsAsTheHeaderSays) {
    FakeSystem system;
    for (int round = 0; round < 3; ++round) {
        std::vector<std::unique_ptr<Heard>> all;
        for (unsigned i = 0; i < orrProfMaxSubscriptions; ++i)
            all.push_back(std::make_unique<Heard>());
        int count = 0;
        ASSERT_OK(orrGetDeviceCount(&count));
        for (const auto& each : all)
            EXPECT_EQ(each->words.size(), 2u);
        orrProfSubscription_t another = nullptr;
        EXPECT_FAIL(orrProfSubscribe(
                        &another, [](void*, const orrProfRecord*) {}, nullptr, nullptr),
                    orrErrorOutOfMemory, "8 subscriptions");
    }
}

TEST(Callbacks, WantWhatThereIs) {
    orrProfSubscription_t subscription = nullptr;
    const auto nothing = [](void*, const orrProfRecord*) {};
    EXPECT_FAIL(orrProfSubscribe(nullptr, nothing, nullptr, nullptr), orrErrorInvalidValue, "subscription");
    EXPECT_FAIL(orrProfSubscribe(&subscription, nullptr, nullptr, nullptr), orrErrorInvalidValue, "callback");
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want = 1ull << 40;
    EXPECT_FAIL(orrProfSubscribe(&subscription, nothing, nullptr, &options), orrErrorInvalidValue, "flags");
    EXPECT_FAIL(orrProfUnsubscribe(nullptr), orrErrorInvalidHandle, "is not a subscription");
}

// What an entry point looks at.
TEST(Callbacks, CostNothingOnceNobodyWantsThem) {
    FakeSystem system;
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    EXPECT_EQ(prof_wanted.load(), 0u);
    {
        Heard calls(orrProfWantCalls), ranges(orrProfWantRanges);
        EXPECT_EQ(prof_wanted.load(), orrProfWantCalls | orrProfWantRanges);
    }
    EXPECT_EQ(prof_wanted.load(), 0u);
}

TEST(Callbacks, AreToldOnlyOfWhatTheyWant) {
    FakeSystem system;
    Heard calls(orrProfWantCalls), ranges(orrProfWantRanges);
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    ASSERT_OK(orrProfMark(nullptr, "here"));
    EXPECT_EQ(calls.words, (Words{"+orrGetDeviceCount", "-orrGetDeviceCount"}));
    EXPECT_EQ(ranges.words, (Words{"!here"}));
}

}  // namespace
}  // namespace orrery::umd::test
