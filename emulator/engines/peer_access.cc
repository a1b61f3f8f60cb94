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

// Of several that begin at or before `va` the last, as a rule: pieces are whole lines, but for those that
// came ahead.
PeerAccess::Piece* PeerAccess::find(std::uint64_t va) {
    const auto has = [va](const Piece& piece) {
        return va - piece.va < piece.bytes && piece.state == Piece::State::kHere;
    };
    const auto behind = std::ranges::upper_bound(pieces_, va, {}, &Piece::va);
    if (behind != pieces_.begin() && has(*(behind - 1))) return &*(behind - 1);
    const auto any = took_ahead_ ? std::ranges::find_if(pieces_, has) : pieces_.end();
    return any != pieces_.end() ? &*any : nullptr;
}

void PeerAccess::add(std::uint64_t va, std::uint64_t bytes, bool needed) {
    take_ahead(va, bytes);
    // What of it is in this line.
    const auto known = [&](std::uint64_t line) {
        const std::uint64_t from = std::max(line, va), to = std::min(line + kMemoryLine, va + bytes);
        return took_ahead_ && std::ranges::any_of(pieces_, [&](const Piece& piece) {
                   return piece.va <= from && to <= piece.va + piece.bytes &&
                          piece.state != Piece::State::kNotThere;
               });
    };
    std::uint64_t line = va & ~(kMemoryLine - 1);
    for (std::uint64_t left = lines_of(va, bytes); left != 0; --left, line += kMemoryLine) {
        if (known(line)) continue;
        // What comes now must not be followed by an older view of it.
        take_ahead(line, kMemoryLine);
        Piece* const last = pieces_.empty() ? nullptr : &pieces_.back();
        const bool goes_on = last != nullptr && last->state == Piece::State::kWanted &&
                             last->va + last->bytes == line && (line & kPageMask) != 0;
        if (goes_on) {
            last->bytes += kMemoryLine;
            last->needed |= needed;
            continue;
        }
        pieces_.push_back({.va = line, .bytes = kMemoryLine, .needed = needed});
        ++wanted_;
    }
    fresh_ = true;
}

void PeerAccess::begin_step(std::uint64_t step) {
    for (const Piece& piece : pieces_) {
        if (piece.tag == 0) continue;
        piece.link->abandon(piece.tag);
        --in_flight_;
    }
    pieces_.clear();
    took_ahead_ = false;
    wanted_ = 0;
    step_ = step;
}

PeerAccess::Got PeerAccess::load(std::uint64_t step, std::uint64_t va, unsigned size, std::uint64_t& value) {
    used_ = true;
    if (step != step_) begin_step(step);
    const Piece* piece = find(va);
    if (piece == nullptr && !ahead_.empty()) {
        take_ahead(va, size);
        piece = find(va);
    }
    if (piece == nullptr) {
        add(va, size, true);
        return Got::kNotYet;
    }
    if (piece->fault != ORR_FAULT_NONE) {
        fault_ = {piece->fault, va};
        return Got::kFault;
    }
    value = 0;
    // Of one that came ahead the last element may be cut.
    if (piece->bytes - (va - piece->va) < size) {
        begin_step(step);
        add(va, size, true);
        return Got::kNotYet;
    }
    std::memcpy(&value, piece->data.data() + (va - piece->va), size);
    return Got::kHere;
}

