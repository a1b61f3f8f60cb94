#include "umd/runtime/group_bridge.h"

#include <orrery/fw/failure.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "umd/runtime/context.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/patience.h"
#include "umd/runtime/quiet_thread.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd {
namespace {

constexpr std::int64_t kLookNs = 20'000'000, kShortestNapNs = 20'000, kLongestNapNs = 1'000'000;
// Who cannot be written to any more is seen to be gone from the other side, too.
constexpr std::int64_t kPatienceNs = 500'000'000;
constexpr auto kNap = std::chrono::milliseconds(20);

std::uint64_t load(const std::uint64_t& word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}

constexpr std::uint64_t kCause = 1ull << 63;
std::uint64_t pack(const GroupCause& cause) {
    return kCause | static_cast<std::uint64_t>(cause.code) << 32 | static_cast<std::uint32_t>(cause.rank);
}

// What is given with a call: by all, by one, or nothing.
std::size_t bytes_of(const GroupPage::Said& said, int rank) {
    const auto op = static_cast<GroupPage::Op>(said.op);
    const bool gives = op == GroupPage::Op::kAllGather ||
                       (op == GroupPage::Op::kBroadcast && said.root == static_cast<std::uint32_t>(rank));
    return gives ? std::min<std::uint64_t>(said.bytes, kMaxGroupBytes) : 0;
}

// A member that has got all others' offers of a step goes on before its own has been seen everywhere, and
// then not before: two at most are new, whatever somebody wrote.
void for_new_steps(std::uint64_t from, std::uint64_t to, const auto& take) {
    if (to <= from) return;
    if (to - from > 1) take(to - 1);
    take(to);
}

}  // namespace

// In card memory behind the semaphore, and in what is sent. The same on all machines, whichever version of
// the library they have. Written in this order: offers, members, steps, sequence.
struct GroupEdge::Image {
    std::uint64_t sequence;
    std::uint64_t unused[7];
    struct Steps {
        std::uint64_t cause;
        std::uint64_t steps[kMaxGroupMembers];
    } steps;
    struct Member {
        std::uint64_t left, queues[2], unused;
        GroupPage::Said said[2];
    };
    struct Members {
        char text[160];  // of the cause
        Member members[kMaxGroupMembers];
    } members;
    std::byte offers[][2][kMaxGroupBytes];
};

std::size_t GroupEdge::image_bytes(std::size_t members) {
    return round_up(sizeof(Image) + members * 2 * kMaxGroupBytes, kPage);
}

const GroupEdge::Image& GroupEdge::in() const {
    return *reinterpret_cast<const Image*>(reinterpret_cast<const std::byte*>(own_->cpu) + kPage);
}
GroupEdge::Image& GroupEdge::out() const {
    return *reinterpret_cast<Image*>(staging_.data());
}

GroupEdge::GroupEdge(Context& context, int rank, int peer, bool up, std::uint32_t port,
                     std::vector<bool> behind)
    : context_(context),
      rank_(rank),
      peer_(peer),
      up_(up),
      port_(port),
      behind_(std::move(behind)),
      sent_(behind_.size()) {}

GroupEdge::~GroupEdge() {
    for (const auto& stream : {stream_, signals_}) {
        if (stream != nullptr) stream->close();
    }
    if (own_ != nullptr) context_.name_semaphore(own_->va, {});
}

Result<std::unique_ptr<GroupEdge>> GroupEdge::create(Runtime& runtime, Context& home, const GroupJoint& joint,
                                                     int rank, std::vector<bool> behind) {
    const bool up = joint.below == rank;
    const GroupLink& link = joint.link;
    const int peer = up ? joint.above : joint.below;
    const std::uint64_t uid = up ? link.peer_uid : link.uid;
    const std::uint32_t port = up ? link.peer_port : link.port;
    const int device = runtime.device_of_uid(uid);
    if (device < 0)
        return fail(orrErrorInvalidValue, "rank 0 wrote nonsense about the machines: no card here is {:#x}",
                    uid);
    ORR_TRY(context, runtime.context(device));
    std::unique_ptr<GroupEdge> edge(new GroupEdge(**context, rank, peer, up, port, std::move(behind)));
    const std::size_t bytes = image_bytes(edge->behind_.size());
    ORR_TRY(own, (*context)->shared_semaphores().create(SharedSemaphores::Kind::kGroup, bytes));
    edge->own_ = std::move(*own);
    (*context)->name_semaphore(edge->own_->va, fmt::format("rank {} of a group, on another machine", peer));
    QueueOptions options;
    options.name = fmt::format("group, to rank {}", peer);
    ORR_TRY(stream, Stream::create(**context, 256, 0, options, Stream::Use::kHostSignals));
    edge->stream_ = std::move(*stream);
    ORR_TRY(staging, PinnedBuffer::create((*context)->memory(), device, bytes));
    edge->staging_ = std::move(*staging);
    if (*context != &home) {
        options.name += ", signals";
        ORR_TRY(signals, Stream::create(**context, 256, 0, std::move(options), Stream::Use::kRelay));
        edge->signals_ = std::move(*signals);
    }
    return edge;
}

