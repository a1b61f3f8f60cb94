#include "emulator/engines/ahead/stretch.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/core/amo.h"

namespace orrery::emu {

namespace {

constexpr std::uint64_t kPage = 4096, kLine = 64;

// The lines of one page that [va, va + bytes) touches; bytes > 0.
std::uint64_t lines_of(std::uint64_t va, std::uint64_t bytes) {
    const std::uint64_t first = va % kPage / kLine, last = (va % kPage + bytes - 1) / kLine;
    return ~std::uint64_t{0} >> (63 - (last - first)) << first;
}

// Those of which all bytes are in [va, va + bytes).
std::uint64_t whole_lines_of(std::uint64_t va, std::uint64_t bytes) {
    const std::uint64_t first = (va % kPage + kLine - 1) / kLine, end = (va % kPage + bytes) / kLine;
    return first >= end ? 0 : ~std::uint64_t{0} >> (64 - (end - first)) << first;
}
template <class Do>
void each_line(std::uint64_t lines, const Do& what) {
    for (; lines != 0; lines &= lines - 1)
        what(static_cast<std::size_t>(std::countr_zero(lines)) * kLine);
}

std::size_t bucket_of(std::uint64_t page, std::size_t buckets) {
    return static_cast<std::size_t>(page / kPage * 0x9e37'79b9'7f4a'7c15 >> 32) & (buckets - 1);
}
std::size_t bucket_of(const std::uint8_t* host, std::size_t buckets) {
    return bucket_of(reinterpret_cast<std::uintptr_t>(host), buckets);
}

using Word [[gnu::may_alias]] = std::uint64_t;
using HalfWord [[gnu::may_alias]] = std::uint32_t;
using Short [[gnu::may_alias]] = std::uint16_t;

// Memory in common, which others use at the same time.
void read_line(std::uint8_t* to, const std::uint8_t* from) {
    for (std::size_t i = 0; i < kLine; i += sizeof(Word)) {
        const std::uint64_t word = __atomic_load_n(reinterpret_cast<const Word*>(from + i), __ATOMIC_RELAXED);
        std::memcpy(to + i, &word, sizeof word);
    }
}
template <class T>
void put(std::uint8_t* to, const std::uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    __atomic_store_n(reinterpret_cast<T*>(to), value, __ATOMIC_RELAXED);
}

// Rows of vectors, so at most eight bytes have to come at once. Not for the thread sanitizer's eyes: a group
// that reads them meanwhile has what it computed forgotten (RunAhead::meets_others).
using Wide [[gnu::may_alias, gnu::vector_size(kLine), gnu::aligned(8)]] = std::uint64_t;
__attribute__((no_sanitize("thread"))) void put_lines(std::uint8_t* to, const std::uint8_t* from,
                                                      std::uint64_t lines) {
    for (; lines != 0; lines &= lines - 1) {
        const std::size_t at = static_cast<std::size_t>(std::countr_zero(lines)) * kLine;
        *reinterpret_cast<Wide*>(to + at) = *reinterpret_cast<const Wide*>(from + at);
    }
}

// All bits of the bytes that are not zero.
std::uint64_t whole_bytes(std::uint64_t bits) {
    bits |= bits >> 4;
    bits |= bits >> 2;
    bits |= bits >> 1;
    return (bits & 0x0101'0101'0101'0101) * 0xff;
}

// Bytes that did not change are left alone, as somebody else may write them; what was one aligned store of up
// to eight bytes does not come in parts.
void put_changes(std::uint8_t* to, const std::uint8_t* from, const std::uint8_t* before, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += sizeof(Word)) {
        std::uint64_t now = 0, then = 0;
        std::memcpy(&now, from + i, sizeof now);
        std::memcpy(&then, before + i, sizeof then);
        const std::uint64_t changed = whole_bytes(now ^ then);
        if (changed == 0) continue;
        Word* const word = reinterpret_cast<Word*>(to + i);
        if (changed == ~std::uint64_t{0}) {
            __atomic_store_n(word, now, __ATOMIC_RELAXED);
            continue;
        }
        Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(word, &old, (old & ~changed) | (now & changed), true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
    }
}

// Lines of a page: all of `whole`, of `others` what has changed.
void put_rows(std::uint8_t* to, const std::uint8_t* from, const std::uint8_t* before, std::uint64_t whole,
              std::uint64_t others) {
    put_lines(to, from, whole);
    each_line(others, [&](std::size_t at) { put_changes(to + at, from + at, before + at, kLine); });
}

template <class T>
void post(std::uint8_t* to, const std::uint8_t* from, AmoFunction function) {
    T operand;
    std::memcpy(&operand, from, sizeof operand);
    T* const word = reinterpret_cast<T*>(to);
    T old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &old, apply(function, old, operand), true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
}

// Two AMOs as one.
std::uint64_t combine(const std::uint8_t* value, unsigned bytes, AmoFunction function,
                      std::uint64_t operand) {
    std::uint64_t first = 0;
    std::memcpy(&first, value, bytes);
    return bytes == 4
               ? apply(function, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(operand))
               : apply(function, first, operand);
}

bool overlap(const SmallStore& a, const SmallStore& b) {
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

bool TouchedPage::conflict(const TouchedPage& a, const SmallStores* small_a, const TouchedPage& b,
                           const SmallStores* small_b) {
    const std::uint64_t here = a.read | a.written, there = b.read | b.written;
    if ((a.written & b.read) != 0 || (a.read & b.written) != 0) return true;
    if ((a.posted & there) != 0 || (here & b.posted) != 0) return true;
    if ((a.written & b.written) == 0) return false;
    if (!a.exact || !b.exact) return true;
    for (std::size_t i = 0; i < a.stores; ++i) {
        for (std::size_t j = 0; j < b.stores; ++j) {
            if (overlap((*small_a)[i], (*small_b)[j])) return true;
        }
    }
    return false;
}

bool Posted::conflict(const Posted& a, const Posted& b) {
    if (a.host != b.host || (a.function == b.function && a.bytes == b.bytes)) return false;
    bool both = false;
    for (std::size_t i = 0; i < a.words.size(); ++i)
        both |= (a.words[i] & b.words[i]) != 0;
    return both;
}

struct Stretch::Operands {
    alignas(8) std::uint8_t values[kPage];
};

struct StretchFrame {
    alignas(64) std::uint8_t now[kPage];
    TouchedPage::SmallStores small;
};

struct StretchBefore {
    alignas(64) std::uint8_t bytes[kPage];
};

struct Stretch::OwnPage {
    std::uint64_t va = 0;
    std::uint8_t* host = nullptr;
    std::uint8_t before[kPage];
};

Stretch::Stretch(std::size_t most_frames, std::size_t most_pages)
    : most_frames_(most_frames), most_pages_(std::min(most_pages, kMostPages)) {}
Stretch::~Stretch() = default;

void Stretch::clear() {
    frames_used_ = befores_used_ = own_used_ = 0;
    posted_.clear();
    // Most stretches touch few pages of many.
    for (const TouchedPage& page : pages_)
        by_host_[page.bucket] = 0;
    for (const Translated& each : translations_)
        by_va_[each.bucket] = 0;
    by_place_.fill(0);
    by_row_.fill(0);
    spans_.fill({});
    pages_.clear();
    changed_.clear();
    translations_.clear();
}

bool Stretch::renew(const std::function<void(std::uint64_t va)>& forget) {
    if (std::max(pages_.size(), translations_.size()) > std::min(kMostKept, most_pages_ / 4)) return false;
    for (const std::uint16_t number : changed_) {
        const TouchedPage& page = pages_[number];
        if (page.frame == nullptr) continue;
        // It has one address only.
        std::uint16_t& known = by_place_[page.va / kPage % kPlaces];
        if (known != number + 1) continue;
        known = 0;
        forget(page.va);
    }
    for (std::size_t i = 0; i < own_used_; ++i)
        if (by_place_[own_[i]->va / kPage % kPlaces] == 0) forget(own_[i]->va);
    frames_used_ = befores_used_ = own_used_ = 0;
    posted_.clear();
    changed_.clear();
    ++round_;
    return true;
}

// It has not been touched before in this round.
void Stretch::begin(TouchedPage& page) const {
    page.round = round_;
    page.read = page.written = page.posted = 0;
    page.exact = true;
    page.filled = false;
    page.stores = 0;
    page.frame = page.before = nullptr;
    page.small = nullptr;
    page.there = page.whole = 0;
}

// Before it gets a frame, or the first AMO.
void Stretch::change(const TouchedPage& page) {
    if (page.frame == nullptr && page.posted == 0)
        changed_.push_back(static_cast<std::uint16_t>(&page - pages_.data()));
}

bool Stretch::nearly_full() const {
    // A quantum of stores alone may take nine frames.
    return frames_used_ > most_frames_ / 2 || pages_.size() > most_pages_ / 4 * 3 ||
           translations_.size() > most_pages_ / 4 * 3 || posted_.size() > kMostPosted / 4 * 3;
}

const TouchedPage* Stretch::find(const std::uint8_t* host) const {
    for (std::size_t bucket = bucket_of(host, kBuckets); by_host_[bucket] != 0;
         bucket = (bucket + 1) % kBuckets) {
        const TouchedPage& page = pages_[by_host_[bucket] - 1u];
        if (page.host == host) return page.round == round_ ? &page : nullptr;
    }
    return nullptr;
}

PageRef Stretch::translation(std::uint64_t va) const {
    const std::uint64_t inside = va % kSpan / kPage * kPage;
    if (const Span& span = spans_[va / kSpan % kSpans]; span.va == va - va % kSpan) {
        PageRef page = span.page;
        page.host += inside;
        return page;
    }
    for (std::size_t bucket = bucket_of(va, kBuckets); by_va_[bucket] != 0;
         bucket = (bucket + 1) % kBuckets) {
        const Translated& each = translations_[by_va_[bucket] - 1u];
        if (each.va == va / kPage * kPage) return each.page;
    }
    return PageRef::fault();
}

bool Stretch::remember(std::uint64_t va, const PageRef& page) {
    if (page.whole) {
        Span& span = spans_[va / kSpan % kSpans];
        span = {va - va % kSpan, page};
        span.page.host -= va % kSpan / kPage * kPage;
        return true;
    }
    if (translations_.size() == most_pages_) return false;
    std::size_t bucket = bucket_of(va, kBuckets);
    while (by_va_[bucket] != 0)
        bucket = (bucket + 1) % kBuckets;
    translations_.push_back({va / kPage * kPage, page, static_cast<std::uint16_t>(bucket)});
    by_va_[bucket] = static_cast<std::uint16_t>(translations_.size());
    return true;
}

TouchedPage* Stretch::at(std::uint64_t va) {
    const std::uint16_t number = by_place_[va / kPage % kPlaces];
    if (number == 0) return nullptr;
    TouchedPage& page = pages_[number - 1u];
    if (page.round != round_) begin(page);
    return &page;
}

PagePlace Stretch::place(std::uint64_t va) const {
    const std::uint16_t number = by_place_[va / kPage % kPlaces];
    return number == 0 ? PagePlace::kOwn : pages_[number - 1u].place;
}

TouchedPage* Stretch::touch(std::uint64_t va, const PageRef& ref) {
    std::uint8_t* const host = ref.host;
    std::size_t bucket = bucket_of(host, kBuckets);
    for (; by_host_[bucket] != 0; bucket = (bucket + 1) % kBuckets) {
        TouchedPage& page = pages_[by_host_[bucket] - 1u];
        if (page.host != host) continue;
        if (page.round != round_) begin(page);
        return &page;
    }
    if (pages_.size() == most_pages_) return nullptr;
    TouchedPage& page = pages_.emplace_back();
    page.host = host;
    page.va = va;
    page.place = ref.place;
    page.huge = ref.huge;
    by_host_[bucket] = static_cast<std::uint16_t>(pages_.size());
    page.bucket = static_cast<std::uint16_t>(bucket);
    begin(page);
    return &page;
}

Overlay::Page Stretch::page(std::uint64_t va, const PageRef& ref, bool store) {
    // Where it refuses, the hart keeps what it has.
    std::uint16_t& number = by_place_[va / kPage % kPlaces];
    if (ref.place == PagePlace::kOwn) {
        number = 0;
        return own_page(va, ref.host, store);
    }
    TouchedPage* const page = touch(va, ref);
    if (page == nullptr) return {};
    if (page->va != va) page->aliased = true;
    // What is written at one address would have to be seen at the other.
    if (page->aliased && (store || page->frame != nullptr)) return {};
    if (store && page->frame == nullptr && !give_frame(*page)) return {};
    number = static_cast<std::uint16_t>(page - pages_.data() + 1);
    page->loaded |= !store;
    if (page->frame == nullptr) return {.host = ref.host, .loads = true, .stores = false};
    return {.host = page->frame, .loads = page->filled, .stores = page->filled};
}

Overlay::Page Stretch::own_page(std::uint64_t va, std::uint8_t* host, bool store) {
    const auto end = own_.begin() + static_cast<std::ptrdiff_t>(own_used_);
    const bool kept = std::any_of(own_.begin(), end, [&](const auto& page) { return page->host == host; });
    if (store && !kept) {
        if (own_used_ == own_.size()) own_.push_back(std::make_unique<OwnPage>());
        OwnPage& page = *own_[own_used_++];
        page.va = va;
        page.host = host;
        std::memcpy(page.before, host, kPage);
    }
    return {.host = host, .loads = true, .stores = store || kept};
}

bool Stretch::give_frame(TouchedPage& page) {
    if (frames_used_ == most_frames_) return false;
    if (frames_used_ == frames_.size()) frames_.push_back(std::make_unique_for_overwrite<Frame>());
    change(page);
    Frame& frame = *frames_[frames_used_++];
    page.frame = frame.now;
    page.small = &frame.small;
    return true;
}

void Stretch::fill(TouchedPage& page, std::uint64_t lines) {
    each_line(lines & ~page.there, [&](std::size_t at) { read_line(page.frame + at, page.host + at); });
    page.there |= lines;
}

// So that accesses need no word any more.
void Stretch::fill_all(TouchedPage& page) {
    if (page.frame == nullptr || page.exact || page.filled) return;
    fill(page, ~std::uint64_t{0});
    page.filled = true;
}

// These lines as they are may be what was there before.
void Stretch::keep(TouchedPage& page, std::uint64_t lines) {
    if (lines == 0) return;
    if (page.before == nullptr) {
        if (befores_used_ == befores_.size()) befores_.push_back(std::make_unique_for_overwrite<Before>());
        page.before = befores_[befores_used_++]->bytes;
    }
    fill(page, lines);
    each_line(lines, [&](std::size_t at) { std::memcpy(page.before + at, page.frame + at, kLine); });
}

void Stretch::make_inexact(TouchedPage& page) {
    keep(page, page.written);
    while (page.stores > 0) {
        const SmallStore& store = (*page.small)[--page.stores];
        std::memcpy(page.before + store.offset, &store.old, store.bytes);
    }
    page.exact = false;
}

bool Stretch::loads(std::uint64_t va, std::uint64_t bytes) {
    const std::uint64_t here = std::min(bytes, kPage - va % kPage);
    if (here < bytes && !loads(va + here, bytes - here)) return false;
    TouchedPage* const page = at(va);
    if (page == nullptr) return true;
    const std::uint64_t lines = lines_of(va, here);
    if ((page->posted & lines) != 0) return false;
    if (page->frame != nullptr) fill(*page, lines);
    // Single ones will come again.
    if (bytes <= sizeof(Word)) fill_all(*page);
    if (page->frame != nullptr && page->exact) {
        const std::uint64_t offset = va % kPage;
        // What it has written itself is nobody else's.
        for (std::size_t i = 0; i < page->stores; ++i) {
            const SmallStore& store = (*page->small)[i];
            if (store.offset <= offset && offset + here <= std::uint64_t{store.offset} + store.bytes)
                return true;
        }
    }
    page->read |= lines;
    return true;
}

bool Stretch::stores(std::uint64_t va, std::uint64_t bytes, Store how) {
    TouchedPage* const page = at(va);
    if (page == nullptr) return true;
    const std::uint64_t lines = lines_of(va, bytes);
    if ((page->posted & lines) != 0) return false;
    if (page->exact) {
        const auto offset = static_cast<std::uint16_t>(va % kPage);
        const auto end = page->small->begin() + page->stores;
        const bool known =
            how == Store::kOne && std::any_of(page->small->begin(), end, [&](const SmallStore& store) {
                return store.offset == offset && store.bytes == bytes;
            });
        if (known) return true;
        if (how == Store::kOne && page->stores < TouchedPage::kSmallStores) {
            fill(*page, lines);
            SmallStore& store = (*page->small)[page->stores++];
            store = {.offset = offset, .bytes = static_cast<std::uint8_t>(bytes), .old = 0};
            std::memcpy(&store.old, page->frame + offset, bytes);
            page->written |= lines;
            return true;
        }
        make_inexact(*page);
    }
    write_rows(*page, lines, how == Store::kRow ? whole_lines_of(va, bytes) : 0);
    if (how == Store::kOne) fill_all(*page);
    return true;
}

// Some of `lines` of a page that is not exact, and all of `whole`.
void Stretch::write_rows(TouchedPage& page, std::uint64_t lines, std::uint64_t whole) {
    keep(page, lines & ~whole & ~page.written);
    page.there |= whole;
    page.whole |= whole;
    page.written |= lines;
}

// nullptr: the hart has to ask for it by page().
TouchedPage* Stretch::page_of_row(std::uint64_t va, bool store) {
    const std::size_t place = va / kPage % kPlaces;
    const std::uint64_t start = va / kPage * kPage;
    for (std::uint16_t* const number : {&by_row_[place], &by_place_[place]}) {
        if (*number == 0 || pages_[*number - 1u].va != start) continue;
        by_row_[place] = *number;
        TouchedPage& page = pages_[*number - 1u];
        if (page.round != round_) begin(page);
        return &page;
    }
    const Span& span = spans_[va / kSpan % kSpans];
    // Whether a page may be stored to the hart knows.
    if (store || span.va != va - va % kSpan || (span.page.rights & kPageRead) == 0) return nullptr;
    TouchedPage* const page = touch(start, translation(va));
    if (page == nullptr) return nullptr;
    if (page->va != start) {
        page->aliased = true;
        return nullptr;
    }
    page->loaded = true;
    by_row_[place] = static_cast<std::uint16_t>(page - pages_.data() + 1);
    return page;
}

Overlay::Row Stretch::row(std::uint64_t va, std::uint64_t bytes, bool store) {
    TouchedPage* const page = page_of_row(va, store);
    if (page == nullptr) return {};
    const std::uint64_t lines = lines_of(va, bytes);
    if (page->aliased || (page->posted & lines) != 0) return {};
    std::uint8_t* at = page->frame;
    if (store) {
        if (page->frame == nullptr || page->exact) return {};
        write_rows(*page, lines, whole_lines_of(va, bytes));
    } else {
        if (!page->loaded || (page->frame != nullptr && page->exact)) return {};
        page->read |= lines;
        if (page->frame != nullptr)
            fill(*page, lines);
        else
            at = page->host;
    }
    return {.host = at + va % kPage, .place = page->place, .huge = page->huge};
}

bool Stretch::posts(std::uint64_t va, unsigned bytes, AmoFunction function, std::uint64_t operand) {
    TouchedPage* const page = at(va);
    if (page == nullptr) return false;
    const std::size_t offset = va % kPage;
    Posted here{.host = page->host, .function = function, .bytes = bytes, .words = {}};
    here.words[offset / 256] = (bytes == 4 ? std::uint64_t{1} : 3) << (offset / 4 % 64);
    if (std::ranges::any_of(posted_, [&](const Posted& other) { return Posted::conflict(here, other); }))
        return false;
    auto it = std::ranges::find_if(posted_, [&](const Posted& other) {
        return other.host == here.host && other.function == function && other.bytes == bytes;
    });
    if (it == posted_.end()) {
        if (posted_.size() == kMostPosted) return false;
        posted_.push_back({.host = here.host, .function = function, .bytes = bytes, .words = {}});
        it = posted_.end() - 1;
        if (operands_.size() < posted_.size())
            operands_.push_back(std::make_unique_for_overwrite<Operands>());
    }
    std::uint8_t* const value = operands_[static_cast<std::size_t>(it - posted_.begin())]->values + offset;
    std::uint64_t& words = it->words[offset / 256];
    if ((words & here.words[offset / 256]) != 0) operand = combine(value, bytes, function, operand);
    words |= here.words[offset / 256];
    std::memcpy(value, &operand, bytes);
    change(*page);
    page->posted |= lines_of(va, bytes);
    return true;
}

bool Stretch::wrote(const std::uint8_t* host) const {
    const TouchedPage* const page = find(host);
    return page != nullptr && page->frame != nullptr;
}

void Stretch::commit() {
    for (const std::uint16_t number : changed_) {
        const TouchedPage& page = pages_[number];
        if (page.frame == nullptr) continue;
        if (!page.exact) {
            put_rows(page.host, page.frame, page.before, page.written & page.whole,
                     page.written & ~page.whole);
            continue;
        }
        for (std::size_t i = 0; i < page.stores; ++i) {
            const std::size_t at = (*page.small)[i].offset;
            switch ((*page.small)[i].bytes) {
                case 1:
                    put<std::uint8_t>(page.host + at, page.frame + at);
                    break;
                case 2:
                    put<Short>(page.host + at, page.frame + at);
                    break;
                case 4:
                    put<HalfWord>(page.host + at, page.frame + at);
                    break;
                default:
                    put<Word>(page.host + at, page.frame + at);
                    break;
            }
        }
    }
    commit_posted();
}

bool Stretch::hand_over(WriteBack& later) {
    if (changed_.size() < kWorthIt || !posted_.empty()) return false;
    for (const std::uint16_t number : changed_) {
        if (pages_[number].frame != nullptr && pages_[number].exact) return false;
    }
    later.pages_.clear();
    for (const std::uint16_t number : changed_) {
        const TouchedPage& page = pages_[number];
        if (page.frame == nullptr) continue;
        later.pages_.push_back({.host = page.host,
                                .frame = page.frame,
                                .before = page.before,
                                .whole = page.written & page.whole,
                                .others = page.written & ~page.whole});
    }
    frames_.swap(later.frames_);
    befores_.swap(later.befores_);
    frames_used_ = befores_used_ = 0;
    return true;
}

WriteBack::WriteBack() = default;
WriteBack::~WriteBack() = default;

void WriteBack::carry_out() const {
    for (const Page& page : pages_)
        put_rows(page.host, page.frame, page.before, page.whole, page.others);
}

void Stretch::commit_posted() const {
    for (std::size_t i = 0; i < posted_.size(); ++i) {
        const Posted& each = posted_[i];
        std::uint8_t* const host = const_cast<std::uint8_t*>(each.host);
        for (std::size_t at = 0; at < kPage; at += each.bytes) {
            if ((each.words[at / 256] >> (at / 4 % 64) & 1) == 0) continue;
            const std::uint8_t* const operand = operands_[i]->values + at;
            if (each.bytes == 4)
                post<HalfWord>(host + at, operand, each.function);
            else
                post<Word>(host + at, operand, each.function);
        }
    }
}

void Stretch::restore_own() {
    for (std::size_t i = 0; i < own_used_; ++i)
        std::memcpy(own_[i]->host, own_[i]->before, kPage);
}

}  // namespace orrery::emu
