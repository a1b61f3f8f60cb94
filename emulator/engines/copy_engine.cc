#include "emulator/engines/copy_engine.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/engines/past_caches.h"
#include "emulator/engines/save_area.h"
#include "emulator/memory/tlb_counters.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

constexpr std::uint64_t kPatternBytes = 64 << 10;
constexpr std::uint64_t kMaxPattern = 8;
// Asked of the MMU at once: long enough that a walk is cheap against its copy, short enough for one event.
constexpr std::uint64_t kRunBytes = 1 << 20;

// Of pieces: 0.1 s of the host's time, and less model time for each than a twentieth of what it takes there.
constexpr std::uint64_t kTellFrom = 1'000'000;
constexpr ModelTime kTellPs = 5 * kPsPerNs;

// A page or range of what a process tells: about what the host takes for it, so that others go on meanwhile.
constexpr ModelTime kLookPs = 50 * kPsPerNs;

__extension__ using Wide = unsigned __int128;

// What goes through in `time`, in whole lines and at least one.
std::uint64_t bytes_within(ModelTime time, std::uint64_t bytes_per_second) {
    constexpr Wide kLine = 64;
    const Wide bytes = Wide{time} * bytes_per_second / kPsPerSecond;
    return bytes < kLine ? kLine : static_cast<std::uint64_t>(bytes / kLine * kLine);
}

}  // namespace

CopyEngine::CopyEngine(std::uint32_t port, const CopyRates& rates, EngineContext& context,
                       std::uint32_t cores)
    : port_(port),
      cores_(cores),
      rates_(rates),
      context_(context),
      event_(Event::of<&CopyEngine::on_event>(this)),
      tlb_(rates.tlb_entries),
      engine_(rates.engine_bytes_per_second),
      vram_reads_(in_flight_rate(rates.in_flight, context.memory.config().vram_latency_ps)),
      host_reads_(in_flight_rate(rates.in_flight, context.memory.config().pcie_latency_ps)) {
    pattern_.resize(kPatternBytes + kMaxPattern);
}

std::optional<std::uint64_t> CopyEngine::wraps() const {
    if (job_.wraps(job_.dst)) return job_.dst.base;
    if (!is_fill() && job_.wraps(job_.src)) return job_.src.base;
    return std::nullopt;
}

void CopyEngine::begin(std::uint32_t tag, ModelTime now) {
    busy_ = true;
    ended_ = false;
    ways_.forget();
    place_ = {};
    column_ = 0;
    pointer_ = {};
    fetched_descriptor_ = {};
    entry_ = fetched_ = 0;
    entry_read_ = false;
    src_ = dst_ = {};
    drop_asked();
    looks_ahead_ = false;
    src_lines_ = dst_lines_ = {};
    pieces_ = 0;
    told_ = false;
    completion_ = {.port = port_, .tag = tag, .start_ps = now};
    job_counter_.begin(context_.jobs);
    free_ = arrived_ = now;
    ledger_.begin(now);
    // What was in flight for one that was aborted holds nobody up.
    engine_.reset();
    vram_reads_.reset();
    host_reads_.reset();
}

// False: no descriptor of ours.
bool CopyEngine::accept(const DescriptorWords& descriptor) {
    words_ = descriptor;
    if (const auto pointer = long_pointer(descriptor)) {
        pointer_ = *pointer;
        job_ = {};
        job_.asid = pointer->asid;
        return true;
    }
    const auto job = copy_job(descriptor);
    if (job) accept(*job);
    return job.has_value();
}

bool CopyEngine::accept(const LongDescriptor& descriptor) {
    const auto job = long_copy_job(descriptor.words(), pointer_.asid);
    if (!job) return false;
    fetched_descriptor_ = descriptor;
    accept(*job);
    return true;
}

void CopyEngine::accept(const CopyJob& job) {
    job_ = job;
    left_ = job_.total;
    if (is_fill()) make_pattern();
}