Result<FabricKey> GroupEdge::key() const {
    own_->abroad = true;
    return context_.memory().export_fabric(*own_->block);
}

Status GroupEdge::import(const FabricKey& key, const Until& until) {
    if (key.size != kPage + image_bytes(behind_.size())) {
        return fail(orrErrorNotSupported, "rank {} has another version of the library: it shares {} bytes",
                    peer_, key.size);
    }
    while (true) {
        // Before the import, which a link that goes down after this ends.
        const auto begins_at = switch_port(key.node);
        auto theirs = context_.shared_semaphores().import_fabric(key);
        if (theirs) {
            theirs_ = std::move(*theirs);
            theirs_->claim();
            peer_node_ = key.node;
            began_at_ = begins_at;
            return {};
        }
        // The drivers may not have met yet where a machine has just booted.
        const orrError_t code = theirs.error().code;
        const bool later = code == orrErrorPeerAccess || code == orrErrorTimeout;
        if (!later || until.left_ns() == 0) return std::unexpected(theirs.error());
        std::this_thread::sleep_for(kNap);
    }
}

bool GroupEdge::receive(GroupPage& page) {
    const Image& from = in();
    const std::uint64_t sequence = load(from.sequence);
    if (over_ || sequence == seen_) return false;
    seen_ = sequence;
    std::vector<int> left;
    for (std::size_t i = 0; i < behind_.size(); ++i) {
        if (!behind_[i]) continue;
        const int rank = static_cast<int>(i);
        const Image::Member& member = from.members.members[i];
        const GroupPage::Part part{load(from.steps.steps[i]),
                                   page.part(rank).left,
                                   {load(member.queues[0]), load(member.queues[1])}};
        if (load(member.left) != 0) left.push_back(rank);
        // They stay until all have taken them; who means ill may change them all the time.
        for_new_steps(page.part(rank).step, part.step, [&](std::uint64_t step) {
            GroupPage::Said said{};
            std::memcpy(&said, &member.said[step % 2], sizeof said);
            const std::size_t bytes = bytes_of(said, rank);
            page.put_offer(rank, step, said, {from.offers[i][step % 2], bytes});
        });
        page.put(rank, part);
    }
    if (const std::uint64_t word = load(from.steps.cause); word != 0) {
        GroupCause cause{orrErrorAborted, peer_, "its machine wrote nonsense into what the group shares"};
        const auto code = static_cast<std::uint32_t>(word >> 32) & 0x7fff'ffff;
        const auto rank = static_cast<std::uint32_t>(word);
        if (code != 0 && code <= orrErrorAbandoned && rank < behind_.size()) {
            cause = {static_cast<orrError_t>(code), static_cast<int>(rank), {}};
            char text[sizeof from.members.text];
            std::memcpy(text, from.members.text, sizeof text);
            cause.text.assign(text, ::strnlen(text, sizeof text - 1));
        }
        if (up_)
            page.decide(peer_, cause);
        else
            page.tell(peer_, cause);
    }
    // Who has left for a cause has told it before, here as there.
    for (const int rank : left)
        page.leave(rank);
    return true;
}

