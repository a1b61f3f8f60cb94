#include "umd/samples/neighbours/exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace neighbours {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(60);
constexpr auto kTraining = std::chrono::seconds(10);
constexpr auto kNap = std::chrono::milliseconds(20);
constexpr std::uint64_t kMessageNs = 10'000'000'000;
constexpr std::uint64_t kPatienceNs = std::chrono::nanoseconds(kPatience).count();
constexpr const char* kNames[] = {"inbox", "sign that its half is full", "sign that there is room"};

struct Message {
    std::uint32_t from = 0;
    What what{};
};

unsigned number(const char* name, unsigned otherwise) {
    const char* const text = std::getenv(name);
    unsigned value = otherwise;
    if (text != nullptr) std::from_chars(text, text + std::strlen(text), value);
    return value;
}

// In no file system, and with a name that nobody guesses.
sockaddr_un address_of(const Place& place, unsigned rank, socklen_t& size) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("neighbours-{}-{}", place.token, rank);
    if (name.size() + 1 > sizeof address.sun_path) throw std::runtime_error("ORR_TOKEN is too long");
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return address;
}

int make_socket() {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) throw std::runtime_error("no more sockets");
    return fd;
}

}  // namespace

Place Place::find() {
    Place place;
    place.rank = number("ORR_RANK", 0);
    place.ranks = number("ORR_RANKS", 1);
    place.local = number("ORR_LOCAL_RANK", 0);
    place.locals = number("ORR_LOCAL_RANKS", 1);
    place.vms = number("ORR_VMS", 1);
    if (const char* const token = std::getenv("ORR_TOKEN")) place.token = token;
    if (place.ranks < 2 || place.rank >= place.ranks || place.token.empty())
        throw std::runtime_error("it takes two ranks: orrery-run -n 4 --vms 2 --topology ring -- neighbours");
    return place;
}

// Those of VM 0 come first; if they do not go evenly, the first VMs have one more.
unsigned Place::vm_of(unsigned other) const {
    const unsigned each = ranks / vms, more = ranks % vms;
    return other < more * (each + 1) ? other / (each + 1) : (other - more) / each;
}

int Place::device_of(unsigned other) const {
    return static_cast<int>(other - (rank - local)) % std::max(1, orrery::device_count());
}

std::string Place::name_of(unsigned other) const {
    return fmt::format("rank {} (VM {})", other, vm_of(other));
}

void once_linked(const std::function<orrError_t()>& call) {
    orrError_t code = call();
    for (const auto limit = Clock::now() + kTraining;
         (code == orrErrorPeerAccess || code == orrErrorTimeout) && Clock::now() < limit; code = call())
        std::this_thread::sleep_for(kNap);
    orrery::check(code);
}

Group::Group(const Place& place) {
    orrGroupToken token{};
    place.token.copy(token.text, sizeof token.text - 1);
    orrGroupJoinParams params = ORR_INIT(orrGroupJoinParams);
    params.rank = static_cast<std::int32_t>(place.rank);
    params.members = static_cast<std::int32_t>(place.ranks);
    params.limit_ns = kPatienceNs;
    orrery::check(orrGroupJoin(&group_, &token, &params));
}

Group::~Group() {
    orrGroupDestroy(group_);
}

void Group::barrier() const {
    orrery::check(orrGroupBarrier(group_, kPatienceNs));
}

void Group::all_gather(void* all, const void* own, std::size_t bytes) const {
    orrery::check(orrGroupAllGather(group_, all, own, bytes, kPatienceNs));
}

Exchange::Exchange(Place place) : place_(std::move(place)), listener_(make_socket()) {
    socklen_t size = 0;
    const sockaddr_un address = address_of(place_, place_.rank, size);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 64) != 0) {
        ::close(listener_);
        throw std::runtime_error(fmt::format("a socket for other ranks: {}", std::strerror(errno)));
    }
}

Exchange::~Exchange() {
    for (const auto& [key, fd] : came_)
        ::close(fd);
    ::close(listener_);
}