// The copy begins, or goes on, when its descriptor is there.
void CopyEngine::fetch_descriptor(ModelTime now) {
    tlb_.follow(context_.mmu.invalidations(), pointer_.asid);
    const auto fetched = fetch(context_.mmu, pointer_, tlb_, context_.workers);
    if (!fetched) return end(ORR_DONE_FAULT, fetched.error().code, fetched.error().va);
    count_lookups(context_.counters, ORR_CTR_COPY_TLB_LOOKUPS, fetched->lookups);
    count(false, false, fetched->traffic.vram);
    count(true, false, fetched->traffic.from_host);
    const MemoryConfig& memory = context_.memory.config();
    const ModelTime read = fetched->traffic.from_host != 0 ? memory.pcie_latency_ps : memory.vram_latency_ps;
    free_ = later(context_.memory.reserve(now, fetched->traffic, ORR_CTR_VRAM_COPY_BYTES),
                  later(read, fetched->lookups.walked * memory.vram_latency_ps));
    ledger_.plan(CopyLedger::kSetup, free_);
    if (!accept(fetched->descriptor)) return end(ORR_DONE_BAD_DESC, 0, 0);
    if (const auto bad = wraps()) return end(ORR_DONE_FAULT, ORR_FAULT_NON_CANONICAL, *bad);
    context_.events.schedule(event_, free_);
}

bool CopyEngine::start(const DescriptorWords& descriptor, std::uint32_t tag) {
    if (busy_) return false;
    const ModelTime now = context_.events.now();
    begin(tag, now);
    context_.counters.add(ORR_CTR_COPY_JOBS);
    if (!accept(descriptor)) {
        end(ORR_DONE_BAD_DESC, 0, 0);
    } else if (const auto bad = wraps()) {
        end(ORR_DONE_FAULT, ORR_FAULT_NON_CANONICAL, *bad);
    } else {
        free_ = later(now, rates_.setup_ps);
        ledger_.plan(CopyLedger::kSetup, free_);
        context_.events.schedule(event_, free_);
    }
    return true;
}

void CopyEngine::make_pattern() {
    const auto* bytes = reinterpret_cast<const std::byte*>(&job_.pattern);
    for (std::size_t at = 0; at < pattern_.size(); at += job_.pattern_bytes) {
        std::memcpy(pattern_.data() + at, bytes,
                    std::min<std::size_t>(job_.pattern_bytes, pattern_.size() - at));
    }
}

bool CopyEngine::preempt(Preempt mode, std::uint64_t save) {
    // What has been moved stands already: there is nothing that kGroup could wait for.
    if (mode == Preempt::kNo || !busy_ || ended_) return true;
    auto area = SaveArea::at(context_.vram, save, cores_);
    if (!area) return false;
    area->invalidate();
    save_ = save;
    // When what is on its way through the engine has come, and the save is there.
    const ModelTime now = context_.events.now();
    ledger_.settle(now);
    ledger_.plan(CopyLedger::kLatency, arrived_);
    count(false, true, kSavePage);
    arrived_ = std::max(arrived_, context_.memory.vram(ORR_CTR_VRAM_COPY_BYTES).reserve(now, kSavePage));
    ledger_.plan(CopyLedger::kSetup, arrived_);
    end(ORR_DONE_PREEMPTED, 0, kSavePage);
    return true;
}

