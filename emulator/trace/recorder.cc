#include "emulator/trace/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include <orrery/hw/boot.h>

#include "emulator/api/flight.h"

namespace orrery::emu {

namespace {

std::uint64_t zigzag(std::uint64_t difference) {
    return difference << 1 ^ (0 - (difference >> 63));
}

std::size_t header_bytes(std::size_t text_bytes) {
    return (sizeof(orr_otrace_header) + text_bytes + 7) / 8 * 8;
}

template <std::size_t N>
void copy_text(std::uint8_t (&to)[N], const std::string& text) {
    std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}

// What an earlier card's flight recorder has left in a file is why somebody wants one. A link is no name of
// its own: whoever made the memory behind it (a memfd, in /proc) has it.
bool keep_last(const std::filesystem::path& file) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(file, error))) return true;
    const UniqueFd old(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!old || !is_flight_memory(old.get())) return true;
    std::filesystem::path last = file;
    last += ".last";
    return ::rename(file.c_str(), last.c_str()) == 0;
}

}  // namespace

orr_otrace_state trace_state(const HartState& state) {
    orr_otrace_state out{};
    std::copy_n(state.x, 32, out.x);
    out.pc = state.pc;
    out.steps = state.steps;
    out.minstret = state.minstret;
    out.mcycle = state.mcycle;
    out.mstatus = state.mstatus;
    out.mie = state.mie;
    out.mip = state.mip;
    out.mtvec = state.mtvec;
    out.mscratch = state.mscratch;
    out.mepc = state.mepc;
    out.mcause = state.mcause;
    out.mtval = state.mtval;
    out.reservation_address = state.reservation_address;
    out.reservation_value = state.reservation_value;
    out.reservation_size = state.reservation_size;
    out.waiting = state.waiting;
    return out;
}

HartState hart_state(const orr_otrace_state& state) {
    HartState out;
    std::copy_n(state.x, 32, out.x);
    out.pc = state.pc;
    out.steps = state.steps;
    out.minstret = state.minstret;
    out.mcycle = state.mcycle;
    out.mstatus = state.mstatus;
    out.mie = state.mie;
    out.mip = state.mip;
    out.mtvec = state.mtvec;
    out.mscratch = state.mscratch;
    out.mepc = state.mepc;
    out.mcause = state.mcause;
    out.mtval = state.mtval;
    out.reservation_address = state.reservation_address;
    out.reservation_value = state.reservation_value;
    out.reservation_size = static_cast<std::uint8_t>(state.reservation_size);
    out.waiting = static_cast<std::uint8_t>(state.waiting);
    return out;
}

std::uint64_t trace_hash(const HartState& state, std::span<const std::uint8_t> sram) {
    const orr_otrace_state plain = trace_state(state);
    return XXH3_64bits_withSeed(sram.data(), sram.size(), XXH3_64bits(&plain, sizeof plain));
}

