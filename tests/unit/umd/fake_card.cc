// What the fake's cards do: see fake_winsys.h.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <orrery/fw/failure.h>
#include <orrery/hw/engine.h>
#include <orrery/hw/mmu.h>

#include "tests/unit/umd/fake_winsys.h"
#include "umd/runtime/clock.h"

namespace orrery::umd::test {
namespace {

std::byte* map_anonymous(std::uint64_t size) {
    void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) std::abort();
    return static_cast<std::byte*>(address);
}

std::atomic_ref<std::uint64_t> atomic(void* word) {
    return std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(word));
}

// The mark of one that is closed stays.
void set_time(orr_semaphore& semaphore, std::uint64_t now) {
    auto time = atomic(&semaphore.time_ps);
    std::uint64_t old = time.load();
    while (!time.compare_exchange_weak(old, now | (old & ORR_SEM_CLOSED))) {
    }
}

}  // namespace

FakeSignallers& FakeSignallers::all() {
    static FakeSignallers all;
    return all;
}

void FakeSignallers::add(std::byte* semaphore, const void* queue) {
    const std::lock_guard lock(mutex_);
    queues_[semaphore].insert(queue);
}

void FakeSignallers::remove(std::byte* semaphore, const void* queue, std::uint64_t word) {
    const std::lock_guard lock(mutex_);
    const auto found = queues_.find(semaphore);
    if (found == queues_.end() || found->second.erase(queue) == 0 || !found->second.empty()) return;
    queues_.erase(found);
    closed_[semaphore] = word;
    atomic(&reinterpret_cast<orr_semaphore*>(semaphore)->time_ps).fetch_or(ORR_SEM_CLOSED);
}

void FakeSignallers::remove_all(const void* queue, std::uint64_t word) {
    std::vector<std::byte*> its;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [semaphore, queues] : queues_) {
            if (queues.contains(queue)) its.push_back(semaphore);
        }
    }
    for (std::byte* semaphore : its)
        remove(semaphore, queue, word);
}

std::uint64_t FakeSignallers::word(std::byte* semaphore) const {
    const std::lock_guard lock(mutex_);
    return closed_.at(semaphore);
}

FakePages::FakePages(FakeCard& card, std::uint64_t bytes, BoKind what)
    : owner(card), size(bytes), kind(what), data(map_anonymous(bytes)) {
    const std::lock_guard lock(owner.mutex());
    ++owner.live_pages;
    if (kind == BoKind::kVram) owner.vram_used += size;
}

FakePages::~FakePages() {
    const std::lock_guard lock(owner.mutex());
    --owner.live_pages;
    if (kind == BoKind::kVram) owner.vram_used -= size;
    ::munmap(data, size);
}

FakeCard::FakeCard(int card_number, std::uint64_t bytes)
    : number(card_number),
      uid(100 + static_cast<std::uint64_t>(card_number)),
      vram_bytes(bytes),
      doorbells(reinterpret_cast<orr_doorbell_page*>(map_anonymous(4096))),
      kick_page(map_anonymous(4096)),
      thread_([this] { run(); }) {}

FakeCard::~FakeCard() {
    stop_.store(true);
    thread_.join();
    ::munmap(doorbells, 4096);
    ::munmap(kick_page, 4096);
}

void FakeCard::tell_link_counts(drm_orr_query_link& link) const {
    link.known = link_known;
    if ((link_known & ORR_LINK_KNOWS_COUNTS) != 0) {
        link.tx_messages = 101;
        link.tx_bytes = 102;
        link.rx_messages = 103;
        link.rx_bytes = 104;
        link.crc_errors = 105;
        link.retries = 106;
        link.retrains = 107;
        link.changes = 108;
        link.built = 113;
    }
    if ((link_known & ORR_LINK_KNOWS_DENIALS) != 0) {
        link.denied = 109;
        link.bad_keys = 110;
        link.refused = 111;
    }
    if ((link_known & ORR_LINK_KNOWS_FORGED) != 0) link.forged = 112;
}

