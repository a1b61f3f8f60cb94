// All memory that user code sees: which addresses belong to which card, what is behind them, and who else may
// write there. Addresses are unique over the process: a card's memory lies in a range that the process keeps
// reserved for it, pinned host memory lies where the CPU has mapped it.
//
// Card memory below kOwnBlock bytes comes out of slabs, larger pieces have a buffer of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "umd/runtime/range_allocator.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

constexpr int kHost = -1;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHugePage = 2 << 20;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
    return (value + to - 1) / to * to;
}

inline constexpr std::uint32_t kReadWrite = ORR_BIND_READ | ORR_BIND_WRITE;

// Where memory of another machine was found when it was imported.
struct Abroad {
    std::uint32_t node = 0;  // 0: it is no such memory
    int device = kHost;      // that imported it
    std::uint32_t port = 0, losses = 0;
    bool known = false;  // the port, by which it was reached, and how often its link had gone down
};

// To a member of a multicast, as it was before that was made: see Context::way_to().
struct MulticastWay {
    int device = kHost;
    std::uint64_t way = 0;
};

// A buffer, bound on its own card at va, and on others where they have imported it.
struct Block {
    int device = kHost;  // that created it; for pinned host memory too
    BoKind kind = BoKind::kVram;
    std::unique_ptr<Bo> bo;
    std::uint64_t va = 0;
    std::uint64_t size = 0;
    std::map<int, std::unique_ptr<Bo>> imports;  // by card
    std::map<int, Error> refused;                // cards on which the import failed, and why
    bool imported = false;                       // another process made it
    bool elsewhere = false;                      // another machine's, or a multicast: see Allocation
    Abroad abroad;
    std::vector<MulticastWay> members;  // of a multicast
    bool combines = false;              // which is read in copies with reduction
    std::vector<FabricKey> keys;        // by which other machines may have it
};

struct Allocation {
    int device = kHost;  // kHost: pinned
    std::uint64_t va = 0;
    std::uint64_t bytes = 0;  // as asked for
    Block* block = nullptr;
    // A module's, which nobody frees and no other card sees.
    enum class Variable : std::uint8_t { kNone, kWritable, kConstant } variable = Variable::kNone;
    // Of a card of another machine, or a multicast: `device` can write there, nobody here can do anything
    // else but what Block::combines says.
    bool elsewhere = false;
    const char* where() const { return block->members.empty() ? "another machine's memory" : "a multicast"; }
};

// What has become of a card's heap, in orr_desc_tell's words.
struct HeapChange {
    std::uint16_t what = 0;  // ORR_TELL_*
    std::uint64_t va = 0, bytes = 0;
};

// Thread safe. Devices are numbers of attach(); their Device objects outlive this one.
class Memory {
  public:
    ~Memory() { clear(); }
    // Gives all back to the cards, whose Device objects may go then.
    void clear();

    // Reserves the card's range of addresses; nothing when called again.
    Status reserve(int device, Device& winsys, std::uint64_t vram_bytes);
    // The card has its address space now: lets it see all pinned memory of before and later.
    void attach(int device, bool reads_peers);

    // own: in a buffer that holds nothing else, whatever its size.
    Result<std::uint64_t> allocate_device(int device, std::uint64_t bytes, bool own = false);
    // `device` is the attached card that makes the buffer.
    Result<std::uint64_t> allocate_host(int device, std::uint64_t bytes);
    Status free(std::uint64_t va);
    // All of them, at once on all cards. What is none of its allocations is left out.
    void free(std::span<const std::uint64_t> all);

    // For another process: the allocation that begins here, which has to be alone in its buffer.
    Result<UniqueFd> export_fd(std::uint64_t va);
    // Device::import_fd() while nobody imports anything on any card: on cards that do not have the buffer it
    // makes and closes a handle, which others would meet.
    Result<std::optional<ForeignBo>> probe(Device& card, int fd);
    // What another process exported, at an address of ours until it is freed. `device` has it, or made it.
    Result<Allocation> import(int device, ForeignBo foreign);

