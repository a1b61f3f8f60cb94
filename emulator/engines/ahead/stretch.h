// What a core touches while it computes ahead of its time. Memory in common stays as it is until commit():
// the first store to a page gives the core a copy of it, its frame. The core's own memory is written in
// place, and restore_own() puts back what was there.
//
// Which lines were read and written is known, and of a few small stores to a page each byte, so that groups
// that write their results side by side are not in each other's way. AMOs that commute are done at commit().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "emulator/core/overlay.h"

namespace orrery::emu {

struct SmallStore {
    std::uint16_t offset;
    std::uint8_t bytes;
    std::uint64_t old;
};

// One page of memory in common. `read`, `written`, `posted`: a bit a line.
struct TouchedPage {
    static constexpr std::size_t kSmallStores = 8;
    using SmallStores = std::array<SmallStore, kSmallStores>;

    std::uint8_t* host = nullptr;
    std::uint64_t va = 0;
    std::uint64_t read = 0, written = 0, posted = 0;
    PagePlace place = PagePlace::kVram;
    bool huge = false;
    bool aliased = false;  // it is at another address too
    bool exact = true;     // `small` has all that was written
    bool filled = false;   // all of the frame
    bool loaded = false;   // it may be loaded from
    std::uint8_t stores = 0;
    std::uint16_t bucket = 0;  // of the stretch's index
    std::uint32_t round = 0;   // in which it was touched last; what follows from reads and writes is of it
    SmallStores* small = nullptr;  // the first `stores`
    // As this core sees it, in the lines `there`; nullptr: as it is.
    std::uint8_t* frame = nullptr;
    std::uint64_t there = 0;
    // Unless `exact`: lines of which all is this core's, and what stood in the others that it wrote, if there
    // are any.
    std::uint64_t whole = 0;
    std::uint8_t* before = nullptr;

    // What one of them wrote matters to the other. Not: what both posted.
    static bool conflict(const TouchedPage& a, const SmallStores* small_a, const TouchedPage& b,
                         const SmallStores* small_b);
};

struct StretchFrame;
struct StretchBefore;

// AMOs of one function and size that wait for commit(), in one page.
struct Posted {
    const std::uint8_t* host = nullptr;  // of the page
    AmoFunction function = AmoFunction::kAdd;
    unsigned bytes = 0;
    std::array<std::uint64_t, 16> words{};  // a bit for each four bytes

    // They do not come to the same whatever the order.
    static bool conflict(const Posted& a, const Posted& b);
};

// What a stretch has changed, on its way to memory in common. Whoever carries it out, on whatever thread,
// does what Stretch::commit() would have done.
class WriteBack {
  public:
    WriteBack();
    ~WriteBack();
    void carry_out() const;

  private:
    friend class Stretch;
    struct Page {
        std::uint8_t* host;
        const std::uint8_t* frame;
        const std::uint8_t* before;
        std::uint64_t whole, others;  // lines: all of them, and what has changed
    };
    std::vector<Page> pages_;
    // That they stand in.
    std::vector<std::unique_ptr<StretchFrame>> frames_;
    std::vector<std::unique_ptr<StretchBefore>> befores_;
};

class Stretch final : public Overlay {
  public:
    static constexpr std::size_t kMostPages = 2048;
    static constexpr std::size_t kMostPosted = 64;
    static constexpr std::size_t kMostKept = 384;  // by renew(): more are slow to look up

    // `most_frames`: pages that it may have copies of. `most_pages`: that it may touch, up to kMostPages.
    Stretch(std::size_t most_frames, std::size_t most_pages);
    ~Stretch() override;

    // Nothing is touched, and nothing known.
    void clear();
    // Nothing is touched; pages are where they were. `forget`: of an address whose page the hart has to ask
    // for again. False: that would be too many, and clear() is due.
    bool renew(const std::function<void(std::uint64_t va)>& forget);
    // There may not be room for another quantum.
    bool nearly_full() const;
    void commit();
    // Instead of commit(): `later` takes it over, with the copies; what it took over last has been carried
    // out. False: it is not worth it, or has AMOs, and nothing has happened.
    bool hand_over(WriteBack& later);
    void restore_own();

