// Counts what a hart's accesses ask of memory that others use too, and what the hart waits for.
//
// In front of such memory stands a cache of tags without data: every access goes to memory at once, as ever,
// and a load whose line is not there costs the hart the latency of that memory. Stores are posted; a line
// that was written is written back once, and of one that was only written nothing is there but the bytes
// written. What streams past the cache, and atomics, say so themselves.
//
// The cache goes by virtual addresses. What passes it is translated: the entries of tables that a walk reads
// are lines of VRAM, one after the other.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/base/tlb_tags.h"
#include "emulator/core/bus.h"

namespace orrery::emu {

class Meter {
  public:
    static constexpr std::uint64_t kLine = 64;

    Meter() = default;
    explicit Meter(const MemoryCosts& costs)
        : costs_(costs),
          most_(limits_of(costs)),
          shift_(64 - std::countr_zero(
                          std::bit_ceil(std::max<std::uint64_t>(costs.l1_bytes / kLine / kWays, 2)))) {
        if (!on()) return;
        tags_.resize(kWays << (64 - shift_));
        bytes_.resize(tags_.size());
        tlb_ = TlbTags(costs.tlb_entries);
    }
    bool on() const { return costs_.l1_bytes != 0; }

    // Nothing is in the cache, and nothing counted. Addresses are those of `space` from now on.
    void start_cold(std::uint32_t space = 0) {
        space_ = space;
        counts_ = {};
        epoch_ += kEpoch;
        if (epoch_ != 0) return;
        // The tags of long ago would be good again.
        std::ranges::fill(tags_, 0);
        epoch_ = kEpoch;
    }
    // What has been counted since the last call of take() has come to a limit.
    bool full() const { return comes_to(limits_of(costs_)); }
    // Or to where the hart is to stop: there, or behind the next byte (see stop_at_next()).
    bool stops() const { return comes_to(most_); }
    // So many more bytes of VRAM in a row come to neither.
    bool has_room(std::uint64_t bytes) const {
        return counts_.vram.read + counts_.vram.written + bytes + TlbTags::kLevels * kLine < most_.vram;
    }
    void stop_at_next() {
        most_ = {.vram = counts_.vram.read + counts_.vram.written + 1,
                 .from_host = counts_.host.read + 1,
                 .to_host = counts_.host.written + 1};
    }
    void stop_at_limits() { most_ = limits_of(costs_); }
    // Since the last call of take().
    const AccessCounts& counts() const { return counts_; }
    void follow(const Invalidations& all) { tlb_.follow(all, space_); }
    void forget_own_names() { tlb_.forget_own_names(space_); }
    // What has been counted since the last call.
    AccessCounts take() { return std::exchange(counts_, {}); }

    // The first load and the first store of each line come by load() and store() once more, although nothing
    // is to be counted.
    void come_by_again() {
        for (std::uint64_t& tag : tags_)
            tag = (tag & ~kWritten) | (tag & kWritten) * kWrittenBefore | kLoadedBefore;
    }

    // For the short way of an access: all of the line is there and was the last of its set to be used. (False
    // also for others that are there; load() and store() know them.)
    bool has(std::uint64_t va) const { return all_there(*set_of(va), key(va)); }
    bool has_written(std::uint64_t va) const { return all_written(*set_of(va), key(va)); }
    // The same of one that was not the last of its set: now it is.
    bool has_behind(std::uint64_t va) { return behind(va, all_there); }
    bool has_written_behind(std::uint64_t va) { return behind(va, all_written); }

    // These give the cycles that the hart waits. The access is inside of one line.
    std::uint64_t load(std::uint64_t va, unsigned size, PagePlace place, bool huge = false) {
        if (!bring(va, size, place)) return 0;
        return waits(latency(place) + walk(va, huge) * costs_.vram_cycles);
    }
    void store(std::uint64_t va, unsigned size, PagePlace place, bool huge = false) {
        if (place == PagePlace::kOwn || has_written(va)) return;
        if (!to_front(va)) {
            insert(va, key(va) | kPartly);
            bytes_[place_of(va)] = 0;
        }
        std::uint64_t& tag = *set_of(va);
        if ((tag & kPartly) != 0) {
            std::uint64_t& there = bytes_[place_of(va)];
            there |= bits(va, size);
            if (there == ~std::uint64_t{0}) tag &= ~kPartly;
        }
        const bool known = (tag & (kWritten | kWrittenBefore)) != 0;
        tag = (tag & ~(kWrittenBefore | kLoadedBefore)) | kWritten;
        if (known) return;
        counts_.of(place).written += kLine;
        walk(va, huge);
    }
    // Done where the memory is.
    std::uint64_t atomic(std::uint64_t va, PagePlace place, bool huge = false) {
        if (place == PagePlace::kOwn) return 0;
        if (to_front(va)) *set_of(va) = 0;
        counts_.of(place).read += kLine / 2;
        counts_.of(place).written += kLine / 2;
        return waits(latency(place) + walk(va, huge) * costs_.vram_cycles);
    }
    // Many bytes in a row, of one page, past the cache: their time is that of the bandwidth.
    void stream(std::uint64_t va, std::uint64_t bytes, PagePlace place, bool write, bool huge = false) {
        if (place == PagePlace::kOwn || bytes == 0) return;
        const std::uint64_t walked = walk(va, huge) * kLine;
        // One for each page, however many of them the host takes at once.
        counts_.tlb.all += (va % kPage + bytes - 1) / kPage;
        MemoryCounts& counts = counts_.of(place);
        (write ? counts.written : counts.read) += bytes;
        if (write) return;
        counts.streamed += bytes;
        counts_.vram.streamed += walked;
    }
    // One of many lines that are asked for together: the wait for it is that of a stream.
    void gather(std::uint64_t va, unsigned size, PagePlace place, bool huge = false) {
        if (!bring(va, size, place)) return;
        counts_.of(place).streamed += kLine;
        counts_.vram.streamed += walk(va, huge) * kLine;
    }

