#include "emulator/engines/peer_access.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

// Until it asks again for a tag, of which so many are not in use for long.
constexpr ModelTime kAgainPs = 1'000 * kPsPerNs;
constexpr std::size_t kMostPieces = 4096;
constexpr std::uint64_t kPageMask = ORR_PAGE_SIZE - 1;

}  // namespace

// --- inside of an instruction ---

// Of several that begin at or before `va` the last: pieces are whole lines.
PeerAccess::Piece* PeerAccess::find(std::uint64_t va) {
    const auto behind = std::ranges::upper_bound(pieces_, va, {}, &Piece::va);
    if (behind == pieces_.begin()) return nullptr;
    Piece& piece = *(behind - 1);
    return va - piece.va < piece.bytes && piece.state == Piece::State::kHere ? &piece : nullptr;
}

void PeerAccess::add(std::uint64_t va, std::uint64_t bytes, bool needed) {
    const std::uint64_t first = va & ~(kMemoryLine - 1);
    for (std::uint64_t left = lines_of(va, bytes) * kMemoryLine, at = first; left != 0;) {
        const std::uint64_t some = std::min(left, ORR_PAGE_SIZE - (at & kPageMask));
        pieces_.push_back({.va = at, .bytes = some, .needed = needed});
        ++wanted_;
        at += some;
        left -= some;
    }
    fresh_ = true;
}

PeerAccess::Got PeerAccess::load(std::uint64_t step, std::uint64_t va, unsigned size, std::uint64_t& value) {
    if (step != step_) {
        pieces_.clear();
        wanted_ = 0;
        step_ = step;
    }
    const Piece* const piece = find(va);
    if (piece == nullptr) {
        add(va, size, true);
        return Got::kNotYet;
    }
    if (piece->fault != ORR_FAULT_NONE) {
        fault_ = {piece->fault, va};
        return Got::kFault;
    }
    value = 0;
    std::memcpy(&value, piece->data.data() + (va - piece->va), size);
    return Got::kHere;
}

bool PeerAccess::foresee(std::uint64_t va, std::uint64_t bytes) {
    if (pieces_.empty() || pieces_.size() >= kMostPieces) return false;
    // Neighbours are in the same line as a rule.
    const Piece& last = pieces_.back();
    if (last.state != Piece::State::kWanted || va - last.va >= last.bytes ||
        last.bytes - (va - last.va) < bytes)
        add(va, bytes, false);
    return true;
}

PeerAccess::Got PeerAccess::atomic(std::uint64_t step, std::uint64_t va, const LinkAtomic& what,
                                   std::uint64_t& old) {
    if (!atomic_ || !atomic_->here || atomic_->step != step || atomic_->va != va || atomic_->what != what) {
        atomic_ = Atomic{.step = step, .va = va, .what = what};
        return Got::kNotYet;
    }
    const LinkAnswer answer = atomic_->answer;
    atomic_.reset();
    if (answer.fault != ORR_FAULT_NONE) {
        fault_ = {answer.fault, va};
        return Got::kFault;
    }
    old = answer.value;
    return Got::kHere;
}

void PeerAccess::store(std::uint64_t va, unsigned size, std::uint64_t value, std::uint64_t pc) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    const bool goes_on =
        !stores_.empty() && stores_.back().va + stores_.back().data.size() == va && (va & kPageMask) != 0;
    if (!goes_on) stores_.push_back({.va = va, .pc = pc, .data = {}});
    stores_.back().data.insert(stores_.back().data.end(), bytes, bytes + size);
}

// --- between two quanta ---

void PeerAccess::merge() {
    fresh_ = false;
    std::erase_if(pieces_, [](const Piece& piece) { return piece.state == Piece::State::kNotThere; });
    std::ranges::sort(pieces_, {}, &Piece::va);
    std::size_t kept = 0;
    for (std::size_t i = 1; i < pieces_.size(); ++i) {
        Piece& last = pieces_[kept];
        Piece& next = pieces_[i];
        const bool together = last.state == Piece::State::kWanted && next.state == Piece::State::kWanted &&
                              next.va - last.va <= last.bytes &&
                              (last.va & ~kPageMask) == (next.va & ~kPageMask);
        if (!together) {
            if (++kept != i) pieces_[kept] = std::move(next);
            continue;
        }
        last.bytes = std::max(last.bytes, next.va - last.va + next.bytes);
        last.needed |= next.needed;
        --wanted_;
    }
    if (!pieces_.empty()) pieces_.resize(kept + 1);
}