std::byte* FakeCard::translate(std::uint64_t va, std::uint64_t bytes, std::uint32_t access,
                               std::uint64_t* fault) {
    const std::lock_guard lock(mutex_);
    *fault = ORR_FAULT_NOT_MAPPED;
    auto after = mappings.upper_bound(va);
    if (after == mappings.begin()) return nullptr;
    const auto& [start, mapping] = *std::prev(after);
    if (va - start >= mapping.size || bytes > mapping.size - (va - start)) return nullptr;
    *fault = ORR_FAULT_PERMISSION;
    if ((mapping.flags & access) != access) return nullptr;
    *fault = ORR_FAULT_NONE;
    return mapping.pages->data + mapping.offset + (va - start);
}

void FakeCard::run() {
    std::uint64_t summary = 0;
    unsigned idle = 0;
    while (!stop_.load()) {
        if (paused_.load() || lost_.load()) {
            std::this_thread::sleep_for(std::chrono::microseconds(20));
            continue;
        }
        const std::uint64_t seen = atomic(&doorbells->summary).load(std::memory_order_acquire);
        const bool poked = poked_.exchange(false);
        const bool rung = seen != summary || poked;
        summary = seen;
        if ((rung || idle == 0) && work()) {
            idle = 0;  // and look for more
            continue;
        }
        if (busy_) {
            idle = 0;
            std::this_thread::sleep_for(std::chrono::microseconds(20));
            continue;
        }
        if (rung) idle = 0;
        if (++idle < 200) continue;
        // As hardware does: need_wakeup, fence, one more look, sleep until a kick.
        atomic(&doorbells->need_wakeup).store(1, std::memory_order_seq_cst);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (atomic(&doorbells->summary).load() == summary) wait_for_kick();
        atomic(&doorbells->need_wakeup).store(0);
        idle = 0;
    }
}

