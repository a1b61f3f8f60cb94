#include "tests/vm/kmod/device.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace orrery::kmod_test {

File::~File() {
    if (fd_ >= 0) ::close(fd_);
}

File& File::operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

int File::release() {
    return std::exchange(fd_, -1);
}

Mapping::Mapping(int fd, std::uint64_t offset, std::size_t size, int protection, int flags) : size_(size) {
    data_ = ::mmap(nullptr, size, protection, flags, fd, static_cast<off_t>(offset));
    if (data_ == MAP_FAILED) {
        data_ = nullptr;
        error_ = errno;
    }
}

Mapping::~Mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
}

Mapping::Mapping(Mapping&& other) noexcept {
    *this = std::move(other);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(error_, other.error_);
    return *this;
}

File open_card(unsigned index) {
    const std::string path = "/dev/accel/accel" + std::to_string(index);
    File file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_TRUE(file) << path << ": " << std::strerror(errno);
    return file;
}

unsigned count_cards() {
    unsigned count = 0;
    while (::access(("/dev/accel/accel" + std::to_string(count)).c_str(), F_OK) == 0)
        count++;
    return count;
}

int call(int fd, unsigned long request, void* argument) {
    int result = 0;
    do {
        result = ::ioctl(fd, request, argument);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

int create_bo(int fd, std::uint64_t size, std::uint32_t flags, drm_orr_bo_create& out) {
    out = {};
    out.size = size;
    out.flags = flags;
    return call(fd, DRM_IOCTL_ORR_BO_CREATE, &out);
}

int close_bo(int fd, std::uint32_t handle) {
    drm_gem_close args{};
    args.handle = handle;
    return call(fd, DRM_IOCTL_GEM_CLOSE, &args);
}

int create_vm(int fd, std::uint32_t& vm) {
    drm_orr_vm_create args{};
    const int error = call(fd, DRM_IOCTL_ORR_VM_CREATE, &args);
    vm = args.vm;
    return error;
}

int destroy_vm(int fd, std::uint32_t vm) {
    drm_orr_vm_destroy args{};
    args.vm = vm;
    return call(fd, DRM_IOCTL_ORR_VM_DESTROY, &args);
}

int map(int fd, std::uint32_t vm, std::uint32_t handle, std::uint64_t va, std::uint64_t size,
        std::uint32_t flags, std::uint64_t offset) {
    drm_orr_vm_bind args{};
    args.vm = vm;
    args.op = ORR_BIND_MAP;
    args.handle = handle;
    args.flags = flags;
    args.bo_offset = offset;
    args.va = va;
    args.size = size;
    return call(fd, DRM_IOCTL_ORR_VM_BIND, &args);
}

int unmap(int fd, std::uint32_t vm, std::uint64_t va, std::uint64_t size) {
    drm_orr_vm_bind args{};
    args.vm = vm;
    args.op = ORR_BIND_UNMAP;
    args.va = va;
    args.size = size;
    return call(fd, DRM_IOCTL_ORR_VM_BIND, &args);
}

int destroy_queue(int fd, std::uint32_t queue) {
    drm_orr_queue_destroy args{};
    args.queue = queue;
    return call(fd, DRM_IOCTL_ORR_QUEUE_DESTROY, &args);
}

int wait(int fd, std::uint32_t queue, std::uint64_t index, double seconds, drm_orr_queue_wait& out) {
    out = {};
    out.queue = queue;
    out.index = index;
    if (seconds > 0) {
        timespec now{};
        ::clock_gettime(CLOCK_MONOTONIC, &now);
        out.timeout_ns =
            std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + static_cast<std::int64_t>(seconds * 1e9);
    }
    return call(fd, DRM_IOCTL_ORR_QUEUE_WAIT, &out);
}

std::uint32_t make_syncobj(int fd) {
    drm_syncobj_create args{};
    EXPECT_EQ(call(fd, DRM_IOCTL_SYNCOBJ_CREATE, &args), 0);
    return args.handle;
}

int wait_point(int fd, std::uint32_t syncobj, std::uint64_t point, double seconds) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    drm_syncobj_timeline_wait args{};
    args.handles = reinterpret_cast<std::uint64_t>(&syncobj);
    args.points = reinterpret_cast<std::uint64_t>(&point);
    args.count_handles = 1;
    args.timeout_nsec =
        std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + static_cast<std::int64_t>(seconds * 1e9);
    return call(fd, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &args);
}

int put_fence(int fd, std::uint32_t queue, std::uint64_t index, std::uint32_t syncobj, std::uint64_t point) {
    drm_orr_queue_fence args{};
    args.queue = queue;
    args.syncobj = syncobj;
    args.index = index;
    args.point = point;
    return call(fd, DRM_IOCTL_ORR_QUEUE_FENCE, &args);
}

void export_fence(int fd, std::uint32_t syncobj, File& sync_file) {
    drm_syncobj_handle args{};
    args.handle = syncobj;
    args.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
    args.fd = -1;
    EXPECT_EQ(call(fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &args), 0);
    sync_file = File(args.fd);
}

int sync_file_status(int fd) {
    struct {  // struct sync_file_info of linux/sync_file.h
        char name[32];
        std::int32_t status;
        std::uint32_t flags;
        std::uint32_t num_fences;
        std::uint32_t pad;
        std::uint64_t sync_fence_info;
    } info{};
    EXPECT_EQ(call(fd, _IOWR('>', 4, decltype(info)), &info), 0);
    return info.status;
}

int export_bo(int fd, std::uint32_t handle, File& out) {
    drm_prime_handle args{};
    args.handle = handle;
    args.flags = DRM_CLOEXEC | DRM_RDWR;
    const int error = call(fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);
    if (error == 0) out = File(args.fd);
    return error;
}

int import_bo(int fd, int dma_buf, std::uint32_t& handle) {
    drm_prime_handle args{};
    args.fd = dma_buf;
    const int error = call(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);
    handle = args.handle;
    return error;
}

std::string debugfs(unsigned index) {
    const std::string card = "/sys/class/accel/accel" + std::to_string(index) + "/device";
    std::error_code error;
    const std::string address = std::filesystem::canonical(card, error).filename();
    ::mount("debugfs", "/sys/kernel/debug", "debugfs", 0, nullptr);
    const std::string path = "/sys/kernel/debug/accel/" + address + "/";
    EXPECT_EQ(::access((path + "waits").c_str(), R_OK), 0) << path;
    return path;
}

unsigned wait_statistic(unsigned index, const std::string& name) {
    std::ifstream in(debugfs(index) + "waits");
    for (std::string key; in >> key;) {
        unsigned value = 0;
        if (in >> value && key == name) return value;
    }
    ADD_FAILURE() << "no '" << name << "' among the statistics of waits";
    return 0;
}

bool inject(const orr_mbox_message& message, unsigned index) {
    const File file(::open((debugfs(index) + "inject_message").c_str(), O_WRONLY | O_CLOEXEC));
    return ::write(file.get(), &message, sizeof message) == sizeof message;
}

unsigned number_of_queue(const std::string& name, unsigned index) {
    std::ifstream in(debugfs(index) + "queues");
    for (std::string line; std::getline(in, line);) {
        if (line.find(' ' + name + ' ') != std::string::npos) return static_cast<unsigned>(std::stoi(line));
    }
    ADD_FAILURE() << "no queue '" << name << "'";
    return 0;
}

std::uint64_t vram_used(int fd) {
    drm_orr_query_device args{};
    EXPECT_EQ(call(fd, DRM_IOCTL_ORR_QUERY_DEVICE, &args), 0);
    return args.vram_used;
}

std::uint64_t uid_of(int fd) {
    drm_orr_query_device args{};
    EXPECT_EQ(call(fd, DRM_IOCTL_ORR_QUERY_DEVICE, &args), 0);
    return args.uid;
}

drm_orr_query_way way_between(int from, int to) {
    drm_orr_query_way way{};
    way.peer_uid = uid_of(to);
    EXPECT_EQ(call(from, DRM_IOCTL_ORR_QUERY_WAY, &way), 0);
    return way;
}

int make_buffer(int fd, std::uint32_t vm, std::uint64_t va, std::uint64_t size, std::uint32_t flags,
                Buffer& out) {
    drm_orr_bo_create bo{};
    if (const int error = create_bo(fd, size, flags, bo)) return error;
    if (const int error = map(fd, vm, bo.handle, va, bo.size)) return error;
    out.handle = bo.handle;
    out.va = va;
    out.size = bo.size;
    out.offset = bo.mmap_offset;
    out.memory = Mapping(fd, bo.mmap_offset, bo.size, PROT_READ | PROT_WRITE, MAP_SHARED);
    return out.memory.error();
}

Queue::Queue(int fd, std::uint32_t vm, std::uint64_t ring_va, std::uint32_t entries,
             std::uint32_t ring_memory, std::string_view name, std::uint32_t limit_us)
    : fd_(fd) {
    const std::uint64_t bytes = sizeof(orr_ring) + std::uint64_t{entries} * ORR_PACKET_SIZE;
    error_ = make_buffer(fd, vm, ring_va, bytes, ring_memory, ring_);
    if (error_ != 0) return;
    args_.vm = vm;
    args_.entries = entries;
    args_.ring_va = ring_va;
    args_.priority = ORR_QUEUE_PRIORITY_NORMAL;
    args_.dispatch_limit_us = limit_us;
    name.copy(reinterpret_cast<char*>(args_.name), sizeof args_.name - 1);
    error_ = call(fd, DRM_IOCTL_ORR_QUEUE_CREATE, &args_);
    if (error_ != 0) return;
    doorbell_ = Mapping(fd, args_.doorbell_offset, ORR_DB_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED);
    kick_ = Mapping(fd, args_.kick_offset, ORR_DB_PAGE_SIZE, PROT_WRITE, MAP_SHARED);
    error_ = doorbell_.error() != 0 ? doorbell_.error() : kick_.error();
}

Queue::~Queue() {
    if (args_.queue != 0) destroy_queue(fd_, args_.queue);
}

std::uint64_t Queue::write(std::span<const orr_packet> packets) {
    auto* const slots = reinterpret_cast<orr_packet*>(&ring() + 1);
    for (const orr_packet& packet : packets)
        slots[producer_++ % args_.entries] = packet;
    std::atomic_ref(ring().producer).store(producer_, std::memory_order_release);
    return producer_;
}

void Queue::ring_doorbell(std::uint64_t index) {
    volatile orr_doorbell_page& p = page();
    std::atomic_thread_fence(std::memory_order_release);
    p.doorbell[args_.doorbell_slot] = ORR_DB_VALUE(args_.generation, index);
    p.summary = p.summary + 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (p.need_wakeup != 0) static_cast<volatile std::uint64_t*>(kick_.words())[args_.doorbell_slot] = 1;
}

std::uint64_t Queue::submit(std::span<const orr_packet> packets) {
    const std::uint64_t index = write(packets);
    ring_doorbell();
    return index;
}

int Queue::run(std::span<const orr_packet> packets, drm_orr_queue_wait& out) {
    return wait(fd_, args_.queue, submit(packets), kLong, out);
}

int Queue::run(std::span<const orr_packet> packets) {
    drm_orr_queue_wait out{};
    const int error = run(packets, out);
    return error != 0 ? error : (out.error != 0 ? EIO : 0);
}

namespace {

template <typename T>
orr_packet as_packet(const T& typed) {
    static_assert(sizeof(T) == sizeof(orr_packet));
    orr_packet packet;
    std::memcpy(&packet, &typed, sizeof packet);
    return packet;
}

orr_packet semaphore(std::uint16_t opcode, std::uint64_t va, std::uint64_t value) {
    orr_packet_semaphore p{};
    p.header.opcode = opcode;
    p.semaphore = va;
    p.value = value;
    return as_packet(p);
}

}  // namespace

orr_packet nop(std::uint16_t flags) {
    orr_packet p{};
    p.header.opcode = ORR_PKT_NOP;
    p.header.flags = flags;
    return p;
}

orr_packet copy(std::uint64_t src, std::uint64_t dst, std::uint64_t bytes) {
    orr_packet_copy p{};
    p.header.opcode = ORR_PKT_COPY;
    p.src = src;
    p.dst = dst;
    p.row_bytes = bytes;
    p.rows = 1;
    return as_packet(p);
}

orr_packet long_copy(std::uint64_t descriptor, std::uint32_t bytes) {
    orr_packet_long p{};
    p.header.opcode = ORR_PKT_COPY;
    p.header.flags = ORR_PKT_F_LONG;
    p.descriptor = descriptor;
    p.bytes = bytes;
    return as_packet(p);
}

orr_packet fill(std::uint64_t dst, std::uint64_t bytes, std::uint64_t pattern) {
    orr_packet_fill p{};
    p.header.opcode = ORR_PKT_FILL;
    p.pattern = pattern;
    p.dst = dst;
    p.row_bytes = bytes;
    p.rows = 1;
    p.pattern_bytes = 8;
    return as_packet(p);
}

orr_packet signal(std::uint64_t va, std::uint64_t value) {
    return semaphore(ORR_PKT_SIGNAL, va, value);
}

orr_packet wait_for(std::uint64_t va, std::uint64_t value) {
    return semaphore(ORR_PKT_WAIT, va, value);
}

orr_packet timestamp(std::uint64_t dst) {
    orr_packet_timestamp p{};
    p.header.opcode = ORR_PKT_TIMESTAMP;
    p.dst = dst;
    return as_packet(p);
}

}  // namespace orrery::kmod_test
