#include "emulator/trace/record_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>
#include <zstd.h>

#include "emulator/trace/flight.h"

namespace orrery::emu {

namespace {

// Of what is written while the core runs: higher levels cost more time than they save bytes.
constexpr int kLevel = -5;
// Of what is written once a start, mostly the same in memory and in the image.
constexpr int kStartLevel = 9;
// Not worth unpacking for less.
constexpr std::size_t kMinSaved = 64;
// After a full block that packing made not even this much smaller (in percent), so many are not packed.
constexpr std::size_t kGoodPercent = 60;
constexpr std::size_t kFullBlock = 192 << 10;
constexpr unsigned kUnpacked = 15;
// Of a buffer: a copy costs less than to go without the buffer until it is written.
constexpr std::size_t kFew = 4;

// In place of a block's kind: the payload is a segment's header.
constexpr std::uint32_t kSegment = 0;

bool is_of_start(std::uint32_t kind) {
    return kind == ORR_OTRACE_IMAGE || kind == ORR_OTRACE_SYMBOLS || kind == ORR_OTRACE_START ||
           kind == ORR_OTRACE_RESUME;
}

}  // namespace

RecordWriter::RecordWriter(std::filesystem::path file, UniqueFd fd, std::uint64_t committed, Write write,
                           std::uint64_t flight_stride)
    : file_(std::move(file)),
      fd_(std::move(fd)),
      write_(write ? std::move(write) : Write(::write)),
      stride_(flight_stride),
      committed_(committed),
      thread_([this] { run(); }) {}

RecordWriter::~RecordWriter() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    more_.notify_all();
    thread_.join();
}

std::string RecordWriter::error() const {
    const std::lock_guard lock(mutex_);
    return error_;
}

void RecordWriter::fail(const std::string& what, int error, std::uint64_t good_until) {
    const std::lock_guard lock(mutex_);
    if (!error_.empty()) return;
    error_ = fmt::format("recording to {} stopped: {}: {}; it is good up to model time {} ps", file_.string(),
                         what, std::strerror(error), good_until);
    failed_.store(true, std::memory_order_release);
}

void RecordWriter::put(const orr_otrace_block& block, std::vector<std::uint8_t> payload, std::size_t bytes) {
    if (failed()) return;
    Job job{block, std::move(payload), bytes};
    std::vector<std::uint8_t> spare;
    if (bytes <= job.buffer.size() / kFew) {
        const auto used = job.payload();
        spare = std::exchange(job.buffer, {used.begin(), used.end()});
    }
    {
        const std::lock_guard lock(mutex_);
        if (!spare.empty()) keep(std::move(spare));
        waiting_bytes_.fetch_add(job.memory(), std::memory_order_acq_rel);
        jobs_.push_back(std::move(job));
    }
    more_.notify_one();
}

void RecordWriter::put_segment(std::vector<std::uint8_t> header, std::uint64_t begin_ps) {
    ++segments_;
    orr_otrace_block block{};
    block.kind = kSegment;
    block.first_ps = begin_ps;
    put(block, std::move(header));
}

std::vector<std::uint8_t> RecordWriter::spare() {
    const std::lock_guard lock(mutex_);
    if (spares_.empty()) return {};
    std::vector<std::uint8_t> spare = std::move(spares_.back());
    spares_.pop_back();
    return spare;
}

void RecordWriter::on_room(std::function<void()> hook) {
    const std::lock_guard lock(mutex_);
    on_room_ = std::move(hook);
}

void RecordWriter::wait_for_room() {
    std::unique_lock lock(mutex_);
    less_.wait(lock, [this] { return room() || failed(); });
}

void RecordWriter::drain() {
    std::unique_lock lock(mutex_);
    less_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void RecordWriter::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        more_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (jobs_.empty()) return;
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        busy_ = true;
        lock.unlock();
        if (!failed()) write(job);
        const std::size_t bytes = job.memory();
        const bool was_full = !room();
        waiting_bytes_.fetch_sub(bytes, std::memory_order_acq_rel);
        lock.lock();
        if (job.whole()) keep(std::move(job.buffer));
        busy_ = false;
        less_.notify_all();
        if (was_full && room() && on_room_) on_room_();
    }
}