// Takes what a preempted copy left; false: nothing of ours stands there.
bool CopyEngine::load(std::uint64_t save) {
    auto area = SaveArea::at(context_.vram, save, cores_);
    if (!area) return false;
    const auto header = area->read_header(ORR_ENGINE_COPY);
    if (!header || header->groups != 0 || header->next_group != 0) return false;
    DescriptorWords words;
    std::memcpy(words.data(), header->descriptor, sizeof words);
    if (!accept(words)) return false;
    if (pointer_.bytes != 0 && header->fetched_bytes != 0) {
        LongDescriptor fetched{.bytes = header->fetched_bytes};
        if (fetched.bytes != pointer_.bytes) return false;
        std::memcpy(fetched.word.data(), header->fetched, fetched.bytes);
        if (!accept(fetched)) return false;
    } else if (header->fetched_bytes != 0) {
        return false;
    }
    if (wraps()) return false;
    if (is_unfetched()) {
        if (header->row != 0 || header->column != 0) return false;
    } else if (is_list()) {
        // Whether the column is inside of the first entry shows when that is read.
        if (header->row != 0 || header->column > job_.total) return false;
    } else {
        const std::uint64_t most =
            is_tell() ? job_.tell.bytes : std::max<std::uint64_t>(job_.row_bytes, 1) - 1;
        if (header->row >= job_.rows() || header->column > most || header->column % job_.element_bytes != 0)
            return false;
        place_ = job_.place_of(header->row);
    }
    column_ = header->column;
    area->invalidate();
    return true;
}

bool CopyEngine::resume(std::uint64_t save, std::uint32_t tag) {
    if (busy_) return false;
    const ModelTime now = context_.events.now();
    begin(tag, now);
    if (!load(save)) {
        end(ORR_DONE_BAD_DESC, 0, 0);
        return true;
    }
    count(false, false, kSavePage);
    free_ = later(context_.memory.vram(ORR_CTR_VRAM_COPY_BYTES).reserve(now, kSavePage), rates_.setup_ps);
    ledger_.plan(CopyLedger::kSetup, free_);
    context_.events.schedule(event_, free_);
    return true;
}

void CopyEngine::abort() {
    if (!busy_) return;
    if (ended_ && completion_.status != ORR_DONE_OK && completion_.status != ORR_DONE_PREEMPTED) return;
    free_ = arrived_ = context_.events.now();
    ledger_.cut(free_);
    end(ORR_DONE_ABORTED, 0, 0);
}

ModelTime CopyEngine::used() const {
    return busy_ ? context_.events.now() - completion_.start_ps : 0;
}

void CopyEngine::reset() {
    join();
    if (busy_) count_time(context_.events.now());
    leave_link();
    drop_asked();
    context_.events.cancel(event_);
    busy_ = ended_ = false;
    src_ = dst_ = {};
}

void CopyEngine::join() {
    if (context_.workers != nullptr) context_.workers->join(port_);
}

void CopyEngine::leave_link() {
    if (parked_ != nullptr) parked_->forget(event_);
    parked_ = nullptr;
}

// What stands is handed in when all that was moved before has come.
void CopyEngine::end(std::uint32_t status, std::uint64_t fault, std::uint64_t detail) {
    completion_.status = status;
    completion_.fault = fault;
    completion_.detail = detail;
    if (is_list() && (status == ORR_DONE_FAULT || status == ORR_DONE_BAD_DESC))
        completion_.other = job_.list + std::uint64_t{entry_} * sizeof(orr_copy_entry);
    ended_ = true;
    leave_link();
    drop_asked();
    ledger_.close();
    ledger_.plan(CopyLedger::kLatency, std::max(free_, arrived_));
    context_.events.schedule(event_, std::max(free_, arrived_));
}

CopyLedger::Times CopyEngine::times() const {
    return busy_ ? ledger_.until(context_.events.now()) : CopyLedger::Times{};
}

void CopyEngine::count_time(ModelTime now) {
    context_.counters.add(ORR_CTR_COPY_BUSY_PS, now - completion_.start_ps);
    const CopyLedger::Times times = ledger_.until(now);
    job_counter_.add(ORR_JOB_BUSY_PS, now - completion_.start_ps);
    for (std::size_t cause = 0; cause < times.size(); ++cause) {
        context_.counters.add(CopyLedger::counter_of(cause), times[cause]);
        if (cause != CopyLedger::kMove) job_counter_.add(CopyLedger::job_counter_of(cause), times[cause]);
    }
}

