// Work through the driver: memory, address spaces, queues, doorbells, waits, fences, errors.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <orrery/hw/engine.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "tests/vm/kmod/fixture.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kVa = 0x40000000;

class Work : public CardTest {};

TEST_F(Work, QueryDeviceTellsWhatTheCardIs) {
    drm_orr_query_device q{};
    ASSERT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &q), 0);
    EXPECT_NE(q.uid, 0u);
    EXPECT_GE(q.vram_size, 16 * kMiB);
    EXPECT_EQ(q.state, 2u);  // ORR_STATE_RUNNING
    EXPECT_EQ(q.max_ring_entries, ORR_RING_MAX_ENTRIES);
    EXPECT_GT(q.counters, 0u);
    EXPECT_NE(q.sku_name[0], 0);
    EXPECT_NE(q.fw_build_id[0], 0);
    std::vector<std::uint64_t> values(q.counters + 4, ~0ull);
    drm_orr_query_counters c{};
    c.values = reinterpret_cast<std::uint64_t>(values.data());
    c.count = static_cast<std::uint32_t>(values.size());
    ASSERT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_COUNTERS, &c), 0);
    EXPECT_EQ(c.count, q.counters);
    EXPECT_GT(values[0], 0u);  // instructions of the control core
    EXPECT_EQ(values[q.counters], ~0ull);
}

TEST_F(Work, BufferMemoryIsZeroedAndKept) {
    for (const std::uint32_t kind : {ORR_BO_VRAM, ORR_BO_SYSTEM}) {
        for (int round = 0; round < 2; round++) {
            Buffer buffer;
            ASSERT_EQ(make_buffer(fd(), vm_, kVa, 3 * kMiB + 4096, kind, buffer), 0);
            const std::size_t words = buffer.size / 8;
            EXPECT_TRUE(std::all_of(buffer.words(), buffer.words() + words, [](auto w) { return w == 0; }));
            std::iota(buffer.words(), buffer.words() + words, 7);
            std::uint64_t expected = 7;
            EXPECT_TRUE(
                std::all_of(buffer.words(), buffer.words() + words, [&](auto w) { return w == expected++; }));
            ASSERT_EQ(unmap(fd(), vm_, kVa, buffer.size), 0);
            buffer.memory = {};
            ASSERT_EQ(close_bo(fd(), buffer.handle), 0);
        }
    }
}

TEST_F(Work, VramIsCountedAndGivenBack) {
    const std::uint64_t before = vram_used(fd());
    drm_orr_bo_create bo{};
    ASSERT_EQ(create_bo(fd(), 5 * kMiB + 1, ORR_BO_VRAM, bo), 0);
    EXPECT_EQ(bo.size, 5 * kMiB + 4096);
    EXPECT_EQ(vram_used(fd()), before + bo.size);
    // Its page tables are VRAM too, and go with the mapping.
    ASSERT_EQ(map(fd(), vm_, bo.handle, kVa, bo.size), 0);
    EXPECT_GT(vram_used(fd()), before + bo.size);
    ASSERT_EQ(unmap(fd(), vm_, kVa, bo.size), 0);
    EXPECT_EQ(vram_used(fd()), before + bo.size);
    ASSERT_EQ(close_bo(fd(), bo.handle), 0);
    EXPECT_EQ(vram_used(fd()), before);
}

TEST_F(Work, VramRunsOutCleanly) {
    drm_orr_query_device q{};
    ASSERT_EQ(call(fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &q), 0);
    drm_orr_bo_create bo{};
    EXPECT_EQ(create_bo(fd(), q.vram_size + 4096, ORR_BO_VRAM, bo), ENOMEM);
    std::vector<std::uint32_t> handles;
    int error = 0;
    while ((error = create_bo(fd(), 16 * kMiB, ORR_BO_VRAM, bo)) == 0)
        handles.push_back(bo.handle);
    EXPECT_EQ(error, ENOMEM);
    EXPECT_FALSE(handles.empty());
    for (const std::uint32_t handle : handles)
        EXPECT_EQ(close_bo(fd(), handle), 0);
    EXPECT_EQ(create_bo(fd(), 16 * kMiB, ORR_BO_VRAM, bo), 0);
}

