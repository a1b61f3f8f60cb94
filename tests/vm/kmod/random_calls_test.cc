// Ioctls with random arguments, of which many are right.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/vm/kmod/device.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kVa = 0x40000000;

// Random calls by somebody who knows some of his own numbers, so that many get past the first look-up.
class RandomCaller {
  public:
    explicit RandomCaller(int fd) : fd_(fd) {}

    void run(int calls) {
        for (int i = 0; i < calls; i++)
            step();
    }
    // By name of the call: how often it succeeded.
    std::map<std::string, unsigned> successes;
    // What no wrong argument may lead to.
    std::map<std::string, int> wrong;

  private:
    std::uint64_t below(std::uint64_t n) { return random_() % n; }
    bool often() { return below(4) != 0; }
    std::uint32_t noise() { return static_cast<std::uint32_t>(random_() >> (32 + below(32))); }
    std::uint64_t noise64() { return random_() >> below(64); }
    std::uint32_t one_of(const std::vector<std::uint32_t>& numbers) {
        return often() && !numbers.empty() ? numbers[below(numbers.size())] : noise();
    }
    std::uint64_t address() { return often() ? kVa + below(64) * 4096 : noise64(); }
    int ask(const char* name, unsigned long request, void* args, const std::set<int>& also = {}) {
        // EIO: of a queue that was aborted.
        static const std::set<int> allowed{EINVAL, ENOENT, EEXIST, EFAULT, ENOMEM,
                                           ENOSPC, EBUSY,  EACCES, ETIME,  EIO};
        const int error = call(fd_, request, args);
        if (error == 0) successes[name]++;
        if (error != 0 && !allowed.contains(error) && !also.contains(error)) wrong[name] = error;
        return error;
    }
    // Of all cards as a rule.
    void barrier() {
        std::array<drm_orr_barrier_member, ORR_BARRIER_MEMBERS_MAX + 4> members{};
        const std::uint64_t of_all = memories_.size();
        for (std::uint64_t i = 0; i < members.size(); ++i) {
            const std::uint64_t card = often() ? i % of_all : below(of_all);
            members[i].memory = below(16) != 0 ? memories_[card].get() : static_cast<int>(noise());
            members[i].page = below(16) != 0 ? 0 : static_cast<int>(noise());
            members[i].offset = often() ? below(256) * 16 : noise64();
        }
        drm_orr_barrier_create args{};
        args.members = below(16) != 0 ? reinterpret_cast<std::uintptr_t>(members.data()) : below(4096);
        args.count = static_cast<std::uint32_t>(often() ? of_all : below(members.size() + 1));
        args.flags = below(16) != 0 ? 0 : noise();
        if (ask("barrier_create", DRM_IOCTL_ORR_BARRIER_CREATE, &args, {EBADF, EDQUOT}) != 0) return;
        // Some stay for a while.
        for (std::uint32_t i = 0; i < args.count; ++i)
            pages_[below(pages_.size())] = File(members[i].page);
    }
    // EXDEV: of cards that no switch joins.
    void multicast() {
        std::array<drm_orr_multicast_member, 4> members{};
        for (drm_orr_multicast_member& member : members) {
            member.memory =
                below(16) != 0 ? memories_[below(memories_.size())].get() : static_cast<int>(noise());
            member.offset = often() ? 0 : noise64();
            member.pad = below(16) != 0 ? 0 : noise();
        }
        drm_orr_multicast_create args{};
        args.members = below(16) != 0 ? reinterpret_cast<std::uintptr_t>(members.data()) : below(4096);
        args.count = static_cast<std::uint32_t>(below(members.size() + 1));
        args.size = often() ? 4096 : noise64();
        args.flags = below(16) != 0 ? 0 : noise();
        if (bos_.size() < 64 &&
            ask("multicast_create", DRM_IOCTL_ORR_MULTICAST_CREATE, &args, {EBADF, EDQUOT, EXDEV}) == 0)
            bos_.push_back(args.handle);
    }
    static void forget(std::vector<std::uint32_t>& numbers, std::uint32_t number) {
        std::erase(numbers, number);
    }
    static std::vector<File> memories() {
        std::vector<File> all(count_cards());
        for (unsigned n = 0; n < all.size(); ++n) {
            const File card = open_card(n);
            drm_orr_bo_create bo{};
            EXPECT_EQ(create_bo(card.get(), 4096, ORR_BO_VRAM, bo), 0);
            EXPECT_EQ(export_bo(card.get(), bo.handle, all[n]), 0);
        }
        return all;
    }
    void step() {
        switch (below(20)) {
            case 0: {
                drm_orr_bo_create args{};
                args.size = often() ? (1 + below(16)) * 4096 : noise64();
                args.flags = often() ? 1 + static_cast<std::uint32_t>(below(2)) : noise();
                if (bos_.size() < 64 && ask("bo_create", DRM_IOCTL_ORR_BO_CREATE, &args) == 0) {
                    // One that is too large to keep many of.
                    if (args.size > 1 << 20) {
                        close_bo(fd_, args.handle);
                    } else {
                        bos_.push_back(args.handle);
                    }
                }
                break;
            }
            case 1: {
                drm_orr_bo_info args{};
                args.handle = one_of(bos_);
                ask("bo_info", DRM_IOCTL_ORR_BO_INFO, &args);
                break;
            }
            case 2: {
                drm_orr_vm_create args{};
                if (!often())
                    args.flags = noise(), args.quota_permille = noise(), args.quota_period_us = noise();
                if (vms_.size() < 8 && ask("vm_create", DRM_IOCTL_ORR_VM_CREATE, &args) == 0)
                    vms_.push_back(args.vm);
                break;
            }
            case 3: {
                drm_orr_vm_destroy args{};
                args.vm = one_of(vms_);
                args.pad = often() ? 0 : noise();
                if (below(4) == 0 && ask("vm_destroy", DRM_IOCTL_ORR_VM_DESTROY, &args) == 0)
                    forget(vms_, args.vm);
                break;
            }
            case 4:
            case 5: {
                drm_orr_vm_bind args{};
                args.vm = one_of(vms_);
                args.op = often() ? static_cast<std::uint32_t>(below(2)) : noise();
                args.va = address();
                args.size = often() ? (1 + below(8)) * 4096 : noise64();
                if (args.op == ORR_BIND_MAP || !often()) {
                    args.handle = one_of(bos_);
                    args.flags = often() ? 3 : noise();
                    args.bo_offset = often() ? below(4) * 4096 : noise64();
                }
                ask(args.op == ORR_BIND_MAP ? "map" : "unmap", DRM_IOCTL_ORR_VM_BIND, &args);
                break;
            }
            case 6: {
                drm_orr_queue_create args{};
                args.vm = one_of(vms_);
                args.entries = often() ? 2u << below(4) : noise();
                args.ring_va = address();
                args.priority = often() ? 1 : noise();
                args.dispatch_limit_us = often() ? 0 : noise();
                args.weight = often() ? 0 : noise();
                args.slice_us = often() ? 0 : noise();
                if (queues_.size() < 16 && ask("queue_create", DRM_IOCTL_ORR_QUEUE_CREATE, &args) == 0)
                    queues_.push_back(args.queue), rings_[args.queue] = args.ring_va;
                break;
            }
            case 7: {
                drm_orr_queue_destroy args{};
                args.queue = one_of(queues_);
                if (below(4) == 0 && ask("queue_destroy", DRM_IOCTL_ORR_QUEUE_DESTROY, &args) == 0)
                    forget(queues_, args.queue);
                break;
            }
            case 8: {
                drm_orr_queue_wait args{};
                args.queue = one_of(queues_);
                args.index = often() ? 0 : noise64();
                args.timeout_ns = -static_cast<std::int64_t>(below(2));
                args.flags = often() ? 0 : noise();
                ask("queue_wait", DRM_IOCTL_ORR_QUEUE_WAIT, &args);
                break;
            }
            case 9: {
                drm_orr_queue_fence args{};
                args.queue = one_of(queues_);
                args.syncobj = often() ? syncobj_ : noise();
                args.index = noise64();
                args.point = often() ? ++point_ : 0;
                ask("queue_fence", DRM_IOCTL_ORR_QUEUE_FENCE, &args);
                break;
            }
            case 10: {
                drm_orr_queue_set args{one_of(queues_), noise() % 8, noise(), noise()};
                if (often()) args.priority = 1, args.weight %= ORR_QUEUE_WEIGHT_MAX;
                ask("queue_set", DRM_IOCTL_ORR_QUEUE_SET, &args);
                break;
            }
            case 11: {
                drm_orr_queue_stats args{};
                args.queue = one_of(queues_);
                ask("queue_stats", DRM_IOCTL_ORR_QUEUE_STATS, &args);
                break;
            }
            case 12: {
                drm_orr_queue_abort args{};
                args.queue = one_of(queues_);
                args.flags = often() ? 0 : noise();
                if (below(3) == 0) ask("queue_abort", DRM_IOCTL_ORR_QUEUE_ABORT, &args);
                break;
            }
            case 13: {
                drm_orr_signaller args{};
                args.queue = one_of(queues_);
                args.flags = often() ? 0 : noise();
                // Where its ring was mapped, and may be still.
                args.semaphore = often() && rings_.contains(args.queue) ? rings_[args.queue] : address();
                args.count = often() ? 1 + static_cast<std::uint32_t>(below(8)) : noise();
                args.pad = often() ? 0 : noise();
                if (below(2) == 0) {
                    ask("attach", DRM_IOCTL_ORR_SIGNALLER_ATTACH, &args);
                } else {
                    ask("detach", DRM_IOCTL_ORR_SIGNALLER_DETACH, &args);
                }
                break;
            }
            case 14:
                barrier();
                break;
            case 15:
                multicast();
                break;
            case 16: {
                std::array<drm_orr_work_record, 8> records{};
                std::array<drm_orr_work_counters, 8> counters{};
                drm_orr_work_read args{};
                if (often()) {
                    args.records =
                        below(16) != 0 ? reinterpret_cast<std::uintptr_t>(records.data()) : below(4096);
                    args.count = static_cast<std::uint32_t>(below(records.size() + 1));
                    if (often()) args.counters = reinterpret_cast<std::uintptr_t>(counters.data());
                }
                args.flags = often() ? static_cast<std::uint32_t>(below(3)) : noise();
                if (often() && args.flags == ORR_WORK_START) args.flags |= ORR_WORK_COUNTERS;
                if (often() && (args.flags & ORR_WORK_START) != 0) args.flags |= ORR_WORK_SIGNALS;
                ask("work_read", DRM_IOCTL_ORR_WORK_READ, &args);
                break;
            }
            case 17: {
                std::array<std::uint64_t, 200> values{};
                drm_orr_sample_read args{};
                args.flags = often() ? static_cast<std::uint32_t>(below(3)) : noise();
                if (args.flags == ORR_WORK_START) {
                    args.period_ns = often() ? 1000 : noise();
                    args.set[0] = noise();
                } else if (often()) {
                    args.values = reinterpret_cast<std::uintptr_t>(values.data());
                    args.count = static_cast<std::uint32_t>(below(values.size() + 1));
                }
                ask("sample_read", DRM_IOCTL_ORR_SAMPLE_READ, &args);
                break;
            }
            case 18: {
                std::array<drm_orr_pc_record, 20> records{};
                drm_orr_pc_read args{};
                args.flags = often() ? static_cast<std::uint32_t>(below(3)) : noise();
                if (args.flags == ORR_WORK_START) {
                    args.period_ns = often() ? 100 : noise();
                    if (often()) args.core = 1 + static_cast<std::uint32_t>(below(8));
                    if (often()) args.until_ps = noise64();
                } else if (often()) {
                    args.records = reinterpret_cast<std::uintptr_t>(records.data());
                    args.count = static_cast<std::uint32_t>(below(records.size() + 1));
                }
                ask("pc_read", DRM_IOCTL_ORR_PC_READ, &args);
                break;
            }
            default: {
                std::array<std::uint32_t, 64> words{};
                for (std::uint32_t& word : words)
                    if (!often()) word = noise();
                ask("query_deadlock", DRM_IOCTL_ORR_QUERY_DEADLOCK, words.data());
                ask("query_counters", DRM_IOCTL_ORR_QUERY_COUNTERS, words.data());
                words[0] = noise();
                ask("query_link", DRM_IOCTL_ORR_QUERY_LINK, words.data());
            }
        }
    }