std::expected<std::unique_ptr<Recorder>, std::string> Recorder::create(const std::filesystem::path& file,
                                                                       const RecordingInfo& info) {
    std::unique_ptr<Recorder> made(new Recorder);
    const auto refuse = [&](const char* what) {
        return std::unexpected(
            fmt::format("{}: the recording cannot be {}: {}", file.string(), what, std::strerror(errno)));
    };
    const bool flight = info.flight_segment != 0;
    made->file_ = file;
    made->name_ = flight ? "the flight recorder" : file.string();
    if (info.symbols.size() <= ORR_OTRACE_MAX_BLOCK) made->symbols_ = info.symbols;
    if (flight && !keep_last(file)) return refuse("kept, which an earlier card has left there,");
    UniqueFd fd(file.empty() && flight
                    ? ::memfd_create("orrery-flight", MFD_CLOEXEC)
                    : ::open(file.c_str(), (flight ? O_RDWR : O_WRONLY) | O_CREAT | O_CLOEXEC, 0644));
    if (!fd) return refuse("made");
    if (flight) made->file_ = fmt::format("/proc/{}/fd/{}", ::getpid(), fd.get());
    // Never the file behind a link of somebody else's, nor a device.
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return refuse("made");
    if (!S_ISREG(status.st_mode)) {
        return std::unexpected(fmt::format(
            "{}: a recording needs a regular file, and this is none; give another name", file.string()));
    }
    if (::ftruncate(fd.get(), 0) != 0) return refuse("emptied");
    made->set_buffer(std::vector<std::uint8_t>(kFlushBytes + kRoom));
    made->keyframe_cost_ = info.keyframe_cost;

    orr_otrace_header header{};
    header.magic = ORR_OTRACE_MAGIC;
    header.version = ORR_OTRACE_VERSION;
    const std::size_t sku_bytes = std::min<std::size_t>(info.sku_text.size(), ORR_OTRACE_MAX_SKU);
    const std::size_t plan_bytes = std::min<std::size_t>(info.plan_text.size(), ORR_OTRACE_MAX_PLAN);
    header.header_bytes = static_cast<std::uint32_t>(header_bytes(sku_bytes + plan_bytes));
    header.plan_bytes = static_cast<std::uint32_t>(plan_bytes);
    header.hw_version = info.hw_version;
    header.sku_bytes = static_cast<std::uint32_t>(sku_bytes);
    header.uid = info.uid;
    header.seed = info.seed;
    header.cycle_ps = info.cycle_ps;
    header.start_ps = info.start_ps;
    header.vram_bytes = info.vram_bytes;
    copy_text(header.sku_name, info.sku_name);
    copy_text(header.program, info.program);
    std::vector<std::uint8_t> bytes(header.header_bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, info.sku_text.data(), sku_bytes);
    std::memcpy(bytes.data() + sizeof header + sku_bytes, info.plan_text.data(), plan_bytes);
    made->header_ = std::move(bytes);
    made->block_time_ = made->last_note_time_ = info.start_ps;
    made->flight_segment_ = info.flight_segment;
    if (flight) {
        FlightHead head;
        head.stride = info.flight_segment + kFlightSlack;
        if (::write(fd.get(), &head, sizeof head) != static_cast<ssize_t>(sizeof head))
            return refuse("written");
        made->writer_ =
            std::make_unique<RecordWriter>(made->name_, std::move(fd), 0, info.write, head.stride);
        made->begin_segment();
        return made;
    }
    made->seal_header();
    if (::write(fd.get(), made->header_.data(), made->header_.size()) !=
        static_cast<ssize_t>(made->header_.size()))
        return refuse("written");
    made->writer_ =
        std::make_unique<RecordWriter>(made->name_, std::move(fd), made->header_.size(), info.write);
    return made;
}

// With what begins now.
void Recorder::seal_header() {
    orr_otrace_header header{};
    std::memcpy(&header, header_.data(), sizeof header);
    header.start_ps = block_time_;
    header.skipped_ps = skipped_ps_;
    header.checksum = header.committed = header.not_committed = 0;
    std::memcpy(header_.data(), &header, sizeof header);
    header.checksum = XXH3_64bits(header_.data(), header_.size());
    header.committed = header_.size();
    header.not_committed = ~header.committed;
    std::memcpy(header_.data(), &header, sizeof header);
}

// Steps are counted anew in it.
void Recorder::begin_segment() {
    if (!on()) return;
    seal_header();
    offset_ = 0 - block_steps_;
    writer_->put_segment(header_, block_time_);
}

// The core goes on in a new segment, from which it can be replayed without those before it.
void Recorder::resume(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t rest_ps) {
    if (!on()) return;
    begin_segment();
    if (std::ranges::any_of(start_.sha256, [](std::uint8_t byte) { return byte != 0; })) write_image();
    orr_otrace_resume head{};
    head.state = trace_state(state);
    head.rest_ps = rest_ps;
    head.port_words = port_.wanted();
    std::vector<std::uint8_t> payload(sizeof head + sizeof start_);
    std::memcpy(payload.data(), &head, sizeof head);
    std::memcpy(payload.data() + sizeof head, &start_, sizeof start_);
    payload.insert(payload.end(), rom_.begin(), rom_.end());
    payload.insert(payload.end(), sram.begin(), sram.end());
    orr_otrace_block block = point(ORR_OTRACE_RESUME);
    ++block.last_step;
    block.state_hash = last_hash_;
    write_block(block, payload);
    ++offset_;
}