TEST_F(Work, SystemMemoryHasALimit) {
    drm_orr_bo_create bo{};
    EXPECT_EQ(create_bo(fd(), 1ull << 40, ORR_BO_SYSTEM, bo), ENOMEM);
    EXPECT_EQ(create_bo(fd(), kMiB, ORR_BO_SYSTEM, bo), 0);
}

TEST_F(Work, NopsCompleteAndWaitsSleep) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(fd(), queue.number(), 0, 0, out), 0);
    EXPECT_EQ(wait(fd(), queue.number(), 1, 0, out), ETIME);
    EXPECT_EQ(wait(fd(), queue.number(), 1, 0.05, out), ETIME);
    EXPECT_EQ(out.completed, 0u);
    for (std::uint64_t i = 1; i <= 300; i++) {  // more than a ring's length
        ASSERT_EQ(queue.run(std::vector{nop()}, out), 0) << i;
        ASSERT_EQ(out.completed, i);
        ASSERT_EQ(out.error, 0u);
    }
    EXPECT_GT(out.time_ps, 0u);
    EXPECT_EQ(queue.ring().consumer, 300u);
}

TEST_F(Work, EverySizeOfRingInEitherMemory) {
    std::uint64_t va = kRingVa;
    for (const std::uint32_t memory : {ORR_BO_VRAM, ORR_BO_SYSTEM}) {
        for (const std::uint32_t entries : {2u, 256u, 65536u}) {
            Queue queue(fd(), vm_, va, entries, memory);
            ASSERT_EQ(queue.error(), 0) << entries;
            EXPECT_EQ(queue.run(std::vector{nop(), nop()}), 0) << entries;
            EXPECT_EQ(queue.run(std::vector{nop()}), 0) << entries;
            va += 16 * kMiB;
        }
    }
}

TEST_F(Work, FillAndCopyInEveryDirection) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    const std::uint64_t size = 4 * kMiB + 8192;
    for (const std::uint32_t from : {ORR_BO_VRAM, ORR_BO_SYSTEM}) {
        for (const std::uint32_t to : {ORR_BO_VRAM, ORR_BO_SYSTEM}) {
            Buffer source;
            Buffer target;
            ASSERT_EQ(make_buffer(fd(), vm_, kVa, size, from, source), 0);
            ASSERT_EQ(make_buffer(fd(), vm_, kVa + 0x10000000, size, to, target), 0);
            std::iota(source.words(), source.words() + size / 8, from * 1000 + to);
            orr_packet ordered = copy(source.va, target.va, size);
            ordered.header.flags = ORR_PKT_F_ORDERED;
            ASSERT_EQ(queue.run(std::vector{fill(target.va, size, 0xa5a5a5a5a5a5a5a5), ordered}), 0);
            EXPECT_EQ(std::memcmp(source.words(), target.words(), size), 0);
            ASSERT_EQ(unmap(fd(), vm_, kVa, 0x20000000), 0);
            ASSERT_EQ(close_bo(fd(), source.handle), 0);
            ASSERT_EQ(close_bo(fd(), target.handle), 0);
        }
    }
}

