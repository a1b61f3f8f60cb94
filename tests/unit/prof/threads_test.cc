// Subscriptions that end while other threads are in their callbacks.
#include <orrery/prof.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <thread>

#include "tests/unit/prof/heard.h"
#include "umd/prof/profiler.h"

namespace orrery::umd::test {
namespace {

using namespace std::chrono_literals;

// One whose callback stays until it is let go.
struct Blocker {
    std::promise<void> inside, go;
    std::atomic<bool> left{false};
    std::atomic<int> begun{0};
    orrProfSubscription_t subscription = nullptr;
    std::thread caller;

    Blocker() {
        EXPECT_OK(orrProfSubscribe(
            &subscription,
            [](void* user, const orrProfRecord*) {
                auto& self = *static_cast<Blocker*>(user);
                if (self.begun.fetch_add(1) > 0) return;
                self.inside.set_value();
                self.go.get_future().wait();
                self.left.store(true);
            },
            this, nullptr));
        caller = std::thread([] { (void)orrGetErrorName(orrSuccess); });
        inside.get_future().wait();
    }
    ~Blocker() { caller.join(); }
};

TEST(Unsubscribe, WaitsForCallbacksOfOtherThreads) {
    Blocker blocker;
    std::thread late([&] {
        std::this_thread::sleep_for(20ms);
        blocker.go.set_value();
    });
    EXPECT_OK(orrProfUnsubscribe(blocker.subscription));
    EXPECT_TRUE(blocker.left.load());
    late.join();
}

TEST(Unsubscribe, SaysWhenACallbackDoesNotReturn) {
    Blocker blocker;
    const auto stuck = Profiler::get().unsubscribe(blocker.subscription, 5ms);
    ASSERT_FALSE(stuck);
    EXPECT_EQ(stuck.error().code, orrErrorTimeout);
    EXPECT_THAT(stuck.error().text, ::testing::HasSubstr("has not returned for 5 ms"));
    // Others go on meanwhile, and it is told nothing more.
    Heard other;
    (void)orrGetErrorName(orrSuccess);
    EXPECT_EQ(other.words.size(), 2u);
    EXPECT_EQ(blocker.begun.load(), 1);
    blocker.go.set_value();
    EXPECT_OK(orrProfUnsubscribe(blocker.subscription));
    EXPECT_TRUE(blocker.left.load());
    EXPECT_FAIL(orrProfUnsubscribe(blocker.subscription), orrErrorInvalidHandle, "is not a subscription");
}

TEST(Unsubscribe, IsTheLastThatASubscriberHears) {
    std::atomic<bool> over{false};
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) {
        callers.emplace_back([&] {
            while (!over.load())
                (void)orrGetErrorName(orrSuccess);
        });
    }
    struct Life {
        std::atomic<bool> ended{false};
        std::atomic<std::uint64_t> told{0}, late{0};
    };
    std::vector<std::unique_ptr<Life>> lives;
    for (int round = 0; round < 200; ++round) {
        lives.push_back(std::make_unique<Life>());
        Life& life = *lives.back();
        orrProfSubscription_t subscription = nullptr;
        ASSERT_OK(orrProfSubscribe(
            &subscription,
            [](void* user, const orrProfRecord*) {
                auto& own = *static_cast<Life*>(user);
                own.told.fetch_add(1);
                if (own.ended.load()) own.late.fetch_add(1);
            },
            &life, nullptr));
        while (life.told.load() < 4)
            std::this_thread::yield();
        ASSERT_OK(orrProfUnsubscribe(subscription));
        life.ended.store(true);
    }
    over.store(true);
    for (std::thread& caller : callers)
        caller.join();
    for (const auto& life : lives)
        EXPECT_EQ(life->late.load(), 0u);
}

// The threads that were in callbacks are not there.
TEST(Unsubscribe, InAChildDoesNotWaitForItsParentsThreads) {
    Blocker blocker;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(Profiler::get().unsubscribe(blocker.subscription, 1000ms) ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    blocker.go.set_value();
    EXPECT_OK(orrProfUnsubscribe(blocker.subscription));
}

TEST(Records, OfAChildNameItsThread) {
    Heard heard;
    (void)orrGetErrorName(orrSuccess);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        (void)orrGetErrorName(orrSuccess);
        ::_exit(heard.records.back().thread == static_cast<std::uint64_t>(::getpid()) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace orrery::umd::test