// Nothing that the core does, or that arrives, fills the room between two looks at full(); said all the same,
// not assumed.
void Recorder::overrun() {
    writer_->fail("more was observed in one run of the core than a block holds", ENOBUFS, block_time_);
    used_ = 0;
}

void Recorder::write_block(const orr_otrace_block& block, std::span<const std::uint8_t> payload) {
    if (on()) writer_->put(block, {payload.begin(), payload.end()});
}

// Returns the one before it.
std::vector<std::uint8_t> Recorder::set_buffer(std::vector<std::uint8_t> buffer) {
    limit_ = buffer.size() - kMostOfAccess;
    return std::exchange(buffer_, std::move(buffer));
}

orr_otrace_block Recorder::point(std::uint32_t kind) const {
    orr_otrace_block block{};
    block.kind = kind;
    block.first_step = block.last_step = offset_ + block_steps_;
    block.first_ps = block.last_ps = block_time_;
    return block;
}

void Recorder::begin_block(std::uint64_t steps, std::uint64_t time) {
    used_ = 0;
    notes_ = 0;
    passed_ps_ = 0;
    values_.fill(0);
    stalls_.fill(0);
    block_steps_ = last_steps_ = steps;
    block_time_ = last_note_time_ = time;
    block_skipped_ps_ = skipped_ps_;
    port_.begin(steps, time);
}

// What arrives at a core that stands still, without an end maybe, would fill the segment, and ones that begin
// there would push out what made it stand still. Its time goes on in the same block, and what it has skipped
// there is one jump.
void Recorder::forget_notes() {
    const std::uint64_t passed = passed_ps_;
    const std::uint64_t skipped_before = block_skipped_ps_;
    begin_block(block_steps_, block_time_);
    block_skipped_ps_ = skipped_before;
    if (running_) {
        put(ORR_OTRACE_BOUNDARY | ORR_OTRACE_TAG_STALL | ORR_OTRACE_TAG_LINES);
        put_steps(block_steps_);
        put_varint(passed_ps_ = passed);
        put(static_cast<std::uint8_t>(lines_));
    }
    if (skipped_ps_ != skipped_before && begin_note(ORR_OTRACE_NOTE_JUMP, block_steps_, jump_time_, 10))
        put_varint(skipped_ps_ - skipped_before);
}

void Recorder::flush(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t time,
                     std::uint64_t rest_ps) {
    if (at_rest_ && segment_is_crowded()) return forget_notes();
    if (!write_log(state, sram, time) || !running_) return;
    // An image that has not been started belongs to what comes after it.
    const bool next = !halted_ && !image_new_ && segment_is_full();
    if (cost_ >= keyframe_cost_ || next) write_keyframe(state, sram, rest_ps);
    if (next) resume(state, sram, rest_ps);
    if (next && on_segment_) on_segment_();
}

void Recorder::write_keyframe(const HartState& state, std::span<const std::uint8_t> sram,
                              std::uint64_t rest_ps) {
    cost_ = 0;
    orr_otrace_block block = point(ORR_OTRACE_KEYFRAME);
    block.state_hash = last_hash_;
    if (!on()) return;
    std::vector<std::uint8_t> payload;
    pages_.keyframe(state, rest_ps, sram, payload);
    writer_->put(block, std::move(payload));
}