// A descriptor that is longer than its packet: the card fetches it from the process's memory, of either kind.
TEST_F(Work, ABoxWhoseDescriptorIsInMemory) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    Buffer data;
    ASSERT_EQ(make_buffer(fd(), vm_, kVa, kMiB, ORR_BO_VRAM, data), 0);
    std::iota(data.words(), data.words() + kMiB / 16, 1);
    std::uint64_t va = kVa + 0x10000000;
    for (const std::uint32_t memory : {ORR_BO_VRAM, ORR_BO_SYSTEM}) {
        Buffer descriptor;
        ASSERT_EQ(make_buffer(fd(), vm_, va, 8192, memory, descriptor), 0);
        // A transposition of 8 x 8 x 4 words, over the border of two pages.
        orr_desc_box box{};
        box.op = ORR_DESC_BOX;
        box.dimensions = 3;
        box.src = kVa;
        box.dst = kVa + kMiB / 2;
        box.row_bytes = 8;
        const std::uint64_t src[] = {8, 64, 512}, dst[] = {256, 32, 8};
        for (unsigned n = 0; n < 3; n++) {
            box.count[n] = n < 2 ? 8 : 4;
            box.src_stride[n] = src[n];
            box.dst_stride[n] = dst[n];
        }
        const std::uint64_t at = 4096 - 40;
        std::memcpy(descriptor.words() + at / 8, &box, sizeof(box));
        std::fill_n(data.words() + kMiB / 16, kMiB / 16, 0);
        drm_orr_queue_wait out{};
        ASSERT_EQ(queue.run(std::vector{long_copy(va + at, sizeof(box))}, out), 0);
        ASSERT_EQ(out.error, 0u);
        const std::uint64_t* const to = data.words() + kMiB / 16;
        for (std::uint64_t i = 0; i < 8; i++) {
            for (std::uint64_t j = 0; j < 8; j++) {
                for (std::uint64_t k = 0; k < 4; k++)
                    ASSERT_EQ(to[i * 32 + j * 4 + k], 1 + i + j * 8 + k * 64);
            }
        }
        EXPECT_EQ(to[256], 0u);
        va += kMiB;
    }
    drm_orr_queue_wait out{};
    ASSERT_EQ(queue.run(std::vector{long_copy(0x123456000, sizeof(orr_desc_box))}, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_EQ(out.error_address, 0x123456000u);
}

TEST_F(Work, TimestampsAndSemaphores) {
    Queue first(fd(), vm_, kRingVa);
    Queue second(fd(), vm_, kRingVa + kMiB);
    ASSERT_EQ(first.error(), 0);
    ASSERT_EQ(second.error(), 0);
    EXPECT_NE(first.args().doorbell_slot, second.args().doorbell_slot);
    Buffer data;
    ASSERT_EQ(make_buffer(fd(), vm_, kVa, 4096, ORR_BO_VRAM, data), 0);
    // The second queue waits for the first.
    second.submit(std::vector{wait_for(kVa + 64, 5), timestamp(kVa + 8)});
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(fd(), second.number(), 1, 0.1, out), ETIME);
    ASSERT_EQ(first.run(std::vector{timestamp(kVa), signal(kVa + 64, 5)}), 0);
    ASSERT_EQ(wait(fd(), second.number(), 2, kLong, out), 0);
    EXPECT_EQ(out.error, 0u);
    EXPECT_EQ(data.words()[8], 5u);
    EXPECT_GT(data.words()[0], 0u);
    EXPECT_GE(data.words()[1], data.words()[0]);
}

