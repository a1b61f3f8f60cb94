// Cycles of waits: told with names to those who take part, hidden from others, and over when somebody
// signals.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/vm/kmod/device.h"
#include "tests/vm/sched/bench.h"

namespace orrery::sched_test {
namespace {

using kmod_test::Buffer;
using kmod_test::File;
using kmod_test::kLong;
using kmod_test::Queue;

TEST(Deadlock, IsToldByNamesAndResolvedFromOutside) {
    const Card card(0);
    Stream left("left"), right("right");
    const Semaphore halo("halo ready"), flux("flux ready");
    flux.wait_on(left);
    halo.signal_on(left, 2);
    halo.wait_on(right);
    flux.signal_on(right);
    EXPECT_FAIL(orrStreamSynchronize(left.get()), orrErrorDeadlock, "deadlock of 2 streams on device 0");
    const std::string text = orrGetLastErrorText();
    EXPECT_THAT(text,
                ::testing::HasSubstr("stream 'left' waits for semaphore 'flux ready' to reach 1 (it is 0), "
                                     "which stream 'right' would signal"));
    EXPECT_THAT(text,
                ::testing::HasSubstr("stream 'right' waits for semaphore 'halo ready' to reach 1 (it is "
                                     "0), which stream 'left' would signal"));
    EXPECT_FAIL(orrStreamSynchronize(right.get()), orrErrorDeadlock, "halo ready");
    halo.signal();
    EXPECT_OK(orrStreamSynchronize(left.get()));
    EXPECT_OK(orrStreamSynchronize(right.get()));
}

TEST(Deadlock, OfAStreamWithItself) {
    const Card card(0);
    const Stream stream("narcissus");
    const Semaphore echo("echo");
    echo.wait_on(stream);
    echo.signal_on(stream, 2);
    EXPECT_FAIL(
        orrStreamSynchronize(stream.get()), orrErrorDeadlock,
        "stream 'narcissus' waits for semaphore 'echo' to reach 1 (it is 0), which stream 'narcissus'");
    echo.signal();
    EXPECT_OK(orrStreamSynchronize(stream.get()));
}

TEST(Deadlock, AWaitForTheHostIsNone) {
    const Card card(0);
    const Stream stream("patient");
    const Semaphore host("host");
    host.wait_on(stream);
    EXPECT_EQ(orrStreamQuery(stream.get()), orrErrorNotReady);
    host.signal();
    EXPECT_OK(orrStreamSynchronize(stream.get()));
}

std::string text_of(const __u8 (&name)[24]) {
    return {reinterpret_cast<const char*>(name), ::strnlen(reinterpret_cast<const char*>(name), sizeof name)};
}

// A file with a queue, and semaphores in memory that both files share.
struct Party {
    explicit Party(std::uint64_t base) : file(kmod_test::open_card()), va(base) {
        EXPECT_EQ(kmod_test::create_vm(file.get(), vm), 0);
    }
    void open_queue() {
        queue = std::make_unique<Queue>(file.get(), vm, va);
        ASSERT_EQ(queue->error(), 0);
    }
    std::vector<drm_orr_wait_edge> deadlock(std::uint32_t room = 8) const {
        std::vector<drm_orr_wait_edge> edges(room);
        drm_orr_query_deadlock query{};
        query.edges = reinterpret_cast<std::uintptr_t>(edges.data());
        query.count = room;
        EXPECT_EQ(kmod_test::call(file.get(), DRM_IOCTL_ORR_QUERY_DEADLOCK, &query), 0);
        EXPECT_EQ(query.report != 0, query.count != 0);
        length = query.count;
        edges.resize(std::min(room, query.count));
        return edges;
    }
    int wait(std::uint64_t index) const {
        drm_orr_queue_wait state{};
        return kmod_test::wait(file.get(), queue->number(), index, kLong, state);
    }
    File file;
    std::uint64_t va;
    std::uint32_t vm = 0;
    std::unique_ptr<Queue> queue;
    mutable std::uint32_t length = 0;
};

constexpr std::uint64_t kShared = 0x40000000;

class TwoFiles : public ::testing::Test {
  protected:
    void make(uid_t second_user) {
        first_ = std::make_unique<Party>(0x10000000);
        if (second_user != 0) {
            ASSERT_EQ(::chmod("/dev/accel/accel0", 0666), 0);
            ASSERT_EQ(::seteuid(second_user), 0);
        }
        second_ = std::make_unique<Party>(0x20000000);
        if (second_user != 0) ASSERT_EQ(::seteuid(0), 0);
        ASSERT_EQ(kmod_test::make_buffer(first_->file.get(), first_->vm, kShared, 4096, ORR_BO_VRAM, memory_),
                  0);
        File buffer;
        ASSERT_EQ(kmod_test::export_bo(first_->file.get(), memory_.handle, buffer), 0);
        std::uint32_t handle = 0;
        ASSERT_EQ(kmod_test::import_bo(second_->file.get(), buffer.get(), handle), 0);
        ASSERT_EQ(kmod_test::map(second_->file.get(), second_->vm, handle, 2 * kShared, 4096), 0);
        first_->open_queue();
        second_->open_queue();
        const orr_packet one[] = {kmod_test::wait_for(kShared, 5), kmod_test::signal(kShared + 16, 7)};
        const orr_packet two[] = {kmod_test::wait_for(2 * kShared + 16, 7),
                                  kmod_test::signal(2 * kShared, 6)};
        first_->queue->submit(one);
        second_->queue->submit(two);
    }
    void resolve() {
        Queue third(first_->file.get(), first_->vm, 0x30000000);
        ASSERT_EQ(third.error(), 0);
        const orr_packet signal[] = {kmod_test::signal(kShared, 5)};
        EXPECT_EQ(third.run(signal), 0);
        EXPECT_EQ(first_->wait(2), 0);
        EXPECT_EQ(second_->wait(2), 0);
        first_->deadlock();
        EXPECT_EQ(first_->length, 0u);
    }
    Buffer memory_;
    std::unique_ptr<Party> first_, second_;
};

TEST_F(TwoFiles, OfOneUserSeeNamesOnly) {
    make(0);
    EXPECT_EQ(first_->wait(2), EDEADLK);
    EXPECT_EQ(second_->wait(2), EDEADLK);
    const auto edges = first_->deadlock();
    ASSERT_EQ(edges.size(), 2u);
    const drm_orr_wait_edge& own = edges[edges[0].queue == 0 ? 1 : 0];
    const drm_orr_wait_edge& other = edges[edges[0].queue == 0 ? 0 : 1];
    EXPECT_EQ(own.queue, first_->queue->number());
    EXPECT_EQ(own.signaller, 0u);
    EXPECT_EQ(own.semaphore, kShared);
    EXPECT_EQ(own.wanted, 5u);
    EXPECT_EQ(own.value, 0u);
    EXPECT_EQ(own.index, 0u);
    EXPECT_THAT(text_of(own.queue_name), ::testing::HasSubstr(":"));
    EXPECT_EQ(text_of(own.signaller_name), text_of(other.queue_name));
    EXPECT_EQ(other.queue, 0u);
    EXPECT_EQ(other.semaphore, 0u);
    EXPECT_EQ(other.wanted, 7u);
    EXPECT_EQ(other.signaller, first_->queue->number());
    // Truncation is told.
    EXPECT_EQ(first_->deadlock(1).size(), 1u);
    EXPECT_EQ(first_->length, 2u);
    first_->deadlock(0);
    EXPECT_EQ(first_->length, 2u);
    // Somebody who has no part in it.
    const Party stranger(0x50000000);
    stranger.deadlock();
    EXPECT_EQ(stranger.length, 0u);
    resolve();
}

TEST_F(TwoFiles, OfTwoUsersSeeNothingOfEachOther) {
    if (::geteuid() != 0) GTEST_SKIP() << "has to change its user";
    make(1000);
    EXPECT_EQ(second_->wait(2), EDEADLK);
    for (const drm_orr_wait_edge& edge : second_->deadlock()) {
        if (edge.queue == 0) {
            EXPECT_EQ(text_of(edge.queue_name), "");
            EXPECT_EQ(edge.semaphore + edge.wanted + edge.value + edge.index, 0u);
            EXPECT_EQ(edge.signaller, second_->queue->number());
        } else {
            EXPECT_EQ(edge.wanted, 7u);
            EXPECT_EQ(edge.signaller, 0u);
            EXPECT_EQ(text_of(edge.signaller_name), "");
        }
    }
    EXPECT_EQ(second_->length, 2u);
    resolve();
}

}  // namespace
}  // namespace orrery::sched_test
