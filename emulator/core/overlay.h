// What stands between memory that a hart has in common with others and a hart that computes ahead of its
// time: the hart asks where a page's accesses are to go, and tells what it touches. It stops before an
// instruction that must not be done ahead (StopReason::kHeld): an atomic outside of its own memory whose old
// value matters, a fence, an access that faults, a store to a page that it has executed, or what the overlay
// refuses.
//
// Only for harts with a meter (Config::memory): the first access to each line comes by here.
#pragma once

#include <cstdint>

#include "emulator/core/bus.h"
#include "emulator/core/decode.h"

namespace orrery::emu {

class Overlay {
  public:
    struct Page {
        std::uint8_t* host = nullptr;  // of the page; nullptr: the hart stops
        // The hart may do these without a word, to lines that it has told of.
        bool loads = true, stores = false;
    };

    virtual ~Overlay() = default;
    // The bus has given `ref` for the page at `va`.
    virtual Page page(std::uint64_t va, const PageRef& ref, bool store) = 0;
    // Whose memory the page at `va` is, for which page() was asked last among those of its place in the
    // hart's page cache.
    virtual PagePlace place(std::uint64_t va) const = 0;
    // These bytes of such a page are about to be read or written. False: the hart stops.
    enum class Store : std::uint8_t {
        kOne,   // all, by one aligned store
        kRow,   // all
        kSome,  // or some of them
    };
    virtual bool loads(std::uint64_t va, std::uint64_t bytes) = 0;
    virtual bool stores(std::uint64_t va, std::uint64_t bytes, Store how) = 0;
    // All of these bytes of one page are about to be loaded or stored, in a row: where they are for this
    // hart, which may then use them. No host: it has to go by page(), loads() and stores().
    struct Row {
        std::uint8_t* host = nullptr;
        PagePlace place = PagePlace::kOwn;
        bool huge = false;
    };
    virtual Row row(std::uint64_t va, std::uint64_t bytes, bool store) = 0;
    // An aligned AMO of such a page, which is done later; false: the hart stops.
    virtual bool posts(std::uint64_t va, unsigned bytes, AmoFunction function, std::uint64_t operand) = 0;
    // Bytes of the page at `host` have another content for this hart.
    virtual bool wrote(const std::uint8_t* host) const = 0;
};

}  // namespace orrery::emu
