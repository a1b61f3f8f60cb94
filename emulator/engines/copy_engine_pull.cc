// What a copy engine reads from other cards. It asks ahead of where it is, for as much as it may have on its
// way, and takes the answers in the order of the copy. The place of the copy is that of what has been stored:
// what was only asked for is asked for again after a preemption.
#include <algorithm>
#include <utility>

#include "emulator/engines/copy_engine.h"
#include "emulator/time/rate.h"

namespace orrery::emu {

namespace {

// Until it asks again for a tag, of which so many are not in use for long.
constexpr ModelTime kAgainPs = 1'000 * kPsPerNs;

}  // namespace

void CopyEngine::answered(std::uint32_t tag, const LinkAnswer& answer) {
    const auto asked = std::ranges::find(asked_, tag, &Asked::tag);
    if (asked == asked_.end()) return;
    asked->tag = 0;
    asked->answer = answer;
    if (waits_ && asked == asked_.begin()) ways_changed();
}

void CopyEngine::ways_changed() {
    if (std::exchange(waits_, false)) context_.events.schedule(event_, context_.events.now());
}

void CopyEngine::drop_asked() {
    for (Asked& asked : asked_) {
        if (asked.tag != 0) asked.link->abandon(asked.tag);
        buffers_.push_back(std::move(asked.data));
    }
    asked_.clear();
    ask_ = {};
    waits_ = false;
}

bool CopyEngine::all_asked() const {
    if (is_list()) return ask_column_ == job_.row_bytes;
    return ask_place_.back() == job_.count.back();
}

LinkAsk CopyEngine::send(Asked& asked, ModelTime at) {
    const std::span<std::byte> to = std::span(asked.data).first(asked.bytes);
    return is_reduction() ? asked.link->reduce(asked.node, asked.address, to, job_.how, at, *this)
                          : asked.link->read(asked.node, asked.address, to, at, *this);
}

// A switch had no room for it. Its answer took as long as one with bytes may, so it is asked at once.
void CopyEngine::ask_again(Asked& asked, ModelTime at) {
    if (way_to(asked.node) != asked.link)
        return end(ORR_DONE_FAULT, context_.peers.fault_of(asked.node), asked.va);
    const LinkAsk ask = send(asked, at);
    if (ask.fault != ORR_FAULT_NONE && ask.fault != ORR_FAULT_PEER_BUSY)
        return end(ORR_DONE_FAULT, ask.fault, asked.va);
    asked.tag = ask.tag;
    if (ask.tag != 0) {
        waits_ = true;
    } else if (ask.fault == ORR_FAULT_NONE) {
        parked_ = asked.link;
        parked_node_ = asked.node;
    } else {
        free_ = ledger_.need(CopyLedger::kPeer, later(at, kAgainPs));
    }
}

CopyEngine::Sent CopyEngine::ask_one(ModelTime at) {
    const auto blocked = [&](std::uint32_t fault, std::uint64_t va) {
        // What is on its way comes first.
        if (!asked_.empty()) return Sent::kNot;
        end(ORR_DONE_FAULT, fault, va);
        return Sent::kEnded;
    };
    const std::uint64_t va = job_.src.at(ask_place_) + ask_column_;
    if (ask_.left() == 0) {
        const std::uint64_t wanted = std::min(job_.row_bytes - ask_column_, PeerPort::kMostRead * 16);
        const auto found = context_.mmu.translate(job_.asid, va, wanted, Access::kPull);
        if (!found) return blocked(found.error().code, found.error().va);
        ask_ = {*found, 0};
        if (found->target == ORR_TARGET_PEER) {
            const std::uint64_t walked = walks(va, found->bytes, found->huge) * kMemoryLine;
            context_.memory.vram(ORR_CTR_VRAM_COPY_BYTES).reserve(at, walked);
            count(false, false, walked);
        }
    }
    // What follows is this card's own, and is read when the copy gets there.
    if (ask_.where.target != ORR_TARGET_PEER) return Sent::kNot;
    const std::uint32_t node = ask_.where.node;
    PeerPort* const link = way_to(node);
    if (link == nullptr) return blocked(context_.peers.fault_of(node), va);
    Asked asked;
    asked.node = node;
    asked.link = link;
    asked.port = context_.peers.port_of(node);
    asked.va = va;
    asked.address = ask_.where.address + ask_.used;
    asked.bytes = std::min<std::uint64_t>({ask_.left(), job_.row_bytes - ask_column_, PeerPort::kMostRead});
    if (!buffers_.empty()) {
        asked.data = std::move(buffers_.back());
        buffers_.pop_back();
    }
    asked.data.resize(PeerPort::kMostRead);
    const LinkAsk ask = send(asked, at);
    if (ask.fault != ORR_FAULT_NONE && ask.fault != ORR_FAULT_PEER_BUSY) return blocked(ask.fault, va);
    if (ask.tag == 0) {
        if (asked_.empty() && ask.fault == ORR_FAULT_NONE) {
            parked_ = link;
            parked_node_ = node;
        }
        buffers_.push_back(std::move(asked.data));
        return Sent::kNot;
    }
    asked.tag = ask.tag;
    ask_column_ += asked.bytes;
    ask_.used += asked.bytes;
    asked_.push_back(std::move(asked));
    if (ask_column_ == job_.row_bytes && !is_list()) {
        ask_column_ = 0;
        ask_ = {};
        next_row(ask_place_);
    }
    return Sent::kYes;
}

bool CopyEngine::ask(ModelTime at) {
    while (asked_.size() < rates_.peer_reads && !all_asked()) {
        const Sent sent = ask_one(at);
        if (sent != Sent::kYes) return sent != Sent::kEnded;
    }
    return true;
}

std::uint64_t CopyEngine::pull_piece(Chunk& chunk) {
    if (asked_.empty()) {
        ask_place_ = place_;
        ask_column_ = column_;
        src_ = ask_ = {};
    }
    if (!ask(chunk.began)) return 0;
    if (asked_.empty()) {
        if (parked_ == nullptr) free_ = ledger_.need(CopyLedger::kPeer, later(chunk.began, kAgainPs));
        return 0;
    }
    Asked& first = asked_.front();
    if (first.tag != 0) {
        if (way_to(first.node) != first.link) {
            end(ORR_DONE_FAULT, context_.peers.fault_of(first.node), first.va);
        } else {
            waits_ = true;
        }
        return 0;
    }
    if (first.answer.fault == ORR_FAULT_PEER_BUSY) {
        ask_again(first, std::max(chunk.began, first.answer.came));
        return 0;
    }
    if (first.answer.fault != ORR_FAULT_NONE) {
        end(ORR_DONE_FAULT, first.answer.fault, first.va);
        return 0;
    }
    if (!refill(dst_, dst_va(), Access::kStore)) return 0;
    // It is stored while it comes.
    const bool to_peer = dst_.where.target == ORR_TARGET_PEER;
    const ModelTime there = to_peer ? first.answer.came : first.answer.began;
    if (there > chunk.began) {
        chunk.began = there;
        ledger_.close();
        ledger_.plan(CopyLedger::kPeer, there);
        ledger_.open(there);
    }
    const std::uint64_t room = std::max(
        (kChunkBytes - std::min(kChunkBytes, chunk.occupied)) / kMemoryLine * kMemoryLine, kMemoryLine);
    std::uint64_t bytes = std::min({first.bytes - first.used, dst_.left(), room});
    const std::byte* const from = first.data.data() + first.used;
    ModelTime by_itself = 0;
    if (to_peer) {
        bytes = send_piece(from, bytes, chunk.began);
        if (bytes == 0) return 0;
        if (const PeerPort* link = context_.peers.towards(dst_.where.node))
            by_itself = duration_ps(bytes, link->bytes_per_second());
    } else {
        store_piece(from, bytes, false);
    }
    Traffic lines;
    charge_store(lines, bytes);
    charge(chunk, bytes, lines, by_itself);
    job_counter_.add(ORR_JOB_LINK_READ, bytes);
    job_counter_.mark(ORR_JOB_LINK_PORTS, first.port);
    first.used += bytes;
    if (first.used == first.bytes) {
        free_ = std::max(free_, ledger_.need(CopyLedger::kPeer, first.answer.came));
        buffers_.push_back(std::move(first.data));
        asked_.pop_front();
    }
    arrived_ = std::max(arrived_, free_);
    return bytes;
}

}  // namespace orrery::emu