void Exchange::give(unsigned to, What what, void* memory) {
    if (place_.same_vm(to)) {
        int fd = -1;
        orrery::check(orrIpcExportMemory(&fd, memory, 0));
        return send(to, what, fd);
    }
    orrery::check(orrFabricExportMemory(&own_.at(static_cast<std::size_t>(what)), memory, 0));
}

void Exchange::give(unsigned to, What what, const orrery::Semaphore& semaphore) {
    if (place_.same_vm(to)) {
        int fd = -1;
        orrery::check(orrIpcExportSemaphore(&fd, semaphore.get(), 0));
        return send(to, what, fd);
    }
    orrery::check(orrFabricExportSemaphore(&own_.at(static_cast<std::size_t>(what)), semaphore.get(), 0));
}

void Exchange::tell(const Group& group) {
    told_.resize(place_.ranks);
    group.all_gather(told_.data(), &own_, sizeof own_);
}

orrFabricHandle Exchange::handle(unsigned from, What what) const {
    return told_.at(from).at(static_cast<std::size_t>(what));
}

orrery::DeviceMemory Exchange::take_memory(unsigned from, What what) {
    if (!place_.same_vm(from)) {
        const orrFabricHandle given = handle(from, what);
        void* there = nullptr;
        std::size_t bytes = 0;
        once_linked([&] { return orrFabricImportMemory(&there, &bytes, &given, 0); });
        return orrery::DeviceMemory::adopt(there);
    }
    const int fd = receive(from, what);
    orrIpcMemory memory = ORR_INIT(orrIpcMemory);
    const orrError_t imported = orrIpcImportMemory(&memory, fd, 0);
    ::close(fd);
    orrery::check(imported);
    return orrery::DeviceMemory::adopt(memory.ptr);
}

orrery::Semaphore Exchange::take_semaphore(unsigned from, What what) {
    orrSemaphore_t semaphore = nullptr;
    if (!place_.same_vm(from)) {
        const orrFabricHandle given = handle(from, what);
        once_linked([&] { return orrFabricImportSemaphore(&semaphore, &given, 0); });
        return orrery::Semaphore::adopt(semaphore);
    }
    const int fd = receive(from, what);
    const orrError_t imported = orrIpcImportSemaphore(&semaphore, fd, 0);
    ::close(fd);
    orrery::check(imported);
    return orrery::Semaphore::adopt(semaphore);
}

// It waits in the other's socket until he takes it, so nobody waits for anybody who waits for him.
void Exchange::send(unsigned to, What what, int fd) const {
    const Message message{place_.rank, what};
    const int socket = make_socket();
    socklen_t size = 0;
    const sockaddr_un address = address_of(place_, to, size);
    const auto limit = Clock::now() + kPatience;
    int connected = -1;
    while ((connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), size)) != 0 &&
           Clock::now() < limit)
        std::this_thread::sleep_for(kNap);
    const orrError_t sent =
        connected == 0 ? orrIpcSend(socket, &fd, 1, &message, sizeof message, kMessageNs) : orrSuccess;
    ::close(socket);
    ::close(fd);
    if (connected != 0) throw std::runtime_error(fmt::format("{} is not there", place_.name_of(to)));
    orrery::check(sent);
}

int Exchange::receive(unsigned from, What what) {
    const auto limit = Clock::now() + kPatience;
    while (true) {
        if (auto found = came_.extract({from, what}); !found.empty()) return found.mapped();
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now());
        pollfd ready{listener_, POLLIN, 0};
        if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0)
            throw std::runtime_error(
                fmt::format("{} gives no {}", place_.name_of(from), kNames[static_cast<std::size_t>(what)]));
        const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) continue;
        int fd = -1;
        Message message;
        std::size_t count = 1, bytes = sizeof message;
        const orrError_t received = orrIpcReceive(&fd, &count, &bytes, &message, socket, kMessageNs);
        ::close(socket);
        orrery::check(received);
        if (count != 1 || bytes != sizeof message) throw std::runtime_error("a message of no rank");
        if (const auto [at, added] = came_.try_emplace({message.from, message.what}, fd); !added) ::close(fd);
    }
}

}  // namespace neighbours
