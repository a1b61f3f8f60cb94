// Decoded code that several harts have in common: what one of them has decoded, the others need not.
//
// For harts of one thread. They agree in what decoding depends on: fp, exit_pc, first_csr_word and the number
// of csr_words; one that differs from the first keeps its code for itself. A hart sees its own stores at once
// and those of others, its sharers too, after FENCE.I or flush_code() at the latest. When it comes to a page,
// what was decoded is compared with what stands there now. Until it comes to it again it may execute what a
// sharer decoded there earlier, also where it has not been before.
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