// A fault of what was only foreseen is none until an instruction needs it.
void PeerAccess::came(Piece& piece, std::uint32_t fault) {
    piece.state = fault == ORR_FAULT_NONE || piece.needed ? Piece::State::kHere : Piece::State::kNotThere;
    piece.fault = fault;
    piece.tag = 0;
}

void PeerAccess::came(Atomic& atomic, const LinkAnswer& answer) {
    atomic.here = true;
    atomic.answer = answer;
    atomic.tag = 0;
}

PeerAccess::Sent PeerAccess::sent(const LinkAsk& ask, std::uint32_t node, PeerPort* link) {
    if (ask.tag != 0) {
        ++in_flight_;
        flight_ = link;
        return Sent::kYes;
    }
    if (ask.fault == ORR_FAULT_PEER_BUSY) return Sent::kTryAgain;
    parked_ = link;
    parked_node_ = node;
    return Sent::kNoRoom;
}

PeerAccess::Sent PeerAccess::send(Piece& piece, std::uint32_t asid, Ways& ways, ModelTime now) {
    const auto ends = [&](std::uint32_t fault) {
        --wanted_;
        came(piece, fault);
        return Sent::kYes;
    };
    const auto no_peer = [&] {
        piece.needed = false;
        return ends(ORR_FAULT_PEER_READ);
    };
    if (!piece.needed) {
        const auto page = context_.mmu.peek_page(asid, piece.va, Access::kPull);
        if (!page || page->target != ORR_TARGET_PEER) return no_peer();
    }
    const auto found = context_.mmu.translate(asid, piece.va, piece.bytes, Access::kPull);
    if (!found) return ends(found.error().code);
    // It was when the core came to it: its tables have changed, and it asks for it anew.
    if (found->target != ORR_TARGET_PEER || found->bytes < piece.bytes) return no_peer();
    PeerPort* const link = ways.to(context_.peers, found->node);
    if (link == nullptr) return ends(context_.peers.fault_of(found->node));
    if (in_flight_ != 0 && link != flight_) return Sent::kTryAgain;
    piece.data.resize(piece.bytes);
    const LinkAsk ask = link->read(found->node, found->address, piece.data, now, *this);
    if (ask.tag == 0 && ask.fault != ORR_FAULT_NONE && ask.fault != ORR_FAULT_PEER_BUSY)
        return ends(ask.fault);
    const Sent how = sent(ask, found->node, link);
    if (how != Sent::kYes) return how;
    --wanted_;
    piece.state = Piece::State::kSent;
    piece.tag = ask.tag;
    piece.node = found->node;
    piece.link = link;
    return Sent::kYes;
}

PeerAccess::Sent PeerAccess::send(Atomic& atomic, std::uint32_t asid, Ways& ways, ModelTime now) {
    const auto ends = [&](std::uint32_t fault) {
        came(atomic, {.fault = fault});
        return Sent::kYes;
    };
    const auto found = context_.mmu.translate(asid, atomic.va, atomic.what.bytes, Access::kStore);
    if (!found) return ends(found.error().code);
    if (found->target != ORR_TARGET_PEER) {
        atomic_.reset();
        return Sent::kYes;
    }
    if ((found->rights & kPageRead) == 0) return ends(ORR_FAULT_PERMISSION);
    PeerPort* const link = ways.to(context_.peers, found->node);
    if (link == nullptr) return ends(context_.peers.fault_of(found->node));
    if (in_flight_ != 0 && link != flight_) return Sent::kTryAgain;
    const LinkAsk ask = link->atomic(found->node, found->address, atomic.what, now, *this);
    if (ask.tag == 0 && ask.fault != ORR_FAULT_NONE && ask.fault != ORR_FAULT_PEER_BUSY)
        return ends(ask.fault);
    const Sent how = sent(ask, found->node, link);
    if (how != Sent::kYes) return how;
    atomic.sent = true;
    atomic.tag = ask.tag;
    atomic.node = found->node;
    atomic.link = link;
    return Sent::kYes;
}