bool FakeCard::wait_for_kick() {
    while (!stop_.load() && !poked_.load()) {
        for (std::size_t offset = 256; offset < 4096; offset += 8) {
            if (atomic(kick_page + offset).exchange(0) != 0) {
                kicks_.fetch_add(1);
                return true;
            }
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return false;
}

bool FakeCard::work() {
    const std::lock_guard lock(mutex_);
    if (paused_.load()) {
        poked_.store(true);  // what was rung is looked at later
        return false;
    }
    bool any = take_arrivals();
    busy_ = false;
    for (Queue& queue : queues)
        any = step(queue) || any;
    return any;
}

bool FakeCard::step(Queue& queue) {
    if (queue.state.error != 0) {
        // Also of packets that came since, but who does not ring is not heard.
        const std::uint64_t rung = atomic(&doorbells->doorbell[queue.slot]).load(std::memory_order_acquire);
        if (rung >> 48 == queue.generation && rung != std::exchange(queue.bell_seen, rung))
            fail_promises(queue);
        return false;
    }
    std::uint64_t fault = 0;
    auto* ring = reinterpret_cast<orr_ring*>(translate(
        queue.ring_va, sizeof(orr_ring) + queue.entries * 64ull, ORR_BIND_READ | ORR_BIND_WRITE, &fault));
    if (ring == nullptr) {
        queue.state = {queue.completed, ORR_QERR_RING_FAULT, queue.completed, queue.ring_va, fault};
        queue.failed_upto = ~0ull;  // nobody can read what it would have signalled
        return true;
    }
    const std::uint64_t bell = atomic(&doorbells->doorbell[queue.slot]).load(std::memory_order_acquire);
    if (bell >> 48 != queue.generation) return false;
    const std::uint64_t producer = atomic(&ring->producer).load(std::memory_order_acquire);
    EXPECT_GE(producer, bell & ORR_DB_INDEX_MASK)
        << "the doorbell was rung before the producer was published";
    EXPECT_LE(producer - queue.completed, queue.entries) << "the ring was overrun";
    if (producer == queue.completed) return false;
    const auto* packets = reinterpret_cast<const orr_packet*>(ring + 1);
    const orr_packet packet = packets[queue.completed % queue.entries];
    EXPECT_EQ(packet.header.tag, static_cast<std::uint32_t>(queue.completed)) << "a slot with another packet";
    model_ps_ += 1000;
    const std::uint64_t begin_ps = model_ps_;
    const bool done = execute(queue, packet, queue.completed);
    note_work(queue, packet, done, begin_ps);
    if (queue.state.error != 0) return true;
    queue.waiting = !done;
    if (!done) return false;
    ++queue.completed;
    packets_done_.fetch_add(1);
    ring->consumer_time_ps = model_ps_;
    atomic(&ring->consumer).store(queue.completed, std::memory_order_release);
    return true;
}

// As kmod/orr_sink_rule.c: once the card has written over what was not read, the next look gets nothing.
void FakeCard::add_work(const drm_orr_work_record& record, bool counted) {
    if (work_overrun) return;
    work_records.emplace_back(record, counted);
    work_overrun = work_records.size() > work_room;
    if (work_overrun) work_records.clear();
}

// As the driver reads it from the card's records.
void FakeCard::note_work(const Queue& queue, const orr_packet& packet, bool done, std::uint64_t begin_ps) {
    if (!work_wanted) return;
    if (loses_work) {
        work_lost = true;
        return;
    }
    drm_orr_work_record record{};
    record.time_ps = model_ps_;
    record.queue = queue.slot + 1;
    const auto opcode = packet.header.opcode;
    if (opcode == ORR_PKT_WAIT) {
        if (done == queue.waiting) {
            record.kind = done ? ORR_WORK_WAKE : ORR_WORK_WAIT;
            record.index = done ? 0 : queue.completed;
            add_work(record, false);
        }
        return;
    }
    if (opcode == ORR_PKT_SIGNAL && done && queue.state.error == 0) {
        const auto p = std::bit_cast<orr_packet_semaphore>(packet);
        note_signal(queue, p.semaphore, p.value);
        return;
    }
    const bool engine = opcode == ORR_PKT_COPY || opcode == ORR_PKT_COPIES || opcode == ORR_PKT_FILL ||
                        opcode == ORR_PKT_REDUCE || opcode == ORR_PKT_DISPATCH;
    if (!engine || !done) return;
    record.kind = ORR_WORK_JOB;
    record.index = queue.completed;
    record.start_ps = begin_ps;
    record.end_ps = model_ps_;
    record.used_ps = model_ps_ - begin_ps;
    record.status = ORR_DONE_PREEMPTED;
    for (; preempts_next != 0; --preempts_next) {
        add_work(record, counters_wanted);
        // Others have the engine for as long as the next part takes.
        record.start_ps = model_ps_ + 500;
        record.time_ps = record.end_ps = model_ps_ += 1000;
        record.used_ps = 500;
    }
    if (std::exchange(loses_next_end, false)) {
        work_lost = true;
        return;
    }
    record.status = queue.state.error == 0 ? ORR_DONE_OK : ORR_DONE_FAULT;
    add_work(record, counters_wanted);
    if (pc_ns == 0) return;
    for (drm_orr_pc_record& at : pcs_of_next) {
        at.start_ps = record.start_ps;
        pc_records.push_back(at);
    }
    pcs_of_next.clear();
    drm_orr_pc_record ended{};
    ended.time_ps = record.end_ps;
    ended.start_ps = record.start_ps;
    ended.group = record.index;
    ended.queue = record.queue;
    ended.kind = ORR_PC_JOB;
    pc_records.push_back(ended);
}

void FakeCard::note_signal(const Queue& queue, std::uint64_t va, std::uint64_t value) {
    if (!work_wanted) return;
    drm_orr_work_record record{};
    record.time_ps = model_ps_;
    record.queue = queue.slot + 1;
    record.kind = ORR_WORK_SIGNAL;
    record.va = va;
    record.value = value;
    add_work(record, false);
}

void FakeCard::stop(Queue& queue, std::uint64_t error, std::uint64_t address, std::uint64_t detail,
                    std::uint64_t other) {
    const std::lock_guard lock(mutex_);
    if (queue.state.error != 0) return;
    queue.waiting = false;
    queue.state = {queue.completed, error, queue.completed, address, detail};
    // Poison passes on the word that it got.
    queue.failure = error == ORR_QERR_POISON
                        ? detail
                        : ORR_FAILURE_WORD(error, uid & 0xff, queue.slot + 1, queue.completed);
    queue.failed_upto = queue.completed;
    if (queue.gang) FakeGangs::all().fail(queue.gang->gang);
    leave_gang(queue);
    std::uint64_t fault = 0;
    auto* ring = reinterpret_cast<orr_ring*>(
        translate(queue.ring_va, sizeof(orr_ring), ORR_BIND_READ | ORR_BIND_WRITE, &fault));
    if (ring != nullptr) {
        // Who looks while there is no error yet reads them all the same.
        atomic(&ring->error_index).store(queue.state.error_index, std::memory_order_relaxed);
        atomic(&ring->error_address).store(address, std::memory_order_relaxed);
        atomic(&ring->error_detail).store(detail, std::memory_order_relaxed);
        atomic(&ring->error_other).store(other, std::memory_order_relaxed);
        atomic(&ring->error).store(error, std::memory_order_release);
    }
    // After the error, as the firmware does: who sees what came of a failure sees that the queue has stopped.
    fail_promises(queue);
    end_signals(queue);
}

void FakeCard::crash(const std::string& queue) {
    const std::lock_guard lock(mutex_);
    for (Queue& one : queues) {
        if (one.options.name == queue) stop(one, ORR_QERR_FIRMWARE, 0, 2);
    }
}

void FakeCard::fail_promises(Queue& queue) {
    std::uint64_t fault = 0;
    auto* ring = reinterpret_cast<orr_ring*>(translate(
        queue.ring_va, sizeof(orr_ring) + queue.entries * 64ull, ORR_BIND_READ | ORR_BIND_WRITE, &fault));
    if (ring == nullptr || queue.failed_upto == ~0ull) return;
    const std::uint64_t producer = atomic(&ring->producer).load(std::memory_order_acquire);
    const auto* packets = reinterpret_cast<const orr_packet*>(ring + 1);
    for (; queue.failed_upto < producer; ++queue.failed_upto) {
        const auto packet = std::bit_cast<orr_packet_semaphore>(packets[queue.failed_upto % queue.entries]);
        if (packet.header.opcode == ORR_PKT_SIGNAL || packet.header.opcode == ORR_PKT_FAIL)
            fail_semaphore(packet.semaphore, queue.failure);
        if (packet.header.opcode == ORR_PKT_SIGNAL)
            note_signal(queue, packet.semaphore, ORR_SEM_FAILED | queue.failure);
        if (packet.header.opcode != ORR_PKT_GANG) continue;
        if (const auto lost = member(packets[queue.failed_upto % queue.entries]))
            FakeGangs::all().fail(lost->gang);
    }
}

void FakeCard::fail_semaphore(std::uint64_t va, std::uint64_t word) {
    std::uint64_t fault = 0;
    (void)write(va, 16, &fault, [word, now = model_ps_](std::byte* memory) {
        auto* semaphore = reinterpret_cast<orr_semaphore*>(memory);
        if (ORR_SEM_HAS_FAILED(atomic(&semaphore->value).load())) return;
        set_time(*semaphore, now);
        atomic(&semaphore->value).store(ORR_SEM_FAILED | word, std::memory_order_release);
    });
}

// The ring of one that is idle when it is destroyed tells no error.
bool FakeCard::idle(const Queue& queue) {
    std::uint64_t fault = 0;
    auto* ring = reinterpret_cast<orr_ring*>(
        translate(queue.ring_va, sizeof(orr_ring), ORR_BIND_READ | ORR_BIND_WRITE, &fault));
    return ring != nullptr && atomic(&ring->producer).load() == queue.completed;
}

void FakeCard::end_signals(const Queue& queue) {
    FakeSignallers::all().remove_all(&queue, abandoned_by(queue));
    wake();
}

std::uint64_t FakeCard::abandoned_by(const Queue& queue) const {
    return ORR_FAILURE_WORD(ORR_QERR_ABANDONED, uid & 0xff, queue.slot + 1, 0);
}

void FakeCard::wake() {
    poke();
    for (FakeCard* peer : peers_)
        peer->poke();
}

void FakeCard::link_to(FakeCard& other) {
    peers_.push_back(&other);
    other.peers_.push_back(this);
}

bool FakeCard::reaches(const FakeCard& peer) const {
    return std::ranges::find(peers_, &peer) != peers_.end() && link_up_.load() && peer.link_up_.load() &&
           !lost_.load() && !peer.lost_.load();
}

void FakeCard::drop_arrivals(const FakeCard* from) {
    std::deque<Arrival> gone;  // after the lock
    const std::lock_guard lock(arrivals_mutex_);
    for (Arrival& arrival : std::exchange(arrivals_, {}))
        (from == nullptr || arrival.from == from ? gone : arrivals_).push_back(std::move(arrival));
}

std::size_t FakeCard::arrivals() {
    const std::lock_guard lock(arrivals_mutex_);
    return arrivals_.size();
}

void FakeCard::lose() {
    lost_.store(true);
    const std::lock_guard lock(mutex_);  // its thread has ended what it was at
    for (const Queue& queue : queues)
        FakeSignallers::all().remove_all(&queue,
                                         ORR_FAILURE_WORD(ORR_QERR_PEER_LOST, uid & 0xff, queue.slot + 1, 0));
    wake();
    drop_arrivals(nullptr);
    for (FakeCard* peer : peers_)
        peer->drop_arrivals(this);
}

void FakeCard::cut_link(bool gone) {
    link_up_.store(false);
    link_losses_.fetch_add(1);
    if (gone) {
        drop_arrivals(nullptr);
        for (FakeCard* peer : peers_)
            peer->drop_arrivals(this);
    }
    // Each may be another machine's to the other.
    FakeSignallers::all().remove_all(
        this, ORR_FAILURE_WORD(ORR_QERR_PEER_LOST, uid & 0xff, ORR_FAILURE_NO_QUEUE, 0));
    for (FakeCard* peer : peers_)
        FakeSignallers::all().remove_all(
            peer, ORR_FAILURE_WORD(ORR_QERR_PEER_LOST, peer->uid & 0xff, ORR_FAILURE_NO_QUEUE, 0));
    wake();
}

void FakeCard::mend_link() {
    link_up_.store(true);
}

// In order, as far as links go.
bool FakeCard::take_arrivals() {
    bool any = false;
    while (!hold_arrivals_.load()) {
        Arrival arrival{};
        {
            const std::lock_guard lock(arrivals_mutex_);
            if (arrivals_.empty()) break;
            arrival = std::move(arrivals_.front());
            arrivals_.pop_front();
        }
        arrival.act();
        any = true;
    }
    return any;
}

bool FakeCard::write(std::uint64_t va, std::uint64_t bytes, std::uint64_t* fault,
                     std::function<void(std::byte*)> act) {
    auto* memory = translate(va, bytes, ORR_BIND_WRITE, fault);
    if (memory == nullptr) return false;
    const auto pages = std::prev(mappings.upper_bound(va))->second.pages;
    FakeCard& owner = pages->owner;
    if (pages->kind != BoKind::kVram || &owner == this) {
        act(memory);
        wake();
        return true;
    }
    if (!reaches(owner) || pages->revoked.load()) {
        *fault = pages->revoked.load() ? ORR_FAULT_PEER_DENIED : ORR_FAULT_PEER_DOWN;
        return false;
    }
    {
        const std::lock_guard lock(owner.arrivals_mutex_);
        owner.arrivals_.push_back({this, pages, [act = std::move(act), memory] { act(memory); }});
    }
    owner.poke();
    return true;
}

bool FakeCard::execute(Queue& queue, const orr_packet& packet, std::uint64_t) {
    std::uint64_t fault = 0;
    const auto failed = [&](std::uint64_t error, std::uint64_t address, std::uint64_t detail,
                            std::uint64_t other = 0) {
        stop(queue, error, address, detail, other);
        return true;
    };
    switch (packet.header.opcode) {
        case ORR_PKT_NOP:
            return true;
        case ORR_PKT_COPY: {
            if ((packet.header.flags & ORR_PKT_F_LONG) != 0) {
                const auto pointer = std::bit_cast<orr_packet_long>(packet);
                if (pointer.bytes != sizeof(orr_desc_tell)) {
                    const FakeOutcome outcome = copy_box(packet);
                    return outcome.error == 0 || failed(outcome.error, outcome.address, outcome.detail);
                }
                const auto* memory = translate(pointer.descriptor, pointer.bytes, ORR_BIND_READ, &fault);
                if (memory == nullptr) return failed(ORR_QERR_FAULT, pointer.descriptor, fault);
                orr_desc_tell desc;
                std::memcpy(&desc, memory, sizeof desc);
                if (desc.op != ORR_DESC_TELL) return failed(ORR_QERR_BAD_DESC, 0, 0);
                told.push_back(desc);
                return true;
            }
            const auto p = std::bit_cast<orr_packet_copy>(packet);
            const std::uint32_t planes = std::max(p.planes, 1u);
            if (p.rows == 0 || (planes == 1 && (p.src_height | p.dst_height) != 0))
                return failed(ORR_QERR_BAD_PACKET, 0, 0);
            for (std::uint64_t plane = 0; plane < planes; ++plane) {
                for (std::uint64_t row = 0; row < p.rows; ++row) {
                    const std::uint64_t from = p.src + (plane * p.src_height + row) * p.src_pitch;
                    const std::uint64_t to = p.dst + (plane * p.dst_height + row) * p.dst_pitch;
                    if (const std::uint64_t bad = copy(to, from, p.row_bytes, &fault); bad != 0)
                        return failed(ORR_QERR_FAULT, bad, fault);
                }
            }
            model_ps_ += p.row_bytes * p.rows * planes * 10;
            return true;
        }
        case ORR_PKT_COPIES: {
            const auto p = std::bit_cast<orr_packet_copies>(packet);
            std::uint64_t left = p.bytes;
            for (std::uint32_t i = 0; i < p.entries; ++i) {
                const std::uint64_t va = p.list + i * sizeof(orr_copy_entry);
                const auto* memory = translate(va, sizeof(orr_copy_entry), ORR_BIND_READ, &fault);
                if (memory == nullptr || va % sizeof(orr_copy_entry) != 0)
                    return failed(ORR_QERR_FAULT, va, fault);
                orr_copy_entry entry;
                std::memcpy(&entry, memory, sizeof entry);
                if (entry.reserved != 0 || entry.bytes > left) return failed(ORR_QERR_BAD_DESC, 0, 0);
                left -= entry.bytes;
                if (const std::uint64_t bad = copy(entry.dst, entry.src, entry.bytes, &fault); bad != 0)
                    return failed(ORR_QERR_FAULT, bad, fault, va);
            }
            if (left != 0) return failed(ORR_QERR_BAD_DESC, 0, 0);
            model_ps_ += p.bytes * 10;
            return true;
        }
        case ORR_PKT_REDUCE: {
            const auto p = std::bit_cast<orr_packet_reduce>(packet);
            const auto* src = translate(p.src, p.row_bytes, ORR_BIND_READ, &fault);
            if (src == nullptr) return failed(ORR_QERR_FAULT, p.src, fault);
            auto* dst = translate(p.dst, p.row_bytes, ORR_BIND_READ | ORR_BIND_WRITE, &fault);
            if (dst == nullptr) return failed(ORR_QERR_FAULT, p.dst, fault);
            if (p.rows != 1 || !reduce(dst, src, p)) return failed(ORR_QERR_BAD_DESC, 0, 0);
            model_ps_ += p.row_bytes * 20;
            return true;
        }
        case ORR_PKT_FILL: {
            const auto p = std::bit_cast<orr_packet_fill>(packet);
            if (p.rows == 0 || p.row_bytes % p.pattern_bytes != 0 || p.dst % p.pattern_bytes != 0)
                return failed(ORR_QERR_BAD_DESC, 0, 0);
            for (std::uint64_t row = 0; row < p.rows; ++row) {
                const std::uint64_t to = p.dst + row * p.dst_pitch;
                const bool written = write(to, p.row_bytes, &fault, [p](std::byte* dst) {
                    for (std::uint64_t i = 0; i < p.row_bytes; i += p.pattern_bytes)
                        std::memcpy(dst + i, &p.pattern, p.pattern_bytes);
                });
                if (!written) return failed(ORR_QERR_FAULT, to, fault);
            }
            model_ps_ += p.row_bytes * p.rows * 10;
            return true;
        }
        case ORR_PKT_WAIT: {
            const auto p = std::bit_cast<orr_packet_semaphore>(packet);
            auto* word = translate(p.semaphore, 16, ORR_BIND_READ, &fault);
            if (word == nullptr || p.semaphore % 16 != 0) return failed(ORR_QERR_FAULT, p.semaphore, fault);
            auto* semaphore = reinterpret_cast<orr_semaphore*>(word);
            if (p.value >= ORR_SEM_FAILED) return failed(ORR_QERR_BAD_PACKET, p.value, 0);
            const std::uint64_t value = atomic(&semaphore->value).load(std::memory_order_acquire);
            const std::uint64_t time = atomic(&semaphore->time_ps).load();
            if (ORR_SEM_HAS_FAILED(value))
                return failed(ORR_QERR_POISON, p.semaphore, ORR_SEM_FAILURE(value));
            if (value < p.value && (time & ORR_SEM_CLOSED) != 0) {
                return failed(ORR_QERR_POISON, p.semaphore, FakeSignallers::all().word(word));
            }
            if (value < p.value) {
                if (p.limit_ns == 0) return false;
                busy_ = true;
                if (queue.since_ns == 0) queue.since_ns = now_ns();
                if (now_ns() - queue.since_ns < static_cast<std::int64_t>(p.limit_ns)) return false;
                return failed(ORR_QERR_WAIT_LIMIT, p.semaphore, value);
            }
            queue.since_ns = 0;
            model_ps_ = std::max<std::uint64_t>(model_ps_, time & ~ORR_SEM_CLOSED);
            return true;
        }
        case ORR_PKT_SIGNAL: {
            const auto p = std::bit_cast<orr_packet_semaphore>(packet);
            if (p.semaphore % 16 != 0) return failed(ORR_QERR_FAULT, p.semaphore, ORR_FAULT_MISALIGNED);
            if (p.value >= ORR_SEM_FAILED) return failed(ORR_QERR_BAD_PACKET, p.value, 0);
            const bool written =
                write(p.semaphore, 16, &fault, [value = p.value, now = model_ps_](std::byte* memory) {
                    auto* semaphore = reinterpret_cast<orr_semaphore*>(memory);
                    const std::uint64_t old = atomic(&semaphore->value).load();
                    if (ORR_SEM_HAS_FAILED(old)) return;
                    EXPECT_GE(value, old) << "a semaphore went back";
                    set_time(*semaphore, now);
                    atomic(&semaphore->value).store(value, std::memory_order_release);
                });
            return written || failed(ORR_QERR_FAULT, p.semaphore, fault);
        }
        case ORR_PKT_FAIL: {
            const auto p = std::bit_cast<orr_packet_fail>(packet);
            if (translate(p.semaphore, 16, ORR_BIND_WRITE, &fault) == nullptr)
                return failed(ORR_QERR_FAULT, p.semaphore, fault);
            fail_semaphore(p.semaphore,
                           ORR_FAILURE_WORD(p.code, uid & 0xff, queue.slot + 1, queue.completed));
            return true;
        }
        case ORR_PKT_TIMESTAMP: {
            const auto p = std::bit_cast<orr_packet_timestamp>(packet);
            auto* word = translate(p.dst, 8, ORR_BIND_WRITE, &fault);
            if (word == nullptr || p.dst % 8 != 0) return failed(ORR_QERR_FAULT, p.dst, fault);
            atomic(word).store(clock ? clock() : model_ps_, std::memory_order_release);
            return true;
        }
        case ORR_PKT_GANG:
            queue.gang = member(packet);
            return queue.gang || failed(ORR_QERR_BAD_PACKET, 0, 0);
        case ORR_PKT_DISPATCH: {
            const auto p = std::bit_cast<orr_packet_dispatch>(packet);
            if (translate(p.entry, 2, ORR_BIND_EXEC, &fault) == nullptr) {
                return failed(ORR_QERR_FAULT, p.entry, fault);
            }
            if (const auto apart = gather(queue, p)) {
                if (apart->running) return false;
                return failed(apart->error, apart->address, apart->detail);
            }
            if (on_dispatch == nullptr) {
                leave_gang(queue);
                return true;
            }
            const std::int64_t before = now_ns();
            const FakeOutcome outcome = on_dispatch(*this, {p.entry,
                                                            p.args,
                                                            {p.grid_x, p.grid_y, p.grid_z},
                                                            {p.block_x, p.block_y, p.block_z},
                                                            p.local_bytes,
                                                            (p.header.flags & ORR_PKT_F_RESIDENT) != 0,
                                                            p.item_stack_pages});
            EXPECT_LT(now_ns() - before, 60'000'000'000) << "the card is locked meanwhile: say `running`";
            if (outcome.running) {
                busy_ = true;
                if (queue.since_ns == 0) queue.since_ns = now_ns();
                const std::int64_t limit = std::int64_t{queue.options.limit_us} * 1000;
                if (limit == 0 || now_ns() - queue.since_ns < limit) return false;
                return failed(ORR_QERR_TIMEOUT, 0, 0);
            }
            queue.since_ns = 0;
            if (outcome.error == 0) leave_gang(queue);
            return outcome.error == 0 || failed(outcome.error, outcome.address, outcome.detail);
        }
        default:
            return failed(ORR_QERR_BAD_OPCODE, 0, packet.header.opcode);
    }
}

}  // namespace orrery::umd::test
