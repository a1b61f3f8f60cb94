// SPDX-License-Identifier: MIT
// Tenants: the users and processes that the driver names with a context. What a queue uses of a resource is
// charged to its process and to that process's user as well, and shares are divided in that order: user, then
// process, then queue. So nobody gains by more queues, address spaces or processes, and neither changing a
// queue nor making a new one resets the account. A row, and with it the account, outlives its last context
// until another tenant needs the row.
#pragma once

#include <orrery/fw/boot_block.h>
#include <orrery/hw/doorbell.h>

#include "firmware/hal/bits.h"
#include "firmware/sched/queue/queue.h"

namespace orrery::fw {

// A process has a doorbell page of its own. Row 0 is nobody's: what belongs to no context.
inline constexpr uint32_t kProcesses = ORR_DB_PAGES;
inline constexpr uint32_t kUsers = 256;

// How far a tenant may lag behind in virtual time: one that was away saves up no more than that. For engines
// it exceeds the lead that HIGH may have (a slice), else a tenant with short jobs would never be found
// behind.
inline constexpr uint64_t kTurnLagPs = 20'000'000;
constexpr uint64_t tenant_lag_ps(uint32_t resource) {
    return resource == static_cast<uint32_t>(Resource::kTurn) ? kTurnLagPs
                                                              : of_kind<&EngineKind::tenant_lag_ps>(resource);
}

// One process, or one user.
struct Tenant {
    uint64_t vtime[kResources];      // used, in picoseconds of engine time
    uint64_t min_vtime[kResources];  // floor of the virtual times below it
    uint64_t gang_pause_ps[2];       // of a user, for gangs of one card and of several: gang.cc
    uint32_t id;
    uint16_t user;      // row; of a process
    uint16_t contexts;  // 0: it has none now
};

struct TenantRows {
    Tenant card;  // only `min_vtime`
    Tenant processes[kProcesses];
    Tenant users[kUsers];
};

class Tenants {
  public:
    void init(TenantRows& rows) {
        card_ = &rows.card;
        processes_ = rows.processes;
        users_ = rows.users;
    }

    // The row of a process that gets one more context; 0: there are too many.
    uint16_t join(uint32_t user_id, uint32_t process_id) {
        const uint16_t user = find(users_, kUsers, user_id, 0, *card_);
        if (user == 0) return 0;
        const uint16_t process = find(processes_, kProcesses, process_id, user, users_[user]);
        if (process == 0) return 0;
        if (processes_[process].contexts++ == 0) several_ = ++live_ > 1;
        ++users_[user].contexts;
        return process;
    }
    void leave(uint16_t process) {
        if (process == 0) return;
        if (--processes_[process].contexts == 0) several_ = --live_ > 1;
        --users_[processes_[process].user].contexts;
    }

    // More than one process has contexts. While there is only one, nothing is charged to tenants.
    bool several() const { return several_; }

    Tenant& process(uint32_t row) { return processes_[row]; }
    Tenant& user(uint32_t row) { return users_[row]; }
    uint16_t user_of(uint32_t process) const { return processes_[process].user; }

    // Only if there are several.
    [[gnu::noinline]] void charge(const Queue& queue, Resource resource, uint64_t used_ps) {
        Tenant& process = processes_[queue.process];
        process.vtime[static_cast<uint32_t>(resource)] += used_ps;
        users_[process.user].vtime[static_cast<uint32_t>(resource)] += used_ps;
    }

    // It begins to wait for the resource: unused time of before is not made up for.
    void arrive(uint16_t row, uint32_t resource) {
        Tenant& process = processes_[row];
        Tenant& user = users_[process.user];
        limit_lag(process, user, resource);
        limit_lag(user, *card_, resource);
    }
    // It gets the resource: those that arrive later start from its virtual time.
    void advance(const Queue& queue, uint32_t resource) {
        arrive(queue.process, resource);
        Tenant& process = processes_[queue.process];
        Tenant& user = users_[process.user];
        raise(user.min_vtime[resource], process.vtime[resource]);
        raise(card_->min_vtime[resource], user.vtime[resource]);
    }

    // `a` has less than `b` of the resource, first by their users, then processes, then by what they have
    // used for their weight. The same queue, or equal: false.
    bool before(const Queue& a, const Queue& b, uint32_t resource) const {
        if (a.process != b.process && several()) {
            const Tenant& pa = processes_[a.process];
            const Tenant& pb = processes_[b.process];
            if (pa.user != pb.user) return users_[pa.user].vtime[resource] < users_[pb.user].vtime[resource];
            return pa.vtime[resource] < pb.vtime[resource];
        }
        return a.vtime[resource] < b.vtime[resource];
    }
    // The user of `a` has had so much more than that of `b`.
    bool ahead(const Queue& a, const Queue& b, uint32_t resource, uint64_t by_ps) const {
        if (!several()) return false;
        const uint16_t ua = user_of(a.process);
        const uint16_t ub = user_of(b.process);
        return ua != ub && users_[ua].vtime[resource] > users_[ub].vtime[resource] + by_ps;
    }

    // By how much the tenant of `a` has had more than that of `b`: of two users these, else the processes.
    uint64_t lead(const Queue& a, const Queue& b, uint32_t resource) const {
        if (!several() || a.process == b.process) return 0;
        const Tenant& pa = processes_[a.process];
        const Tenant& pb = processes_[b.process];
        const uint64_t of_a = pa.user != pb.user ? users_[pa.user].vtime[resource] : pa.vtime[resource];
        const uint64_t of_b = pa.user != pb.user ? users_[pb.user].vtime[resource] : pb.vtime[resource];
        return of_a > of_b ? of_a - of_b : 0;
    }

  private:
    static void limit_lag(Tenant& tenant, const Tenant& above, uint32_t resource) {
        raise(tenant.vtime[resource], less_or_zero(above.min_vtime[resource], tenant_lag_ps(resource)));
    }

    // The row that has this name, or else the one of those without contexts that has used least.
    static uint16_t find(Tenant* rows, uint32_t count, uint32_t id, uint16_t user, const Tenant& above) {
        uint32_t best = 0;
        for (uint32_t n = 1; n < count; ++n) {
            if (rows[n].id == id && rows[n].user == user && (rows[n].contexts != 0 || used(rows[n]) != 0))
                return static_cast<uint16_t>(n);
            if (rows[n].contexts == 0 && (best == 0 || used(rows[n]) < used(rows[best]))) best = n;
        }
        if (best == 0) return 0;
        rows[best] = {};
        rows[best].id = id;
        rows[best].user = user;
        for (uint32_t resource = 0; resource < kResources; ++resource)
            rows[best].vtime[resource] = above.min_vtime[resource];
        return static_cast<uint16_t>(best);
    }
    static uint64_t used(const Tenant& tenant) {
        uint64_t sum = 0;
        for (const uint64_t vtime : tenant.vtime)
            sum += vtime;
        return sum;
    }

    bool several_;
    uint32_t live_;  // processes that have contexts
    Tenant* card_;
    Tenant* processes_;
    Tenant* users_;
};

}  // namespace orrery::fw
