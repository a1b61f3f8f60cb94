// What the firmware says is not believed: messages as no healthy firmware sends them.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/vm/kmod/fixture.h"

namespace orrery::kmod_test {
namespace {

orr_mbox_message event(std::uint16_t opcode, std::uint64_t first = 0, std::uint64_t second = 0) {
    orr_mbox_message message{};
    message.opcode = opcode;
    message.arg[0] = first;
    message.arg[1] = second;
    return message;
}

// Of a cycle of waits: `from` waits for `to`.
orr_mbox_message edge(std::uint64_t report, std::uint64_t position, std::uint64_t edges, std::uint64_t from,
                      std::uint64_t to) {
    return event(ORR_EVENT_DEADLOCK, report | position << 32 | edges << 48, from | to << 32);
}

class Messages : public RootTest {
  protected:
    std::uint32_t edges_shown() const {
        drm_orr_query_deadlock query{};
        EXPECT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_DEADLOCK, &query), 0);
        return query.count;
    }
};

TEST_F(Messages, CyclesThatAreNoneEnd) {
    const Queue first(fd(), vm_, kRingVa, 64, ORR_BO_SYSTEM, "first");
    const Queue a(fd(), vm_, kRingVa + (1 << 20), 64, ORR_BO_SYSTEM, "a");
    const Queue b(fd(), vm_, kRingVa + (2 << 20), 64, ORR_BO_SYSTEM, "b");
    const unsigned numbers[] = {number_of_queue("first"), number_of_queue("a"), number_of_queue("b")};
    // first -> a -> b -> a, and each edge names another length: no look at one of them finds the end.
    ASSERT_TRUE(inject(edge(7, 0, 1, numbers[2], numbers[1])));
    ASSERT_TRUE(inject(edge(7, 0, 2, numbers[1], numbers[2])));
    ASSERT_TRUE(inject(edge(7, 0, 5, numbers[0], numbers[1])));
    EXPECT_EQ(edges_shown(), 0u);
    // A circle that is too short, too long, or of two reports.
    ASSERT_TRUE(inject(edge(8, 0, 3, numbers[1], numbers[2])));
    ASSERT_TRUE(inject(edge(8, 1, 3, numbers[2], numbers[1])));
    EXPECT_EQ(edges_shown(), 0u);
    ASSERT_TRUE(inject(edge(9, 0, 1, numbers[1], numbers[2])));
    ASSERT_TRUE(inject(edge(10, 1, 2, numbers[2], numbers[1])));
    EXPECT_EQ(edges_shown(), 0u);
    // A whole one of queues that do not wait: the firmware is asked, and denies it.
    ASSERT_TRUE(inject(edge(11, 0, 2, numbers[1], numbers[2])));
    ASSERT_TRUE(inject(edge(11, 1, 2, numbers[2], numbers[1])));
    EXPECT_EQ(edges_shown(), 0u);
}

TEST_F(Messages, NumbersOutOfRangeAreIgnored) {
    for (const std::uint64_t number :
         {std::uint64_t{1023}, std::uint64_t{1024}, ~std::uint64_t{0} >> 32, ~std::uint64_t{0}}) {
        ASSERT_TRUE(inject(event(ORR_EVENT_QUEUE_ERROR, number, ORR_QERR_FAULT)));
        ASSERT_TRUE(inject(edge(12, 0, 1, number & 0xffffffff, number & 0xffffffff)));
        ASSERT_TRUE(inject(event(ORR_EVENT_DEADLOCK, number, number)));
    }
    orr_mbox_message log = event(ORR_EVENT_LOG);
    std::memset(log.arg, 0x1b, sizeof log.arg);
    ASSERT_TRUE(inject(log));
    ASSERT_TRUE(inject(event(0xffff, ~std::uint64_t{0})));
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    EXPECT_EQ(queue.run(std::vector{nop()}), 0);
}

// Nothing of a queue's state is taken from the event: the status line says that it works.
TEST_F(Messages, AnErrorThatTheStatusLineDoesNotShow) {
    Queue queue(fd(), vm_, kRingVa, 64, ORR_BO_SYSTEM, "healthy");
    ASSERT_EQ(queue.error(), 0);
    ASSERT_TRUE(inject(event(ORR_EVENT_QUEUE_ERROR, number_of_queue("healthy"), ORR_QERR_FAULT)));
    EXPECT_EQ(queue.run(std::vector{nop()}), 0);
}

}  // namespace
}  // namespace orrery::kmod_test