    int fd_;
    std::mt19937_64 random_{20261121};
    std::uint32_t syncobj_ = make_syncobj(fd_);
    std::uint64_t point_ = 0;
    std::vector<std::uint32_t> bos_, vms_, queues_;
    std::map<std::uint32_t, std::uint64_t> rings_;  // of queues that were made
    std::vector<File> memories_ = memories();       // of all cards
    std::array<File, 24> pages_;                    // of barriers
};

TEST(RandomCalls, LeadNowhereThatIsWrong) {
    const File victim = open_card();
    RandomCaller caller(victim.get());
    caller.run(60000);
    for (const auto& [name, error] : caller.wrong)
        ADD_FAILURE() << name << ": " << std::strerror(error);
    for (const char* name :
         {"bo_create", "bo_info", "vm_create", "vm_destroy", "map", "unmap", "queue_create", "queue_destroy",
          "queue_wait", "queue_fence", "queue_set", "queue_stats", "queue_abort", "attach", "detach"})
        EXPECT_GT(caller.successes[name], 2u) << name << " never got far";
    if (count_cards() > 1) EXPECT_GT(caller.successes["barrier_create"], 2u);
    // The card and the file work on.
    std::uint32_t vm = 0;
    ASSERT_EQ(create_vm(victim.get(), vm), 0);
    Queue queue(victim.get(), vm, 0x700000000000);
    ASSERT_EQ(queue.error(), 0);
    EXPECT_EQ(queue.run(std::vector{nop()}), 0);
}

}  // namespace
}  // namespace orrery::kmod_test
