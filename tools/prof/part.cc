#include "tools/prof/part.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

namespace orrery::prof {
namespace {

constexpr std::size_t kPage = 4096;  // of the head, whose file offset the records come behind

std::byte* map(int fd, std::uint64_t offset, std::size_t bytes) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

// Of this boot of this machine: FNV-1a of what the system calls it. ORR_VM, as guests may have begun alike.
std::uint64_t machine() {
    char text[128] = {};
    const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? 0 : ::read(fd, text, sizeof text - 1);
    if (fd >= 0) ::close(fd);
    const char* const vm = std::getenv("ORR_VM");
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::string_view part :
         {std::string_view(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))),
          std::string_view(vm == nullptr ? "" : vm)}) {
        for (const char c : part)
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash == 0 ? 1 : hash;
}

void name_command(char* to, std::size_t bytes) {
    const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t got = ::read(fd, to, bytes - 1);
    ::close(fd);
    // Words end in zeros there.
    for (ssize_t i = 0; i + 1 < got; ++i) {
        if (to[i] == '\0') to[i] = ' ';
    }
}

}  // namespace

bool Part::open(const std::string& folder, std::uint64_t limit) {
    // A process that executes another program has parts of both.
    for (int number = 0; fd_ < 0 && number < 1000; ++number) {
        const std::string path = folder + "/" + std::to_string(::getpid()) + "-" + std::to_string(number);
        fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd_ < 0 && errno != EEXIST) return false;
    }
    if (fd_ < 0) return false;
    limit_ = std::max<std::uint64_t>(limit, kPage + kStep);
    // Reserved, not only made longer: no store may find the disk full.
    if (const int error = ::posix_fallocate(fd_, 0, kPage); error != 0) {
        errno = error;
        return false;
    }
    head_ = reinterpret_cast<PartHead*>(map(fd_, 0, kPage));
    if (head_ == nullptr) return false;
    size_ = kPage;
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    head_->begin_ns =
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
    head_->pid = static_cast<std::uint64_t>(::getpid());
    head_->machine = machine();
    head_->parent = static_cast<std::uint64_t>(::getppid());
    name_command(head_->command, sizeof head_->command);
    head_->magic = kPartMagic;
    return true;
}

bool Part::grow() {
    if (size_ + kStep > limit_) return false;
    if (::posix_fallocate(fd_, static_cast<off_t>(size_), kStep) != 0) return false;
    std::byte* const next = map(fd_, size_, kStep);
    if (next == nullptr) return false;
    if (window_ != nullptr) ::munmap(window_, kStep);
    window_ = next;
    used_ = touched_ = 0;
    size_ += kStep;
    return true;
}

// Many pages by one call: a fault for each costs as much as ten records. Where the kernel cannot do that, it
// is faults.
void Part::touch() {
    const std::size_t bytes = std::min(kAhead, kStep - touched_);
    (void)::madvise(window_ + touched_, bytes, MADV_POPULATE_WRITE);
    touched_ += bytes;
}

std::byte* Part::take(std::size_t bytes) {
    if (head_ == nullptr) return nullptr;
    if (window_ == nullptr || used_ + bytes > kStep) {
        if (window_ != nullptr && used_ < kStep) {
            const RecordHead padding{static_cast<std::uint16_t>(Type::kPadding),
                                     static_cast<std::uint16_t>(kStep - used_), 0};
            std::memcpy(window_ + used_, &padding, sizeof padding);
            used_ = kStep;
        }
        if (!grow()) {
            ++head_->lost;
            return nullptr;
        }
    }
    std::byte* const record = window_ + used_;
    used_ += bytes;
    if (used_ > touched_) touch();
    head_->bytes = size_ - kPage - kStep + used_;
    return record;
}

void Part::forget() {
    if (window_ != nullptr) ::munmap(window_, kStep);
    if (head_ != nullptr) ::munmap(head_, kPage);
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    window_ = nullptr;
    head_ = nullptr;
    used_ = touched_ = 0;
    size_ = 0;
}

}  // namespace orrery::prof
