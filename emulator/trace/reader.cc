#include "emulator/api/trace_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>
#include <zstd.h>

#include <orrery/hw/boot.h>
#include <orrery/hw/mmu.h>

#include "emulator/api/flight.h"
#include "emulator/base/unique_fd.h"
#include "emulator/trace/start.h"

namespace orrery::emu {

namespace {

constexpr const char* kAgain = "the file is damaged: record again, or take another copy";

// Of a core that a recording finds running: centuries.
constexpr std::uint64_t kMostResumedSteps = std::uint64_t{1} << 62;
constexpr std::size_t kStartBytes = sizeof(orr_otrace_start) + ORR_ROM_SIZE;

// A start of this size holds an SRAM of ours, or a smaller one of an older card's.
bool fits_sram(std::size_t start_bytes) {
    const std::size_t sram = start_bytes - kStartBytes;
    return start_bytes > kStartBytes && sram <= ORR_SRAM_SIZE && sram % ORR_PAGE_SIZE == 0;
}
std::size_t start_bytes(const orr_otrace_block& block) {
    const std::size_t before = resume_bytes(block.kind);
    return block.raw_bytes > before ? block.raw_bytes - before : 0;
}

template <class T>
T read_as(const std::uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <std::size_t N>
std::string text_of(const std::uint8_t (&bytes)[N]) {
    std::string text(reinterpret_cast<const char*>(bytes), N);
    text.resize(std::min(text.find('\0'), N));
    // It goes to terminals and to JSON.
    for (char& c : text) {
        if (c < ' ' || c > '~') c = '?';
    }
    return text;
}

template <std::size_t N>
bool all_zero(const std::uint64_t (&words)[N]) {
    return std::ranges::all_of(words, [](std::uint64_t word) { return word == 0; });
}

const char* kind_name(std::uint32_t kind) {
    switch (kind) {
        case ORR_OTRACE_IMAGE:
            return "image";
        case ORR_OTRACE_START:
            return "start";
        case ORR_OTRACE_LOG:
            return "log";
        case ORR_OTRACE_END:
            return "end";
        case ORR_OTRACE_SYMBOLS:
            return "symbols";
        case ORR_OTRACE_PORT:
            return "port";
        case ORR_OTRACE_KEYFRAME:
            return "keyframe";
        case ORR_OTRACE_RESUME:
            return "resume";
        default:
            return nullptr;
    }
}

}  // namespace

std::string TraceReader::error_at(std::uint64_t offset, const std::string& reason) const {
    return fmt::format("{}: offset {:#x}: {}", name_, offset, reason);
}

std::expected<TraceReader, std::string> TraceReader::open(const std::filesystem::path& file) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) {
        return std::unexpected(
            fmt::format("{}: {}", file.string(), error ? error.message() : "this is no regular file"));
    }
    if (const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC)); is_flight_memory(fd.get())) {
        auto kept = flight_recording(fd.get());
        if (!kept) return std::unexpected(fmt::format("{}: {}", file.string(), kept.error()));
        return parse(*std::move(kept), file.string());
    }
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    const auto size = static_cast<std::int64_t>(in.tellg());
    if (!in || size < 0) {
        return std::unexpected(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
    }
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
    in.seekg(0);
    in.read(reinterpret_cast<char*>(bytes.data()), size);
    if (in.gcount() != size) {
        return std::unexpected(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(errno)));
    }
    return parse(std::move(bytes), file.string());
}

std::expected<TraceReader, std::string> TraceReader::parse(std::vector<std::uint8_t> bytes,
                                                           std::string name) {
    TraceReader reader;
    reader.name_ = std::move(name);
    reader.bytes_ = std::move(bytes);
    if (const auto good = reader.parse_header(); !good) return std::unexpected(good.error());
    if (const auto good = reader.parse_blocks(); !good) return std::unexpected(good.error());
    return reader;
}