class WorkOn : public Work, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(WorkOn, PartialUnmapLeavesTheRest) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    const std::uint64_t size = 8 * kMiB;  // 2 MiB entries, which get split
    Buffer data;
    ASSERT_EQ(make_buffer(fd(), vm_, kVa, size, GetParam(), data), 0);
    ASSERT_EQ(unmap(fd(), vm_, kVa + 3 * kMiB, 4096), 0);
    ASSERT_EQ(unmap(fd(), vm_, kVa + 5 * kMiB + 4096, kMiB), 0);
    EXPECT_EQ(queue.run(std::vector{fill(kVa, 3 * kMiB, 1), fill(kVa + 3 * kMiB + 4096, 2 * kMiB, 2),
                                    fill(kVa + 6 * kMiB + 4096, 2 * kMiB - 4096, 3)}),
              0);
    EXPECT_EQ(data.words()[0], 1u);
    EXPECT_EQ(data.words()[3 * kMiB / 8], 0u);
    EXPECT_EQ(data.words()[(3 * kMiB + 4096) / 8], 2u);
    EXPECT_EQ(data.words()[(5 * kMiB + 4096) / 8], 0u);
    EXPECT_EQ(data.words()[(8 * kMiB - 8) / 8], 3u);
    // Into the hole: the same BO at another offset.
    ASSERT_EQ(map(fd(), vm_, data.handle, kVa + 3 * kMiB, 4096, ORR_BIND_READ | ORR_BIND_WRITE, 7 * kMiB), 0);
    EXPECT_EQ(map(fd(), vm_, data.handle, kVa + 3 * kMiB, 4096), EEXIST);
    EXPECT_EQ(map(fd(), vm_, data.handle, kVa + 2 * kMiB, 2 * kMiB), EEXIST);
    EXPECT_EQ(queue.run(std::vector{fill(kVa + 3 * kMiB, 4096, 4)}), 0);
    EXPECT_EQ(data.words()[7 * kMiB / 8], 4u);
    // What is unmapped cannot be reached.
    drm_orr_queue_wait out{};
    ASSERT_EQ(queue.run(std::vector{fill(kVa + 5 * kMiB + 4096, 4096, 5)}, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_EQ(out.error_address, kVa + 5 * kMiB + 4096);
    EXPECT_EQ(data.words()[(5 * kMiB + 4096) / 8], 0u);
}

INSTANTIATE_TEST_SUITE_P(Both, WorkOn, ::testing::Values(ORR_BO_VRAM, ORR_BO_SYSTEM));

TEST_F(Work, LargeBuffersOfTheSystemHaveLargePages) {
    if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"))
        GTEST_SKIP() << "this kernel has no large pages";
    // What tests before left may lie everywhere.
    std::ofstream("/proc/sys/vm/compact_memory") << 1;
    const std::uint64_t before = vram_used(fd());
    Buffer data;
    ASSERT_EQ(make_buffer(fd(), vm_, kVa, 32 * kMiB, ORR_BO_SYSTEM, data), 0);
    // With small pages 16 tables of the last level alone.
    EXPECT_LT(vram_used(fd()) - before, 8 * 4096u);
}

TEST_F(Work, UnmapHoldsForTheNextAccess) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    for (int round = 0; round < 20; round++) {
        Buffer data;
        ASSERT_EQ(make_buffer(fd(), vm_, kVa, 64 * 1024, round % 2 ? ORR_BO_VRAM : ORR_BO_SYSTEM, data), 0);
        const std::uint64_t value = 100 + static_cast<std::uint64_t>(round);
        ASSERT_EQ(queue.run(std::vector{fill(kVa, 64 * 1024, value)}), 0);
        ASSERT_EQ(data.words()[0], value);
        ASSERT_EQ(unmap(fd(), vm_, kVa, 64 * 1024), 0);
        ASSERT_EQ(close_bo(fd(), data.handle), 0);
    }
}