bool PeerAccess::send_stores(std::uint32_t asid, Ways& ways, ModelTime now) {
    while (sent_ != stores_.size()) {
        const Store& store = stores_[sent_];
        const std::uint64_t va = store.va + bytes_;
        const auto fails = [&](std::uint32_t fault) {
            fault_ = {fault, va};
            fault_pc_ = store.pc;
            return false;
        };
        const std::span<const std::byte> data = std::span(store.data).subspan(bytes_);
        const auto found = context_.mmu.translate(asid, va, data.size(), Access::kStore);
        if (!found) return fails(found.error().code);
        // Its tables have changed since: it is as if the store came late.
        if (found->target != ORR_TARGET_PEER) return fails(ORR_FAULT_NOT_MAPPED);
        PeerPort* const link = ways.to(context_.peers, found->node);
        if (link == nullptr) return fails(context_.peers.fault_of(found->node));
        const LinkSend sent = link->write(found->node, found->address, data, now);
        if (sent.fault != ORR_FAULT_NONE) return fails(sent.fault);
        if (sent.bytes == 0) {
            parked_ = link;
            parked_node_ = found->node;
            return true;
        }
        left_ = std::max(left_, sent.sent_ps);
        bytes_ += sent.bytes;
        if (bytes_ != store.data.size()) continue;
        bytes_ = 0;
        ++sent_;
    }
    stores_.clear();
    sent_ = 0;
    return true;
}

void PeerAccess::look_at_ways(Ways& ways) {
    const auto lost = [&](const auto& one) {
        if (one.tag == 0 || ways.to(context_.peers, one.node) == one.link) return false;
        one.link->abandon(one.tag);
        --in_flight_;
        return true;
    };
    for (Piece& piece : pieces_)
        if (lost(piece)) came(piece, context_.peers.fault_of(piece.node));
    if (atomic_ && lost(*atomic_)) came(*atomic_, {.fault = context_.peers.fault_of(atomic_->node)});
}

PeerAccess::Next PeerAccess::go_on(std::uint32_t asid, Ways& ways, ModelTime now) {
    rests_ = waits_ = false;
    parked_ = nullptr;
    const auto park = [&] {
        parked_->wait_for_room(parked_node_, event_);
        return Next::kWaits;
    };
    if (!send_stores(asid, ways, now)) return Next::kFailed;
    if (!stores_.empty()) return park();
    if (left_ > now) {
        rests_ = true;
        context_.events.schedule(event_, left_);
        return Next::kWaits;
    }
    if (in_flight_ != 0) look_at_ways(ways);
    if (fresh_) merge();
    Sent how = Sent::kYes;
    for (std::size_t i = 0; wanted_ != 0 && in_flight_ < kMostReads && how == Sent::kYes; ++i)
        if (pieces_[i].state == Piece::State::kWanted) how = send(pieces_[i], asid, ways, now);
    if (how == Sent::kYes && atomic_ && !atomic_->sent && !atomic_->here)
        how = send(*atomic_, asid, ways, now);
    if (idle()) return Next::kGoOn;
    waits_ = in_flight_ != 0;
    if (waits_) return Next::kWaits;
    if (how == Sent::kNoRoom) return park();
    context_.events.schedule(event_, later(now, kAgainPs));
    return Next::kWaits;
}

void PeerAccess::answered(std::uint32_t tag, const LinkAnswer& answer) {
    const auto piece = std::ranges::find(pieces_, tag, &Piece::tag);
    if (piece != pieces_.end())
        came(*piece, answer.fault);
    else if (atomic_ && atomic_->tag == tag)
        came(*atomic_, answer);
    else
        return;
    --in_flight_;
    if (in_flight_ == 0 || wanted_ != 0) ways_changed();
}

void PeerAccess::ways_changed() {
    if (std::exchange(waits_, false)) context_.events.schedule(event_, context_.events.now());
}

void PeerAccess::wake() {
    if (parked_ != nullptr) {
        std::exchange(parked_, nullptr)->forget(event_);
        waits_ = true;
    }
    ways_changed();
}

void PeerAccess::forget() {
    if (parked_ != nullptr) parked_->forget(event_);
    for (const Piece& piece : pieces_)
        if (piece.tag != 0) piece.link->abandon(piece.tag);
    if (atomic_ && atomic_->tag != 0) atomic_->link->abandon(atomic_->tag);
    pieces_.clear();
    atomic_.reset();
    stores_.clear();
    parked_ = nullptr;
    sent_ = bytes_ = 0;
    left_ = 0;
    wanted_ = in_flight_ = 0;
    fresh_ = rests_ = waits_ = false;
}

}  // namespace orrery::emu