void CopyEngine::hand_in(ModelTime now) {
    join();
    completion_.end_ps = now;
    completion_.used_ps = now - completion_.start_ps;
    count_time(now);
    if (completion_.status == ORR_DONE_PREEMPTED) {
        SaveArea::at(context_.vram, save_, cores_)->write_header(saved());
        context_.counters.add(ORR_CTR_PREEMPTIONS);
        context_.counters.add(ORR_CTR_SAVED_BYTES, kSavePage);
    }
    busy_ = ended_ = false;
    job_counter_.end(context_.jobs, completion_);
    context_.done(completion_);
}

orr_save_header CopyEngine::saved() const {
    orr_save_header header{};
    header.kind = ORR_ENGINE_COPY;
    header.row = job_.row_of(place_);
    header.column = column_;
    header.fetched_bytes = fetched_descriptor_.bytes;
    std::memcpy(header.fetched, fetched_descriptor_.word.data(), sizeof header.fetched);
    DescriptorWords words = words_;
    if (is_list()) {
        // What is left is a list too.
        auto rest = std::bit_cast<orr_desc_copies>(words);
        rest.list += std::uint64_t{entry_} * sizeof(orr_copy_entry);
        rest.entries -= entry_;
        rest.bytes = left_;
        words = std::bit_cast<DescriptorWords>(rest);
        header.row = 0;
    }
    std::memcpy(header.descriptor, words.data(), sizeof words);
    return header;
}

bool CopyEngine::finished() const {
    if (is_list()) return entry_ == job_.entries;
    return place_.back() == job_.count.back() || job_.row_bytes == 0;
}

void CopyEngine::on_event(ModelTime now) {
    parked_ = nullptr;
    waits_ = false;
    ledger_.settle(now);
    if (ended_) return hand_in(now);
    if (is_unfetched()) return fetch_descriptor(now);
    if (is_tell()) return tell(now);
    work(now);
    ledger_.close();
    watch_cost();
    if (ended_) return;
    // A list whose entries are fewer bytes than it said is none.
    if (finished()) return end(is_list() && left_ != 0 ? ORR_DONE_BAD_DESC : ORR_DONE_OK, 0, 0);
    if (waits_) return ledger_.then_wait(CopyLedger::kPeer);
    if (parked_ == nullptr) return context_.events.schedule(event_, free_);
    ledger_.then_wait(CopyLedger::kCredit);
    parked_->wait_for_room(parked_node_, event_);
}

void CopyEngine::tell(ModelTime now) {
    CheckedMemory::Go go;
    if (context_.checked != nullptr) go = context_.checked->tell(job_.asid, job_.tell, column_);
    free_ = later(now, go.looked * kLookPs);
    ledger_.plan(CopyLedger::kMove, free_);
    if (go.all) return end(ORR_DONE_OK, 0, 0);
    context_.events.schedule(event_, free_);
}

void CopyEngine::work(ModelTime now) {
    if (generation_ != context_.mmu.generation()) {
        generation_ = context_.mmu.generation();
        src_ = dst_ = ask_ = {};
    }
    if (tlb_.follow(context_.mmu.invalidations(), job_.asid)) looks_ahead_ = false;
    free_ = std::max(free_, now > kMaxLagPs ? now - kMaxLagPs : 0);
    Chunk chunk{.began = free_};
    ledger_.open(free_);
    for (unsigned piece = 0; piece < kChunkPieces; ++piece) {
        if (finished() || chunk.alone >= kChunkPs || chunk.occupied >= kChunkBytes) return;
        if (is_list() && !entry_read_) {
            if (!next_entry(chunk)) return;
            if (column_ == job_.row_bytes) {
                charge(chunk, 0, {}, 0);
                advance(0);
                continue;
            }
        }
        const std::uint64_t bytes = move_piece(chunk);
        if (bytes == 0) return;
        context_.counters.add(ORR_CTR_COPY_BYTES, bytes);
        job_counter_.add(ORR_JOB_MOVED, bytes);
        advance(bytes);
    }
}

