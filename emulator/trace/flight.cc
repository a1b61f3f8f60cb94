#include "emulator/api/flight.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "emulator/trace/flight.h"
#include "emulator/trace/start.h"

namespace orrery::emu {

namespace {

// A head that is being written is read again.
constexpr int kLooks = 100;

bool read_at(int fd, std::uint64_t offset, void* to, std::size_t bytes) {
    auto* at = static_cast<char*>(to);
    while (bytes != 0) {
        const ssize_t got = ::pread(fd, at, bytes, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        offset += static_cast<std::uint64_t>(got);
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

std::optional<FlightHead> read_head(int fd) {
    FlightHead head;
    if (!read_at(fd, 0, &head, sizeof head) || head.magic != kFlightMagic || head.stride < kFlightSlack ||
        head.stride > kMostFlightStride)
        return std::nullopt;
    return head;
}

// The bytes of the segment `number`; nothing: it is not there, or not any more.
std::vector<std::uint8_t> read_segment(int fd, const FlightHead& head, std::uint64_t number) {
    const std::uint64_t slot = (number - 1) % kFlightSlots;
    const std::uint64_t base = kFlightHead + slot * head.stride;
    orr_otrace_header begin{};
    for (int look = 0;; ++look) {
        if (look == kLooks || !read_at(fd, base, &begin, sizeof begin)) return {};
        if (begin.committed == ~begin.not_committed) break;
    }
    if (begin.magic != ORR_OTRACE_MAGIC || begin.header_bytes < sizeof begin ||
        begin.committed < begin.header_bytes || begin.committed > head.stride)
        return {};
    std::vector<std::uint8_t> bytes(begin.committed);
    if (!read_at(fd, base, bytes.data(), bytes.size())) return {};
    // It may have gone meanwhile.
    const auto after = read_head(fd);
    if (!after || after->number[slot] != number) return {};
    std::memcpy(bytes.data(), &begin, sizeof begin);
    return bytes;
}

struct Block {
    orr_otrace_block header{};
    std::span<const std::uint8_t> payload;
};

// The blocks of a segment, up to one that is not what a recorder wrote.
std::vector<Block> blocks_of(std::span<const std::uint8_t> segment) {
    orr_otrace_header begin{};
    std::memcpy(&begin, segment.data(), sizeof begin);
    std::vector<Block> blocks;
    std::vector<std::uint8_t> bytes;
    for (std::size_t at = begin.header_bytes; at < segment.size();) {
        Block block;
        if (segment.size() - at < sizeof block.header) break;
        std::memcpy(&block.header, segment.data() + at, sizeof block.header);
        const std::size_t size = sizeof block.header + std::size_t{block.header.stored_bytes};
        if (block.header.magic != ORR_OTRACE_BLOCK_MAGIC || size > segment.size() - at) break;
        const auto whole = segment.subspan(at, size);
        bytes.assign(whole.begin(), whole.end());
        std::memset(bytes.data() + offsetof(orr_otrace_block, checksum), 0, sizeof block.header.checksum);
        if (XXH3_64bits(bytes.data(), size) != block.header.checksum) break;
        block.payload = whole.subspan(sizeof block.header);
        at += size;
        blocks.push_back(block);
    }
    return blocks;
}

// Puts segments behind each other.
class Joiner {
  public:
    // false: it does not go on where the last one ended.
    bool add(std::span<const std::uint8_t> segment) {
        const std::vector<Block> blocks = blocks_of(segment);
        std::span<const Block> rest = blocks;
        if (out_.empty()) {
            orr_otrace_header begin{};
            std::memcpy(&begin, segment.data(), sizeof begin);
            out_.assign(segment.begin(), segment.begin() + begin.header_bytes);
            time_ = begin.start_ps;
        } else {
            // Where the core is by then is known.
            const auto resume = std::ranges::find_if(
                rest, [](const Block& each) { return each.header.kind == ORR_OTRACE_RESUME; });
            if (resume != rest.end())
                rest = rest.subspan(static_cast<std::size_t>(resume - rest.begin()) + 1);
        }
        if (rest.empty()) return true;
        if (rest.front().header.first_ps != time_) return false;
        const std::uint64_t by = step_ - rest.front().header.first_step;
        for (const Block& each : rest)
            put(each, by);
        return true;
    }
    std::vector<std::uint8_t> take() {
        const std::uint64_t commit[2] = {out_.size(), ~std::uint64_t{out_.size()}};
        std::memcpy(out_.data() + offsetof(orr_otrace_header, committed), commit, sizeof commit);
        return std::move(out_);
    }

  private:
    void put(const Block& from, std::uint64_t by) {
        orr_otrace_block block = from.header;
        block.sequence = sequence_++;
        block.first_step += by;
        block.last_step += by;
        step_ = block.last_step;
        time_ = block.last_ps;
        block.checksum = 0;
        const std::size_t at = out_.size();
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&block);
        out_.insert(out_.end(), bytes, bytes + sizeof block);
        out_.insert(out_.end(), from.payload.begin(), from.payload.end());
        block.checksum = XXH3_64bits(out_.data() + at, out_.size() - at);
        std::memcpy(out_.data() + at, &block, sizeof block);
    }

    std::vector<std::uint8_t> out_;
    std::uint64_t sequence_ = 0, step_ = 0, time_ = 0;
};

}  // namespace

std::uint64_t flight_segment(std::uint64_t mib) {
    constexpr std::uint64_t kBegin = 1 << 20;
    return mib != 0 ? (std::max(mib, kLeastFlightMib) << 20) / kFlightSlots - kBegin : 0;
}

bool is_flight_memory(int fd) {
    return read_head(fd).has_value();
}

std::expected<std::vector<std::uint8_t>, std::string> flight_recording(int fd) {
    const auto head = read_head(fd);
    if (!head) return std::unexpected("this is no flight recorder's memory");
    std::uint64_t last = std::ranges::max(head->number);
    std::vector<std::vector<std::uint8_t>> segments;  // the newest first
    for (std::uint64_t number = last; number != 0 && last - number < kFlightSlots; --number) {
        auto bytes = read_segment(fd, *head, number);
        if (bytes.empty()) break;
        segments.push_back(std::move(bytes));
    }
    if (segments.empty()) return std::unexpected("the flight recorder has not kept anything yet");
    std::ranges::reverse(segments);
    // Whoever wrote it has died, maybe of that: what follows a joint that does not fit is what is wanted.
    for (std::size_t first = 0, at = 0; first < segments.size(); first = std::max(at, first + 1)) {
        Joiner joiner;
        for (at = first; at < segments.size() && joiner.add(segments[at]);)
            ++at;
        if (at == segments.size()) return joiner.take();
    }
    return std::unexpected("the flight recorder's last segment is not what a recorder writes");
}

}  // namespace orrery::emu
