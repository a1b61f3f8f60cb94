#include "emulator/memory/host_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace orrery::emu {
namespace {

constexpr std::uint64_t kPage = 4096;

UniqueFd file(std::uint64_t bytes) {
    UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
    return fd;
}

HostRange range(std::uint64_t address, std::uint64_t size, bool readable = true, bool writable = true) {
    auto made = HostRange::create(address, size, file(size), 0, readable, writable);
    EXPECT_TRUE(made);
    return *std::move(made);
}

TEST(HostMemory, FindsWhatIsMapped) {
    HostMemory memory;
    ASSERT_TRUE(memory.insert(range(0x10000, 4 * kPage)));
    ASSERT_TRUE(memory.insert(range(0x50000, kPage)));
    const auto span = memory.find(0x10010, 100, true);
    ASSERT_NE(span.data, nullptr);
    EXPECT_EQ(span.bytes, 100u);
    *span.data = 42;
    EXPECT_EQ(*memory.find(0x10010, 1, false).data, 42);
    EXPECT_EQ(memory.find(0x10000 + 4 * kPage - 8, 100, false).bytes, 8u);
    EXPECT_EQ(memory.find(0x10000 + 4 * kPage, 1, false).data, nullptr);
    EXPECT_EQ(memory.find(0xffff, 1, false).data, nullptr);
    EXPECT_NE(memory.find(0x50fff, 1, false).data, nullptr);
    EXPECT_EQ(memory.find(0, 1, false).data, nullptr);
    EXPECT_EQ(memory.find(~std::uint64_t{0}, 1, false).data, nullptr);
}

TEST(HostMemory, RefusesOverlaps) {
    HostMemory memory;
    ASSERT_TRUE(memory.insert(range(0x10000, 4 * kPage)));
    EXPECT_EQ(memory.insert(range(0x10000, 4 * kPage)).error(), EEXIST);
    EXPECT_EQ(memory.insert(range(0xf000, 2 * kPage)).error(), EEXIST);
    EXPECT_EQ(memory.insert(range(0x13000, 2 * kPage)).error(), EEXIST);
    EXPECT_EQ(memory.insert(range(0x11000, kPage)).error(), EEXIST);
    EXPECT_EQ(memory.insert(range(0x8000, 64 * kPage)).error(), EEXIST);
    EXPECT_TRUE(memory.insert(range(0x14000, kPage)));
    EXPECT_TRUE(memory.insert(range(0xf000, kPage)));
    EXPECT_EQ(memory.size(), 3u);
}

TEST(HostMemory, RemovesOnlyWhatItHas) {
    HostMemory memory;
    ASSERT_TRUE(memory.insert(range(0x10000, 4 * kPage)));
    EXPECT_FALSE(memory.remove(0x10000, kPage));
    EXPECT_FALSE(memory.remove(0x11000, 3 * kPage));
    EXPECT_FALSE(memory.remove(0, kPage));
    ASSERT_NE(memory.find(0x10000, 1, false).data, nullptr);
    EXPECT_TRUE(memory.remove(0x10000, 4 * kPage));
    EXPECT_EQ(memory.find(0x10000, 1, false).data, nullptr);
    EXPECT_FALSE(memory.remove(0x10000, 4 * kPage));
}

TEST(HostMemory, LivesAtTheEndOfTheAddressSpace) {
    HostMemory memory;
    const std::uint64_t last = 0 - kPage;
    ASSERT_TRUE(memory.insert(range(last, kPage)));
    EXPECT_EQ(memory.find(last, 2 * kPage, true).bytes, kPage);
    EXPECT_NE(memory.find(~std::uint64_t{0}, 1, true).data, nullptr);
    EXPECT_EQ(memory.find(0, 1, true).data, nullptr);
    EXPECT_EQ(HostRange::create(last, 2 * kPage, UniqueFd(), 0, true, true).error(), EINVAL);
    EXPECT_EQ(HostRange::create(0, 0, UniqueFd(), 0, true, true).error(), EINVAL);
}

TEST(HostMemory, HonoursRights) {
    HostMemory memory;
    ASSERT_TRUE(memory.insert(range(0x10000, kPage, true, false)));
    ASSERT_TRUE(memory.insert(range(0x20000, kPage, false, true)));
    EXPECT_NE(memory.find(0x10000, 1, false).data, nullptr);
    EXPECT_EQ(memory.find(0x10000, 1, true).data, nullptr);
    EXPECT_EQ(memory.find(0x20000, 1, false).data, nullptr);
    EXPECT_NE(memory.find(0x20000, 1, true).data, nullptr);
}

TEST(HostMemory, ARangeWithoutAFileIsKnownButNotReachable) {
    HostMemory memory;
    auto made = HostRange::create(0x10000, kPage, UniqueFd(), 0, true, true);
    ASSERT_TRUE(made);
    ASSERT_TRUE(memory.insert(*std::move(made)));
    EXPECT_EQ(memory.find(0x10000, 1, false).data, nullptr);
    EXPECT_TRUE(memory.remove(0x10000, kPage));
}

TEST(HostMemory, AFileThatCannotBeMappedIsAnError) {
    const UniqueFd read_end(memfd_create("test", MFD_CLOEXEC));
    EXPECT_FALSE(HostRange::create(0x10000, kPage, read_end, 123, true, true));
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    const UniqueFd a(fds[0]), b(fds[1]);
    EXPECT_FALSE(HostRange::create(0x10000, kPage, a, 0, true, true));
}

TEST(HostMemory, HidesEverythingWhileBusMasteringIsOff) {
    HostMemory memory;
    ASSERT_TRUE(memory.insert(range(0x10000, kPage)));
    memory.set_enabled(false);
    EXPECT_EQ(memory.find(0x10000, 1, false).data, nullptr);
    memory.set_enabled(true);
    EXPECT_NE(memory.find(0x10000, 1, false).data, nullptr);
    EXPECT_EQ(memory.remove_all().size(), 1u);
    EXPECT_EQ(memory.size(), 0u);
}

}  // namespace
}  // namespace orrery::emu
