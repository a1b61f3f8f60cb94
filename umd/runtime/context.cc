#include "umd/runtime/context.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <orrery/hw/engine.h>

#include "umd/runtime/clock.h"
#include "umd/runtime/link_text.h"

namespace orrery::umd {
namespace {

QueueOptions named(const char* name) {
    QueueOptions options;
    options.name = name;
    return options;
}

// A card of today says what it runs, in a text that need not be right.
Isa isa_of(const drm_orr_query_device& card) {
    const auto* text = reinterpret_cast<const char*>(card.vector_isa);
    auto isa = Isa::parse({text, ::strnlen(text, sizeof(card.vector_isa))});
    return isa ? *std::move(isa) : Isa::first();
}

// Of one that is there.
std::uint64_t way_number(const drm_orr_query_way& way) {
    return (way.port + 1ull) << 32 | way.version;
}

WayLoss::Link lost_link_of(const drm_orr_query_way& way) {
    return {.uid = way.lost_uid,
            .peer = way.lost_peer_uid,
            .port = way.lost_port,
            .at_switch = (way.lost_is & ORR_LOST_AT_SWITCH) != 0,
            .to_switch = (way.lost_is & ORR_LOST_TO_SWITCH) != 0};
}

}  // namespace

Result<std::unique_ptr<Context>> Context::create(int device, Device& winsys, Memory& memory, Fleet& fleet,
                                                 Quota quota) {
    ORR_TRY(card, winsys.query());
    ORR_TRY(reserved, memory.reserve(device, winsys, card->vram_size));
    // The last that can fail: another try makes nothing twice.
    ORR_TRY(made, winsys.create_vm(quota));
    memory.attach(device, (card->features & ORR_FEATURE_PEER_READS) != 0);
    return std::unique_ptr<Context>(new Context(device, winsys, memory, fleet, *card));
}

bool host_atomics(const drm_orr_query_device& card) {
    return (card.features & ORR_FEATURE_HOST_ATOMICS) != 0;
}

bool switches_atomics_on(const Device& winsys) {
    return winsys.info().driver_version >= ORR_MAKE_VERSION(1, 4, 0);
}

Context::Context(int device, Device& winsys, Memory& memory, Fleet& fleet, const drm_orr_query_device& card)
    : device_(device),
      winsys_(winsys),
      memory_(memory),
      fleet_(fleet),
      uid_(card.uid),
      vector_cores_(card.vector_cores),
      isa_(isa_of(card)),
      host_atomics_(umd::host_atomics(card)),
      tells_((card.features & ORR_FEATURE_TELL) != 0),
      has_barriers_((card.features & ORR_FEATURE_BARRIERS) != 0),
      semaphores_(*this, BoKind::kVram),
      event_slots_(*this, BoKind::kSystem),
      shared_semaphores_(*this),
      link_ports_(card.link_ports) {
    fleet_.add(*this);
    if (tells_) memory_.keep_changes(device_);
}

Context::~Context() {
    shutdown();
    fleet_.remove(*this);
}

void Context::shutdown() {
    // Retired event slots hold streams, and streams hold relay slots of other cards.
    event_slots_.drop_retired();
    sample_log_.end();
    pc_log_.end();
    work_log_.end();
    for (auto& stream : fleet_.streams(this))
        stream->close();
    fleet_.forget_flights(*this);
    {
        const std::lock_guard lock(tell_mutex_);
        tell_stream_.reset();
    }
    const std::lock_guard lock(mutex_);
    null_stream_.reset();
    for (auto& stream : signal_streams_)
        stream.reset();
    worn_signal_streams_.clear();
    copy_streams_.clear();
}

Error Context::lose(Error cause) {
    // In front: of a long text a group has the beginning only.
    if (!lost()) cause.text.insert(0, loss_before(*this));
    return loss_.end(std::move(cause));
}

std::optional<Error> Context::ask() {
    const auto answer = winsys_.query();
    if (!answer && answer.error().code == orrErrorDeviceLost) lose(answer.error());
    return loss();
}

std::optional<Error> loss_of_either(Context& one, Context& other) {
    if (auto loss = one.ask()) return loss;
    return other.ask();
}

std::optional<std::uint64_t> Context::way_to(const Context& peer) const {
    return way_now(peer).number;
}

WayNow Context::way_now(const Context& peer) const {
    const auto way = winsys_.way(peer.uid_);
    WayNow now;
    now.number = 0;
    if (!way) return now;
    now.number = {};
    now.version = way->version;
    now.settled = way->settled;
    // Of pairs without epochs no driver knows, nor of what came before both cards were there.
    now.tells = winsys_.info().driver_version >= ORR_MAKE_VERSION(1, 17, 0) && now.settled != 0;
    if (way->links != 0) now.number = way_number(*way);
    return now;
}

std::optional<WayLoss> Context::way_loss(const Context& peer, std::uint64_t way) const {
    const auto now = winsys_.way(peer.uid_);
    if (!now || (now->links != 0 && (way == 0 || way_number(*now) == way))) return std::nullopt;
    WayLoss loss{.there = now->links != 0};
    const auto since = static_cast<std::int32_t>(now->lost_version - static_cast<std::uint32_t>(way));
    if (now->lost_uid != 0 && since >= 0) loss.link = lost_link_of(*now);
    return loss;
}

std::optional<WayLoss::Link> Context::last_lost_link(const Context& peer) const {
    const auto now = winsys_.way(peer.uid_);
    if (!now || now->lost_uid == 0) return std::nullopt;
    return lost_link_of(*now);
}

bool Context::knows_first() const {
    return winsys_.info().driver_version >= ORR_MAKE_VERSION(1, 19, 0);
}

bool Context::reaches(const Context& peer) {
    constexpr std::int64_t kWayNs = 20'000'000;  // who asks with orrDeviceGetPeerWay has it new
    const std::int64_t now = now_ns();
    {
        const std::lock_guard lock(ways_mutex_);
        const PeerWay& way = ways_[peer.device_];
        if (way.asked_ns != 0 && now - way.asked_ns < kWayNs) return way.there;
    }
    const bool there = way_to(peer).has_value();
    saw_way(peer.device_, there);
    return there;
}

void Context::saw_way(int peer, bool there) {
    const std::int64_t now = now_ns();
    const std::lock_guard lock(ways_mutex_);
    PeerWay& way = ways_[peer];
    way.asked_ns = now;
    way.there = there;
}

void Context::note_links() {
    for (std::uint32_t port = 0; port < link_ports_; ++port) {
        const auto link = winsys_.link(port);
        if (!link || !is_up(*link)) continue;
        const std::lock_guard lock(ways_mutex_);
        neighbours_[port] = {link->peer_uid, link->losses};
    }
}

std::string Context::lost_link(std::uint32_t node) const {
    const std::lock_guard lock(ways_mutex_);
    for (const auto& [port, neighbour] : neighbours_) {
        const auto link = winsys_.link(port);
        if ((neighbour.uid & 0xff) != node || !link) continue;
        if (is_up(*link) && link->losses == neighbour.losses) continue;
        return fmt::format("; the link from port {} of device {} to it {}", port, device_,
                           is_up(*link) ? "went down, and is up again" : "is down");
    }
    return {};
}

bool Context::goes_by_host(const Context& peer) {
    if (went_by_host(peer.device_)) return true;
    if (reaches(peer)) return false;
    const std::lock_guard lock(ways_mutex_);
    return ways_[peer.device_].by_host = true;
}

bool Context::went_by_host(int peer) const {
    const std::lock_guard lock(ways_mutex_);
    const auto way = ways_.find(peer);
    return way != ways_.end() && way->second.by_host;
}

Result<std::shared_ptr<Stream>> Context::take_copy_stream(std::vector<std::shared_ptr<Stream>>& ended) {
    while (true) {
        std::shared_ptr<Stream> stream;
        {
            const std::lock_guard lock(mutex_);
            if (copy_streams_.empty()) break;
            stream = std::move(copy_streams_.back());
            copy_streams_.pop_back();
        }
        if (!stream->error()) return stream;
        ended.push_back(std::move(stream));
    }
    constexpr std::uint64_t kArgsBytes = 4096;  // descriptors of boxes, two at once
    auto stream = Stream::create(*this, 64, kArgsBytes, named("copies by the host"));
    if (stream) (*stream)->set_helps();
    return stream;
}

void Context::give_copy_stream(std::shared_ptr<Stream> stream) {
    if (stream->error()) return;
    const std::lock_guard lock(mutex_);
    // More go with their queues, which are everybody's; the parameter does so behind the lock.
    if (copy_streams_.size() < kKeptCopyStreams) copy_streams_.push_back(std::move(stream));
}

Result<std::shared_ptr<Stream>> Context::create_stream(QueueOptions options) {
    return Stream::create(*this, Stream::kDefaultEntries, Stream::kDefaultArgsBytes, std::move(options));
}

Result<std::shared_ptr<Stream>> Context::null_stream() {
    const std::lock_guard lock(mutex_);
    if (null_stream_ == nullptr) {
        auto stream =
            Stream::create(*this, Stream::kDefaultEntries, Stream::kDefaultArgsBytes, named("null stream"));
        if (!stream) return stream;
        null_stream_ = std::move(*stream);
    }
    return null_stream_;
}

Result<std::shared_ptr<Stream>> Context::signal_stream(bool elsewhere) {
    const std::lock_guard lock(mutex_);
    auto& kept = signal_streams_.at(elsewhere ? 1 : 0);
    if (kept != nullptr && !kept->error()) return kept;
    auto stream = Stream::create(*this, 64, 0, named(elsewhere ? "signals abroad" : "signals from the host"),
                                 Stream::Use::kHostSignals);
    if (!stream) return stream;
    if (kept != nullptr) worn_signal_streams_.push_back(std::move(kept));
    kept = std::move(*stream);
    return kept;
}

Result<std::pair<std::shared_ptr<Stream>, std::uint64_t>> Context::signal(const orr_packet& packet,
                                                                          bool elsewhere) {
    while (true) {
        ORR_TRY(stream, signal_stream(elsewhere));
        auto sent = (*stream)->submit({&packet, 1}, OpNote{Op::kSignal, nullptr});
        if (sent) return std::pair{std::move(*stream), *sent};
        if (!(*stream)->error() || lost()) return std::unexpected(sent.error());
    }
}

Status Context::tell_heap() {
    if (!tells_) return {};
    const std::lock_guard lock(tell_mutex_);
    auto changes = memory_.take_changes(device_);
    if (changes.empty()) return {};
    auto told = tell(changes);
    // Others' are among them. Those that have come already may come again: nobody has used them meanwhile.
    if (!told && told.error().code != orrErrorDeviceLost) memory_.put_back(device_, std::move(changes));
    return told;
}

Status Context::tell(std::span<const HeapChange> changes) {
    if (tell_stream_ == nullptr || tell_stream_->error()) {
        ORR_TRY(stream, Stream::create(*this, 64, kPage, named("heap, for checks")));
        tell_stream_ = std::move(*stream);
    }
    std::uint64_t end = 0;
    for (const HeapChange& change : changes) {
        const orr_desc_tell desc{ORR_DESC_TELL, change.what, 0, change.va, change.bytes};
        orr_packet_long packet{};
        packet.header.opcode = ORR_PKT_COPY;
        packet.header.flags = ORR_PKT_F_ORDERED | ORR_PKT_F_LONG;
        packet.bytes = sizeof desc;
        ORR_TRY(sent, tell_stream_->submit_with(std::bit_cast<orr_packet>(packet), 0,
                                                std::as_bytes(std::span(&desc, 1)), OpNote{}, {}));
        end = *sent;
    }
    return tell_stream_->wait(end);
}

std::shared_ptr<Stream> Context::take_null_stream() {
    const std::lock_guard lock(mutex_);
    return std::exchange(null_stream_, nullptr);
}

void Context::add_peer(Context& peer) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(peers_, &peer) == peers_.end()) peers_.push_back(&peer);
    any_peer_.store(true, std::memory_order_release);
}