// The engine asks for a list by pages: what is in one from `va` on, in whole lines, as any other traffic.
void CopyEngine::charge_list(Chunk& chunk, std::uint64_t va, bool in_host, bool huge) {
    const std::uint64_t in_page = (ORR_PAGE_SIZE - va % ORR_PAGE_SIZE) / sizeof(orr_copy_entry);
    const std::uint64_t entries = std::min<std::uint64_t>(in_page, job_.entries - entry_);
    const std::uint64_t bytes = lines_of(va, entries * sizeof(orr_copy_entry)) * kMemoryLine;
    MemorySystem& memory = context_.memory;
    Resource& way = in_host ? memory.from_host() : memory.vram(ORR_CTR_VRAM_COPY_BYTES);
    free_ = std::max(free_, ledger_.need(in_host ? CopyLedger::kPcie : CopyLedger::kVram,
                                         way.reserve(chunk.began, bytes)));
    count(in_host, false, bytes);
    if (const std::uint64_t walked = walks(va, 1, huge) * kMemoryLine; walked != 0) {
        free_ =
            std::max(free_, ledger_.need(CopyLedger::kVram,
                                         memory.vram(ORR_CTR_VRAM_COPY_BYTES).reserve(chunk.began, walked)));
        count(false, false, walked);
    }
    chunk.alone = later(chunk.alone, duration_ps(bytes, way.bytes_per_second()));
    chunk.occupied += bytes;
    fetched_ = entry_ + static_cast<std::uint32_t>(entries);
}

// Reads the entry of the list that comes next. False: ended by a fault.
bool CopyEngine::next_entry(Chunk& chunk) {
    const std::uint64_t va = job_.list + std::uint64_t{entry_} * sizeof(orr_copy_entry);
    orr_copy_entry entry;
    const auto found = context_.mmu.translate(job_.asid, va, sizeof entry, Access::kLoad);
    if (!found || found->bytes < sizeof entry) {
        const MmuFault fault = found ? MmuFault{ORR_FAULT_PAGE_RANGE, va + found->bytes} : found.error();
        end(ORR_DONE_FAULT, fault.code, fault.va);
        return false;
    }
    if (context_.workers != nullptr)
        context_.workers->settle(reinterpret_cast<const std::byte*>(found->host), sizeof entry);
    std::memcpy(&entry, found->host, sizeof entry);
    if (entry_ >= fetched_) charge_list(chunk, va, found->target == ORR_TARGET_HOST, found->huge);
    if (entry.reserved != 0 || entry.bytes > left_ || entry.bytes < column_) {
        end(ORR_DONE_BAD_DESC, 0, 0);
        return false;
    }
    job_.src.base = entry.src;
    job_.dst.base = entry.dst;
    job_.row_bytes = entry.bytes;
    if (const auto bad = wraps()) {
        end(ORR_DONE_FAULT, ORR_FAULT_NON_CANONICAL, *bad);
        return false;
    }
    entry_read_ = true;
    return true;
}

bool CopyEngine::refill(Run& run, std::uint64_t va, Access access) {
    if (run.left() > 0) return true;
    const std::uint64_t wanted = std::min(job_.row_bytes - column_, kRunBytes);
    auto found = context_.mmu.translate(job_.asid, va, wanted, access);
    // A reduction reads its destination too. Where it writes to is only what was checked for that: tables may
    // change meanwhile, and what is read elsewhere now is nothing that may be written.
    if (found && access == Access::kStore && is_reduction()) {
        auto read = context_.mmu.translate(job_.asid, va, found->bytes, Access::kLoad);
        if (!read) {
            found = std::unexpected(read.error());
        } else if (read->host != found->host) {
            found = std::unexpected(MmuFault{ORR_FAULT_PAGE_RANGE, va});
        } else {
            found->bytes = std::min(found->bytes, read->bytes);
        }
    }
    if (!found) {
        end(ORR_DONE_FAULT, found.error().code, found.error().va);
        return false;
    }
    // A DMA range may end inside of an element.
    found->bytes -= found->bytes % job_.element_bytes;
    if (found->bytes == 0) {
        end(ORR_DONE_FAULT, ORR_FAULT_PAGE_RANGE, va);
        return false;
    }
    run = {*found, 0};
    return true;
}

