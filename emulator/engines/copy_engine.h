// The copy engine: copies in up to five dimensions, lists of copies, and fills between VRAM, host memory and
// the VRAM of linked cards; copies with reduction from all of these into VRAM and host memory.
// copy_engine_pull.cc has what comes from another card.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include <orrery/hw/save.h>

#include "emulator/base/tlb_tags.h"
#include "emulator/engines/copy_ledger.h"
#include "emulator/engines/engine.h"
#include "emulator/engines/long_descriptor.h"
#include "emulator/engines/ways.h"

namespace orrery::emu {

// Model rates of a copy engine, from the SKU. A copy takes setup_ps, then its bytes at the engine's rate or
// at what it gets of the ways to the memories that they touch, and at last the latency of its reads; a peer
// as destination adds what the link port says. For its first pages it waits; those behind them it looks up
// ahead, so that their walks take bandwidth only.
struct CopyRates {
    ModelTime setup_ps = 200 * kPsPerNs;
    ModelTime row_ps = 0;  // at least, for each row after the first, and for each entry of a list
    std::uint64_t engine_bytes_per_second = 400'000'000'000;
    std::uint64_t in_flight =
        0;  // lines of 64 bytes that it asks for before the first has come; 0: any number
    std::uint32_t peer_reads =
        16;  // of PeerPort::kMostRead that it asks other cards for before the first has come
    std::uint32_t tlb_entries = 0;  // pages whose translation it has at hand; 0: translations cost nothing
};

class CopyEngine final : public EnginePort, private Asker {
  public:
    // `port` is the number that completions carry, `cores` what the size of a save area goes by.
    CopyEngine(std::uint32_t port, const CopyRates& rates, EngineContext& context, std::uint32_t cores = 1);
    ~CopyEngine() override { join(); }

    EngineKind properties() const override {
        return {.kind = ORR_ENGINE_COPY,
                .descriptor_bytes = sizeof(orr_desc_box),
                .preempt = 1u << SOC_PREEMPT_GROUP | 1u << SOC_PREEMPT_NOW};
    }
    bool start(const DescriptorWords& descriptor, std::uint32_t tag) override;
    std::optional<std::uint64_t> work_of(const DescriptorWords& descriptor) const override {
        return emu::work_of(descriptor, ORR_ENGINE_COPY, cores_);
    }
    bool preempt(Preempt mode, std::uint64_t save) override;
    bool resume(std::uint64_t save, std::uint32_t tag) override;
    void abort() override;
    bool busy() const override { return busy_; }
    ModelTime used() const override;
    // What that went into.
    CopyLedger::Times times() const;
    void reset() override;

    // Host work of one event: bytes moved, and pieces that they came in.
    static constexpr std::uint64_t kChunkBytes = Resource::kMostPiece;
    static constexpr unsigned kChunkPieces = 512;
    // And the model time that it takes while nobody else uses the same memories.
    static constexpr ModelTime kChunkPs = Resource::kPiecePs;
    // A copy that waited for a link while the clock went on catches up with it: its bytes leave at the times
    // at which they would have left. How far back that may be, as it takes events at one moment.
    static constexpr ModelTime kMaxLagPs = 200'000 * kPsPerNs;

  private:
    // Memory on one side of the copy from the current position on; good while the MMU's generation stands.
    struct Run {
        Translation where;
        std::uint64_t used = 0;
        std::uint64_t left() const { return where.bytes - used; }
        std::uint8_t* host() const { return where.host + used; }
    };

    // The lines that one side of the copy touches. What goes on where the last piece ended does not pay again
    // for the line that they share.
    struct Lines {
        std::uint64_t end = ~std::uint64_t{0};  // of the last piece
        // Bytes of the lines that a piece adds.
        std::uint64_t add(const Run& run, std::uint64_t bytes);
    };

    // What one event moves.
    struct Chunk {
        ModelTime began = 0;
        ModelTime alone = 0;         // what it takes while nobody else is about
        std::uint64_t occupied = 0;  // bytes on the busiest way
    };

    void begin(std::uint32_t tag, ModelTime now);
    bool load(std::uint64_t save);
    bool accept(const DescriptorWords& descriptor);
    bool accept(const LongDescriptor& descriptor);
    void accept(const CopyJob& job);
    // Its descriptor is still in memory.
    bool is_unfetched() const { return pointer_.bytes != 0 && fetched_descriptor_.bytes == 0; }
    void fetch_descriptor(ModelTime now);
    // ORR_FAULT_NON_CANONICAL's address; nothing: both sides end below 2^64.
    std::optional<std::uint64_t> wraps() const;
    std::uint64_t src_va() const { return job_.src.at(place_) + column_; }
    std::uint64_t dst_va() const { return job_.dst.at(place_) + column_; }
    bool is_fill() const { return job_.kind == CopyJob::Kind::kFill; }
    bool is_reduction() const { return job_.kind == CopyJob::Kind::kReduce; }
    bool is_list() const { return job_.kind == CopyJob::Kind::kList; }
    bool is_tell() const { return job_.kind == CopyJob::Kind::kTell; }
    void tell(ModelTime now);
    bool finished() const;