    // For other machines: the allocation that begins here, as export_fd().
    Result<FabricKey> export_fabric(std::uint64_t va);
    // The same of such a block, which is a semaphore.
    Result<FabricKey> export_fabric(Block& block);
    // Of this process; false: it is not, or was revoked.
    bool revoke_fabric(const FabricKey& key);
    // What Device::import_fabric() gave, which may take seconds; also outside of the user's heap.
    Result<Allocation> import_elsewhere(int device, std::unique_ptr<Bo> bo, std::uint32_t node);
    Result<Block*> import_elsewhere_block(int device, std::unique_ptr<Bo> bo, std::uint32_t node);
    // Of what is at this address, also of a block without an allocation.
    Abroad abroad(std::uint64_t va) const;
    // What `device` writes at once to the first bytes of these allocations, which begin there. `combines`:
    // and reads, in copies with reduction. `ways`: to other cards, as they were before.
    Result<Allocation> make_multicast(int device, std::span<const std::uint64_t> members, std::uint64_t bytes,
                                      bool combines, const std::map<int, std::uint64_t>& ways);

    std::optional<Allocation> find(std::uint64_t va) const;
    // For those who tell what copies did: a card, or an orrProfPlace; also of what is no allocation.
    int place_of(std::uint64_t va) const;
    std::pair<int, int> places_of(std::uint64_t first, std::uint64_t second) const;
    // Allocation that holds all of [va, va + bytes); an error that says what is wrong otherwise.
    Result<Allocation> find_range(std::uint64_t va, std::uint64_t bytes, const char* what) const;
    // "1,024 bytes past the end of the allocation of 4,096 bytes at 0x... on device 0"
    std::string describe(std::uint64_t va) const;

    // From here on changes of the card's heap are kept until somebody takes them, in their order.
    void keep_changes(int device);
    std::vector<HeapChange> take_changes(int device);
    // Before those that came since.
    void put_back(int device, std::vector<HeapChange> changes);

    // Lets `device` write to all memory of `peer`, of now and later.
    Status enable_peer(int device, int peer);
    // Memory that came while no way led to its card is not seen by those who may write there. Whoever looks
    // for it, or lets kernels do so, has it offered again first: to each device that reaches the peer now.
    bool awaits_ways() const { return awaits_ways_.load(std::memory_order_acquire); }
    void offer_again(const std::function<bool(int device, int peer)>& reaches);
    bool peer_enabled(int device, int peer) const;
    // nullopt: it can. Otherwise why `device` cannot write to this allocation of another card.
    std::optional<Error> peer_refusal(int device, const Allocation& allocation) const;
    // The same of reading it.
    std::optional<Error> peer_read_refusal(int device, const Allocation& allocation) const;
    // nullopt: it can. Otherwise why `device` does not see this pinned memory.
    std::optional<Error> host_refusal(int device, const Allocation& allocation) const;
    // Whether a byte of [va, va + bytes) is a card's address, also when nothing is allocated there.
    bool on_cards(std::uint64_t va, std::uint64_t bytes) const;

    // A buffer of one card's own memory outside the user's heap, at its own address; readable and writable
    // by the card. See free_block().
    Result<Block*> create_block(int device, std::uint64_t bytes, BoKind kind);
    // Without a binding: the caller binds ranges of it (with protection) inside [va, va + size).
    Result<Block*> create_unbound_block(int device, std::uint64_t bytes, BoKind kind);
    // The same of what another process has made on this card: a buffer in its memory, or, bound with
    // ORR_BIND_WRITE alone, a page of its barrier unit, which its queues signal.
    Result<Block*> import_block(int device, std::unique_ptr<Bo> bo, std::uint32_t bind = kReadWrite);
    void free_block(Block* block);
    // A variable inside such a block, for all that looks for memory by its address, until the block goes.
    void add_variable(Block& block, std::uint64_t va, std::uint64_t bytes, bool constant);
    // Zeroed host memory outside the user's heap, in whole pages, which this card alone sees. What is small
    // shares a buffer: each is made, bound and mapped with a system call of its own.
    Result<Allocation> create_pinned(int device, std::uint64_t bytes);
    void free_pinned(const Allocation& piece);
    // Lets `device` write to and signal in this block of another card, also without enable_peer().
    Status share_block(Block& block, int device);
    // Lets `device` use what create_pinned() made on another card.
    Status share_pinned(const Allocation& piece, int device);

