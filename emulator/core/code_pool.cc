// Which page of decoded code is kept, and for whom.
#include <algorithm>
#include <bit>

#include "emulator/core/core.h"

namespace orrery::emu {

bool CodePool::suits(const Config& config) {
    const DecodedFor decoded_for{config.fp,
                                 config.vlen != 0,
                                 config.memory.l1_bytes != 0,
                                 config.has_exit_pc,
                                 config.has_exit_pc ? config.exit_pc : 0,
                                 config.first_csr_word,
                                 config.csr_words.size()};
    if (!for_) for_ = decoded_for;
    return *for_ == decoded_for;
}

void CodePool::add(std::size_t pages) {
    Block& block = blocks_.emplace_back();
    // Ops and bytes are filled when they are first used; until then they cost address space only.
    block.ops = std::make_unique_for_overwrite<Op[]>(pages * kOpsPerPage);
    block.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(pages * kPageBytes);
    block.pages.resize(pages);
    std::size_t all = 0;
    for (const Block& each : blocks_)
        all += each.pages.size();
    std::vector<CodePage*> old(std::bit_ceil(all));
    old.swap(buckets_);
    for (CodePage* page : old) {
        while (page != nullptr) {
            CodePage*& head = bucket(page->va, page->host);
            CodePage* const next = page->same_hash;
            page->same_hash = head;
            head = page;
            page = next;
        }
    }
    for (std::size_t i = 0; i < pages; ++i) {
        block.pages[i].ops = block.ops.get() + i * kOpsPerPage;
        block.pages[i].bytes = block.bytes.get() + i * kPageBytes;
        block.pages[i].users = 1;
        give_back(&block.pages[i]);
    }
}

CodePage*& CodePool::bucket(std::uint64_t va, const std::uint8_t* host) {
    // The two run in parallel in contiguous code: each has a factor of its own, so that they do not cancel
    // each other. The middle step keeps a guest, which knows va only, from choosing pages of one bucket.
    constexpr std::uint64_t kOfVa = 0x9e37'79b9'7f4a'7c15, kOfHost = 0xc2b2'ae3d'27d4'eb4f;
    std::uint64_t key =
        va / kPageBytes * kOfVa + reinterpret_cast<std::uintptr_t>(host) / kPageBytes * kOfHost;
    key = (key ^ key >> 32) * kOfVa;
    return buckets_[(key >> 32) & (buckets_.size() - 1)];
}

std::size_t CodePool::longest_chain() const {
    std::size_t longest = 0;
    for (const CodePage* page : buckets_) {
        std::size_t length = 0;
        for (; page != nullptr; page = page->same_hash)
            ++length;
        longest = std::max(longest, length);
    }
    return longest;
}

void CodePool::give_back(CodePage* page) {
    if (--page->users != 0) return;
    page->newer = &ends_;
    page->older = ends_.older;
    page->older->newer = page;
    ends_.older = page;
}

void CodePool::unlink(CodePage& page) {
    page.older->newer = page.newer;
    page.newer->older = page.older;
}

CodePage* CodePool::exchange(CodePage* old, std::uint64_t va, const std::uint8_t* host) {
    if (old != nullptr) give_back(old);
    CodePage*& head = bucket(va, host);
    for (CodePage* page = head; page != nullptr; page = page->same_hash) {
        if (page->va != va || page->host != host) continue;
        if (page->users++ == 0) unlink(*page);
        return page;
    }
    CodePage* const page = ends_.newer;
    unlink(*page);
    if (page->va != kNoPage) {
        CodePage** link = &bucket(page->va, page->host);
        while (*link != page)
            link = &(*link)->same_hash;
        *link = page->same_hash;
    }
    page->va = va;
    page->host = host;
    page->stale = true;
    page->users = 1;
    page->same_hash = head;
    head = page;
    return page;
}

void CodePool::all_stale() {
    for (Block& block : blocks_) {
        for (CodePage& page : block.pages)
            page.stale = true;
    }
}

CodeStore::CodeStore() : pool_(std::make_unique<CodePool>()) {}
CodeStore::~CodeStore() = default;

std::uint64_t CodeStore::decoded() const {
    return pool_->decoded;
}

}  // namespace orrery::emu