    void on_event(ModelTime now);
    void work(ModelTime now);
    bool next_entry(Chunk& chunk);
    void charge(Chunk& chunk, std::uint64_t bytes, const Traffic& traffic, ModelTime by_itself);
    // Tells of a copy that holds the host up far longer than its model time says.
    void watch_cost();
    // Of the job, beside what the card counts.
    void count(bool in_host, bool write, std::uint64_t bytes) {
        job_counter_.add(in_host ? (write ? ORR_JOB_HOST_WRITTEN : ORR_JOB_HOST_READ)
                                 : (write ? ORR_JOB_VRAM_WRITTEN : ORR_JOB_VRAM_READ),
                         bytes);
    }
    void charge_list(Chunk& chunk, std::uint64_t va, bool in_host, bool huge);
    bool refill(Run& run, std::uint64_t va, Access access);
    // Entries of tables that are read for the pages of these bytes.
    std::uint64_t walks(std::uint64_t va, std::uint64_t bytes, bool huge);
    // True: the pages that it is at are not known before `free_`.
    bool waits_for_walks(ModelTime now);
    std::uint64_t move_piece(Chunk& chunk);
    // Into this card's or the host's memory. `lasts`: the bytes stay where they are until join().
    void store_piece(const std::byte* from, std::uint64_t bytes, bool lasts);
    // What of the memories that takes.
    void charge_store(Traffic& lines, std::uint64_t bytes);

    // --- from another card: asked for ahead, and taken in order ---
    struct Asked {
        std::uint32_t tag = 0;  // 0: it has come
        std::uint32_t node = 0;
        PeerPort* link = nullptr;
        unsigned port = 0;          // that link's number
        std::uint64_t va = 0;       // in the source
        std::uint64_t address = 0;  // and at the peer
        std::uint64_t bytes = 0, used = 0;
        LinkAnswer answer;
        std::vector<std::byte> data;
    };
    void answered(std::uint32_t tag, const LinkAnswer& answer) override;
    void ways_changed() override;
    std::uint64_t pull_piece(Chunk& chunk);
    // False: ended by a fault, with nothing on its way.
    bool ask(ModelTime at);
    enum class Sent : std::uint8_t { kYes, kNot, kEnded };
    Sent ask_one(ModelTime at);
    // Sends it. A reduction may read a multicast, whose switch combines.
    LinkAsk send(Asked& asked, ModelTime at);
    void ask_again(Asked& asked, ModelTime at);
    bool all_asked() const;
    void drop_asked();
    std::uint64_t send_piece(const std::byte* from, std::uint64_t bytes, ModelTime at);
    void advance(std::uint64_t bytes);
    // True: it does not lie behind the last one in the same plane.
    bool next_row(CopyJob::Place& place) const;
    void end(std::uint32_t status, std::uint64_t fault, std::uint64_t detail);
    void hand_in(ModelTime now);
    void count_time(ModelTime now);
    void leave_link();
    // What has been moved is there.
    void join();
    void make_pattern();
    orr_save_header saved() const;

    std::uint32_t port_;
    std::uint32_t cores_;
    CopyRates rates_;
    EngineContext& context_;
    Event event_;

    bool busy_ = false;
    bool ended_ = false;          // completion_ stands, and the event hands it in
    PeerPort* parked_ = nullptr;  // the link that had no room, and wakes event_
    std::uint32_t parked_node_ = 0;
    bool waits_ = false;  // for an answer, which wakes event_
    std::deque<Asked> asked_;
    std::vector<std::vector<std::byte>> buffers_;  // that are not in use
    CopyJob::Place ask_place_{};                   // what is asked for next
    std::uint64_t ask_column_ = 0;
    PeerPort* way_to(std::uint32_t node) { return ways_.to(context_.peers, node); }
    Ways ways_;
    DescriptorWords words_{};
    LongPointer pointer_;  // its bytes are 0 where `words_` are all there is
    LongDescriptor fetched_descriptor_;
    CopyJob job_;
    Completion completion_;
    JobCounter job_counter_;
    CopyJob::Place place_{};    // the row
    std::uint64_t column_ = 0;  // of a tell: the bytes that have been taken in
    // Of a list: the entry that stands in job_, whether it does, and the bytes of those from it on.
    std::uint32_t entry_ = 0;
    bool entry_read_ = false;
    std::uint32_t fetched_ = 0;  // entries before this one have passed their memory
    std::uint64_t left_ = 0;
    std::uint64_t generation_ = 0;
    TlbTags tlb_;
    bool looks_ahead_ = false;  // it has waited for the pages that it is at
    Run src_, dst_, ask_;
    Lines src_lines_, dst_lines_;
    std::uint64_t pieces_ = 0;  // what it has cost the host
    bool told_ = false;
    std::uint64_t save_ = 0;  // VRAM offset, for what ends with ORR_DONE_PREEMPTED
    ModelTime free_ = 0;      // when what has been moved is through the engine, memories and the link port
    ModelTime arrived_ = 0;   // and when the last of it has come from its source
    // The rates of the engine alone: what it does at all, and what its requests in flight allow.
    Resource engine_, vram_reads_, host_reads_;
    std::vector<std::byte> pattern_;
    CopyLedger ledger_;
};

}  // namespace orrery::emu