bool PeerAccess::foresee(std::uint64_t va, std::uint64_t bytes, bool row) {
    if (row) follow_row(va, bytes);
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
    used_ = true;
    drop_ahead();
    if (!atomic_ || !atomic_->here || atomic_->step.value_or(step) != step || atomic_->va != va ||
        atomic_->what != what) {
        forget_atomic();
        atomic_ = std::make_unique<Atomic>(this, step, va, what);
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
    used_ = true;
    drop_ahead();
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    const bool goes_on =
        !stores_.empty() && stores_.back().va + stores_.back().data.size() == va && (va & kPageMask) != 0;
    if (!goes_on) stores_.push_back({.va = va, .pc = pc, .data = {}});
    stores_.back().data.insert(stores_.back().data.end(), bytes, bytes + size);
}

PeerAccess::Got PeerAccess::release(std::uint64_t pc) {
    if (stored_.empty() && stores_.empty()) return Got::kHere;
    releases_ = true;
    release_pc_ = pc;
    return Got::kNotYet;
}

// --- ahead ---

void PeerAccess::take_ahead(std::uint64_t va, std::uint64_t bytes) {
    const auto has = [&](const Piece& piece) { return va < piece.va + piece.bytes && piece.va < va + bytes; };
    if (std::ranges::none_of(ahead_, has)) return;
    for (Piece& piece : ahead_) {
        if (!has(piece)) continue;
        Row& row = rows_.at(piece.row);
        row.next = piece.next;
        row.come += piece.bytes;
        row.asked = std::max(row.asked, row.next);
        if (piece.state == Piece::State::kSent) {
            --ahead_in_flight_;
            ++in_flight_;
        }
        pieces_.push_back(std::move(piece));
    }
    std::erase_if(ahead_, has);
    goes_ahead_ = took_ahead_ = true;
    // Before anything is wanted find() looks here.
    if (wanted_ == 0) std::ranges::sort(pieces_, {}, &Piece::va);
}

void PeerAccess::follow_row(std::uint64_t va, std::uint64_t bytes) {
    if (bytes > most_ahead_) return;
    // It was asked for ahead, and is on its way.
    if (took_ahead_ && std::ranges::find(rows_, va + bytes, &Row::next) != rows_.end()) return;
    const auto same = std::ranges::find_if(rows_, [va](const Row& row) {
        return va + row.bytes > row.next && va <= row.asked && row.bytes != 0;
    });
    const bool goes_on = same != rows_.end() && same->next == va && same->bytes == bytes;
    // One that went out of step, or is given up for another.
    if (!goes_on && same != rows_.end()) drop_ahead();
    if (same == rows_.end()) {
        last_row_ = (last_row_ + 1) % kRows;
        if (std::ranges::find(ahead_, last_row_, &Piece::row) != ahead_.end()) drop_ahead();
    }
    Row& row = same != rows_.end() ? *same : rows_.at(last_row_);
    const std::uint64_t next = va + bytes;
    row = {.bytes = bytes,
           .next = next,
           .asked = goes_on ? std::max(row.asked, next) : next,
           .come = goes_on ? row.come + bytes : bytes,
           .goes_on = goes_on};
    goes_ahead_ |= goes_on;
}

void PeerAccess::send_ahead(std::uint32_t asid, Ways& ways, ModelTime now) {
    for (unsigned number = 0; number < rows_.size(); ++number) {
        Row& row = rows_.at(number);
        while (row.goes_on && in_flight_ + ahead_in_flight_ < most_reads_) {
            // One of its loads, or the part that is in the same page.
            const std::uint64_t next = row.next + ((row.asked - row.next) / row.bytes + 1) * row.bytes;
            if (next > row.next + std::min(most_ahead_, row.come)) break;
            const std::uint64_t bytes = std::min(next - row.asked, ORR_PAGE_SIZE - (row.asked & kPageMask));
            Piece piece{.va = row.asked, .bytes = bytes, .row = number, .next = next};
            const unsigned needed = in_flight_;
            const Sent how = send(piece, asid, ways, now);
            if (how == Sent::kNoRoom) parked_ = nullptr;
            if (how == Sent::kNoRoom || how == Sent::kTryAgain) break;
            row.goes_on = piece.state == Piece::State::kSent;
            if (!row.goes_on) break;
            in_flight_ = needed;
            ++ahead_in_flight_;
            row.asked += bytes;
            ahead_.push_back(std::move(piece));
        }
    }
}

// What could not be read is no news: who needs it asks.
void PeerAccess::came_ahead(std::uint32_t tag, std::uint32_t fault) {
    const auto piece = std::ranges::find(ahead_, tag, &Piece::tag);
    if (piece == ahead_.end()) return;
    --ahead_in_flight_;
    came(*piece, fault);
    if (piece->state == Piece::State::kNotThere) ahead_.erase(piece);
}

void PeerAccess::drop_ahead() {
    for (const Piece& piece : ahead_)
        if (piece.tag != 0) piece.link->abandon(piece.tag);
    ahead_.clear();
    ahead_in_flight_ = 0;
    goes_ahead_ = false;
    for (Row& row : rows_)
        row.asked = row.next;
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
        return Sent::kYes;
    }
    if (ask.fault == ORR_FAULT_PEER_BUSY) return Sent::kTryAgain;
    parked_ = link;
    parked_node_ = node;
    return Sent::kNoRoom;
}

