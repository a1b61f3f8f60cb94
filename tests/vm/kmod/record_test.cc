// Records of work: a process is told what the card did for it, when, and nothing of others.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <orrery/hw/counters.h>
#include <orrery/hw/engine.h>
#include <orrery/hw/trace_sink.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/vm/kmod/place.h"

namespace orrery::kmod_test {
namespace {

int switch_work(int fd, std::uint32_t flags) {
    drm_orr_work_read read{};
    read.flags = flags;
    return call(fd, DRM_IOCTL_ORR_WORK_READ, &read);
}

// All that there is, so many at a time. `lost` becomes true where some were.
std::vector<drm_orr_work_record> records(int fd, std::uint32_t room = 100, bool* lost = nullptr) {
    std::vector<drm_orr_work_record> all, some(room);
    drm_orr_work_read read{};
    do {
        read = {};
        read.records = reinterpret_cast<std::uintptr_t>(some.data());
        read.count = room;
        EXPECT_EQ(call(fd, DRM_IOCTL_ORR_WORK_READ, &read), 0);
        EXPECT_EQ(read.flags & ~(ORR_WORK_LOST | ORR_WORK_MORE), 0u);
        EXPECT_LE(read.count, room);
        if (lost != nullptr && (read.flags & ORR_WORK_LOST) != 0) *lost = true;
        all.insert(all.end(), some.begin(), some.begin() + read.count);
    } while ((read.flags & ORR_WORK_MORE) != 0);
    return all;
}

TEST(Records, AreOfEachPacketThatRanOnAnEngine) {
    Place place(0);
    place.make_memory(1 << 20);
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START), 0);
    constexpr unsigned kFills = 10;
    for (unsigned n = 0; n < kFills; ++n)
        ASSERT_EQ(place.queue->run(std::vector{fill(kVa, 4096, n), nop()}), 0);
    const auto all = records(place.fd(), 3);
    ASSERT_EQ(all.size(), kFills);
    for (unsigned n = 0; n < kFills; ++n) {
        EXPECT_EQ(all[n].kind, ORR_WORK_JOB);
        EXPECT_EQ(all[n].status, ORR_DONE_OK);
        EXPECT_EQ(all[n].index, 2 * n);
        EXPECT_EQ(all[n].queue, place.queue->args().firmware_number);
        EXPECT_LT(all[n].start_ps, all[n].end_ps);
        EXPECT_LE(all[n].end_ps, all[n].time_ps);
        EXPECT_GT(all[n].used_ps, 0u);
        if (n > 0) EXPECT_GE(all[n].start_ps, all[n - 1].end_ps);
    }
    EXPECT_TRUE(records(place.fd()).empty()) << "each once";
}

TEST(Records, AreOfWaits) {
    Place place(0);
    place.make_memory();
    Queue other(place.fd(), place.vm, kRingVa + 0x100000);
    ASSERT_EQ(other.error(), 0);
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START), 0);
    const std::uint64_t end = place.queue->submit(wait_for(kVa, 1));
    std::vector<drm_orr_work_record> all;
    while (all.empty())  // until the card has come to it
        all = records(place.fd());
    ASSERT_EQ(other.run(std::vector{fill(kVa + 1024, 1024, 7), signal(kVa, 1)}), 0);
    drm_orr_queue_wait out{};
    ASSERT_EQ(wait(place.fd(), place.queue->number(), end, kLong, out), 0);
    const auto rest = records(place.fd());
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].kind, ORR_WORK_WAIT);
    EXPECT_EQ(all[0].queue, place.queue->args().firmware_number);
    EXPECT_EQ(all[1].kind, ORR_WORK_JOB);
    EXPECT_EQ(all[1].queue, other.args().firmware_number);
    EXPECT_EQ(all[2].kind, ORR_WORK_WAKE);
    EXPECT_EQ(all[2].queue, place.queue->args().firmware_number);
    EXPECT_LT(all[0].time_ps, all[1].start_ps);
    EXPECT_LT(all[1].end_ps, all[2].time_ps);
}

