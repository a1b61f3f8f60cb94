// What tests of signallers begin with: a queue in a place of its own, with memory of this card or of another.
#pragma once

#include <gtest/gtest.h>
#include <orrery/fw/failure.h>

#include <memory>
#include <vector>

#include "tests/vm/kmod/fixture.h"

namespace orrery::kmod_test {

inline constexpr std::uint64_t kVa = 0x40000000;
inline constexpr std::uint64_t kNowhere = 0x60000000;

inline int signaller_call(unsigned long request, int fd, std::uint32_t queue, std::uint64_t va,
                          std::uint32_t count) {
    drm_orr_signaller args{.queue = queue, .flags = 0, .semaphore = va, .count = count, .pad = 0};
    return call(fd, request, &args);
}
inline int attach(int fd, std::uint32_t queue, std::uint64_t va, std::uint32_t count = 1) {
    return signaller_call(DRM_IOCTL_ORR_SIGNALLER_ATTACH, fd, queue, va, count);
}
inline int detach(int fd, std::uint32_t queue, std::uint64_t va, std::uint32_t count = 1) {
    return signaller_call(DRM_IOCTL_ORR_SIGNALLER_DETACH, fd, queue, va, count);
}

// A process's address space on a card, with a queue.
struct Place {
    explicit Place(unsigned card) : file(open_card(card)) {
        EXPECT_EQ(create_vm(fd(), vm), 0);
        queue = std::make_unique<Queue>(fd(), vm, kRingVa);
        EXPECT_EQ(queue->error(), 0);
    }
    int fd() const { return file.get(); }
    // Memory of this card at kVa.
    void make_memory(std::uint64_t bytes = 4096) {
        EXPECT_EQ(make_buffer(fd(), vm, kVa, bytes, ORR_BO_VRAM, memory), 0);
    }
    // Memory of another at kVa.
    void share(const Place& owner, std::uint32_t flags) {
        File dma_buf;
        EXPECT_EQ(export_bo(owner.fd(), owner.memory.handle, dma_buf), 0);
        EXPECT_EQ(import_bo(fd(), dma_buf.get(), handle), 0);
        EXPECT_EQ(map(fd(), vm, handle, kVa, owner.memory.size, flags), 0);
    }
    // What the last packet of the queue came to.
    drm_orr_queue_wait outcome(double seconds = kLong) const {
        drm_orr_queue_wait out{};
        EXPECT_EQ(wait(fd(), queue->number(), queue->ring().producer, seconds, out), 0);
        return out;
    }
    void expect_poisoned(std::uint32_t code) const {
        const drm_orr_queue_wait out = outcome();
        EXPECT_EQ(out.error, ORR_QERR_POISON);
        EXPECT_EQ(ORR_FAILURE_CODE(out.error_detail), code);
    }
    File file;
    std::uint32_t vm = 0, handle = 0;
    Buffer memory, work;
    std::unique_ptr<Queue> queue;
};

inline constexpr std::uint64_t kPage = 0x70000000;  // of a barrier

// 0 or the errno; the members' pages are filled in.
inline int make_barrier(int fd, std::vector<drm_orr_barrier_member>& members) {
    drm_orr_barrier_create args{.members = reinterpret_cast<std::uintptr_t>(members.data()),
                                .count = static_cast<std::uint32_t>(members.size()),
                                .flags = 0};
    return call(fd, DRM_IOCTL_ORR_BARRIER_CREATE, &args);
}
// A member's page at kPage.
inline void map_page(const Place& place, const File& page) {
    std::uint32_t handle = 0;
    ASSERT_EQ(import_bo(place.fd(), page.get(), handle), 0);
    ASSERT_EQ(map(place.fd(), place.vm, handle, kPage, 4096, ORR_BIND_WRITE), 0);
    ASSERT_EQ(close_bo(place.fd(), handle), 0);
}
// Of a place whose memory has the semaphore, and another card's memory: the place's page is mapped, and what
// comes out keeps the other member's.
inline File barrier_with(const Place& place, int other, std::uint32_t other_handle) {
    File own, there;
    EXPECT_EQ(export_bo(place.fd(), place.memory.handle, own), 0);
    EXPECT_EQ(export_bo(other, other_handle, there), 0);
    std::vector<drm_orr_barrier_member> members{{.memory = own.get(), .page = 0, .offset = 0},
                                                {.memory = there.get(), .page = 0, .offset = 0}};
    if (const int error = make_barrier(place.fd(), members); error != 0) {
        ADD_FAILURE() << "no barrier: " << error;
        return {};
    }
    const File page(members[0].page);
    map_page(place, page);
    return File(members[1].page);
}

}  // namespace orrery::kmod_test