std::vector<Context*> Context::peers() const {
    if (!any_peer_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    return peers_;
}

Status Context::synchronize() {
    Status first;
    for (const auto& stream : fleet_.streams(this)) {
        if (stream->use() == Stream::Use::kRelay) continue;  // another card's work, which may never go on
        auto done = stream->synchronize();
        if (!done && first && !stream->helps()) first = std::move(done);
    }
    return first;
}

Status Context::drain() {
    for (const auto& stream : fleet_.streams(this)) {
        if (stream->use() == Stream::Use::kRelay) continue;
        auto done = stream->synchronize();
        if (done) continue;
        if (!stream->error()) return done;
        ORR_TRY(quiet, stream->wait_quiet());
    }
    return fleet_.wait_quiet(*this);
}

std::optional<std::uint64_t> Context::semaphore_value(std::uint64_t va) const {
    for (const SemaphorePool* pool : {&semaphores_, &event_slots_}) {
        // What a pool has stays mapped as long as it lives.
        if (const orr_semaphore* found = pool->find(va)) return load_semaphore(*found);
    }
    return shared_semaphores_.value_of(va);
}

bool Context::others_fail(std::uint64_t va) const {
    // Of a shared one nothing is known once its page is gone.
    if (semaphores_.find(va) != nullptr || event_slots_.find(va) != nullptr) return false;
    return !shared_semaphores_.ours(va);
}

const char* Context::keep_name(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return names_.insert(name).first->c_str();
}

void Context::name_semaphore(std::uint64_t va, std::string name) {
    const std::lock_guard lock(mutex_);
    if (name.empty()) {
        semaphore_names_.erase(va);
    } else {
        semaphore_names_[va] = std::move(name);
    }
}

std::string Context::semaphore_name(std::uint64_t va) const {
    const std::lock_guard lock(mutex_);
    const auto found = semaphore_names_.find(va);
    return found == semaphore_names_.end() ? std::string() : found->second;
}

std::string Context::describe_semaphore(std::uint64_t va) const {
    if (const std::string name = semaphore_name(va); !name.empty())
        return fmt::format("semaphore '{}'", name);
    if (event_slots_.find(va) != nullptr) return "an event";
    return fmt::format("the semaphore at {:#x}", va);
}

void Context::add_code(std::uint64_t start, std::string name, std::vector<std::byte> bytes, LineTables lines,
                       std::vector<CodeFunction> functions) {
    const std::lock_guard lock(mutex_);
    code_[start] = {std::move(name), std::move(bytes), std::move(lines), std::move(functions)};
}

std::optional<Context::CodePlace> Context::place_in_code(std::uint64_t pc) const {
    const std::lock_guard lock(mutex_);
    const auto after = code_.upper_bound(pc);
    if (after == code_.begin()) return std::nullopt;
    const auto& [start, code] = *std::prev(after);
    CodePlace place{.offset = pc - start, .function = {}, .source = {}};
    if (place.offset >= code.bytes.size()) return std::nullopt;
    place.source = code.lines.find(place.offset);
    for (const CodeFunction& each : code.functions)
        if (place.offset - each.offset < each.bytes) place.function = each.name;
    return place;
}

void Context::remove_code(std::uint64_t start) {
    const std::lock_guard lock(mutex_);
    code_.erase(start);
}

std::string Context::describe_code(std::uint64_t pc) const {
    const std::lock_guard lock(mutex_);
    auto after = code_.upper_bound(pc);
    if (after == code_.begin()) return {};
    const auto& [start, code] = *std::prev(after);
    if (pc - start >= code.bytes.size()) return {};
    const std::string line = code.lines.find(pc - start);
    return fmt::format(" ({}{}offset {:#x} of module {})", line, line.empty() ? "" : ", ", pc - start,
                       code.name);
}

std::string Context::line_of_function(std::uint64_t entry, std::uint64_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto after = code_.upper_bound(entry);
    if (after == code_.begin()) return {};
    const auto& [start, code] = *std::prev(after);
    return code.lines.find_function(entry - start, bytes);
}

std::span<const std::byte> Context::code_at(std::uint64_t va) const {
    const auto after = code_.upper_bound(va);
    if (after == code_.begin()) return {};
    const auto& [start, code] = *std::prev(after);
    if (va - start >= code.bytes.size()) return {};
    return std::span(code.bytes).subspan(va - start);
}

std::optional<std::uint64_t> Context::word_of_code(std::uint64_t va) const {
    const std::lock_guard lock(mutex_);
    const auto bytes = code_at(va);
    std::uint64_t word = 0;
    if (bytes.size() < sizeof word) return std::nullopt;
    std::memcpy(&word, bytes.data(), sizeof word);
    return word;
}

std::optional<std::string> Context::text_of_code(std::uint64_t va) const {
    const std::lock_guard lock(mutex_);
    const auto bytes = code_at(va);
    const auto end = std::ranges::find(bytes, std::byte{0});
    if (end == bytes.end()) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(bytes.data()),
                       static_cast<std::size_t>(end - bytes.begin()));
}