std::expected<void, std::string> TraceReader::parse_header() {
    const auto refuse = [&](std::uint64_t offset, const std::string& reason) {
        return std::unexpected(error_at(offset, reason));
    };
    const std::uint64_t size = bytes_.size();
    if (size < sizeof(orr_otrace_header)) {
        return refuse(size, fmt::format("the file ends inside its header of {} bytes; {}",
                                        sizeof(orr_otrace_header), kAgain));
    }
    auto header = read_as<orr_otrace_header>(bytes_.data());
    if (header.magic != ORR_OTRACE_MAGIC)
        return refuse(0, "this is no recording: it does not begin with ORRTRACE");
    if (header.version >> 16 != ORR_OTRACE_MAJOR) {
        return refuse(8, fmt::format("format version {}.{}; this program reads {}.x", header.version >> 16,
                                     header.version & 0xffff, ORR_OTRACE_MAJOR));
    }
    if (header.header_bytes % 8 != 0 || header.header_bytes < sizeof header ||
        header.sku_bytes > ORR_OTRACE_MAX_SKU || header.plan_bytes > ORR_OTRACE_MAX_PLAN ||
        header.header_bytes - sizeof header < header.sku_bytes + header.plan_bytes ||
        header.header_bytes - sizeof header >= header.sku_bytes + header.plan_bytes + 8u) {
        return refuse(12, fmt::format("the header's sizes make no sense; {}", kAgain));
    }
    if (size < header.header_bytes) {
        return refuse(size, fmt::format("the file ends inside its header of {} bytes; {}",
                                        header.header_bytes, kAgain));
    }
    const std::uint64_t checksum = std::exchange(header.checksum, 0);
    const std::uint64_t committed = std::exchange(header.committed, 0);
    const std::uint64_t not_committed = std::exchange(header.not_committed, 0);
    std::vector<std::uint8_t> plain(bytes_.begin(), bytes_.begin() + header.header_bytes);
    std::memcpy(plain.data(), &header, sizeof header);
    if (XXH3_64bits(plain.data(), plain.size()) != checksum) {
        return refuse(0, fmt::format("the header's checksum does not fit; {}", kAgain));
    }
    if (!all_zero(header.reserved) || header.reserved0 != 0 || header.cycle_ps == 0) {
        return refuse(0, "the header's reserved fields are not zero, or its cycle time is");
    }
    if (committed != ~not_committed || committed < header.header_bytes) {
        return refuse(offsetof(orr_otrace_header, committed),
                      fmt::format("the length of the recording is damaged; {}", kAgain));
    }
    if (size < committed) {
        return refuse(size, fmt::format("the file is cut: it ends here, and {} of {} bytes are missing; {}",
                                        committed - size, committed, kAgain));
    }
    // Behind it there may be what the recorder was writing when it died: one block at most.
    if (size - committed > sizeof(orr_otrace_block) + ORR_OTRACE_MAX_BLOCK) {
        return refuse(committed, "there are more bytes behind the recording than a dying recorder leaves");
    }
    committed_ = committed;
    info_.program = text_of(header.program);
    info_.sku_name = text_of(header.sku_name);
    info_.sku_text.assign(reinterpret_cast<const char*>(bytes_.data() + sizeof header), header.sku_bytes);
    info_.plan_text.assign(reinterpret_cast<const char*>(bytes_.data() + sizeof header + header.sku_bytes),
                           header.plan_bytes);
    info_.format_version = header.version;
    info_.hw_version = header.hw_version;
    info_.uid = header.uid;
    info_.seed = header.seed;
    info_.cycle_ps = header.cycle_ps;
    info_.start_ps = header.start_ps;
    info_.skipped_ps = header.skipped_ps;
    info_.vram_bytes = header.vram_bytes;
    info_.file_bytes = size;
    last_ps_ = header.start_ps;
    blocks_.clear();
    first_block_ = header.header_bytes;
    return {};
}

// What one block's header says, against itself and what came before.
std::string TraceReader::check_block(const orr_otrace_block& block, std::uint64_t sequence) const {
    if (block.magic != ORR_OTRACE_BLOCK_MAGIC) return "no block begins here";
    if (kind_name(block.kind) == nullptr && info_.format_version <= ORR_OTRACE_VERSION)
        return fmt::format("a block of kind {}, which is unknown", block.kind);
    if (block.sequence != sequence) {
        return fmt::format("block {} stands where block {} belongs", block.sequence, sequence);
    }
    if (block.reserved != 0 || block.codec > ORR_OTRACE_ZSTD || block.raw_bytes > ORR_OTRACE_MAX_BLOCK ||
        block.stored_bytes > ORR_OTRACE_MAX_BLOCK ||
        (block.codec == ORR_OTRACE_RAW && block.raw_bytes != block.stored_bytes)) {
        return "the block's header makes no sense";
    }
    if (block.first_step != last_step_ || block.first_ps != last_ps_ || block.last_ps < block.first_ps) {
        return "the block does not follow the one before it in steps and time";
    }
    const std::uint64_t steps = block.last_step - block.first_step;
    switch (block.kind) {
        case ORR_OTRACE_RESUME:
            if (!blocks_.empty() && (blocks_.size() > 1 || blocks_.back().header.kind != ORR_OTRACE_IMAGE))
                return "a core goes on where the recording does not begin";
            [[fallthrough]];
        case ORR_OTRACE_START:
            if (steps != 1) return "a start takes one step, and this one does not";
            if (!fits_sram(start_bytes(block))) return "a start of another size than this card's memory";
            if (start_bytes_ != 0 && start_bytes(block) != start_bytes_)
                return "a start of another size than the first one's memory";
            break;
        case ORR_OTRACE_LOG:
            if (steps > kMaxSteps) return "a log of more steps than a recorder puts into a block";
            break;
        default:
            if (steps != 0 || block.last_ps != block.first_ps)
                return "a block that takes steps or time and must not";
            break;
    }
    if (block.kind == ORR_OTRACE_END && block.raw_bytes != 0) return "an end mark with a payload";
    return "";
}