  private:
    struct Limits {
        std::uint64_t vram = 0, from_host = 0, to_host = 0;
    };
    static Limits limits_of(const MemoryCosts& costs) {
        return {costs.most_vram, costs.most_from_host, costs.most_to_host};
    }
    bool comes_to(const Limits& limits) const {
        return counts_.vram.read + counts_.vram.written >= limits.vram ||
               counts_.host.read >= limits.from_host || counts_.host.written >= limits.to_host;
    }

    static constexpr std::uint64_t kPage = 4096;
    // In a tag. kPartly: only the bytes in bytes_ are there. ...Before: before come_by_again().
    static constexpr std::uint64_t kWritten = 1, kWrittenBefore = 2, kPartly = 4, kLoadedBefore = 8;
    static constexpr unsigned kFlagBits = 4;
    static constexpr unsigned kLineShift = 6;
    // So many lines of one place in the cache are there together: a few lines that fall into it by chance, as
    // addresses differ from run to run, do not drive each other out.
    static constexpr std::size_t kWays = 4;
    // Those that are metered differ in these bits, also from the stacks of items, which are above them.
    static constexpr std::uint64_t kAddress = (std::uint64_t{1} << 48) - 1;
    // Behind a line's number and the flags.
    static constexpr std::uint64_t kEpoch = std::uint64_t{1} << (48 - kLineShift + kFlagBits);

    std::uint64_t key(std::uint64_t va) const { return epoch_ | (va & kAddress) >> kLineShift << kFlagBits; }
    static std::uint64_t bits(std::uint64_t va, unsigned size) {
        return ((std::uint64_t{1} << size) - 1) << va % kLine;
    }
    // Arrays a power of two apart are not in the same set.
    std::size_t place_of(std::uint64_t va) const {
        return ((va >> kLineShift) * 0x9e37'79b9'7f4a'7c15 >> shift_) * kWays;
    }
    // kWays tags, the last used first.
    std::uint64_t* set_of(std::uint64_t va) { return &tags_[place_of(va)]; }
    const std::uint64_t* set_of(std::uint64_t va) const { return &tags_[place_of(va)]; }
    static bool all_there(std::uint64_t tag, std::uint64_t key) {
        return (tag ^ key) <= (kWritten | kWrittenBefore);
    }
    static bool all_written(std::uint64_t tag, std::uint64_t key) { return tag == (key | kWritten); }
    // False: nothing of the line is there.
    bool to_front(std::uint64_t va) {
        for (std::size_t way = 0; way < kWays; ++way) {
            if ((set_of(va)[way] ^ key(va)) >> kFlagBits != 0) continue;
            rotate(place_of(va), way);
            return true;
        }
        return false;
    }
    bool behind(std::uint64_t va, bool (*good)(std::uint64_t tag, std::uint64_t key)) {
        const std::size_t place = place_of(va);
        for (std::size_t way = 1; way < kWays; ++way) {
            if (!good(tags_[place + way], key(va))) continue;
            rotate(place, way);
            return true;
        }
        return false;
    }
    // The line in this way of the set at `place` was used last.
    void rotate(std::size_t place, std::size_t way) {
        const std::uint64_t tag = tags_[place + way], there = bytes_[place + way];
        for (; way != 0; --way) {
            tags_[place + way] = tags_[place + way - 1];
            bytes_[place + way] = bytes_[place + way - 1];
        }
        tags_[place] = tag;
        bytes_[place] = there;
    }
    void insert(std::uint64_t va, std::uint64_t tag) {
        std::uint64_t* const set = set_of(va);
        std::uint64_t* const bytes = &bytes_[place_of(va)];
        std::copy_backward(set, set + kWays - 1, set + kWays);
        std::copy_backward(bytes, bytes + kWays - 1, bytes + kWays);
        *set = tag;
    }
    // Whether a load needs the line from memory; then it has it.
    bool bring(std::uint64_t va, unsigned size, PagePlace place) {
        if (place == PagePlace::kOwn || has(va)) return false;
        if (!to_front(va)) {
            insert(va, key(va));
        } else {
            *set_of(va) &= ~kLoadedBefore;
            if ((*set_of(va) & kPartly) == 0 || (bits(va, size) & ~bytes_[place_of(va)]) == 0) return false;
        }
        *set_of(va) &= ~kPartly;
        counts_.of(place).read += kLine;
        return true;
    }
    // Lines of tables that have to be read before the page is known.
    std::uint64_t walk(std::uint64_t va, bool huge) {
        const unsigned lines = tlb_.use(space_, va, huge);
        counts_.vram.read += lines * kLine;
        counts_.tlb.add(lines);
        return lines;
    }
    std::uint64_t waits(std::uint64_t cycles) {
        counts_.waited += cycles;
        return cycles;
    }
    std::uint64_t latency(PagePlace place) const {
        return place == PagePlace::kHost ? costs_.host_cycles : costs_.vram_cycles;
    }

    MemoryCosts costs_;
    Limits most_;
    int shift_ = 0;
    std::uint64_t epoch_ = kEpoch;
    std::vector<std::uint64_t> tags_;
    std::vector<std::uint64_t> bytes_;  // a bit each, of lines that are partly there
    std::uint32_t space_ = 0;
    TlbTags tlb_;
    AccessCounts counts_;
};

}  // namespace orrery::emu