Output::Ended Context::work() const {
    struct Piece {
        std::weak_ptr<Stream> stream;  // one that has gone has ended
        std::uint64_t end;
    };
    std::vector<Piece> all;
    for (const auto& stream : fleet_.streams(this))
        all.emplace_back(stream, stream->rung());
    return [all = std::move(all)] {
        return std::ranges::all_of(all, [](const Piece& piece) {
            const auto stream = piece.stream.lock();
            return stream == nullptr || stream->over(piece.end);
        });
    };
}

Result<std::uint64_t> Context::output_ring() {
    const std::lock_guard lock(output_mutex_);
    if (made_output_ == nullptr) {
        void* ring = nullptr;
        if (host_atomics_) {
            ORR_TRY(memory, PinnedBuffer::create(memory_, device_, sizeof(orr_output)));
            output_memory_ = std::move(*memory);
            output_va_ = output_memory_.va();
            ring = output_memory_.data();
        } else {
            // It goes with all of the card's memory.
            ORR_TRY(block, memory_.create_block(device_, sizeof(orr_output), BoKind::kVram));
            ORR_TRY(mapped, (*block)->bo->map());
            output_va_ = (*block)->va;
            ring = std::memset(*mapped, 0, sizeof(orr_output));
        }
        made_output_ = std::make_unique<Output>(
            *static_cast<orr_output*>(ring), [this](std::uint64_t va) { return text_of_code(va); },
            [this] { return work(); }, fmt::format("device {}", device_));
        output_.store(made_output_.get(), std::memory_order_release);
    }
    return output_va_;
}

}  // namespace orrery::umd
