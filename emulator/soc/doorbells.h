// The doorbell unit: pages of orrery/hw/doorbell.h in a memory file that the guest maps, the bindings that
// the firmware makes (orrery/hw/soc.h, SOC_DB_*), and the order in which rung doorbells come out.
//
// A binding waits at most once, however often it is rung: nothing can overflow. Pages take turns, so that who
// rings hundreds of doorbells keeps nobody else's waiting.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <orrery/hw/doorbell.h>
#include <orrery/hw/soc.h>

#include "emulator/base/fifo.h"
#include "emulator/base/unique_fd.h"
#include "emulator/faults/faults.h"
#include "emulator/memory/mapping.h"
#include "emulator/probes/counters.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

// Card thread only, except kick(), fd() and kicked().
class Doorbells {
  public:
    static constexpr std::uint64_t kBytes = std::uint64_t{ORR_DB_PAGES} * ORR_DB_PAGE_SIZE;

    static std::expected<UniqueFd, std::string> create_file();
    // `fd` from create_file(), `pages` a mapping of it.
    Doorbells(UniqueFd fd, Mapping pages, Counters& counters);

    int fd() const { return fd_.get(); }

    // --- the firmware's side ---
    // false: no such page or slot, or too many bindings. A slot that is bound gets the new tag.
    bool bind(std::uint64_t page, std::uint64_t slot, std::uint32_t tag);
    // false: not bound.
    bool unbind(std::uint64_t page, std::uint64_t slot);
    // The tag of the oldest rung doorbell, with SOC_DB_MORE if others wait; all-ones if there is none.
    std::uint64_t pop();
    std::uint64_t value() const { return value_; }
    // false: no binding has this tag.
    bool ring(std::uint32_t tag);
    bool pending() const { return !rung_pages_.empty(); }
    std::size_t bindings() const { return used_; }
    void reset();
    // Power-on: the pages are zero again.
    void clear_pages();

    // --- the guest's side ---
    // Looks at the summaries of pages with bindings; one load for a page that nobody rang. true: something
    // was rung.
    bool poll();
    // As poll() would find something, but leaves it there.
    bool changed() const;
    // Called for every doorbell that is found rung.
    using Heard = std::function<void(std::uint32_t tag, std::uint64_t value, unsigned page, unsigned slot)>;
    void on_ring(Heard heard) { heard_ = std::move(heard); }
    // What is rung comes into the queue so much later, in model time.
    void set_latency(EventQueue& events, ModelTime latency) {
        events_ = &events;
        latency_ = latency;
    }
    void set_faults(Faults* faults) { faults_ = faults; }
    // need_wakeup of all pages with bindings.
    void set_need_wakeup(bool need);

    // A trapped write to a kick page; any thread. The slots of that page are looked at by the next
    // poll(), whatever its summary says, and until the card lies down again nobody need kick. The caller
    // wakes the card.
    void kick(unsigned page);
    bool kicked() const { return kick_any_.load(std::memory_order_acquire); }

  private:
    struct Binding {
        std::uint16_t page = 0;
        std::uint16_t slot = 0;
        std::uint32_t tag = 0;
        std::uint64_t seen = 0;   // doorbell word when it was last looked at
        std::uint64_t taken = 0;  // and when it was last popped
        bool used = false;
        bool waiting = false;  // in its page's `rung`
        ModelTime since = 0;   // and then: from when on
    };
    // A doorbell that was rung and is not in the queue yet.
    struct OnTheWay {
        ModelTime arrival;
        std::uint16_t index;
        std::uint64_t value;
    };
    struct Page {
        std::uint64_t summary = 0;
        std::vector<std::uint16_t> bindings;  // in the order in which they were bound
        std::deque<std::uint16_t>
            rung;  // in the order in which they were found so; then it is in rung_pages_
    };

    orr_doorbell_page& page(unsigned number) const {
        return reinterpret_cast<orr_doorbell_page*>(pages_.data())[number];
    }
    // The words are the guest's to write at any moment.
    static std::uint64_t load(std::uint64_t& word) {
        return std::atomic_ref(word).load(std::memory_order_acquire);
    }
    std::uint16_t find(std::uint64_t page_number, std::uint64_t slot) const;
    bool scan(unsigned number);
    void on_arrival(ModelTime now);
    void enqueue(std::uint16_t index);
    ModelTime now() const { return events_ == nullptr ? 0 : events_->now(); }
    bool faulty(std::uint32_t tag);
    bool poll_kicks();

    static constexpr std::uint16_t kNone = 0xffff;

    UniqueFd fd_;
    Mapping pages_;
    Counters& counters_;
    std::vector<Binding> bindings_;
    std::vector<Page> page_state_;
    std::vector<std::uint16_t> active_;  // pages with bindings
    std::unordered_map<std::uint32_t, std::uint16_t> by_tag_;
    Fifo<std::uint16_t> rung_pages_;
    std::size_t used_ = 0;
    std::uint64_t value_ = 0;
    EventQueue* events_ = nullptr;
    ModelTime latency_ = 0;
    std::deque<OnTheWay> on_the_way_;
    Event arrival_ = Event::of<&Doorbells::on_arrival>(this);
    Faults* faults_ = nullptr;
    Heard heard_;

    std::atomic<bool> kick_any_{false};
    std::array<std::atomic<std::uint64_t>, ORR_DB_PAGES / 64> kicks_{};
};

}  // namespace orrery::emu
