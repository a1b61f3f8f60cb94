// What a module needs of a card's vector cores, and what a card has: ISA texts as compilers write them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "umd/winsys/error.h"

namespace orrery::umd {

class Isa {
  public:
    // "rv64imafdcv_zvfh_zvl512b", also with versions ("rv64i2p1_m2p0"). What extensions imply is in it.
    static Result<Isa> parse(std::string_view text);
    // The most that any card may have.
    static const Isa& largest();
    // Of cards that do not say, which is from before there were vectors.
    static const Isa& first();

    // What of this a card with `has` lacks, for people: "v with VLEN >= 512, zbb"; empty: nothing.
    std::string lacking(const Isa& has) const;
    // As it was given, without versions.
    const std::string& text() const { return text_; }
    // Bits of a vector register: at least, for what is needed; 0: no matter, or no vectors.
    std::uint32_t vlen() const { return vlen_; }

  private:
    void add(std::string extension);

    std::string text_;
    std::set<std::string, std::less<>> extensions_;
    std::uint32_t vlen_ = 0;
};

}  // namespace orrery::umd