TEST(Records, AreOfSignalsIfTheyAreWanted) {
    Place place(0), stranger(0);
    place.make_memory();
    stranger.make_memory();
    drm_orr_query_device card{};
    ASSERT_EQ(call(place.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &card), 0);
    ASSERT_NE(card.features & ORR_FEATURE_SIGNALS, 0u);
    Queue other(place.fd(), place.vm, kRingVa + 0x100000);
    ASSERT_EQ(other.error(), 0);
    ASSERT_EQ(switch_work(stranger.fd(), ORR_WORK_START | ORR_WORK_SIGNALS), 0);
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START), 0);
    ASSERT_EQ(place.queue->run(std::vector{signal(kVa, 1)}), 0);
    EXPECT_TRUE(records(place.fd()).empty()) << "nobody has asked for them";
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START | ORR_WORK_SIGNALS), 0);

    const std::uint64_t end = place.queue->submit(wait_for(kVa + 16, 7));
    std::vector<drm_orr_work_record> all;
    while (all.empty())
        all = records(place.fd());
    ASSERT_EQ(other.run(std::vector{fill(kVa + 1024, 1024, 7), signal(kVa + 16, 9), signal(kVa, 2)}), 0);
    drm_orr_queue_wait out{};
    ASSERT_EQ(wait(place.fd(), place.queue->number(), end, kLong, out), 0);
    const auto rest = records(place.fd());
    all.insert(all.end(), rest.begin(), rest.end());
    ASSERT_EQ(all.size(), 5u);
    EXPECT_EQ(all[0].kind, ORR_WORK_WAIT);
    EXPECT_EQ(all[1].kind, ORR_WORK_JOB);
    const auto is_signal = [&](const drm_orr_work_record& record, std::uint64_t va, std::uint64_t value,
                               unsigned woken) {
        EXPECT_EQ(record.kind, ORR_WORK_SIGNAL);
        EXPECT_EQ(record.queue, other.args().firmware_number);
        EXPECT_EQ(record.va, va);
        EXPECT_EQ(record.value, value);
        EXPECT_EQ(record.status, woken);
        EXPECT_EQ(record.index, 0u);
    };
    is_signal(all[2], kVa + 16, 9, 1);
    EXPECT_EQ(all[3].kind, ORR_WORK_WAKE);
    is_signal(all[4], kVa, 2, 0);
    EXPECT_LE(all[1].end_ps, all[2].time_ps);
    EXPECT_LE(all[2].time_ps, all[3].time_ps);
    EXPECT_LT(all[2].time_ps, all[4].time_ps);
    EXPECT_TRUE(records(stranger.fd()).empty()) << "others' are not told";
    // One that has stopped fails what it would have signalled.
    ASSERT_NE(other.run(std::vector{fill(kVa + (1u << 30), 64, 1), signal(kVa + 32, 5)}), 0);
    all.clear();
    while (std::ranges::none_of(all, [](const auto& one) { return one.kind == ORR_WORK_SIGNAL; })) {
        const auto more = records(place.fd());
        all.insert(all.end(), more.begin(), more.end());
    }
    EXPECT_EQ(all.back().va, kVa + 32);
    EXPECT_NE(all.back().value & ORR_SEM_FAILED, 0u);
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START), 0);
    ASSERT_EQ(place.queue->run(std::vector{signal(kVa, 3)}), 0);
    EXPECT_TRUE(records(place.fd()).empty()) << "they are taken back";
}

