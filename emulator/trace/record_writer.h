// Puts the blocks of a recording into its file, on a thread of its own: packing and writing take as long as
// they take, and the card's thread only hands over.
//
// What waits to be written is bounded. A recording must be complete, so nothing is dropped: when room() says
// no, who records stops recording, and with that what there would be to record, until there is room again.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <orrery/hw/trace.h>

#include "emulator/base/unique_fd.h"

namespace orrery::emu {

class RecordWriter {
  public:
    // As write(2); tests give one that is slow.
    using Write = std::function<ssize_t(int fd, const void* bytes, std::size_t count)>;

    // `committed`: bytes of the file so far, the header's. `file` is for messages. With `flight_stride` it is
    // a flight recorder's memory (flight.h), with slots of so many bytes.
    RecordWriter(std::filesystem::path file, UniqueFd fd, std::uint64_t committed, Write write,
                 std::uint64_t flight_stride = 0);
    // Writes what waits.
    ~RecordWriter();
    RecordWriter(const RecordWriter&) = delete;
    RecordWriter& operator=(const RecordWriter&) = delete;

    // --- the recording thread ---
    // Never waits; also without room, for what cannot be put off. After a failure the block is dropped.
    void put(const orr_otrace_block& block, std::vector<std::uint8_t> payload) {
        const std::size_t bytes = payload.size();
        put(block, std::move(payload), bytes);
    }
    // Of which the first `bytes` count: a buffer in its whole size comes back as a spare one that need not be
    // made longer, and cleared, again. If they are few, they wait as a copy: what waits is memory, whatever
    // of it is used.
    void put(const orr_otrace_block& block, std::vector<std::uint8_t> payload, std::size_t bytes);
    // Of a flight recorder: what comes belongs to a new segment, which begins with this header.
    void put_segment(std::vector<std::uint8_t> header, std::uint64_t begin_ps);
    // How much of the segment is full, beside what it begins with (up to its first START or RESUME), once all
    // of those that were begun are under way: else 0.
    std::uint64_t segment_bytes() const {
        return begun_.load(std::memory_order_acquire) == segments_
                   ? segment_bytes_.load(std::memory_order_relaxed)
                   : 0;
    }
    // A buffer in its whole size, of an earlier block, or an empty one.
    std::vector<std::uint8_t> spare();
    bool room() const { return waiting_bytes_.load(std::memory_order_acquire) < kMostWaiting; }
    // Called on the writer's thread when room() is true again.
    void on_room(std::function<void()> hook);
    // Wait for the file.
    void wait_for_room();
    void drain();

    // --- any thread ---
    bool failed() const { return failed_.load(std::memory_order_acquire); }
    // Empty: all is well. It says what happened, and up to where the recording is good.
    std::string error() const;
    void fail(const std::string& what, int error, std::uint64_t good_until);

    static constexpr std::size_t kMostWaiting = 8 << 20;
    static constexpr std::size_t kSpares = 6;

  private:
    struct Job {
        orr_otrace_block block;
        std::vector<std::uint8_t> buffer;
        std::size_t bytes;
        std::span<const std::uint8_t> payload() const { return std::span(buffer).first(bytes); }
        std::size_t memory() const { return sizeof(Job) + buffer.capacity(); }
        bool whole() const { return buffer.size() > bytes; }
    };
    void keep(std::vector<std::uint8_t> buffer) {
        if (spares_.size() < kSpares) spares_.push_back(std::move(buffer));
    }
    void run();
    void write(Job& job);
    void begin_segment(const Job& job);

    const std::filesystem::path file_;
    UniqueFd fd_;
    const Write write_;
    const std::uint64_t stride_;
    std::uint64_t segments_ = 0;           // of the recording thread
    std::atomic<std::uint64_t> begun_{0};  // of them, by the writer's thread
    std::atomic<std::uint64_t> segment_bytes_{0};
    std::atomic<std::size_t> waiting_bytes_{0};
    std::atomic<bool> failed_{false};

    // Of the writer's thread.
    std::uint64_t base_ = 0;  // of the recording in its file
    std::uint64_t committed_;
    std::uint64_t sequence_ = 0;
    bool beginning_ = false;         // the segment has no START or RESUME yet
    unsigned unpacked_ = 0;          // blocks that are not to be packed
    std::vector<std::uint8_t> out_;  // a block as it is written

    mutable std::mutex mutex_;
    std::condition_variable more_, less_;
    std::deque<Job> jobs_;
    std::vector<std::vector<std::uint8_t>> spares_;
    bool busy_ = false;
    bool stopping_ = false;
    std::string error_;
    std::function<void()> on_room_;
    std::thread thread_;
};

}  // namespace orrery::emu