PeerAccess::Sent PeerAccess::send(Piece& piece, std::uint32_t asid, Ways& ways, ModelTime now) {
    const auto ends = [&](std::uint32_t fault) {
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
    piece.data.resize(piece.bytes);
    const LinkAsk ask = link->read(found->node, found->address, piece.data, now, *this);
    if (ask.tag == 0 && ask.fault != ORR_FAULT_NONE && ask.fault != ORR_FAULT_PEER_BUSY)
        return ends(ask.fault);
    const Sent how = sent(ask, found->node, link);
    if (how != Sent::kYes) return how;
    moved_.read += piece.bytes;
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
    const LinkAsk ask = link->atomic(found->node, found->address, atomic.what, now, atomic);
    if (ask.tag == 0 && ask.fault != ORR_FAULT_NONE && ask.fault != ORR_FAULT_PEER_BUSY)
        return ends(ask.fault);
    const Sent how = sent(ask, found->node, link);
    if (how != Sent::kYes) return how;
    moved_.read += atomic.what.bytes;
    moved_.written += atomic.what.bytes;
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
        if (std::ranges::find(stored_, found->node, &Stored::node) == stored_.end())
            stored_.push_back({.node = found->node,
                               .va = va,
                               .link = link,
                               .session = link->session(),
                               .route = context_.peers.route(found->node)});
        left_ = std::max(left_, sent.sent_ps);
        moved_.written += sent.bytes;
        bytes_ += sent.bytes;
        if (bytes_ != store.data.size()) continue;
        bytes_ = 0;
        ++sent_;
    }
    stores_.clear();
    sent_ = 0;
    return true;
}

bool PeerAccess::fails(std::uint32_t fault, std::uint64_t va, std::uint64_t pc) {
    fault_ = {fault, va};
    fault_pc_ = pc;
    return false;
}

// Also of a group that was saved meanwhile, whose launch has forgotten its ways.
bool PeerAccess::is_way_of(const Stored& one) const {
    return one.link->session() == one.session && context_.peers.route(one.node) == one.route;
}

bool PeerAccess::ask_stored(ModelTime now, Sent& how) {
    if (release_fault_ != ORR_FAULT_NONE) return fails(release_fault_, release_va_, release_pc_);
    for (Stored& one : stored_) {
        if (context_.peers.towards(one.node) != one.link || !is_way_of(one))
            return fails(context_.peers.fault_of(one.node), one.va, release_pc_);
        if (one.tag != 0 || how != Sent::kYes || in_flight_ >= most_reads_) continue;
        const LinkAsk ask = one.link->read(one.node, 0, {}, now, *this);
        if (ask.tag == 0 && ask.fault != ORR_FAULT_NONE && ask.fault != ORR_FAULT_PEER_BUSY)
            return fails(ask.fault, one.va, release_pc_);
        how = sent(ask, one.node, one.link);
        one.tag = ask.tag;
    }
    releases_ = !stored_.empty();
    return true;
}

// What came from there was behind all stores that had been sent.
void PeerAccess::arrived(std::uint32_t node, const PeerPort* link) {
    std::erase_if(stored_, [&](const Stored& one) {
        return one.node == node && one.link == link && one.tag == 0 && is_way_of(one);
    });
}

void PeerAccess::look_at_ways(Ways& ways) {
    const auto lost = [&](const auto& one) {
        if (one.tag == 0 || ways.to(context_.peers, one.node) == one.link) return false;
        one.link->abandon(one.tag);
        --in_flight_;
        return true;
    };
    const bool good = std::ranges::all_of(
        ahead_, [&](const Piece& piece) { return ways.to(context_.peers, piece.node) == piece.link; });
    if (!good) drop_ahead();
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
    if (in_flight_ != 0 || !ahead_.empty()) look_at_ways(ways);
    if (fresh_) merge();
    Sent how = Sent::kYes;
    for (std::size_t i = 0; wanted_ != 0 && in_flight_ < most_reads_ && how == Sent::kYes; ++i) {
        if (pieces_[i].state != Piece::State::kWanted) continue;
        how = send(pieces_[i], asid, ways, now);
        if (how == Sent::kYes) --wanted_;
    }
    if (how == Sent::kYes && atomic_ && !atomic_->sent && !atomic_->here)
        how = send(*atomic_, asid, ways, now);
    if (releases_ && !ask_stored(now, how)) return Next::kFailed;
    if (std::exchange(goes_ahead_, false) && wanted_ == 0 && how == Sent::kYes) send_ahead(asid, ways, now);
    if (idle()) return Next::kGoOn;
    waits_ = in_flight_ != 0;
    if (waits_) return Next::kWaits;
    if (how == Sent::kNoRoom) return park();
    context_.events.schedule(event_, later(now, kAgainPs));
    return Next::kWaits;
}