TEST_F(Work, AFaultStopsOnlyItsQueue) {
    Queue bad(fd(), vm_, kRingVa);
    Queue good(fd(), vm_, kRingVa + kMiB);
    ASSERT_EQ(bad.error(), 0);
    ASSERT_EQ(good.error(), 0);
    drm_orr_queue_wait out{};
    ASSERT_EQ(bad.run(std::vector{nop(), fill(0x123456000, 4096, 1), nop()}, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_EQ(out.error_index, 1u);
    EXPECT_EQ(out.error_address, 0x123456000u);
    EXPECT_EQ(out.completed, 1u);
    EXPECT_EQ(bad.ring().error, ORR_QERR_FAULT);
    EXPECT_EQ(good.run(std::vector{nop()}), 0);
    // It stays stopped, and every later wait says so.
    EXPECT_EQ(wait(fd(), bad.number(), 100, kLong, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
}

TEST_F(Work, RightsOfAMappingHold) {
    drm_orr_bo_create bo{};
    ASSERT_EQ(create_bo(fd(), 4096, ORR_BO_VRAM, bo), 0);
    ASSERT_EQ(map(fd(), vm_, bo.handle, kVa, 4096, ORR_BIND_READ), 0);
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    drm_orr_queue_wait out{};
    ASSERT_EQ(queue.run(std::vector{fill(kVa, 4096, 1)}, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_FAULT);
    EXPECT_EQ(out.error_detail, 4u);  // ORR_FAULT_PERMISSION
}

TEST_F(Work, BadPacketsAndIndicesStopTheQueue) {
    orr_packet unknown = nop();
    unknown.header.opcode = 999;
    orr_packet dirty = nop();
    dirty.word[3] = 1;
    std::uint64_t va = kRingVa;
    for (const auto& [packet, error] :
         {std::pair{unknown, ORR_QERR_BAD_OPCODE}, {dirty, ORR_QERR_BAD_PACKET}}) {
        Queue queue(fd(), vm_, va);
        ASSERT_EQ(queue.error(), 0);
        drm_orr_queue_wait out{};
        ASSERT_EQ(queue.run(std::vector{packet}, out), 0);
        EXPECT_EQ(out.error, error);
        va += kMiB;
    }
    Queue queue(fd(), vm_, va);
    ASSERT_EQ(queue.error(), 0);
    queue.ring_doorbell(1'000'000);
    drm_orr_queue_wait out{};
    ASSERT_EQ(wait(fd(), queue.number(), 1, kLong, out), 0);
    EXPECT_EQ(out.error, ORR_QERR_BAD_INDEX);
}

TEST_F(Work, AProcessCannotFakeProgress) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    queue.ring().consumer = 1000;
    queue.ring().error = ORR_QERR_TIMEOUT;
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(fd(), queue.number(), 1000, 0.05, out), ETIME);
    EXPECT_EQ(out.completed, 0u);
    EXPECT_EQ(out.error, 0u);
}

TEST_F(Work, DestroyingAQueueEndsItsWaits) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    Buffer data;
    ASSERT_EQ(make_buffer(fd(), vm_, kVa, 4096, ORR_BO_VRAM, data), 0);
    queue.submit(std::vector{wait_for(kVa, 1)});
    drm_orr_queue_wait out{};
    int result = -1;
    std::thread waiter([&] { result = wait(fd(), queue.number(), 1, kLong, out); });
    ::usleep(100'000);
    EXPECT_EQ(destroy_vm(fd(), vm_), EBUSY);
    EXPECT_EQ(destroy_queue(fd(), queue.number()), 0);
    waiter.join();
    // It was destroyed under the wait, or before the wait found it.
    EXPECT_TRUE(result == ECANCELED || result == ENOENT) << result;
    EXPECT_EQ(destroy_queue(fd(), queue.number()), ENOENT);
    EXPECT_EQ(wait(fd(), queue.number(), 1, 0, out), ENOENT);
    queue.forget();
    EXPECT_EQ(destroy_vm(fd(), vm_), 0);
    EXPECT_EQ(destroy_vm(fd(), vm_), ENOENT);
}

TEST_F(Work, ManyWaitersAtManyIndices) {
    Queue queue(fd(), vm_, kRingVa, 256);
    ASSERT_EQ(queue.error(), 0);
    std::vector<std::thread> threads;
    std::vector<int> results(16, -1);
    for (std::size_t i = 0; i < results.size(); i++) {
        threads.emplace_back([&, i] {
            drm_orr_queue_wait out{};
            results[i] = wait(fd(), queue.number(), 1 + 12 * i, kLong, out);
        });
    }
    for (int i = 0; i < 200; i++) {
        queue.submit(nop());
        if (i % 10 == 0) ::usleep(1000);
    }
    for (std::thread& thread : threads)
        thread.join();
    for (const int result : results)
        EXPECT_EQ(result, 0);
}

TEST_F(Work, QueuesRunOut) {
    std::vector<std::unique_ptr<Queue>> queues;
    int error = 0;
    for (std::uint64_t i = 0; error == 0 && i < 2000; i++) {
        queues.push_back(std::make_unique<Queue>(fd(), vm_, kRingVa + i * 8192, 2));
        error = queues.back()->error();
    }
    EXPECT_EQ(error, ENOSPC);
    EXPECT_EQ(queues.size(), ORR_DB_SLOTS + 1);  // the last one failed
    // The rest works, and so does the place of one that goes.
    EXPECT_EQ(queues[0]->run(std::vector{nop()}), 0);
    EXPECT_EQ(queues[ORR_DB_SLOTS - 1]->run(std::vector{nop()}), 0);
    queues.erase(queues.begin() + 17);
    Queue again(fd(), vm_, kVa, 2);
    ASSERT_EQ(again.error(), 0);
    EXPECT_EQ(again.run(std::vector{nop()}), 0);
}

TEST_F(Work, AddressSpacesAndDoorbellPagesRunOut) {
    std::vector<File> files;
    std::uint32_t vm = 0;
    int error = 0;
    for (int i = 0; error == 0 && i < 600; i++) {
        files.push_back(open_card());
        ASSERT_TRUE(files.back());
        error = create_vm(files.back().get(), vm);
    }
    EXPECT_EQ(error, ENOSPC);
    EXPECT_GE(files.size(), 500u);
    files.clear();
    error = 0;
    int count = 0;
    for (; error == 0 && count < 2000; count++)
        error = create_vm(fd(), vm);
    EXPECT_EQ(error, ENOSPC);
    EXPECT_GE(count, 1000);
    file_ = {};  // takes them all along
    File fresh = open_card();
    EXPECT_EQ(create_vm(fresh.get(), vm), 0);
    EXPECT_EQ(vram_used(fresh.get()), 4096u);
}

// --- fences ---

TEST_F(Work, TimelinePointsSignalInOrder) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    const std::uint32_t timeline = make_syncobj(fd());
    for (std::uint64_t i = 1; i <= 8; i++)
        ASSERT_EQ(put_fence(fd(), queue.number(), i, timeline, i * 10), 0);
    EXPECT_EQ(wait_point(fd(), timeline, 10, 0.02), ETIME);
    queue.submit(std::vector{nop(), nop(), nop()});
    EXPECT_EQ(wait_point(fd(), timeline, 30, kLong), 0);
    EXPECT_EQ(wait_point(fd(), timeline, 40, 0.02), ETIME);
    std::uint64_t value = 0;
    drm_syncobj_timeline_array query{};
    query.handles = reinterpret_cast<std::uint64_t>(&timeline);
    query.points = reinterpret_cast<std::uint64_t>(&value);
    query.count_handles = 1;
    ASSERT_EQ(call(fd(), DRM_IOCTL_SYNCOBJ_QUERY, &query), 0);
    EXPECT_EQ(value, 30u);
    queue.submit(std::vector<orr_packet>(5, nop()));
    EXPECT_EQ(wait_point(fd(), timeline, 80, kLong), 0);
}

TEST_F(Work, BinaryFencesSignalAlsoWhenNobodyWaited) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    const std::uint32_t syncobj = make_syncobj(fd());
    // Many more than a queue keeps at once, each replaced by the next.
    for (std::uint64_t i = 1; i <= 6000; i++) {
        ASSERT_EQ(put_fence(fd(), queue.number(), i, syncobj, 0), 0) << i;
        queue.submit(nop());
        if (i % 32 == 0) {
            drm_orr_queue_wait out{};
            ASSERT_EQ(wait(fd(), queue.number(), i, kLong, out), 0);
        }
    }
    drm_orr_queue_wait out{};
    ASSERT_EQ(wait(fd(), queue.number(), 6000, kLong, out), 0);
    EXPECT_EQ(wait_point(fd(), syncobj, 0, 0), 0);
}

TEST_F(Work, FencesOfAQueueHaveALimit) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    const std::uint32_t syncobj = make_syncobj(fd());
    int error = 0;
    std::uint64_t count = 0;
    for (; error == 0 && count < 10000; count++)
        error = put_fence(fd(), queue.number(), 1'000'000 + count, syncobj, 0);
    EXPECT_EQ(error, ENOSPC);
    drm_orr_queue_wait out{};
    EXPECT_EQ(wait(fd(), queue.number(), 1, 1, out), ENOSPC);
    queue.submit(nop());
    while (wait(fd(), queue.number(), 1, 0, out) != 0)
        ::usleep(100);
    EXPECT_EQ(out.completed, 1u);
}

