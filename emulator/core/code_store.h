// Decoded code that several harts have in common: what one of them has decoded, the others need not.
//
// For harts of one thread whose Config differs in hart_id only. Each goes on as if its code were its own: it
// sees its own stores at once and those of others, its sharers too, after FENCE.I or flush_code() at the
// latest. When a hart comes to a page, what was decoded is compared with what stands there now.
#pragma once

#include <cstdint>
#include <memory>

namespace orrery::emu {

class CodePool;

class CodeStore {
  public:
    CodeStore();
    ~CodeStore();
    CodeStore(const CodeStore&) = delete;
    CodeStore& operator=(const CodeStore&) = delete;

    // How often an instruction has been decoded.
    std::uint64_t decoded() const;

    // For Hart.
    CodePool& pool() { return *pool_; }

  private:
    std::unique_ptr<CodePool> pool_;
};

}  // namespace orrery::emu