void PeerAccess::answered(std::uint32_t tag, const LinkAnswer& answer) {
    if (const auto one = std::ranges::find(stored_, tag, &Stored::tag); one != stored_.end()) {
        // Of what has no answer of its own, as a multicast, this is all that there is.
        const bool good = answer.fault == ORR_FAULT_NONE || answer.fault == ORR_FAULT_NO_ROUTE;
        if (!good) {
            release_fault_ = answer.fault;
            release_va_ = one->va;
        }
        stored_.erase(one);
        return one_came();
    }
    const auto piece = std::ranges::find(pieces_, tag, &Piece::tag);
    if (piece == pieces_.end()) return came_ahead(tag, answer.fault);
    if (answer.fault == ORR_FAULT_NONE) arrived(piece->node, piece->link);
    came(*piece, answer.fault);
    one_came();
}

void PeerAccess::one_came() {
    --in_flight_;
    if (in_flight_ == 0 || wanted_ != 0) ways_changed();
}

void PeerAccess::Atomic::answered(std::uint32_t, const LinkAnswer& its_answer) {
    came(*this, its_answer);
    if (core == nullptr) return;
    if (its_answer.fault == ORR_FAULT_NONE) core->arrived(node, link);
    core->one_came();
}

// Without a core it is looked for when the group goes on; the port tells when no answer can come any more.
void PeerAccess::Atomic::ways_changed() {
    if (core != nullptr) core->ways_changed();
}

void PeerAccess::Atomic::abandon() {
    if (tag != 0) link->abandon(std::exchange(tag, 0));
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

std::unique_ptr<PeerAccess::Owed> PeerAccess::leave() {
    std::unique_ptr<Owed> owed;
    const bool sent = atomic_ && atomic_->sent;
    if (sent || !stores_.empty() || !stored_.empty()) owed = std::make_unique<Owed>();
    if (sent) {
        atomic_->core = nullptr;
        if (atomic_->tag != 0) atomic_->link->put_aside(atomic_->tag, true);
        owed->atomic_ = std::move(atomic_);
    }
    if (!stores_.empty()) {
        owed->stores_ = std::move(stores_);
        owed->sent_ = sent_;
        owed->bytes_ = bytes_;
    }
    if (owed) {
        for (Stored& one : stored_)
            if (one.tag != 0) one.link->abandon(std::exchange(one.tag, 0));
        owed->stored_ = std::move(stored_);
    }
    forget();
    return owed;
}

void PeerAccess::take(std::unique_ptr<Owed> owed) {
    used_ = true;
    stores_ = std::move(owed->stores_);
    sent_ = owed->sent_;
    bytes_ = owed->bytes_;
    stored_ = std::move(owed->stored_);
    atomic_ = std::move(owed->atomic_);
    if (!atomic_) return;
    atomic_->core = this;
    atomic_->step.reset();
    if (atomic_->here) return;
    ++in_flight_;
    atomic_->link->put_aside(atomic_->tag, false);
}

void PeerAccess::forget_atomic() {
    if (!atomic_) return;
    if (atomic_->tag != 0) --in_flight_;
    atomic_->abandon();
    atomic_.reset();
    // It waits for nothing, maybe.
    ways_changed();
}

void PeerAccess::forget() {
    used_ = false;
    if (parked_ != nullptr) parked_->forget(event_);
    for (const Piece& piece : pieces_)
        if (piece.tag != 0) piece.link->abandon(piece.tag);
    if (atomic_) atomic_->abandon();
    drop_ahead();
    rows_ = {};
    pieces_.clear();
    took_ahead_ = false;
    atomic_.reset();
    stores_.clear();
    for (const Stored& one : stored_)
        if (one.tag != 0) one.link->abandon(one.tag);
    stored_.clear();
    releases_ = false;
    release_fault_ = ORR_FAULT_NONE;
    parked_ = nullptr;
    sent_ = bytes_ = 0;
    left_ = 0;
    wanted_ = in_flight_ = 0;
    fresh_ = rests_ = waits_ = false;
}

}  // namespace orrery::emu