// false: there was nothing to write.
bool Recorder::write_log(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t time) {
    if (!on()) return false;
    const std::uint64_t steps = running_ ? state.steps : block_steps_;
    if (!dirty(steps) && time == block_time_) return false;
    if (running_) last_hash_ = trace_hash(state, sram);
    cost_ += steps - block_steps_ + RecordingInfo::kByteCost * used_;
    // Before its log: one that a dying recorder leaves behind belongs to nothing.
    if (!port_.empty() || notes_ != 0) {
        const std::size_t bytes = port_.used();
        writer_->put(point(ORR_OTRACE_PORT), port_.take(notes_, writer_->spare()), bytes);
    }
    orr_otrace_block block{};
    block.kind = ORR_OTRACE_LOG;
    block.first_step = offset_ + block_steps_;
    block.last_step = offset_ + steps;
    block.first_ps = block_time_;
    block.last_ps = time;
    block.state_hash = last_hash_;
    if (on()) {
        // The writer gets the buffer itself, and gives back one that it is done with.
        std::vector<std::uint8_t> next = writer_->spare();
        next.resize(buffer_.size());
        writer_->put(block, set_buffer(std::move(next)), used_);
    }
    begin_block(steps, time);
    at_rest_ = halted_ || !running_;
    return true;
}

void Recorder::finish(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t time) {
    write_log(state, sram, time);
    write_block(point(ORR_OTRACE_END), {});
    ended_ = true;
    writer_->drain();
}

void Recorder::unusual_access(unsigned tag, unsigned bytes, std::uint64_t value, std::uint64_t& usual,
                              std::uint64_t stall, unsigned lines) {
    if (used_ > limit_) return overrun();
    std::uint8_t* const at = buffer_.data() + used_;
    std::memcpy(at + 1, &value, sizeof value);
    std::size_t size = 1 + bytes;
    if (stall != usual) {
        usual = stall;
        tag |= ORR_OTRACE_TAG_STALL;
        size += varint(at + size, stall);
    }
    if (lines != lines_) {
        lines_ = lines;
        tag |= ORR_OTRACE_TAG_LINES;
        at[size++] = static_cast<std::uint8_t>(lines);
    }
    at[0] = static_cast<std::uint8_t>(tag);
    used_ += size;
}

void Recorder::put_varint(std::uint64_t value) {
    if (buffer_.size() - used_ < 10) return overrun();
    used_ += varint(buffer_.data() + used_, value);
}

void Recorder::put_steps(std::uint64_t steps) {
    put_varint(steps - last_steps_);
    last_steps_ = steps;
}

void Recorder::put_boundary(std::uint64_t steps, std::uint64_t ps, unsigned lines) {
    if (!on()) return;
    passed_ps_ += ps;
    put(static_cast<std::uint8_t>(ORR_OTRACE_BOUNDARY | (ps != 0 ? ORR_OTRACE_TAG_STALL : 0) |
                                  (lines != lines_ ? ORR_OTRACE_TAG_LINES : 0)));
    put_steps(steps);
    if (ps != 0) put_varint(ps);
    if (lines != lines_) put(static_cast<std::uint8_t>(lines));
    lines_ = lines;
}

bool Recorder::begin_note(unsigned kind, std::uint64_t steps, std::uint64_t time, std::size_t room) {
    if (!on()) return false;
    // Notes may pile up before the core runs again: whatever they take, the room for a run of the core stays.
    if (used_ + room + 32 + kRoom > buffer_.size()) {
        if (buffer_.size() >= kMostBuffer) return false;
        std::vector<std::uint8_t> larger(2 * buffer_.size() + room);
        std::copy_n(buffer_.begin(), used_, larger.begin());
        set_buffer(std::move(larger));
    }
    put(static_cast<std::uint8_t>(ORR_OTRACE_NOTE | kind << 4));
    put_steps(running_ ? steps : block_steps_);
    put_varint(zigzag(time - last_note_time_));
    last_note_time_ = time;
    ++notes_;
    return true;
}

void Recorder::note(unsigned kind, std::uint64_t steps, std::uint64_t time,
                    std::initializer_list<std::uint64_t> fields) {
    halted_ = halted_ || kind == ORR_OTRACE_NOTE_HALT;
    if (kind == ORR_OTRACE_NOTE_JUMP) {
        skipped_ps_ += *fields.begin();
        jump_time_ = time;
    }
    if (!begin_note(kind, steps, time, fields.size() * 10)) {
        if (on()) overrun();
        return;
    }
    for (const std::uint64_t field : fields)
        put_varint(field);
}