bool GroupEdge::send(const GroupPage& page) {
    if (over_ || cut_ || !quiet()) return false;
    Image& to = out();
    const std::uint64_t there = theirs_->va + kPage;
    std::vector<orr_packet> packets;
    const auto copy = [&](const void* what, std::size_t bytes) {
        const auto* const start = static_cast<const std::byte*>(what);
        const auto at = static_cast<std::uint64_t>(start - staging_.data());
        packets.push_back(make_copy(there + at, staging_.va() + at, bytes, true));
    };
    bool changed = false;
    std::vector<GroupPage::Part> parts = sent_;
    for (std::size_t i = 0; i < behind_.size(); ++i) {
        if (!behind_[i]) parts[i] = page.part(static_cast<int>(i));
    }
    // Whoever has left told it before; it gets there before that, too, so the leaving waits for the next
    // time.
    const auto decided = page.cause();
    const auto cause = up_ && !decided ? page.proposed() : up_ ? std::nullopt : decided;
    const bool tells = cause && cause->rank >= 0 && to.steps.cause == 0;
    for (std::size_t i = 0; i < behind_.size(); ++i) {
        if (behind_[i]) continue;
        const int rank = static_cast<int>(i);
        GroupPage::Part& part = parts[i];
        if (tells) part.left = sent_[i].left;
        if (part == sent_[i]) continue;
        Image::Member& member = to.members.members[i];
        for_new_steps(sent_[i].step, part.step, [&](std::uint64_t step) {
            const GroupPage::Said said = page.said(rank, step);
            member.said[step % 2] = said;
            const std::size_t bytes = bytes_of(said, rank);
            if (bytes == 0) return;
            std::memcpy(to.offers[i][step % 2], page.given(rank, step).data(), bytes);
            copy(to.offers[i][step % 2], bytes);
        });
        member.left = part.left;
        std::ranges::copy(part.queues, member.queues);
        to.steps.steps[i] = part.step;
        sent_[i] = part;
        changed = true;
    }
    if (tells) {
        cause->text.copy(to.members.text, sizeof to.members.text - 1);
        to.steps.cause = pack(*cause);
        changed = true;
    }
    if (!changed) return false;
    copy(&to.members, sizeof to.members);
    copy(&to.steps, sizeof to.steps);
    to.sequence += 1;
    copy(&to.sequence, sizeof to.sequence);
    const auto index = stream_->submit(packets, OpNote{Op::kCopy, nullptr});
    if (index) {
        index_ = *index;
    } else {
        cut_ = index.error();
        cut_ns_ = now_ns();
    }
    return true;
}

bool GroupEdge::quiet() const {
    return cut_ || stream_->done(index_);
}

std::optional<GroupEdge::Port> GroupEdge::switch_port(std::uint32_t node) const {
    const auto way = context_.winsys().way_to_node(node);
    if (!way || way->links < 2) return std::nullopt;
    const auto link = context_.winsys().link(way->port);
    if (!link) return std::nullopt;
    return Port{way->port, link->losses};
}

// Then it is not the other machine that has gone, as that would have left this card's own link alone. Both
// sides say so of themselves when it is a switch that died between them.
std::optional<GroupCause> GroupEdge::lost_switch() const {
    if (!began_at_) return std::nullopt;
    const auto link = context_.winsys().link(began_at_->number);
    if (!link || (is_up(*link) && link->losses == began_at_->losses)) return std::nullopt;
    return GroupCause{orrErrorPeerAccess, rank_,
                      fmt::format("the link from port {} of its device {} to a switch went down, by which it "
                                  "reached rank {}'s machine (orrery-smi links)",
                                  began_at_->number, context_.device(), peer_)};
}

// Nobody who had it lives, or can reach this card.
GroupCause GroupEdge::why_closed() const {
    if (auto lost = lost_switch()) return *std::move(lost);
    if (context_.winsys().meets(peer_node_)) return {orrErrorAborted, peer_, "its process ended"};
    return {orrErrorPeerAccess, peer_,
            fmt::format("its machine is not reached any more: its card, node {}, was at port {} of rank {}'s "
                        "device {} (orrery-smi links)",
                        peer_node_, port_, rank_, context_.device())};
}

std::optional<GroupCause> GroupEdge::lost(GroupPage& page) {
    if (over_) return std::nullopt;
    if (!cut_) {
        if (auto stopped = stream_->look()) {
            cut_ = std::move(*stopped);
            cut_ns_ = now_ns();
        }
    }
    const bool closed = own_->closed();
    if (!closed && !cut_) return std::nullopt;
    // What came before that.
    if (receive(page)) page.wake();
    if (page.left(peer_)) {
        over_ = true;
        if (up_) page.ask_nobody();
        return std::nullopt;
    }
    std::optional<GroupCause> cause;
    if (closed)
        cause = why_closed();
    else if (now_ns() - cut_ns_ < kPatienceNs)
        return std::nullopt;
    else if (cause = lost_switch(); !cause)
        cause =
            GroupCause{cut_->code, peer_, "nothing can be written to its machine any more: " + cut_->text};
    over_ = true;
    if (up_) page.ask_nobody();
    return cause;
}