// What stands beside a log, at the right place?
std::string TraceReader::check_beside(const orr_otrace_block& block) const {
    const bool port_waits = !ports_.empty() && ports_.back().log == blocks_.size();
    if (port_waits && block.kind != ORR_OTRACE_LOG) return "a port block without its log";
    if (block.kind != ORR_OTRACE_KEYFRAME) return "";
    if (blocks_.empty() || blocks_.back().header.kind != ORR_OTRACE_LOG ||
        (!keyframes_.empty() && keyframes_.back().log + 1 == blocks_.size()))
        return "a keyframe that does not follow a log";
    if (block.state_hash != blocks_.back().header.state_hash)
        return "a keyframe of another state than the log before it ends with";
    return "";
}

std::expected<void, std::string> TraceReader::parse_blocks() {
    std::uint64_t offset = first_block_;
    std::uint32_t image = 0;
    bool ended = false;
    // What is unpacked is kept.
    std::uint64_t kept = 0;
    const auto fits = [&kept](const TraceBlock& block) {
        kept += block.header.raw_bytes;
        return kept <= kMaxImageBytes;
    };
    constexpr const char* kTooMuch = "more firmware images than any recording has";
    for (std::uint64_t sequence = 0; offset < committed_; ++sequence) {
        const auto refuse = [&](const std::string& reason) {
            return std::unexpected(error_at(offset, fmt::format("{}; {}", reason, kAgain)));
        };
        if (ended) return refuse("there is more behind the end mark");
        if (committed_ - offset < sizeof(orr_otrace_block))
            return refuse("the recording ends inside a block");
        TraceBlock block;
        block.offset = offset;
        block.header = read_as<orr_otrace_block>(bytes_.data() + offset);
        if (const std::string reason = check_block(block.header, sequence); !reason.empty())
            return refuse(reason);
        if (const std::string reason = check_beside(block.header); !reason.empty()) return refuse(reason);
        const std::uint64_t size = sizeof(orr_otrace_block) + block.header.stored_bytes;
        if (committed_ - offset < size) return refuse("the recording ends inside a block");
        if (checksum_of(block) != block.header.checksum) {
            return refuse(
                fmt::format("the checksum of this {} block does not fit",
                            kind_name(block.header.kind) != nullptr ? kind_name(block.header.kind) : "new"));
        }
        if (block.header.kind == ORR_OTRACE_END) {
            ended = true;
        } else if (block.header.kind == ORR_OTRACE_PORT) {
            ports_.push_back({block, blocks_.size()});
        } else if (block.header.kind == ORR_OTRACE_KEYFRAME) {
            keyframes_.push_back({block, blocks_.size() - 1});
        } else if (block.header.kind == ORR_OTRACE_SYMBOLS) {
            if (images_.empty()) return refuse("symbols without an image before them");
            if (!fits(block)) return refuse(kTooMuch);
            auto bytes = payload(block);
            if (!bytes) return std::unexpected(bytes.error());
            images_.back().symbols = *std::move(bytes);
        } else if (kind_name(block.header.kind) != nullptr) {
            if (block.header.kind == ORR_OTRACE_IMAGE) {
                if (!fits(block)) return refuse(kTooMuch);
                if (const auto good = parse_image(block); !good) return std::unexpected(good.error());
            } else if (begins_core(block.header.kind)) {
                const auto found = image_of(block);
                if (!found) return std::unexpected(found.error());
                image = *found;
                start_bytes_ = static_cast<std::uint32_t>(start_bytes(block.header));
                info_.resumed = info_.resumed || block.header.kind == ORR_OTRACE_RESUME;
            }
            block.image = image;
            blocks_.push_back(block);
            last_step_ = block.header.last_step;
            last_ps_ = block.header.last_ps;
        }
        offset += size;
    }
    if (ended && committed_ != bytes_.size()) {
        return std::unexpected(error_at(committed_, "there are bytes behind the end mark"));
    }
    info_.crashed = !ended;
    // Its log was not written any more.
    if (!ports_.empty() && ports_.back().log == blocks_.size()) ports_.pop_back();
    return {};
}