void Recorder::set_state(const HartState& state, std::uint64_t time) {
    at_rest_ = false;
    const orr_otrace_state plain = trace_state(state);
    if (!begin_note(ORR_OTRACE_NOTE_SET_STATE, state.steps, time, sizeof plain)) return overrun();
    std::memcpy(buffer_.data() + used_, &plain, sizeof plain);
    used_ += sizeof plain;
}

void Recorder::set_memory(std::uint64_t address, std::span<const std::uint8_t> bytes, std::uint64_t steps,
                          std::uint64_t time) {
    at_rest_ = false;
    if (!begin_note(ORR_OTRACE_NOTE_SET_MEMORY, steps, time, bytes.size() + 20)) return overrun();
    put_varint(address);
    put_varint(bytes.size());
    std::ranges::copy(bytes, buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += bytes.size();
}

void Recorder::image(std::span<const std::uint8_t> bytes) {
    if (!on()) return;
    image_known_ = true;
    if (std::ranges::equal(bytes, image_)) return;
    image_.assign(bytes.begin(), bytes.end());
    image_new_ = true;
}

void Recorder::write_image() {
    write_block(point(ORR_OTRACE_IMAGE), image_);
    image_new_ = false;
    write_symbols();
}

// Those of another build would be worse than none.
void Recorder::write_symbols() {
    orr_otrace_symbols head{};
    orr_image_header image{};
    if (symbols_.size() < sizeof head || image_.size() < sizeof image) return;
    std::memcpy(&head, symbols_.data(), sizeof head);
    std::memcpy(&image, image_.data(), sizeof image);
    if (head.magic != ORR_OTRACE_SYMBOLS_MAGIC || !std::ranges::equal(head.build_id, image.build_id)) return;
    write_block(point(ORR_OTRACE_SYMBOLS), symbols_);
}

void Recorder::start(const Start& start) {
    if (!on()) return;
    write_log({}, {}, start.time);  // notes of the time in between
    port_.cut();
    pages_.begin(start.sram);
    halted_ = false;
    const bool next = segment_is_full();
    if (next) {
        begin_segment();
        image_new_ = image_known_;
    }
    if (image_new_) write_image();
    orr_otrace_start& head = start_;
    head = {};
    head.warm = start.warm ? 1 : 0;
    head.rom_bytes = static_cast<std::uint32_t>(start.rom.size());
    head.sram_bytes = static_cast<std::uint32_t>(start.sram.size());
    head.reset_pc = start.reset_pc;
    if (image_known_ && image_.size() >= sizeof(orr_image_header)) {
        std::memcpy(head.sha256, image_.data() + offsetof(orr_image_header, sha256), sizeof head.sha256);
    }
    image_known_ = false;
    if (flight_segment_ != 0) rom_.assign(start.rom.begin(), start.rom.end());
    std::vector<std::uint8_t> payload(sizeof head);
    std::memcpy(payload.data(), &head, sizeof head);
    payload.insert(payload.end(), start.rom.begin(), start.rom.end());
    payload.insert(payload.end(), start.sram.begin(), start.sram.end());
    orr_otrace_block block{};
    block.kind = ORR_OTRACE_START;
    block.first_step = offset_ + block_steps_;
    block.last_step = block.first_step + 1;
    block.first_ps = block_time_;
    block.last_ps = start.time;
    block.state_hash = last_hash_ = trace_hash(start.state, start.sram);
    write_block(block, payload);
    offset_ = block.last_step - start.state.steps;
    running_ = true;
    at_rest_ = false;
    lines_ = 0;
    begin_block(start.state.steps, start.time);
    if (next && on_segment_) on_segment_();
}

void Recorder::stop(const HartState& state, std::span<const std::uint8_t> sram, std::uint64_t time,
                    unsigned note_kind) {
    if (!running_) return;
    note(note_kind, state.steps, time, {});
    write_log(state, sram, time);
    running_ = false;
}

}  // namespace orrery::emu