TEST_F(Work, FencesEndWithTheirQueue) {
    const std::uint32_t stopped = make_syncobj(fd());
    const std::uint32_t destroyed = make_syncobj(fd());
    File stopped_file;
    File destroyed_file;
    {
        Queue bad(fd(), vm_, kRingVa);
        ASSERT_EQ(bad.error(), 0);
        ASSERT_EQ(put_fence(fd(), bad.number(), 5, stopped, 0), 0);
        export_fence(fd(), stopped, stopped_file);
        EXPECT_EQ(sync_file_status(stopped_file.get()), 0);
        bad.submit(fill(0x777777000, 64, 1));
        EXPECT_EQ(wait_point(fd(), stopped, 0, kLong), 0);
        EXPECT_EQ(sync_file_status(stopped_file.get()), -EIO);
        Queue other(fd(), vm_, kRingVa + kMiB);
        ASSERT_EQ(other.error(), 0);
        ASSERT_EQ(put_fence(fd(), other.number(), 5, destroyed, 0), 0);
        export_fence(fd(), destroyed, destroyed_file);
    }
    EXPECT_EQ(sync_file_status(destroyed_file.get()), -ECANCELED);
    pollfd poll{.fd = destroyed_file.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&poll, 1, 1000), 1);
    // And with the whole file.
    File mine = open_card();
    std::uint32_t vm = 0;
    ASSERT_EQ(create_vm(mine.get(), vm), 0);
    auto queue = std::make_unique<Queue>(mine.get(), vm, kRingVa);
    ASSERT_EQ(queue->error(), 0);
    const std::uint32_t syncobj = make_syncobj(mine.get());
    ASSERT_EQ(put_fence(mine.get(), queue->number(), 1, syncobj, 0), 0);
    File left;
    export_fence(mine.get(), syncobj, left);
    queue->forget();
    queue.reset();
    mine = {};
    EXPECT_EQ(sync_file_status(left.get()), -ECANCELED);
}

