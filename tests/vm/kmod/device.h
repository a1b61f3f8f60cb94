// The driver's interface as a process sees it, with nothing of ours between: raw ioctls and mappings, so that
// a test can do everything wrong that a process could.
#pragma once

#include <drm.h>
#include <drm/orrery_accel.h>
#include <orrery/fw/mailbox.h>
#include <orrery/fw/packet.h>
#include <orrery/fw/queue.h>
#include <orrery/hw/doorbell.h>
#include <orrery/hw/link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace orrery::kmod_test {

// Whether it is so within about a minute.
template <class Condition>
bool comes_true(Condition condition) {
    for (int tries = 0; tries < 12'000; ++tries) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

// A file descriptor of its own.
class File {
  public:
    File() = default;
    explicit File(int fd) : fd_(fd) {}
    ~File();
    File(File&& other) noexcept : fd_(other.release()) {}
    File& operator=(File&& other) noexcept;
    int get() const { return fd_; }
    int release();
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

// A mapping; unmapped at the end.
class Mapping {
  public:
    Mapping() = default;
    // nullptr data() and an errno in error() if mmap() refused.
    Mapping(int fd, std::uint64_t offset, std::size_t size, int protection, int flags);
    ~Mapping();
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&& other) noexcept;
    void* data() const { return data_; }
    std::size_t size() const { return size_; }
    int error() const { return error_; }
    std::uint64_t* words() const { return static_cast<std::uint64_t*>(data_); }

  private:
    void* data_ = nullptr;
    std::size_t size_ = 0;
    int error_ = 0;
};

// Opens card `index`'s node; fails the test if there is none.
File open_card(unsigned index = 0);
// How many nodes there are.
unsigned count_cards();

// ioctl() until it is not interrupted. 0 or the errno.
int call(int fd, unsigned long request, void* argument);

// The ioctls; 0 or the errno.
int create_bo(int fd, std::uint64_t size, std::uint32_t flags, drm_orr_bo_create& out);
int close_bo(int fd, std::uint32_t handle);
int create_vm(int fd, std::uint32_t& vm);
int destroy_vm(int fd, std::uint32_t vm);
int map(int fd, std::uint32_t vm, std::uint32_t handle, std::uint64_t va, std::uint64_t size,
        std::uint32_t flags = ORR_BIND_READ | ORR_BIND_WRITE, std::uint64_t offset = 0);
int unmap(int fd, std::uint32_t vm, std::uint64_t va, std::uint64_t size);
int destroy_queue(int fd, std::uint32_t queue);
// Waits up to `seconds` (0: looks only).
int wait(int fd, std::uint32_t queue, std::uint64_t index, double seconds, drm_orr_queue_wait& out);
// A syncobj; a fence in it that signals when the queue has completed `index` packets; a wait for a point of
// it.
std::uint32_t make_syncobj(int fd);
int put_fence(int fd, std::uint32_t queue, std::uint64_t index, std::uint32_t syncobj, std::uint64_t point);
int wait_point(int fd, std::uint32_t syncobj, std::uint64_t point, double seconds);
// A sync_file of a syncobj's fence, and what it says: 0: active, 1: signalled, < 0: signalled with this
// error.
void export_fence(int fd, std::uint32_t syncobj, File& sync_file);
int sync_file_status(int fd);
int export_bo(int fd, std::uint32_t handle, File& out);
int import_bo(int fd, int dma_buf, std::uint32_t& handle);
std::uint64_t vram_used(int fd);
std::uint64_t uid_of(int fd);
// From one card to another.
drm_orr_query_way way_between(int from, int to);
// For root: the folder of card `index` in debugfs, with a slash; a figure of its file "waits".
std::string debugfs(unsigned index = 0);
unsigned wait_statistic(unsigned index, const std::string& name);
// A message that the driver believes the firmware to have sent; whether it took it.
bool inject(const orr_mbox_message& message, unsigned index = 0);
// The firmware's number of the queue with this name; fails the test if there is none.
unsigned number_of_queue(const std::string& name, unsigned index = 0);

// A BO that is mapped into an address space and into the process.
struct Buffer {
    std::uint32_t handle = 0;
    std::uint64_t va = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;  // for mmap()
    Mapping memory;
    std::uint64_t* words() const { return memory.words(); }
};

// A queue with its ring, and the file's doorbell and kick pages.
class Queue {
  public:
    Queue(int fd, std::uint32_t vm, std::uint64_t ring_va, std::uint32_t entries = 64,
          std::uint32_t ring_memory = ORR_BO_SYSTEM, std::string_view name = {}, std::uint32_t limit_us = 0);
    ~Queue();
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    // 0, or the errno of what failed in the constructor.
    int error() const { return error_; }
    std::uint32_t number() const { return args_.queue; }
    const drm_orr_queue_create& args() const { return args_; }
    orr_ring& ring() const { return *static_cast<orr_ring*>(ring_.memory.data()); }
    const Buffer& ring_buffer() const { return ring_; }
    volatile orr_doorbell_page& page() const {
        return *static_cast<volatile orr_doorbell_page*>(doorbell_.data());
    }
    const Mapping& doorbell_page() const { return doorbell_; }
    const Mapping& kick_page() const { return kick_; }

    // Writes packets and rings. Returns the index at which the last has completed.
    std::uint64_t submit(std::span<const orr_packet> packets);
    std::uint64_t submit(const orr_packet& packet) { return submit(std::span(&packet, 1)); }
    // Writes packets without ringing.
    std::uint64_t write(std::span<const orr_packet> packets);
    void ring_doorbell() { ring_doorbell(producer_); }
    void ring_doorbell(std::uint64_t index);
    // Submits and waits; 0 or the errno. `out` has the queue's state.
    int run(std::span<const orr_packet> packets, drm_orr_queue_wait& out);
    int run(std::span<const orr_packet> packets);
    void forget() { args_.queue = 0; }  // it has been destroyed

  private:
    int fd_;
    int error_ = 0;
    Buffer ring_;
    drm_orr_queue_create args_{};
    Mapping doorbell_;
    Mapping kick_;
    std::uint64_t producer_ = 0;
};

// Creates a BO, maps it at `va` and into the process. errno, or 0.
int make_buffer(int fd, std::uint32_t vm, std::uint64_t va, std::uint64_t size, std::uint32_t flags,
                Buffer& out);

// Runs `body` in a child; its exit status, or 1000 + the signal that ended it.
template <typename Body>
int in_child(Body body) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(body());
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// A child runs `ask(tell)`, which calls tell() before it asks without end, and is killed so long after that.
// As in_child(), or -1: it ended without having asked.
template <typename Ask>
int killed_while_asking(unsigned after_us, Ask ask) {
    int asking[2];
    if (::pipe(asking) != 0) return -1;
    const File asks(asking[0]);
    File tells(asking[1]);
    const pid_t pid = ::fork();
    if (pid == 0) {
        ask([&] {
            if (::write(tells.get(), "!", 1) != 1) ::_exit(3);
        });
        ::_exit(2);
    }
    tells = File();
    char byte = 0;
    const bool asked = ::read(asks.get(), &byte, 1) == 1;
    if (asked) ::usleep(after_us);
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (!asked) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Packets.
orr_packet nop(std::uint16_t flags = 0);
orr_packet copy(std::uint64_t src, std::uint64_t dst, std::uint64_t bytes);
orr_packet long_copy(std::uint64_t descriptor, std::uint32_t bytes);
orr_packet fill(std::uint64_t dst, std::uint64_t bytes, std::uint64_t pattern);
orr_packet signal(std::uint64_t semaphore, std::uint64_t value);
orr_packet wait_for(std::uint64_t semaphore, std::uint64_t value);
orr_packet timestamp(std::uint64_t dst);

// Seconds that nothing healthy takes, on a slow machine under emulation.
inline constexpr double kLong = 60;

}  // namespace orrery::kmod_test