Result<std::unique_ptr<GroupBridge>> GroupBridge::connect(Runtime& runtime, Context& home,
                                                          GroupFolder& folder,
                                                          const std::vector<GroupJoint>& joints, int rank,
                                                          const std::vector<int>& leaders) {
    std::unique_ptr<GroupBridge> bridge(new GroupBridge);
    const auto above = [&](int leader) {
        const auto it = std::ranges::find(joints, leader, &GroupJoint::below);
        return it == joints.end() ? -1 : it->above;
    };
    // Rank 0's plan need not be a tree.
    const auto is_below = [&](int leader, int top) {
        for (std::size_t turns = 0; leader >= 0 && turns <= joints.size(); ++turns) {
            if (leader == top) return true;
            leader = above(leader);
        }
        return false;
    };
    for (const GroupJoint& joint : joints) {
        if (joint.above != rank && joint.below != rank) continue;
        const bool up = joint.below == rank;
        std::vector<bool> behind;
        behind.reserve(leaders.size());
        for (const int leader : leaders)
            behind.push_back(up ? !is_below(leader, rank) : is_below(leader, joint.below));
        ORR_TRY(edge, GroupEdge::create(runtime, home, joint, rank, std::move(behind)));
        ORR_TRY(key, (*edge)->key());
        ORR_TRY(given, folder.give((*edge)->peer(), *key));
        bridge->edges_.push_back(std::move(*edge));
    }
    for (const auto& edge : bridge->edges_) {
        ORR_TRY(key, folder.take(edge->peer()));
        ORR_TRY(imported, edge->import(*key, folder.until()));
    }
    return bridge;
}

void GroupBridge::stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    page_->wake();
    thread_.join();
}

void GroupBridge::start(std::shared_ptr<GroupPage> page, std::function<void()> look) {
    page_ = std::move(page);
    look_ = std::move(look);
    thread_ = start_quiet_thread([this](const std::stop_token& stop) { run(stop); });
}

bool GroupBridge::pump() {
    const std::lock_guard lock(mutex_);
    bool moved = false;
    for (const auto& edge : edges_) {
        moved |= edge->receive(*page_);
        if (const auto cause = edge->lost(*page_)) {
            page_->tell(edge->peer(), *cause);
            moved = true;
        }
    }
    if (moved) page_->wake();
    for (const auto& edge : edges_)
        moved |= edge->send(*page_);
    return moved;
}

void GroupBridge::run(const std::stop_token& stop) {
    std::int64_t moved_ns = now_ns(), looked_ns = 0;
    std::uint32_t last = page_->woken();
    while (!stop.stop_requested()) {
        const std::uint32_t woken = page_->woken();
        const bool moved = pump();
        const std::int64_t now = now_ns();
        if (moved || woken != std::exchange(last, woken)) moved_ns = now;
        if (now - looked_ns >= kLookNs) {
            look_();
            looked_ns = now;
        }
        bool sending = false;
        {
            const std::lock_guard lock(mutex_);
            sending = std::ranges::any_of(edges_, [](const auto& edge) { return !edge->quiet(); });
        }
        // As who waits for a semaphore.
        page_->sleep(woken, page_->apart() || sending
                                ? std::clamp((now - moved_ns) / 8, kShortestNapNs, kLongestNapNs)
                                : kLookNs);
    }
}

void GroupBridge::flush() {
    // Who hears nothing of it takes it for dead. A link that is known to be down holds nobody up.
    const Until until(static_cast<std::uint64_t>(landing_patience_ns()));
    const auto quiet = [&] {
        const std::lock_guard lock(mutex_);
        return std::ranges::all_of(edges_, [](const auto& edge) {
            const auto& signals = edge->signals();
            return edge->over() ||
                   (edge->quiet() && (signals == nullptr || signals->over(signals->submitted())));
        });
    };
    // In this order: nothing more is sent while something is on its way, however much there is.
    const auto done = [&] {
        const bool all_sent = quiet();
        return !pump() && all_sent;
    };
    while (!done() && until.left_ns() != 0)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
}

Result<std::vector<GroupCard>> own_cards(Runtime& runtime) {
    std::vector<GroupCard> all;
    ORR_TRY(devices, runtime.device_count());
    for (int number = 0; number < *devices; ++number) {
        ORR_TRY(device, runtime.device(number));
        const auto card = (*device)->query();
        if (card) all.push_back({card->uid, (*device)->number(), 0});
    }
    return all;
}

Result<std::vector<GroupLink>> links_to_others(Runtime& runtime, const std::vector<GroupCard>& others) {
    std::vector<GroupLink> all;
    ORR_TRY(devices, runtime.device_count());
    for (int number = 0; number < *devices; ++number) {
        ORR_TRY(device, runtime.device(number));
        const auto card = (*device)->query();
        if (!card) continue;  // it is lost, and somebody else may need it
        for (std::uint32_t port = 0; port < card->link_ports; ++port) {
            const auto link = (*device)->link(port);
            if (link && is_up(*link) && link->peer_uid != 0 && runtime.device_of_uid(link->peer_uid) < 0)
                all.push_back({card->uid, link->peer_uid, port, link->peer_port});
        }
        for (const GroupCard& other : others) {
            const auto way = (*device)->way_to_node(other.node);
            if (way && way->links > 1)
                all.push_back({card->uid, other.uid, way->port, GroupLink::kBehindSwitch});
        }
    }
    return all;
}

}  // namespace orrery::umd