std::uint64_t CopyEngine::walks(std::uint64_t va, std::uint64_t bytes, bool huge) {
    if (!tlb_.on() || bytes == 0) return 0;
    const std::uint64_t page = huge ? ORR_HUGE_PAGE_SIZE : ORR_PAGE_SIZE;
    TlbLookups lookups;
    for (std::uint64_t at = va & ~(page - 1); at < va + bytes; at += page)
        lookups.add(tlb_.use(job_.asid, at, huge));
    count_lookups(context_.counters, ORR_CTR_COPY_TLB_LOOKUPS, lookups);
    return lookups.walked;
}

// Both sides are looked up at the same time.
bool CopyEngine::waits_for_walks(ModelTime now) {
    if (looks_ahead_) return false;
    looks_ahead_ = true;
    const std::uint64_t src = is_fill() ? 0 : walks(src_va(), 1, src_.where.huge);
    const std::uint64_t dst = walks(dst_va(), 1, dst_.where.huge);
    if (src + dst == 0) return false;
    MemorySystem& memory = context_.memory;
    const ModelTime through = memory.vram(ORR_CTR_VRAM_COPY_BYTES).reserve(now, (src + dst) * kMemoryLine);
    count(false, false, (src + dst) * kMemoryLine);
    const ModelTime read = later(now, std::max(src, dst) * memory.config().vram_latency_ps);
    free_ = std::max(free_, ledger_.need(CopyLedger::kTranslation, std::max(through, read)));
    return true;
}

std::uint64_t CopyEngine::Lines::add(const Run& run, std::uint64_t bytes) {
    const std::uint64_t from = run.where.address + run.used;
    const std::uint64_t shared = from == end ? (kMemoryLine - from % kMemoryLine) % kMemoryLine : 0;
    end = from + bytes;
    return bytes > shared ? lines_of(from + shared, bytes - shared) * kMemoryLine : 0;
}

// The model's time for bytes, the next of the copy, that take this much of the memories; `by_itself`:
// what its requests in flight and its link take for them.
void CopyEngine::charge(Chunk& chunk, std::uint64_t bytes, const Traffic& traffic, ModelTime by_itself) {
    // The first row is a part of the setup.
    const bool begins = column_ == 0 && (is_list() || place_ != CopyJob::Place{});
    const ModelTime least = begins ? rates_.row_ps : 0;
    MemorySystem& memory = context_.memory;
    const std::uint64_t on_host = std::max(traffic.from_host, traffic.to_host);
    const ModelTime own = duration_ps(bytes, rates_.engine_bytes_per_second);
    const ModelTime alone =
        std::max({least, by_itself, own, duration_ps(traffic.vram, memory.vram().bytes_per_second()),
                  duration_ps(on_host, memory.from_host().bytes_per_second())});
    chunk.alone = later(chunk.alone, alone);
    chunk.occupied += std::max({bytes, traffic.vram, on_host});
    const MemorySystem::Ends ends = memory.reserve_each(chunk.began, traffic, ORR_CTR_VRAM_COPY_BYTES);
    free_ = std::max(
        {free_,
         ledger_.need_engine(engine_.reserve(chunk.began, bytes, least), least > own ? least - own : 0),
         ledger_.need(CopyLedger::kVram, ends.vram), ledger_.need(CopyLedger::kPcie, ends.host)});
    ++pieces_;
}