    // Those that it has stored to, or done AMOs in; numbers for page().
    const std::vector<std::uint16_t>& changed() const { return changed_; }
    const TouchedPage& page(std::uint16_t number) const { return pages_[number]; }
    const std::vector<Posted>& posted() const { return posted_; }
    // nullptr: it was not touched.
    const TouchedPage* find(const std::uint8_t* host) const;

    // What the page at `va` was translated to; a fault: that is not known.
    PageRef translation(std::uint64_t va) const;
    // False: there is no room.
    bool remember(std::uint64_t va, const PageRef& page);

    Page page(std::uint64_t va, const PageRef& ref, bool store) override;
    PagePlace place(std::uint64_t va) const override;
    bool loads(std::uint64_t va, std::uint64_t bytes) override;
    bool stores(std::uint64_t va, std::uint64_t bytes, Store how) override;
    Row row(std::uint64_t va, std::uint64_t bytes, bool store) override;
    bool posts(std::uint64_t va, unsigned bytes, AmoFunction function, std::uint64_t operand) override;
    bool wrote(const std::uint8_t* host) const override;

  private:
    static constexpr std::size_t kPlaces = 1024;             // of a hart's page cache
    static constexpr std::size_t kWorthIt = 2;               // pages to hand over
    static constexpr std::size_t kBuckets = 2 * kMostPages;  // a power of two

    static constexpr std::uint64_t kSpan = std::uint64_t{2} << 20;
    static constexpr std::size_t kSpans = 64;
    // A page of 2 MiB of which all is in a row (PageRef::whole), from its first byte.
    struct Span {
        std::uint64_t va = ~std::uint64_t{0};
        PageRef page;
    };
    struct Translated {
        std::uint64_t va;
        PageRef page;
        std::uint16_t bucket;  // in by_va_
    };
    using Frame = StretchFrame;
    using Before = StretchBefore;
    struct OwnPage;
    struct Operands;
    using Index = std::array<std::uint16_t, kBuckets>;  // one more than where it is; 0: nothing

    void write_rows(TouchedPage& page, std::uint64_t lines, std::uint64_t whole);
    TouchedPage* at(std::uint64_t va);
    void begin(TouchedPage& page) const;
    void change(const TouchedPage& page);
    TouchedPage* touch(std::uint64_t va, const PageRef& ref);
    TouchedPage* page_of_row(std::uint64_t va, bool store);
    Page own_page(std::uint64_t va, std::uint8_t* host, bool store);
    bool give_frame(TouchedPage& page);
    static void fill(TouchedPage& page, std::uint64_t lines);
    static void fill_all(TouchedPage& page);
    void make_inexact(TouchedPage& page);
    void keep(TouchedPage& page, std::uint64_t lines);
    Operands* operands_of(const Posted& wanted);
    void commit_posted() const;

    std::size_t most_frames_, most_pages_;
    std::vector<TouchedPage> pages_;
    std::vector<std::uint16_t> changed_;
    std::uint32_t round_ = 1;
    Index by_host_{};
    std::array<std::uint16_t, kPlaces> by_place_{};
    std::array<std::uint16_t, kPlaces> by_row_{};  // those that row() has met, by their place too
    std::array<Span, kSpans> spans_;               // by address
    std::vector<Translated> translations_;
    Index by_va_{};
    std::vector<std::unique_ptr<Frame>> frames_;  // the first frames_used_ are in use
    std::size_t frames_used_ = 0;
    std::vector<std::unique_ptr<Before>> befores_;  // likewise
    std::size_t befores_used_ = 0;
    std::vector<Posted> posted_;
    std::vector<std::unique_ptr<Operands>> operands_;  // of posted_, and more
    std::vector<std::unique_ptr<OwnPage>> own_;
    std::size_t own_used_ = 0;
};

}  // namespace orrery::emu
