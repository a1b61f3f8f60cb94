#include "tools/bench/guest/nvme.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/bench/guest/clock.h"

namespace orrery::bench {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kBlocks = 4096;  // of the device that are read, one after the other in odd steps
constexpr int kDepth = 128;

}  // namespace

std::unique_ptr<Nvme> Nvme::open(const char* path) {
    const int fd = ::open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0) {
        std::fprintf(stderr, "orrery-bench-guest: %s: %s (start the VM with orrery-vm --nvme)\n", path,
                     std::strerror(errno));
        return nullptr;
    }
    void* buffer =
        ::mmap(nullptr, kBlock * kDepth, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED) {
        ::close(fd);
        return nullptr;
    }
    std::memset(buffer, 1, kBlock * kDepth);
    return std::unique_ptr<Nvme>(new Nvme(fd, static_cast<std::byte*>(buffer)));
}

Nvme::Nvme(int fd, std::byte* buffer) : fd_(fd), buffer_(buffer) {}

Nvme::~Nvme() {
    ::munmap(buffer_, kBlock * kDepth);
    ::close(fd_);
}

std::size_t Nvme::next_offset() {
    next_ = (next_ + 1237) % kBlocks;
    return next_ * kBlock;
}

std::vector<double> Nvme::read_latency(int reads) {
    std::vector<double> times;
    for (int i = 0; i < reads; ++i) {
        const auto offset = static_cast<off_t>(next_offset());
        const std::int64_t begin = now_ns();
        if (::pread(fd_, buffer_, kBlock, offset) != static_cast<ssize_t>(kBlock)) return {};
        times.push_back(static_cast<double>(now_ns() - begin));
    }
    return times;
}

std::vector<double> Nvme::read_at_depth(int rounds, int depth, bool together) {
    if (depth > kDepth) return {};
    aio_context_t context = 0;
    if (::syscall(SYS_io_setup, depth, &context) != 0) return {};
    std::array<iocb, kDepth> blocks{};
    std::array<iocb*, kDepth> pointers{};
    std::array<io_event, kDepth> events{};
    const auto prepare = [&](std::size_t i) {
        blocks[i] = {};
        blocks[i].aio_lio_opcode = IOCB_CMD_PREAD;
        blocks[i].aio_fildes = static_cast<__u32>(fd_);
        blocks[i].aio_buf = reinterpret_cast<std::uintptr_t>(buffer_ + i * kBlock);
        blocks[i].aio_nbytes = kBlock;
        blocks[i].aio_offset = static_cast<__s64>(next_offset());
        blocks[i].aio_data = i;
    };
    long in_flight = 0;
    bool good = true;
    std::vector<double> times;
    for (std::size_t i = 0; i < static_cast<std::size_t>(depth); ++i) {
        prepare(i);
        pointers[i] = &blocks[i];
    }
    in_flight = ::syscall(SYS_io_submit, context, depth, pointers.data());
    good = in_flight == depth;
    std::int64_t begin = now_ns();
    int finished = 0;
    for (int done_rounds = 0; good && done_rounds < rounds;) {
        const long got =
            ::syscall(SYS_io_getevents, context, together ? depth : 1, depth, events.data(), nullptr);
        if (got <= 0) break;
        for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
            good = good && events[i].res == static_cast<__s64>(kBlock);
            prepare(events[i].data);
            pointers[i] = &blocks[events[i].data];
        }
        good = good && ::syscall(SYS_io_submit, context, got, pointers.data()) == got;
        for (finished += static_cast<int>(got); finished >= depth; finished -= depth, ++done_rounds) {
            const std::int64_t now = now_ns();
            times.push_back(static_cast<double>(now - begin) / depth);
            begin = now;
        }
    }
    ::syscall(SYS_io_destroy, context);  // waits for what is in flight
    return good ? times : std::vector<double>{};
}

}  // namespace orrery::bench