std::uint64_t TraceReader::checksum_of(const TraceBlock& block) const {
    orr_otrace_block plain = block.header;
    plain.checksum = 0;
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
    XXH3_64bits_reset(state.get());
    XXH3_64bits_update(state.get(), &plain, sizeof plain);
    XXH3_64bits_update(state.get(), bytes_.data() + block.offset + sizeof plain, block.header.stored_bytes);
    return XXH3_64bits_digest(state.get());
}

std::expected<std::span<const std::uint8_t>, std::string> TraceReader::payload(
    const TraceBlock& block, std::vector<std::uint8_t>& room) const {
    const std::uint8_t* const stored = bytes_.data() + block.offset + sizeof(orr_otrace_block);
    if (block.header.codec == ORR_OTRACE_RAW) return std::span(stored, block.header.stored_bytes);
    room.resize(block.header.raw_bytes);
    const std::size_t size = ZSTD_decompress(room.data(), room.size(), stored, block.header.stored_bytes);
    if (ZSTD_isError(size) != 0 || size != room.size()) {
        return std::unexpected(error_at(
            block.offset + sizeof(orr_otrace_block),
            fmt::format("the payload cannot be unpacked: {}",
                        ZSTD_isError(size) != 0 ? ZSTD_getErrorName(size) : "it is shorter than it says")));
    }
    return room;
}

std::expected<std::vector<std::uint8_t>, std::string> TraceReader::payload(const TraceBlock& block) const {
    std::vector<std::uint8_t> room;
    const auto found = payload(block, room);
    if (!found) return std::unexpected(found.error());
    if (found->data() == room.data()) return room;
    return std::vector<std::uint8_t>(found->begin(), found->end());
}

std::expected<void, std::string> TraceReader::parse_image(const TraceBlock& block) {
    auto bytes = payload(block);
    if (!bytes) return std::unexpected(bytes.error());
    TraceImage image;
    image.bytes = *std::move(bytes);
    if (image.bytes.size() >= sizeof(orr_image_header)) {
        const auto header = read_as<orr_image_header>(image.bytes.data());
        if (header.magic == ORR_IMAGE_MAGIC && header.image_size >= sizeof header &&
            header.image_size <= image.bytes.size()) {
            image.elf.assign(image.bytes.begin() + sizeof header, image.bytes.begin() + header.image_size);
            image.build_id = text_of(header.build_id);
            for (const std::uint8_t byte : header.sha256)
                image.sha256 += fmt::format("{:02x}", byte);
        }
    }
    images_.push_back(std::move(image));
    return {};
}

// The image that a start runs: the last one recorded, if its hash is the one that the start names.
std::expected<std::uint32_t, std::string> TraceReader::image_of(const TraceBlock& block) const {
    std::vector<std::uint8_t> room;
    const auto bytes = payload(block, room);
    if (!bytes) return std::unexpected(bytes.error());
    const std::size_t before = resume_bytes(block.header.kind);
    if (before != 0) {
        const auto resume = read_as<orr_otrace_resume>(bytes->data());
        if (resume.rest_ps >= info_.cycle_ps || resume.port_words > ORR_OTRACE_PORT_WORDS(~0ull) ||
            resume.reserved != 0 || resume.state.steps >= kMostResumedSteps) {
            return std::unexpected(error_at(block.offset + sizeof(orr_otrace_block),
                                            "a state to go on from that no core can be in"));
        }
    }
    const auto start = read_as<orr_otrace_start>(bytes->data() + before);
    if (start.rom_bytes != ORR_ROM_SIZE || start.sram_bytes != bytes->size() - before - kStartBytes ||
        start.reserved != 0 || start.warm > 1) {
        return std::unexpected(error_at(block.offset + sizeof(orr_otrace_block),
                                        "a start that does not fit this card's memory"));
    }
    std::string sha256;
    bool known = false;
    for (const std::uint8_t byte : start.sha256) {
        sha256 += fmt::format("{:02x}", byte);
        known = known || byte != 0;
    }
    if (!known) return 0;
    if (images_.empty() || images_.back().sha256 != sha256) {
        return std::unexpected(error_at(block.offset + sizeof(orr_otrace_block),
                                        "the core starts an image that is not in the recording"));
    }
    return static_cast<std::uint32_t>(images_.size());
}

}  // namespace orrery::emu