TEST_F(Work, AFenceOfAStoppedQueueHasItsError) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    drm_orr_queue_wait out{};
    EXPECT_EQ(queue.run(std::vector{nop(), fill(0x777777000, 64, 1)}, out), 0);
    ASSERT_NE(out.error, 0u);
    // Nobody waits for it, and no interrupt will come.
    const std::uint32_t syncobj = make_syncobj(fd());
    ASSERT_EQ(put_fence(fd(), queue.number(), 2, syncobj, 0), 0);
    File file;
    export_fence(fd(), syncobj, file);
    EXPECT_EQ(sync_file_status(file.get()), -EIO);
    // What it had completed before has no error.
    ASSERT_EQ(put_fence(fd(), queue.number(), 1, syncobj, 0), 0);
    export_fence(fd(), syncobj, file);
    EXPECT_EQ(sync_file_status(file.get()), 1);
}

TEST_F(Work, FencesFarApartAreOrdered) {
    Queue queue(fd(), vm_, kRingVa);
    ASSERT_EQ(queue.error(), 0);
    const std::uint32_t syncobj = make_syncobj(fd());
    File far;
    ASSERT_EQ(put_fence(fd(), queue.number(), (1ull << 32) + 1, syncobj, 0), 0);
    export_fence(fd(), syncobj, far);
    File near;
    ASSERT_EQ(put_fence(fd(), queue.number(), 5, syncobj, 0), 0);
    export_fence(fd(), syncobj, near);
    // Of two fences of a queue the later one is enough; which is that?
    struct {  // struct sync_merge_data of linux/sync_file.h
        char name[32];
        std::int32_t fd2;
        std::int32_t fence;
        std::uint32_t flags;
        std::uint32_t pad;
    } merge{"both", near.get(), -1, 0, 0};
    ASSERT_EQ(call(far.get(), _IOWR('>', 3, decltype(merge)), &merge), 0);
    const File both(merge.fence);
    EXPECT_EQ(queue.run(std::vector<orr_packet>(5, nop())), 0);
    pollfd poll{.fd = near.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&poll, 1, 60'000), 1);
    EXPECT_EQ(sync_file_status(both.get()), 0);
}

// --- processes ---

TEST_F(Work, AProcessThatDiesWithWorkInFlightLeavesNothing) {
    // The file is the first of its kind, so what it holds is what is used.
    const std::uint64_t before = vram_used(fd());
    for (int round = 0; round < 10; round++) {
        const int status = in_child([&] {
            File mine = open_card();
            std::uint32_t vm = 0;
            if (create_vm(mine.get(), vm) != 0) return 1;
            Buffer big;
            if (make_buffer(mine.get(), vm, kVa, 32 * kMiB, ORR_BO_VRAM, big) != 0) return 2;
            Queue queue(mine.get(), vm, kRingVa, 256);
            if (queue.error() != 0) return 3;
            Queue stuck(mine.get(), vm, kRingVa + kMiB);
            stuck.submit(wait_for(kVa, 1));
            for (int i = 0; i < 100; i++)
                queue.submit(fill(kVa, 32 * kMiB, 0x55));
            ::kill(::getpid(), SIGKILL);
            return 4;
        });
        ASSERT_EQ(status, 1000 + SIGKILL);
    }
    EXPECT_EQ(vram_used(fd()), before);
    Queue queue(fd(), vm_, kRingVa);
    EXPECT_EQ(queue.run(std::vector{nop()}), 0);
}

}  // namespace
}  // namespace orrery::kmod_test