TEST(Records, AreNotOfOthers) {
    Place one(0), two(0);
    one.make_memory();
    two.make_memory();
    ASSERT_EQ(switch_work(one.fd(), ORR_WORK_START), 0);
    ASSERT_EQ(switch_work(two.fd(), ORR_WORK_START), 0);
    ASSERT_EQ(one.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    ASSERT_EQ(two.queue->run(std::vector{fill(kVa, 64, 1), fill(kVa, 64, 1)}), 0);
    EXPECT_EQ(records(one.fd()).size(), 1u);
    EXPECT_EQ(records(two.fd()).size(), 2u);
    // Nor of a queue that had the number before.
    ASSERT_EQ(one.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    const std::uint32_t number = one.queue->args().firmware_number;
    one.queue.reset();
    Queue next(two.fd(), two.vm, kRingVa + 0x100000);
    EXPECT_EQ(next.args().firmware_number, number) << "the test needs the lowest to be given out first";
    EXPECT_TRUE(records(two.fd()).empty());
    EXPECT_TRUE(records(one.fd()).empty()) << "read them before the queue is destroyed";
}

TEST(Records, AreFromTheStartOn) {
    Place place(0);
    place.make_memory();
    ASSERT_EQ(place.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    drm_orr_work_read read{};
    EXPECT_EQ(call(place.fd(), DRM_IOCTL_ORR_WORK_READ, &read), EINVAL) << "nobody has started";
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START), 0);
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START), 0) << "twice is once";
    EXPECT_TRUE(records(place.fd()).empty());
    ASSERT_EQ(place.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    EXPECT_EQ(records(place.fd()).size(), 1u);
    ASSERT_EQ(place.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_STOP), 0);
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_STOP), 0);
    EXPECT_EQ(call(place.fd(), DRM_IOCTL_ORR_WORK_READ, &read), EINVAL);
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START), 0);
    EXPECT_TRUE(records(place.fd()).empty());
}

// With what each job did.
struct Counted {
    drm_orr_work_record record;
    drm_orr_work_counters did;
};
std::vector<Counted> counted(int fd, std::uint32_t room = 100) {
    std::vector<Counted> all;
    std::vector<drm_orr_work_record> some(room);
    std::vector<drm_orr_work_counters> did(room);
    drm_orr_work_read read{};
    do {
        read = {};
        read.records = reinterpret_cast<std::uintptr_t>(some.data());
        read.counters = reinterpret_cast<std::uintptr_t>(did.data());
        read.count = room;
        EXPECT_EQ(call(fd, DRM_IOCTL_ORR_WORK_READ, &read), 0);
        EXPECT_EQ(read.flags & ORR_WORK_LOST, 0u);
        for (std::uint32_t i = 0; i < read.count; ++i)
            all.push_back({some[i], did[i]});
    } while ((read.flags & ORR_WORK_MORE) != 0);
    return all;
}