// The slot counts for nothing until its header is there.
void RecordWriter::begin_segment(const Job& job) {
    const std::uint64_t number = begun_.load(std::memory_order_relaxed) + 1;
    const std::uint64_t slot = (number - 1) % kFlightSlots;
    const auto at = static_cast<off_t>(offsetof(FlightHead, number) + slot * sizeof number);
    const std::uint64_t none = 0;
    errno = ENOSPC;  // what a short write means
    base_ = kFlightHead + slot * stride_;
    committed_ = job.bytes;
    sequence_ = 0;
    unpacked_ = 0;
    beginning_ = true;
    const bool good = ::pwrite(fd_.get(), &none, sizeof none, at) == sizeof none &&
                      ::pwrite(fd_.get(), job.buffer.data(), job.bytes, static_cast<off_t>(base_)) ==
                          static_cast<ssize_t>(job.bytes) &&
                      ::pwrite(fd_.get(), &number, sizeof number, at) == sizeof number &&
                      ::lseek(fd_.get(), static_cast<off_t>(base_ + committed_), SEEK_SET) >= 0;
    if (!good) return fail("a segment could not be begun", errno, job.block.first_ps);
    segment_bytes_.store(0, std::memory_order_relaxed);
    begun_.store(number, std::memory_order_release);
}

void RecordWriter::write(Job& job) {
    orr_otrace_block& block = job.block;
    if (block.kind == kSegment) return begin_segment(job);
    const std::span<const std::uint8_t> payload = job.payload();
    const std::size_t bound = ZSTD_compressBound(payload.size());
    out_.resize(sizeof block + std::max(bound, payload.size()));
    std::size_t stored = payload.size();
    block.codec = ORR_OTRACE_RAW;
    const bool log = block.kind == ORR_OTRACE_LOG;
    if (log && unpacked_ != 0) {
        --unpacked_;
    } else if (payload.size() > kMinSaved && block.kind != ORR_OTRACE_SYMBOLS) {
        const std::size_t packed =
            ZSTD_compress(out_.data() + sizeof block, bound, payload.data(), payload.size(),
                          is_of_start(block.kind) && stride_ == 0 ? kStartLevel : kLevel);
        if (ZSTD_isError(packed) == 0 && packed + kMinSaved <= payload.size()) {
            block.codec = ORR_OTRACE_ZSTD;
            stored = packed;
        }
        if (log && stored > payload.size() / 100 * kGoodPercent && payload.size() >= kFullBlock)
            unpacked_ = kUnpacked;
    }
    if (block.codec == ORR_OTRACE_RAW && !payload.empty())
        std::memcpy(out_.data() + sizeof block, payload.data(), payload.size());
    block.magic = ORR_OTRACE_BLOCK_MAGIC;
    block.sequence = sequence_++;
    block.stored_bytes = static_cast<std::uint32_t>(stored);
    block.raw_bytes = static_cast<std::uint32_t>(payload.size());
    block.checksum = 0;
    std::memcpy(out_.data(), &block, sizeof block);
    const std::size_t size = sizeof block + stored;
    block.checksum = XXH3_64bits(out_.data(), size);
    std::memcpy(out_.data(), &block, sizeof block);

    errno = ENOSPC;  // what a short write means
    if (stride_ != 0 && size > stride_ - committed_)
        return fail("more came at once than a segment holds", errno, block.first_ps);
    const ssize_t written = write_(fd_.get(), out_.data(), size);
    if (written != static_cast<ssize_t>(size))
        return fail("a block could not be written", errno, block.first_ps);
    committed_ += size;
    const std::uint64_t commit[2] = {committed_, ~committed_};
    if (::pwrite(fd_.get(), commit, sizeof commit,
                 static_cast<off_t>(base_ + offsetof(orr_otrace_header, committed))) !=
        static_cast<ssize_t>(sizeof commit))
        fail("the header could not be written", errno, block.first_ps);
    // Of starts it begins with one only.
    const bool of_begin = beginning_ && is_of_start(block.kind);
    if (block.kind == ORR_OTRACE_START || block.kind == ORR_OTRACE_RESUME) beginning_ = false;
    if (!of_begin) segment_bytes_.fetch_add(size, std::memory_order_relaxed);
}

}  // namespace orrery::emu
