#include "umd/runtime/group_page.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "umd/runtime/clock.h"

namespace orrery::umd {
namespace {

constexpr std::uint64_t kMagic = 0x31'50'52'47'52'52'4fULL;  // "ORRGRP1"
constexpr std::int64_t kSpinNs = 30'000, kLookNs = 20'000'000;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// A cause in one word: it is told whole or not at all.
constexpr std::uint64_t kTold = 1ull << 63;
constexpr std::uint64_t pack(orrError_t code, int rank, int teller) {
    return kTold | static_cast<std::uint64_t>(code) << 32 | static_cast<std::uint64_t>(rank) << 16 |
           static_cast<std::uint64_t>(teller);
}

std::uint64_t load(const std::uint64_t& word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
void store(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
}

void futex_wait(std::uint32_t& word, std::uint32_t seen, std::int64_t ns) {
    const timespec limit{0, static_cast<long>(std::clamp<std::int64_t>(ns, 1, 999'999'999))};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

const char* name_of(std::uint32_t op) {
    switch (static_cast<GroupPage::Op>(op)) {
        case GroupPage::Op::kBarrier:
            return "orrGroupBarrier";
        case GroupPage::Op::kBroadcast:
            return "orrGroupBroadcast";
        case GroupPage::Op::kAllGather:
            return "orrGroupAllGather";
    }
    return "something that this library does not know";
}

}  // namespace

struct GroupPage::Offer {
    std::uint32_t op, root;
    std::uint64_t bytes;
    std::byte data[kMaxGroupBytes];
};

// Written by its member only.
struct GroupPage::Slot {
    std::uint64_t step;
    std::uint64_t left;
    std::uint64_t queues[2];
    char text[160];  // of the cause that it tells
    // By turns: who writes one for the second time has seen that all are past the first.
    Offer offers[2];
};

struct GroupPage::Head {
    std::uint64_t magic, members, cause;
    std::uint32_t wake, unused;
    std::uint64_t asks, proposed;
    std::uint64_t reserved[2];
};
static_assert(sizeof(std::uint64_t) * 8 == 64 && kMaxGroupMembers <= 0xffff);

GroupPage::GroupPage(UniqueFd fd, void* memory, std::size_t bytes, int members)
    : fd_(std::move(fd)),
      memory_(memory),
      bytes_(bytes),
      members_(members),
      head_(*static_cast<Head*>(memory)) {}

GroupPage::~GroupPage() {
    ::munmap(memory_, bytes_);
}

Result<std::shared_ptr<GroupPage>> GroupPage::map(UniqueFd fd, int members) {
    const std::size_t bytes = sizeof(Head) + static_cast<std::size_t>(members) * sizeof(Slot);
    struct stat stat{};
    if (::fstat(fd.get(), &stat) != 0) return fail_errno(errno, "asking for the size of a group's page");
    if (stat.st_size < 0 || static_cast<std::size_t>(stat.st_size) < bytes) {
        return fail(orrErrorInvalidValue,
                    "the group's page has {} bytes, {} are needed: is it of another "
                    "version of the library?",
                    stat.st_size, bytes);
    }
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (memory == MAP_FAILED) return fail_errno(errno, "mmap of a group's page");
    return std::shared_ptr<GroupPage>(new GroupPage(std::move(fd), memory, bytes, members));
}

Result<std::shared_ptr<GroupPage>> GroupPage::create(int members, bool asks) {
    UniqueFd fd(::memfd_create("orrery group", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd.get() < 0) return fail_errno(errno, "memfd_create for a group");
    const std::size_t bytes = sizeof(Head) + static_cast<std::size_t>(members) * sizeof(Slot);
    if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
        return fail_errno(errno, "making room for a group");
    if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return fail_errno(errno, "sealing a group's page");
    ORR_TRY(page, map(std::move(fd), members));
    (*page)->head_.members = static_cast<std::uint64_t>(members);
    (*page)->head_.asks = asks ? 1 : 0;
    store((*page)->head_.magic, kMagic);
    return page;
}

Result<std::shared_ptr<GroupPage>> GroupPage::open(UniqueFd fd, int members) {
    // Else whoever cut it short would end this process.
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return fail(orrErrorInvalidValue, "what rank 0 sent is no page of a group: it can be cut short");
    ORR_TRY(page, map(std::move(fd), members));
    const Head& head = (*page)->head_;
    if (load(head.magic) != kMagic || load(head.members) != static_cast<std::uint64_t>(members))
        return fail(orrErrorInvalidValue, "what rank 0 sent is no page of a group of {} members", members);
    return page;
}

GroupPage::Slot& GroupPage::slot(int rank) const {
    return *reinterpret_cast<Slot*>(static_cast<std::byte*>(memory_) + sizeof(Head) +
                                    static_cast<std::size_t>(rank) * sizeof(Slot));
}
GroupPage::Offer& GroupPage::offer(int rank, std::uint64_t step) const {
    return slot(rank).offers[step % 2];
}

GroupPage::Said GroupPage::said_of(const Call& call) {
    return {static_cast<std::uint32_t>(call.op), static_cast<std::uint32_t>(call.root), call.bytes};
}
GroupPage::Said GroupPage::said(int rank, std::uint64_t step) const {
    Offer& one = offer(rank, step);
    return {std::atomic_ref(one.op).load(std::memory_order_relaxed),
            std::atomic_ref(one.root).load(std::memory_order_relaxed),
            std::atomic_ref(one.bytes).load(std::memory_order_relaxed)};
}

GroupCause GroupPage::read_cause(std::uint64_t word) const {
    GroupCause cause;
    const auto code = static_cast<std::uint32_t>(word >> 32) & 0x7fff'ffff;
    const int rank = static_cast<int>(word >> 16 & 0xffff), teller = static_cast<int>(word & 0xffff);
    if (rank >= members_ || teller >= members_ || code == 0 || code > orrErrorAbandoned) {
        cause.text = "a member wrote nonsense into what the group shares";
        return cause;
    }
    cause.code = static_cast<orrError_t>(code);
    cause.rank = rank;
    char text[sizeof(Slot::text)];
    std::memcpy(text, slot(teller).text, sizeof text);
    cause.text.assign(text, ::strnlen(text, sizeof text - 1));
    // The teller's, who need not mean well.
    std::ranges::replace_if(cause.text, [](char c) { return c < ' ' || c > '~'; }, '?');
    return cause;
}

std::optional<GroupCause> GroupPage::cause() const {
    const std::uint64_t word = load(head_.cause);
    const std::lock_guard lock(mutex_);
    if (!seen_ && word != 0) seen_ = read_cause(word);
    return seen_;
}

std::optional<GroupCause> GroupPage::proposed() const {
    const std::uint64_t word = load(head_.proposed);
    if (word == 0) return std::nullopt;
    return read_cause(word);
}

void GroupPage::write_text(int rank, const std::string& from) {
    char* const text = slot(rank).text;
    const std::size_t length = std::min(from.size(), sizeof(Slot::text) - 1);
    std::memcpy(text, from.data(), length);
    text[length] = 0;
}

void GroupPage::tell(int teller, const GroupCause& cause) {
    {
        // One teller at a time writes the text, and not under a cause that stands.
        const std::lock_guard lock(mutex_);
        std::uint64_t& word = load(head_.asks) != 0 ? head_.proposed : head_.cause;
        if (seen_ || load(head_.cause) != 0 || load(word) != 0) return;
        write_text(teller, cause.text);
        std::uint64_t none = 0;
        std::atomic_ref(word).compare_exchange_strong(none, pack(cause.code, cause.rank, teller));
    }
    wake();
}

void GroupPage::decide(int teller, const GroupCause& cause) {
    {
        const std::lock_guard lock(mutex_);
        if (seen_ || load(head_.cause) != 0) return;
        write_text(teller, cause.text);
        std::uint64_t none = 0;
        std::atomic_ref(head_.cause).compare_exchange_strong(none, pack(cause.code, cause.rank, teller));
    }
    wake();
}

void GroupPage::ask_nobody() {
    if (load(head_.asks) == 0 && load(head_.proposed) == 0) return;
    store(head_.asks, 0);
    const std::uint64_t word = load(head_.proposed);
    std::uint64_t none = 0;
    if (word != 0 && std::atomic_ref(head_.cause).compare_exchange_strong(none, word)) wake();
}

bool GroupPage::settle(const std::function<void()>& look) {
    const std::int64_t start = now_ns();
    while (true) {
        const std::uint32_t seen = woken();
        if (cause()) return true;
        if (load(head_.proposed) == 0) return false;
        // It stands still, or does not mean well.
        if (now_ns() - start >= kGroupDecideNs) ask_nobody();
        sleep(seen, kLookNs);
        if (look) look();
    }
}

void GroupPage::leave(int rank) {
    store(slot(rank).left, 1);
    wake();
}
bool GroupPage::left(int rank) const {
    return load(slot(rank).left) != 0;
}
void GroupPage::set_queue(int rank, Queue which, std::uint64_t name) {
    store(slot(rank).queues[static_cast<std::size_t>(which)], name);
}
std::uint64_t GroupPage::queue(int rank, Queue which) const {
    return load(slot(rank).queues[static_cast<std::size_t>(which)]);
}

void GroupPage::wake() {
    std::atomic_ref(head_.wake).fetch_add(1);
    ::syscall(SYS_futex, &head_.wake, FUTEX_WAKE, 0x7fff'ffff, nullptr, nullptr, 0);
}

std::uint32_t GroupPage::woken() const {
    return std::atomic_ref(head_.wake).load();
}
void GroupPage::sleep(std::uint32_t woken, std::int64_t ns) {
    futex_wait(head_.wake, woken, ns);
}

GroupPage::Part GroupPage::part(int rank) const {
    const Slot& one = slot(rank);
    return {load(one.step), load(one.left), {load(one.queues[0]), load(one.queues[1])}};
}

std::span<const std::byte, kMaxGroupBytes> GroupPage::given(int rank, std::uint64_t step) const {
    return offer(rank, step).data;
}

void GroupPage::put_offer(int rank, std::uint64_t step, const Said& said, std::span<const std::byte> data) {
    Offer& to = offer(rank, step);
    std::atomic_ref(to.op).store(said.op, std::memory_order_relaxed);
    std::atomic_ref(to.root).store(said.root, std::memory_order_relaxed);
    std::atomic_ref(to.bytes).store(said.bytes, std::memory_order_relaxed);
    if (!data.empty()) std::memcpy(to.data, data.data(), data.size());
}

void GroupPage::put(int rank, const Part& part) {
    Slot& one = slot(rank);
    store(one.queues[0], part.queues[0]);
    store(one.queues[1], part.queues[1]);
    store(one.step, part.step);
    store(one.left, part.left);
}

bool GroupPage::apart() const {
    const std::uint64_t first = load(slot(0).step);
    for (int rank = 1; rank < members_; ++rank) {
        if (load(slot(rank).step) != first) return true;
    }
    return false;
}

int GroupPage::first_left(std::uint64_t step) const {
    for (int rank = 0; rank < members_; ++rank) {
        if (left(rank) && load(slot(rank).step) < step) return rank;
    }
    return -1;
}

bool GroupPage::await(const Call& call, int rank, std::int64_t start, const std::function<void()>& look,
                      const std::atomic<bool>& gone) {
    std::int64_t looked = start;
    while (true) {
        const std::uint32_t woken = this->woken();
        const std::uint64_t step = load(slot(rank).step);
        // Nobody gets further than one step from another.
        if (step == call.step || step == call.step + 1) return true;
        if (settle(look) || gone.load()) return false;
        if (step > call.step) {
            tell(call.rank, {orrErrorInvalidValue, rank, "it wrote nonsense into what the group shares"});
            continue;
        }
        // Whoever left, not this rank alone: what others say may have come by its process.
        if (const int who = first_left(call.step); who >= 0) {
            tell(call.rank, {orrErrorAbandoned, who,
                             fmt::format("it destroyed its group while others wait for it in {}",
                                         name_of(static_cast<std::uint32_t>(call.op)))});
            continue;
        }
        const std::int64_t now = now_ns(), passed = now - start;
        if (static_cast<std::uint64_t>(passed) >= call.limit_ns) {
            look();  // it may have a better cause
            tell(call.rank,
                 {orrErrorTimeout, rank,
                  fmt::format("it did not come to {} within the {} ns that rank {} waited",
                              name_of(static_cast<std::uint32_t>(call.op)), call.limit_ns, call.rank)});
            continue;
        }
        if (now - looked >= kLookNs) {
            look();
            looked = now_ns();
            continue;
        }
        if (passed < kSpinNs) continue;
        sleep(woken, static_cast<std::int64_t>(std::min<std::uint64_t>(
                         kLookNs, call.limit_ns - static_cast<std::uint64_t>(passed))));
    }
}

// Everybody's call is what rank 0's is; the first that is not is named, by whoever sees it.
void GroupPage::compare(const Call& call) {
    const Said first = said(0, call.step);
    for (int rank = 1; rank < members_; ++rank) {
        const Said one = said(rank, call.step);
        if (one == first) continue;
        tell(call.rank,
             {orrErrorInvalidValue, rank,
              fmt::format("it called {} (bytes {}, root {}), and rank 0 {} (bytes {}, root {})",
                          name_of(one.op), one.bytes, one.root, name_of(first.op), first.bytes, first.root)});
        return;
    }
    // Nobody's, as one of them would have been found.
    if (said(call.rank, call.step) == said_of(call)) return;
    tell(call.rank,
         {orrErrorInvalidValue, call.rank, "somebody wrote into its part of what the group shares"});
}

GroupPage::Outcome GroupPage::exchange(const Call& call, const std::function<void()>& look,
                                       const std::atomic<bool>& gone) {
    if (settle(look)) return Outcome::kFailed;
    const std::int64_t start = now_ns();
    Offer& own = offer(call.rank, call.step);
    const Said said = said_of(call);
    std::atomic_ref(own.op).store(said.op, std::memory_order_relaxed);
    std::atomic_ref(own.root).store(said.root, std::memory_order_relaxed);
    std::atomic_ref(own.bytes).store(said.bytes, std::memory_order_relaxed);
    if (!call.give.empty()) std::memcpy(own.data, call.give.data(), call.give.size());
    store(slot(call.rank).step, call.step);
    wake();
    for (int rank = 0; rank < members_; ++rank) {
        if (!await(call, rank, start, look, gone)) return gone.load() ? Outcome::kGone : Outcome::kFailed;
    }
    compare(call);
    return settle(look) ? Outcome::kFailed : Outcome::kDone;
}

void GroupPage::read(int rank, std::uint64_t step, std::span<std::byte> to) const {
    if (!to.empty()) std::memcpy(to.data(), offer(rank, step).data, to.size());
}

}  // namespace orrery::umd
