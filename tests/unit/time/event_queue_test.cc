#include "emulator/time/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "emulator/time/rate.h"

namespace orrery::emu {
namespace {

struct Probe {
    explicit Probe(std::vector<int>& events, int number) : trace(events), id(number) {}
    void fire(ModelTime now) {
        trace.push_back(id);
        fired_at = now;
    }
    std::vector<int>& trace;
    int id;
    ModelTime fired_at = kNever;
    Event event = Event::of<&Probe::fire>(this);
};

TEST(EventQueue, FiresInOrderOfTime) {
    std::vector<int> trace;
    Probe a(trace, 1), b(trace, 2), c(trace, 3);
    EventQueue queue;
    queue.schedule(c.event, 30);
    queue.schedule(a.event, 10);
    queue.schedule(b.event, 20);
    EXPECT_EQ(queue.next_time(), 10u);
    while (queue.run_next(kNever)) {
    }
    EXPECT_EQ(trace, (std::vector{1, 2, 3}));
    EXPECT_EQ(queue.now(), 30u);
    EXPECT_EQ(b.fired_at, 20u);
    EXPECT_EQ(queue.fired(), 3u);
}

// Who watches sees the clock where the event is, before it fires, and once.
TEST(EventQueue, IsWatchedAtTheFirstEventBehindATime) {
    struct Watcher {
        EventQueue queue;
        std::vector<int> trace;
        std::vector<ModelTime> seen;
        static void look(void* self) {
            auto& watcher = *static_cast<Watcher*>(self);
            watcher.seen.push_back(watcher.queue.now());
            watcher.trace.push_back(0);
        }
    } all;
    Probe a(all.trace, 1), b(all.trace, 2), c(all.trace, 3);
    all.queue.schedule(a.event, 10);
    all.queue.schedule(b.event, 20);
    all.queue.schedule(c.event, 20);
    all.queue.watch(11, &Watcher::look, &all);
    while (all.queue.run_next(kNever)) {
    }
    EXPECT_EQ(all.trace, (std::vector{1, 0, 2, 3}));
    EXPECT_EQ(all.seen, std::vector<ModelTime>{20});
    EXPECT_EQ(all.queue.fired(), 3u);
    // At the time itself too; and not once nobody does.
    all.queue.schedule(a.event, 30);
    all.queue.watch(30, &Watcher::look, &all);
    all.queue.run_next(kNever);
    all.queue.schedule(a.event, 40);
    all.queue.watch(35, &Watcher::look, &all);
    all.queue.watch(kNever, nullptr, nullptr);
    all.queue.run_next(kNever);
    EXPECT_EQ(all.seen, (std::vector<ModelTime>{20, 30}));
}

TEST(EventQueue, FiresEventsOfOneTimeInOrderOfScheduling) {
    std::vector<int> trace;
    std::deque<Probe> probes;
    EventQueue queue;
    std::vector<int> expected;
    for (int i = 0; i < 100; ++i) {
        probes.emplace_back(trace, i);
        queue.schedule(probes.back().event, 5);
        expected.push_back(i);
    }
    while (queue.run_next(kNever)) {
    }
    EXPECT_EQ(trace, expected);
}

TEST(EventQueue, LowerRanksFireFirstOfTheirTime) {
    std::vector<int> trace;
    Probe own(trace, 1), second(trace, 2), first(trace, 3), later(trace, 4);
    second.event.set_rank(2);
    first.event.set_rank(1);
    later.event.set_rank(1);
    EventQueue queue;
    queue.schedule(own.event, 10);
    queue.schedule(second.event, 10);
    queue.schedule(first.event, 10);
    queue.schedule(later.event, 11);
    while (queue.run_next(kNever)) {
    }
    EXPECT_EQ(trace, (std::vector{3, 2, 1, 4}));
}

TEST(EventQueue, RespectsTheLimitAndKeepsTheClock) {
    std::vector<int> trace;
    Probe a(trace, 1);
    EventQueue queue;
    queue.schedule(a.event, 100);
    EXPECT_FALSE(queue.run_next(99));
    EXPECT_EQ(queue.now(), 0u);
    queue.advance_to(250);
    EXPECT_EQ(queue.now(), 100u) << "the clock never passes an event";
    EXPECT_EQ(queue.run_due(), 1u);
    EXPECT_EQ(a.fired_at, 100u);
    queue.advance_to(250);
    EXPECT_EQ(queue.now(), 250u);
    queue.advance_to(3);
    EXPECT_EQ(queue.now(), 250u);
    queue.schedule(a.event, 10);
    EXPECT_EQ(a.event.time(), 250u);
}

// An event that is not done goes on before all others, those of its own time too, until it is done.
TEST(EventQueue, OneThatIsNotDoneGoesOnBeforeAllOthers) {
    std::vector<int> trace;
    EventQueue queue;
    struct Slow {
        void fire(ModelTime) {
            trace.push_back(goes);
            if (--goes > 0) queue.again(event);
        }
        std::vector<int>& trace;
        EventQueue& queue;
        int goes = 3;
        Event event = Event::of<&Slow::fire>(this);
    } slow{trace, queue};
    Probe other(trace, 10);
    queue.schedule(slow.event, 5);
    queue.schedule(other.event, 5);
    EXPECT_TRUE(queue.run_next(kNever));
    EXPECT_TRUE(queue.unfinished());
    queue.advance_to(100);
    EXPECT_EQ(queue.now(), 5u);
    while (queue.run_next(kNever)) {
    }
    EXPECT_EQ(trace, (std::vector{3, 2, 1, 10}));
    EXPECT_FALSE(queue.unfinished());
    EXPECT_EQ(queue.fired(), 2u);
    // One that is cancelled meanwhile holds nobody up.
    slow.goes = 2;
    queue.schedule(slow.event, 6);
    queue.run_next(kNever);
    queue.cancel(slow.event);
    EXPECT_FALSE(queue.unfinished());
}

TEST(EventQueue, CancelsAndReschedules) {
    std::vector<int> trace;
    Probe a(trace, 1), b(trace, 2), c(trace, 3);
    EventQueue queue;
    queue.schedule(a.event, 10);
    queue.schedule(b.event, 20);
    queue.schedule(c.event, 30);
    queue.cancel(b.event);
    EXPECT_FALSE(b.event.scheduled());
    queue.cancel(b.event);
    queue.schedule(a.event, 40);
    while (queue.run_next(kNever)) {
    }
    EXPECT_EQ(trace, (std::vector{3, 1}));
    queue.schedule(a.event, 50);
    queue.schedule(a.event, kNever);
    EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, AnEventThatDiesLeavesTheQueue) {
    std::vector<int> trace;
    EventQueue queue;
    auto a = std::make_unique<Probe>(trace, 1);
    Probe b(trace, 2);
    queue.schedule(a->event, 10);
    queue.schedule(b.event, 20);
    a.reset();
    EXPECT_EQ(queue.size(), 1u);
    EXPECT_EQ(queue.next_time(), 20u);
}

TEST(EventQueue, AQueueThatDiesLetsGoOfItsEvents) {
    std::vector<int> trace;
    Probe a(trace, 1);
    {
        EventQueue queue;
        queue.schedule(a.event, 10);
    }
    EXPECT_FALSE(a.event.scheduled());
}

struct Chain {
    void fire(ModelTime now) {
        times.push_back(now);
        if (times.size() < 5) queue.schedule(event, now + 7);
    }
    EventQueue& queue;
    std::vector<ModelTime> times;
    Event event = Event::of<&Chain::fire>(this);
};

TEST(EventQueue, AHandlerMayScheduleItself) {
    EventQueue queue;
    Chain chain{queue, {}};
    queue.schedule(chain.event, 1);
    while (queue.run_next(kNever)) {
    }
    EXPECT_EQ(chain.times, (std::vector<ModelTime>{1, 8, 15, 22, 29}));
}

TEST(EventQueue, AgreesWithASortedListOnRandomOperations) {
    std::mt19937_64 random(7);
    std::vector<int> trace;
    std::deque<Probe> probes;
    for (int i = 0; i < 300; ++i)
        probes.emplace_back(trace, i);
    EventQueue queue;
    // What a list sorted by (time, order of scheduling) would hold.
    std::vector<std::pair<ModelTime, int>> model;
    std::vector<int> expected;
    const auto forget = [&](int id) {
        std::erase_if(model, [id](const auto& entry) { return entry.second == id; });
    };
    for (int step = 0; step < 20000; ++step) {
        const auto id = static_cast<int>(random() % probes.size());
        Probe& probe = probes[static_cast<std::size_t>(id)];
        switch (random() % 4) {
            case 0:
            case 1: {
                const ModelTime at = queue.now() + random() % 50;
                forget(id);
                const auto place =
                    std::upper_bound(model.begin(), model.end(), at,
                                     [](ModelTime t, const auto& entry) { return t < entry.first; });
                model.insert(place, {at, id});
                queue.schedule(probe.event, at);
                break;
            }
            case 2:
                forget(id);
                queue.cancel(probe.event);
                break;
            default:
                if (!model.empty()) {
                    expected.push_back(model.front().second);
                    model.erase(model.begin());
                }
                queue.run_next(kNever);
        }
        ASSERT_EQ(queue.size(), model.size());
    }
    EXPECT_EQ(trace, expected);
    EXPECT_GT(trace.size(), 1000u);
}

TEST(Rate, IsExactAndRoundsUp) {
    EXPECT_EQ(duration_ps(1, 1'000'000'000), 1000u);
    EXPECT_EQ(duration_ps(1, 3), 333'333'333'334u);
    EXPECT_EQ(duration_ps(0, 5), 0u);
    EXPECT_EQ(duration_ps(~0ull, 1), kNever - 1);
    EXPECT_EQ(duration_ps(64ull << 20, 32'000'000'000), 2'097'152'000u);
    EXPECT_EQ(later(kNever - 1, 5), kNever);
}

}  // namespace
}  // namespace orrery::emu