void CopyEngine::watch_cost() {
    const ModelTime took = free_ - completion_.start_ps;
    if (told_ || pieces_ < kTellFrom || took / kTellPs >= pieces_) return;
    told_ = true;
    if (context_.errors == nullptr) return;
    context_.errors->note(
        "a copy of address space {} on engine {} is slow on the host: {} rows, entries or pieces of them in "
        "{} "
        "us of model time. Each costs the host as much as some hundreds of bytes",
        job_.asid, port_, pieces_, took / (1'000 * kPsPerNs));
}

void CopyEngine::store_piece(const std::byte* from, std::uint64_t bytes, bool lasts) {
    // Two virtual ranges may be the same memory, so the pieces may overlap.
    const MemoryPiece piece{reinterpret_cast<std::byte*>(dst_.host()), from, bytes, job_.reduce,
                            lasts && !is_fill() && job_.total >= kPastCaches};
    if (context_.workers != nullptr)
        context_.workers->move(port_, piece, lasts && job_.total >= Workers::kLongJob);
    else
        piece.carry_out();
    if (context_.checked != nullptr && dst_.where.target == ORR_TARGET_VRAM)
        context_.checked->wrote(dst_.where.address + dst_.used, bytes);
}

void CopyEngine::charge_store(Traffic& lines, std::uint64_t bytes) {
    if (dst_.where.target == ORR_TARGET_PEER) return;
    const std::uint64_t written = dst_lines_.add(dst_, bytes);
    const std::uint64_t read = is_reduction() ? written : 0;
    count(dst_.where.target == ORR_TARGET_HOST, true, written);
    count(dst_.where.target == ORR_TARGET_HOST, false, read);
    if (dst_.where.target == ORR_TARGET_HOST) {
        lines.to_host += written;
        lines.from_host += read;
    } else {
        lines.vram += written + read;
    }
}

// Moves one piece, contiguous on both sides. 0: ended by a fault, or blocked.
std::uint64_t CopyEngine::move_piece(Chunk& chunk) {
    if (!asked_.empty()) return pull_piece(chunk);
    if (!is_fill() && !refill(src_, src_va(), Access::kPull)) return 0;
    if (!refill(dst_, dst_va(), Access::kStore)) return 0;
    if (waits_for_walks(chunk.began)) return 0;
    if (!is_fill() && src_.where.target == ORR_TARGET_PEER) return pull_piece(chunk);
    MemorySystem& memory = context_.memory;
    std::uint64_t bytes = std::min(dst_.left(), job_.row_bytes - column_);
    std::uint64_t rate = rates_.engine_bytes_per_second;
    Traffic ways;  // of one byte
    if (dst_.where.target == ORR_TARGET_HOST) {
        ++ways.to_host;
        if (is_reduction()) ++ways.from_host;
    } else if (dst_.where.target == ORR_TARGET_VRAM) {
        ways.vram += is_reduction() ? 2 : 1;
    }
    Resource* reads = nullptr;
    ModelTime latency = 0;
    const std::byte* from = nullptr;
    if (is_fill()) {
        bytes = std::min(bytes, kPatternBytes);
        from = pattern_.data() + column_ % job_.pattern_bytes;
    } else {
        bytes = std::min(bytes, src_.left());
        from = reinterpret_cast<const std::byte*>(src_.host());
        const bool from_host = src_.where.target == ORR_TARGET_HOST;
        ++(from_host ? ways.from_host : ways.vram);
        reads = from_host ? &host_reads_ : &vram_reads_;
        latency = from_host ? memory.config().pcie_latency_ps : memory.config().vram_latency_ps;
        if (reads->bytes_per_second() != 0) rate = std::min(rate, reads->bytes_per_second());
    }
    const std::uint64_t busiest = std::max<std::uint64_t>({ways.vram, ways.from_host, ways.to_host, 1});
    if (const std::uint64_t host = std::max(ways.from_host, ways.to_host); host != 0)
        rate = std::min(rate, memory.config().pcie_bytes_per_second / host);
    if (ways.vram != 0) rate = std::min(rate, memory.config().vram_bytes_per_second / ways.vram);
    std::uint64_t link_rate = 0;
    if (dst_.where.target == ORR_TARGET_PEER) {
        if (const PeerPort* link = context_.peers.towards(dst_.where.node)) {
            link_rate = link->bytes_per_second();
            rate = std::min(rate, link_rate);
        }
    }
    // What is left of the event's time is no line's: it is no piece of its own, and no message.
    if (chunk.alone != 0 && kChunkPs - chunk.alone < duration_ps(kMemoryLine, rate)) return 0;
    // Whole lines, so that no element is cut.
    bytes = std::min(
        {bytes, std::max((kChunkBytes - chunk.occupied) / busiest / kMemoryLine * kMemoryLine, kMemoryLine),
         bytes_within(kChunkPs - chunk.alone, rate)});
    if (dst_.where.target == ORR_TARGET_PEER) {
        if (context_.workers != nullptr) context_.workers->settle(from, bytes);
        bytes = send_piece(from, bytes, chunk.began);
        if (bytes == 0) return 0;
    } else {
        store_piece(from, bytes, true);
    }
    Traffic lines;
    ModelTime by_itself = duration_ps(bytes, link_rate);
    const std::uint64_t walked = ((is_fill() ? 0 : walks(src_va(), bytes, src_.where.huge)) +
                                  walks(dst_va(), bytes, dst_.where.huge)) *
                                 kMemoryLine;
    if (walked != 0) {
        lines.vram += walked;
        count(false, false, walked);
        free_ = std::max(free_, ledger_.need_vram_reads(vram_reads_.reserve(chunk.began, walked), walked, 0));
        by_itself = std::max(by_itself, duration_ps(walked, vram_reads_.bytes_per_second()));
    }
    charge_store(lines, bytes);
    if (reads != nullptr) {
        const std::uint64_t read = src_lines_.add(src_, bytes);
        count(reads == &host_reads_, false, read);
        (reads == &host_reads_ ? lines.from_host : lines.vram) += read;
        const ModelTime through = reads->reserve(chunk.began, read);
        free_ = std::max(free_, reads == &host_reads_ ? ledger_.need(CopyLedger::kLatency, through)
                                                      : ledger_.need_vram_reads(through, 0, read));
        by_itself = std::max(by_itself, duration_ps(read, reads->bytes_per_second()));
    }
    charge(chunk, bytes, lines, by_itself);
    arrived_ = std::max(arrived_, later(free_, latency));
    return bytes;
}

std::uint64_t CopyEngine::send_piece(const std::byte* from, std::uint64_t bytes, ModelTime at) {
    const std::uint32_t node = dst_.where.node;
    PeerPort* const link = way_to(node);
    const LinkSend sent = link == nullptr
                              ? LinkSend{.fault = context_.peers.fault_of(node)}
                              : link->write(node, dst_.where.address + dst_.used, {from, bytes}, at);
    if (sent.fault != ORR_FAULT_NONE) {
        end(ORR_DONE_FAULT, sent.fault, dst_va());
        return 0;
    }
    if (sent.bytes == 0) {
        parked_ = link;
        parked_node_ = node;
        return 0;
    }
    free_ = std::max(free_, ledger_.need(CopyLedger::kLink, sent.sent_ps));
    job_counter_.add(ORR_JOB_LINK_WRITTEN, sent.bytes);
    job_counter_.mark(ORR_JOB_LINK_PORTS, context_.peers.port_of(node));
    return sent.bytes;
}

void CopyEngine::advance(std::uint64_t bytes) {
    column_ += bytes;
    if (src_.left() != 0) src_.used += bytes;
    dst_.used += bytes;
    if (column_ < job_.row_bytes) return;
    column_ = 0;
    if (is_list()) {
        left_ -= job_.row_bytes;
        ++entry_;
        entry_read_ = false;
        src_ = dst_ = {};
        return;
    }
    // The next row is elsewhere, unless rows follow each other without a gap.
    const bool apart = next_row(place_);
    if (apart || job_.src.stride[0] != job_.row_bytes) src_ = {};
    if (apart || job_.dst.stride[0] != job_.row_bytes) dst_ = {};
}

bool CopyEngine::next_row(CopyJob::Place& place) const {
    std::size_t n = 0;
    while (++place[n] == job_.count[n] && n + 1 < place.size())
        place[n++] = 0;
    return n != 0;
}

}  // namespace orrery::emu