TEST(Records, HaveWhatEachJobDidAndNothingOfOthers) {
    Place one(0), two(0), three(0);
    for (Place* place : {&one, &two, &three})
        place->make_memory(1 << 20);
    drm_orr_query_device card{};
    ASSERT_EQ(call(one.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &card), 0);
    ASSERT_NE(card.features & ORR_FEATURE_WORK_COUNTERS, 0u);
    ASSERT_EQ(switch_work(one.fd(), ORR_WORK_START), 0);
    ASSERT_EQ(one.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    ASSERT_EQ(switch_work(one.fd(), ORR_WORK_START | ORR_WORK_COUNTERS), 0) << "as well, from now on";
    ASSERT_EQ(one.queue->run(std::vector{fill(kVa, 64, 1)}), 0) << "by then it holds";
    ASSERT_EQ(switch_work(two.fd(), ORR_WORK_START | ORR_WORK_COUNTERS), 0);
    ASSERT_EQ(switch_work(three.fd(), ORR_WORK_START), 0);
    // Their queues work at one time.
    constexpr unsigned kFills = 40;
    for (unsigned n = 1; n <= kFills; ++n) {
        std::uint64_t ends[2] = {};
        unsigned at = 0;
        for (Place* place : {&one, &two})
            ends[at++] = place->queue->submit(fill(kVa, 64 * n * (place == &one ? 1 : 100), n));
        at = 0;
        for (Place* place : {&one, &two}) {
            drm_orr_queue_wait out{};
            ASSERT_EQ(wait(place->fd(), place->queue->number(), ends[at++], kLong, out), 0);
        }
    }
    ASSERT_EQ(three.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    for (Place* place : {&one, &two}) {
        const auto all = counted(place->fd(), place == &one ? 7 : 100);
        const unsigned first = place == &one ? 2 : 0;
        ASSERT_EQ(all.size(), kFills + first);
        if (first != 0) EXPECT_EQ(all[0].did.known, 0u) << "it began before";
        for (unsigned n = 1; n <= kFills; ++n) {
            const auto& [record, did] = all[n - 1 + first];
            const std::uint64_t bytes = 64ull * n * (place == &one ? 1 : 100);
            EXPECT_EQ(did.known, (1ull << ORR_JOB_COUNTERS) - 1);
            EXPECT_EQ(did.value[ORR_JOB_MOVED], bytes);
            EXPECT_EQ(did.value[ORR_JOB_VRAM_WRITTEN], bytes);
            EXPECT_EQ(did.value[ORR_JOB_BUSY_PS], record.used_ps);
            EXPECT_EQ(did.value[ORR_JOB_INSTRUCTIONS], 0u);
        }
    }
    for (const Counted& each : counted(three.fd()))
        EXPECT_EQ(each.did.known, 0u) << "nobody of this process has asked";
    // One has them no more, and keeps its records; the other has.
    ASSERT_EQ(switch_work(one.fd(), ORR_WORK_START), 0);
    for (Place* place : {&one, &two}) {
        ASSERT_EQ(place->queue->run(std::vector{fill(kVa, 64, 1)}), 0);
        const auto all = counted(place->fd());
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(all[0].did.known, place == &one ? 0 : (1ull << ORR_JOB_COUNTERS) - 1);
    }
    // The last who wanted them goes.
    ASSERT_EQ(switch_work(two.fd(), ORR_WORK_STOP), 0);
    ASSERT_EQ(switch_work(one.fd(), ORR_WORK_STOP), 0);
    ASSERT_EQ(three.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    EXPECT_EQ(records(three.fd()).size(), 1u);
}

// debugfs names this process.
void expect_sampler(const std::string& as) {
    if (::geteuid() != 0) return;
    std::ifstream in(debugfs() + "records");
    const std::string text(std::istreambuf_iterator<char>(in), {});
    EXPECT_NE(text.find(as + std::to_string(::getpid()) + "\n"), std::string::npos) << text;
}

TEST(Samples, AreOfTheWholeCardAndForOneAtATime) {
    Place one(0), two(0);
    one.make_memory(1 << 20);
    const auto start = [](int fd, std::uint32_t period_ns, std::uint64_t low, std::uint64_t high) {
        drm_orr_sample_read read{};
        read.flags = ORR_WORK_START;
        read.period_ns = period_ns;
        read.set[0] = low;
        read.set[1] = high;
        return call(fd, DRM_IOCTL_ORR_SAMPLE_READ, &read);
    };
    constexpr std::uint64_t kSet = 1ull << ORR_CTR_COPY_BYTES | 1ull << ORR_CTR_TIME_PS;
    EXPECT_EQ(start(two.fd(), 999, kSet, 0), EINVAL);
    EXPECT_EQ(start(two.fd(), 1000, 0, 0), EINVAL);
    EXPECT_EQ(start(two.fd(), 1000, 0, 1ull << 63), EINVAL) << "no such counter";
    drm_orr_sample_read none{};
    EXPECT_EQ(call(two.fd(), DRM_IOCTL_ORR_SAMPLE_READ, &none), EINVAL) << "nobody has started";
    ASSERT_EQ(start(two.fd(), 1000, kSet, 0), 0);
    EXPECT_EQ(start(one.fd(), 1000, kSet, 0), EBUSY);
    expect_sampler("\nsampler_pid ");
    ASSERT_EQ(switch_work(one.fd(), ORR_WORK_START), 0);
    constexpr unsigned kFills = 20;
    for (unsigned n = 0; n < kFills; ++n)
        ASSERT_EQ(one.queue->run(std::vector{fill(kVa, 1 << 20, n)}), 0);
    EXPECT_EQ(records(one.fd()).size(), kFills) << "they come by one ring";
    std::vector<std::uint64_t> words(2'000), all;
    drm_orr_sample_read read{};
    do {
        read = {};
        read.values = reinterpret_cast<std::uintptr_t>(words.data());
        read.count = 1'000;
        ASSERT_EQ(call(two.fd(), DRM_IOCTL_ORR_SAMPLE_READ, &read), 0);
        EXPECT_EQ(read.flags & ORR_WORK_LOST, 0u);
        all.insert(all.end(), words.begin(), words.begin() + read.count);
    } while ((read.flags & ORR_WORK_MORE) != 0);
    ASSERT_EQ(all.size() % 4, 0u);
    ASSERT_GT(all.size() / 4, kFills);
    for (std::size_t at = 0; at < all.size(); at += 4) {
        EXPECT_EQ(all[at + 1], at / 4 + 1);
        EXPECT_EQ(all[at + 3], all[at]) << "time_ps";
        if (at == 0) continue;
        EXPECT_GT(all[at], all[at - 4]);
        EXPECT_GE(all[at + 2], all[at - 2]);
    }
    EXPECT_GT(all[all.size() - 2] - all[2], (kFills - 2) << 20) << "also of others' work";
    // Who goes has them no more.
    ASSERT_EQ(start(two.fd(), 5000, kSet, 0), 0) << "again, otherwise";
    read = {};
    read.flags = ORR_WORK_STOP;
    ASSERT_EQ(call(two.fd(), DRM_IOCTL_ORR_SAMPLE_READ, &read), 0);
    EXPECT_EQ(start(one.fd(), 1000, kSet, 0), 0);
}

// Perf's rule for a machine's counters. A user has what is his own, and the sums that everybody has.
TEST(Samples, AreForWhoMayLookAtAllThatAMachineDoes) {
    if (::geteuid() != 0) GTEST_SKIP() << "who is root can be another";
    Place one(0);
    one.make_memory();
    drm_orr_sample_read read{};
    const auto start = [&](std::uint32_t period_ns) {
        read = {};
        read.flags = ORR_WORK_START;
        read.period_ns = period_ns;
        read.set[0] = 1ull << ORR_CTR_COPY_BYTES;
        return call(one.fd(), DRM_IOCTL_ORR_SAMPLE_READ, &read);
    };
    ASSERT_EQ(::seteuid(1001), 0);
    EXPECT_EQ(start(1'000), EACCES);
    EXPECT_EQ(start(1'000'000'000), EACCES) << "others' work shows at any period";
    EXPECT_EQ(start(999), EINVAL);
    drm_orr_sample_read none{};
    EXPECT_EQ(call(one.fd(), DRM_IOCTL_ORR_SAMPLE_READ, &none), EINVAL) << "nothing has started";
    std::uint64_t value = 0;
    drm_orr_query_counters counters{};
    counters.values = reinterpret_cast<std::uintptr_t>(&value);
    counters.count = 1;
    EXPECT_EQ(call(one.fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &counters), 0);
    EXPECT_EQ(switch_work(one.fd(), ORR_WORK_START | ORR_WORK_COUNTERS), 0);
    EXPECT_EQ(one.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    EXPECT_EQ(records(one.fd()).size(), 1u);
    // A user who has been given this right, and no other.
    __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, 2> rights{};
    ASSERT_EQ(::syscall(SYS_capget, &head, rights.data()), 0);
    EXPECT_EQ(rights[0].effective | rights[1].effective, 0u);
    rights[CAP_TO_INDEX(CAP_PERFMON)].effective = CAP_TO_MASK(CAP_PERFMON);
    ASSERT_EQ(::syscall(SYS_capset, &head, rights.data()), 0);
    EXPECT_EQ(start(1'000), 0);
    ASSERT_EQ(::seteuid(0), 0);
}

TEST(Pcs, AreOfAFilesOwnAndForOneAtATime) {
    Place one(0), two(0);
    one.make_memory(4096);
    two.make_memory(4096);
    const auto ask = [](int fd, std::uint32_t flags, std::uint32_t period_ns) {
        drm_orr_pc_read read{};
        read.flags = flags;
        read.period_ns = period_ns;
        return call(fd, DRM_IOCTL_ORR_PC_READ, &read);
    };
    EXPECT_EQ(ask(one.fd(), ORR_WORK_START, 99), EINVAL);
    EXPECT_EQ(ask(one.fd(), ORR_WORK_START | ORR_WORK_COUNTERS, 100), EINVAL);
    EXPECT_EQ(ask(one.fd(), ORR_WORK_STOP, 100), EINVAL);
    EXPECT_EQ(ask(one.fd(), 0, 0), EINVAL) << "nobody has started";
    EXPECT_EQ(ask(one.fd(), ORR_WORK_START, 0), EINVAL) << "neither period nor core";
    drm_orr_pc_read trace{};
    trace.flags = ORR_WORK_START;
    trace.core = 257;
    EXPECT_EQ(call(one.fd(), DRM_IOCTL_ORR_PC_READ, &trace), EINVAL) << "no such core";
    trace.core = 1;
    trace.until_ps = ~0ull;
    EXPECT_EQ(call(one.fd(), DRM_IOCTL_ORR_PC_READ, &trace), 0);
    ASSERT_EQ(ask(one.fd(), ORR_WORK_START, 100), 0);
    EXPECT_EQ(ask(two.fd(), ORR_WORK_START, 100), EBUSY);
    expect_sampler("\npc_sampler_pid ");
    ASSERT_EQ(two.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    ASSERT_EQ(one.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    // A fill has no vector cores, but an end; that of the other is its own matter.
    std::array<drm_orr_pc_record, 8> records{};
    drm_orr_pc_read read{};
    read.records = reinterpret_cast<std::uintptr_t>(records.data());
    read.count = records.size();
    ASSERT_EQ(call(one.fd(), DRM_IOCTL_ORR_PC_READ, &read), 0);
    ASSERT_EQ(read.count, 1u);
    EXPECT_EQ(read.flags, 0u);
    EXPECT_EQ(records[0].kind, ORR_PC_JOB);
    EXPECT_EQ(records[0].group, 0u) << "the first packet of its ring";
    EXPECT_GT(records[0].time_ps, records[0].start_ps);
    ASSERT_EQ(ask(one.fd(), ORR_WORK_STOP, 0), 0);
    EXPECT_EQ(ask(two.fd(), ORR_WORK_START, 100), 0);
}

// Those from before have their numbers: none of them is read as one of what is asked for now.
TEST(Samples, BeginAnewWithEachStart) {
    Place one(0), two(0);
    one.make_memory(1 << 20);
    constexpr std::uint64_t kSet = 1ull << ORR_CTR_COPY_BYTES | 1ull << ORR_CTR_TIME_PS;
    const auto start = [&](int fd, std::uint32_t period_ns) {
        drm_orr_sample_read read{};
        read.flags = ORR_WORK_START;
        read.period_ns = period_ns;
        read.set[0] = kSet;
        return call(fd, DRM_IOCTL_ORR_SAMPLE_READ, &read);
    };
    drm_orr_sample_read all{};
    all.flags = ORR_WORK_START;
    all.period_ns = 1'000;
    all.set[0] = ~0ull >> 16;
    EXPECT_EQ(call(two.fd(), DRM_IOCTL_ORR_SAMPLE_READ, &all), EINVAL) << "52 words each microsecond";
    const std::vector<orr_packet> fills(30, fill(kVa, 1 << 20, 1));
    for (unsigned round = 0; round < 20; ++round) {
        // While the card works.
        one.queue->submit(fills);
        ASSERT_EQ(start(two.fd(), round % 2 == 0 ? 1'000 : 5'000), 0);
        ASSERT_EQ(one.queue->run(fills), 0);
        std::array<std::uint64_t, 4> first{};
        drm_orr_sample_read read{};
        read.values = reinterpret_cast<std::uintptr_t>(first.data());
        read.count = first.size();
        ASSERT_EQ(call(two.fd(), DRM_IOCTL_ORR_SAMPLE_READ, &read), 0);
        ASSERT_EQ(read.count, first.size());
        EXPECT_EQ(first[1], 1u) << round;
        // The next process's, of the same set.
        if (round % 5 == 4) {
            drm_orr_sample_read stop{};
            stop.flags = ORR_WORK_STOP;
            ASSERT_EQ(call(two.fd(), DRM_IOCTL_ORR_SAMPLE_READ, &stop), 0);
        }
    }
}

// A neighbour that reads on loses nothing to one who never comes.
TEST(Records, ThatAreReadTooLateAreSaidToBeLost) {
    Place place(0), neighbour(0);
    place.make_memory();
    neighbour.make_memory();
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START), 0);
    ASSERT_EQ(switch_work(neighbour.fd(), ORR_WORK_START), 0);
    // 6 words each, of 262,144.
    std::vector<orr_packet> batch(32, fill(kVa, 8, 1));
    bool lost = false;
    for (unsigned n = 0; n < 50'000 / 32; ++n) {
        ASSERT_EQ(place.queue->run(batch), 0);
        if (n % 50 != 0) continue;
        ASSERT_EQ(neighbour.queue->run(std::vector{fill(kVa, 64, n), nop()}), 0);
        const auto own = records(neighbour.fd(), 100, &lost);
        ASSERT_EQ(own.size(), 1u) << n;
        ASSERT_EQ(own[0].index, 2ull * (n / 50));
        ASSERT_EQ(own[0].queue, neighbour.queue->args().firmware_number);
    }
    EXPECT_FALSE(lost);
    drm_orr_work_record one{};
    drm_orr_work_read read{};
    read.records = reinterpret_cast<std::uintptr_t>(&one);
    read.count = 1;
    ASSERT_EQ(call(place.fd(), DRM_IOCTL_ORR_WORK_READ, &read), 0);
    EXPECT_EQ(read.flags, ORR_WORK_LOST);
    EXPECT_EQ(read.count, 0u);
    // And then it goes on.
    ASSERT_EQ(place.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    EXPECT_EQ(records(place.fd()).size(), 1u);
}

TEST(Records, AreAskedForProperly) {
    Place place(0);
    drm_orr_work_record one{};
    const auto asked = [&](std::uint32_t flags, std::uint32_t count, void* to) {
        drm_orr_work_read read{};
        read.records = reinterpret_cast<std::uintptr_t>(to);
        read.count = count;
        read.flags = flags;
        return call(place.fd(), DRM_IOCTL_ORR_WORK_READ, &read);
    };
    for (const std::uint32_t flags : {ORR_WORK_LOST, ORR_WORK_MORE, 1u << 9, ORR_WORK_START | ORR_WORK_STOP,
                                      ORR_WORK_COUNTERS, ORR_WORK_STOP | ORR_WORK_COUNTERS})
        EXPECT_EQ(asked(flags, 0, nullptr), EINVAL) << flags;
    EXPECT_EQ(asked(ORR_WORK_START, 1, nullptr), EINVAL);
    EXPECT_EQ(asked(ORR_WORK_START, 0, &one), EINVAL);
    ASSERT_EQ(asked(ORR_WORK_START, 0, nullptr), 0);
    place.make_memory();
    ASSERT_EQ(place.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    EXPECT_EQ(asked(0, 0, nullptr), 0);
    EXPECT_EQ(asked(0, 1, reinterpret_cast<void*>(8)), EFAULT);
}

// Processes that come and go in all ways.
TEST(Records, OfAProcessThatIsKilledEnd) {
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(killed_while_asking(20'000,
                                      [](const auto& tell) {
                                          Place place(0);
                                          place.make_memory();
                                          (void)switch_work(place.fd(), ORR_WORK_START);
                                          tell();
                                          while (place.queue->run(std::vector{fill(kVa, 64, 1)}) == 0)
                                              (void)records(place.fd());
                                      }),
                  1000 + SIGKILL);
    }
    Place place(0);
    place.make_memory();
    ASSERT_EQ(switch_work(place.fd(), ORR_WORK_START), 0);
    ASSERT_EQ(place.queue->run(std::vector{fill(kVa, 64, 1)}), 0);
    EXPECT_EQ(records(place.fd()).size(), 1u);
}

}  // namespace
}  // namespace orrery::kmod_test