  private:
    static constexpr std::uint64_t kOwnBlock = 1 << 20;
    static constexpr std::uint64_t kSlabSize = 2 << 20;
    static constexpr std::uint64_t kAlignment = 256;
    static constexpr std::uint64_t kOwnPinned = 256 << 10, kPinnedSlab = 1 << 20;

    struct Slab {
        Block* block = nullptr;
        RangeAllocator free;
    };
    struct Card {
        Device* winsys = nullptr;
        bool attached = false;
        void* reserved = nullptr;
        std::uint64_t reserved_size = 0;
        RangeAllocator addresses;
        std::list<Slab> slabs;         // of its memory
        std::list<Slab> pinned_slabs;  // of create_pinned()
        std::set<int> may_write;       // peers whose memory this card may write, and read if both do that
        bool reads_peers = false;
        bool keeps_changes = false;
        std::vector<HeapChange> changes;
    };

    // All with changes_ held.
    Result<Block*> create(int device, std::uint64_t bytes, BoKind kind, bool bind);
    Result<Block*> place(int device, std::unique_ptr<Bo> bo, BoKind kind, std::uint32_t bind);
    // Lets all other attached cards see it; of one that cannot, the reason.
    Status offer_to_all(Block& block);
    Result<Block*> place_elsewhere(int device, std::unique_ptr<Bo> bo, std::uint32_t flags = ORR_BIND_WRITE);
    Result<Block*> place_abroad(int device, std::unique_ptr<Bo> bo, std::uint32_t node);
    // Of memory that others may get whole; an error otherwise.
    Result<Block*> block_to_export(std::uint64_t va);
    void destroy(Block* block) { destroy({&block, 1}); }
    void destroy(std::span<Block* const> blocks);
    // The block that goes with the allocation, if it does.
    Block* release(const Allocation& allocation);
    Block* release_from(std::list<Slab>& slabs, const Allocation& allocation, std::uint64_t alignment);
    void share_with_writers(Block& block);
    // ORR_BIND_*; with changes_ or mutex_ held.
    std::uint32_t peer_rights(int device, int peer) const;
    bool reads_peer(int device, int peer) const;
    Status share(Block& block, int device, std::uint32_t flags);
    // As share(), but a failure is kept for those who then use the memory on that card.
    void offer(Block& block, int device, std::uint32_t flags);
    Result<std::uint64_t> allocate_from_slab(int device, std::uint64_t bytes);
    void insert(const Allocation& allocation);
    void note(int device, std::uint16_t what, std::uint64_t va, std::uint64_t bytes);

    // changes_ orders those who change anything, and is held over system calls; mutex_ guards the tables
    // against those who only look, and is not: a copy never waits for an allocation. Changes take both, in
    // this order.
    std::mutex changes_;
    // Under mutex_, as long as that is held; null: none.
    const Allocation* find_locked(std::uint64_t va) const;
    int place_of_locked(std::uint64_t va) const;

    mutable std::shared_mutex mutex_;
    std::atomic<bool> awaits_ways_{false};  // some Block::refused may be for want of a way
    std::map<int, Card> cards_;
    std::map<std::uint64_t, Allocation> allocations_;
    std::map<Block*, std::unique_ptr<Block>> blocks_;
};

}  // namespace orrery::umd
