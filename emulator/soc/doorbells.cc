#include "emulator/soc/doorbells.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace orrery::emu {

std::expected<UniqueFd, std::string> Doorbells::create_file() {
    UniqueFd fd(::memfd_create("orrery-doorbells", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(kBytes)) != 0) {
        return std::unexpected(
            fmt::format("cannot make the memory file of the doorbell pages: {}", std::strerror(errno)));
    }
    ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return fd;
}

Doorbells::Doorbells(UniqueFd fd, Mapping pages, Counters& counters)
    : fd_(std::move(fd)),
      pages_(std::move(pages)),
      counters_(counters),
      bindings_(ORR_DB_BINDINGS),
      page_state_(ORR_DB_PAGES),
      rung_pages_(ORR_DB_PAGES) {}

std::uint16_t Doorbells::find(std::uint64_t page_number, std::uint64_t slot) const {
    if (page_number >= ORR_DB_PAGES) return kNone;
    for (const std::uint16_t index : page_state_[page_number].bindings) {
        if (bindings_[index].slot == slot) return index;
    }
    return kNone;
}

bool Doorbells::bind(std::uint64_t page_number, std::uint64_t slot, std::uint32_t tag) {
    if (page_number >= ORR_DB_PAGES || slot >= ORR_DB_SLOTS) return false;
    if (find(page_number, slot) != kNone) {
        unbind(page_number, slot);
    } else if (used_ == ORR_DB_BINDINGS) {
        return false;
    }
    const auto free_one = std::find_if(bindings_.begin(), bindings_.end(),
                                       [](const Binding& binding) { return !binding.used; });
    const auto index = static_cast<std::uint16_t>(free_one - bindings_.begin());
    const auto number = static_cast<std::uint16_t>(page_number);
    orr_doorbell_page& memory = page(number);
    Page& state = page_state_[number];
    if (state.bindings.empty()) {
        active_.push_back(number);
        // Before the doorbell is read: a ring in between changes the summary again.
        state.summary = load(memory.summary);
    }
    // What an earlier queue left there may be the very word that the next one rings with.
    std::atomic_ref(memory.doorbell[slot]).store(0, std::memory_order_release);
    *free_one = {number, static_cast<std::uint16_t>(slot), tag, 0, 0, true, false, 0};
    state.bindings.push_back(index);
    by_tag_[tag] = index;
    ++used_;
    return true;
}

bool Doorbells::unbind(std::uint64_t page_number, std::uint64_t slot) {
    const std::uint16_t index = find(page_number, slot);
    if (index == kNone) return false;
    Binding& binding = bindings_[index];
    if (binding.waiting) {
        auto& rung = page_state_[page_number].rung;
        std::erase(rung, index);
        if (rung.empty()) rung_pages_.remove(binding.page);
    }
    std::erase(page_state_[page_number].bindings, index);
    if (page_state_[page_number].bindings.empty()) std::erase(active_, binding.page);
    if (const auto entry = by_tag_.find(binding.tag); entry != by_tag_.end() && entry->second == index) {
        by_tag_.erase(entry);
    }
    std::erase_if(on_the_way_, [&](const OnTheWay& one) { return one.index == index; });
    binding = {};
    --used_;
    return true;
}

void Doorbells::enqueue(std::uint16_t index) {
    Binding& binding = bindings_[index];
    if (binding.waiting) return;
    binding.waiting = true;
    binding.since = now();
    auto& rung = page_state_[binding.page].rung;
    if (rung.empty()) rung_pages_.push(binding.page);
    rung.push_back(index);
}

std::uint64_t Doorbells::pop() {
    if (rung_pages_.empty()) return ~std::uint64_t{0};
    const std::uint16_t number = rung_pages_.pop();
    auto& rung = page_state_[number].rung;
    Binding& binding = bindings_[rung.front()];
    rung.pop_front();
    if (!rung.empty()) rung_pages_.push(number);
    binding.waiting = false;
    counters_.add(ORR_CTR_DOORBELL_POPS);
    counters_.add(ORR_CTR_DOORBELL_WAIT_PS, now() - binding.since);
    // What has been stored since it was rung comes along, and is no ring of its own any more.
    value_ = load(page(binding.page).doorbell[binding.slot]);
    binding.seen = binding.taken = value_;
    return binding.tag | (rung_pages_.empty() ? 0 : SOC_DB_MORE);
}

bool Doorbells::ring(std::uint32_t tag) {
    const auto entry = by_tag_.find(tag);
    if (entry == by_tag_.end()) return false;
    enqueue(entry->second);
    return true;
}

void Doorbells::reset() {
    std::fill(bindings_.begin(), bindings_.end(), Binding{});
    for (Page& state : page_state_) {
        state.bindings.clear();
        state.rung.clear();
    }
    active_.clear();
    by_tag_.clear();
    rung_pages_.clear();
    on_the_way_.clear();
    if (arrival_.scheduled()) events_->cancel(arrival_);
    used_ = 0;
    value_ = 0;
}

void Doorbells::clear_pages() {
    ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(kBytes));
}

// Whether a rung doorbell does not come out now.
bool Doorbells::faulty(std::uint32_t tag) {
    // A doorbell that waits already can be rung as often as one likes.
    constexpr ModelTime kAgain = 1000 * kPsPerNs;
    const Fault fault = faults_->at(FaultPoint::kDoorbell, tag);
    if (fault.action == FaultAction::kDuplicate) faults_->later(kAgain, [this, tag] { ring(tag); });
    if (fault.action == FaultAction::kDelay) faults_->later(fault.delay, [this, tag] { ring(tag); });
    return fault.action == FaultAction::kDrop || fault.action == FaultAction::kDelay;
}

bool Doorbells::scan(unsigned number) {
    orr_doorbell_page& memory = page(number);
    bool rung = false;
    for (const std::uint16_t index : page_state_[number].bindings) {
        Binding& binding = bindings_[index];
        const std::uint64_t value = load(memory.doorbell[binding.slot]);
        if (value == binding.seen) continue;
        binding.seen = value;
        counters_.add(ORR_CTR_DOORBELLS);
        if (heard_) heard_(binding.tag, value, binding.page, binding.slot);
        if (faults_ != nullptr && faulty(binding.tag)) continue;
        rung = true;
        if (latency_ == 0) {
            enqueue(index);
            continue;
        }
        on_the_way_.push_back({later(events_->now(), latency_), index, value});
        if (!arrival_.scheduled()) events_->schedule(arrival_, on_the_way_.front().arrival);
    }
    return rung;
}

void Doorbells::on_arrival(ModelTime now) {
    while (!on_the_way_.empty() && on_the_way_.front().arrival <= now) {
        const OnTheWay one = on_the_way_.front();
        on_the_way_.pop_front();
        // A pop of an earlier ring has taken it along.
        if (bindings_[one.index].taken != one.value) enqueue(one.index);
    }
    if (!on_the_way_.empty()) events_->schedule(arrival_, on_the_way_.front().arrival);
}

bool Doorbells::poll_kicks() {
    kick_any_.store(false, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool rung = false;
    for (unsigned word = 0; word < kicks_.size(); ++word) {
        std::uint64_t bits = kicks_[word].exchange(0, std::memory_order_acquire);
        while (bits != 0) {
            rung |= scan(word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
            bits &= bits - 1;
        }
    }
    return rung;
}

bool Doorbells::poll() {
    bool rung = false;
    for (const std::uint16_t number : active_) {
        const std::uint64_t summary = load(page(number).summary);
        if (summary == page_state_[number].summary) continue;
        page_state_[number].summary = summary;
        rung |= scan(number);
    }
    if (kicked()) rung |= poll_kicks();
    return rung;
}

bool Doorbells::changed() const {
    if (kicked()) return true;
    return std::any_of(active_.begin(), active_.end(), [this](std::uint16_t number) {
        return load(page(number).summary) != page_state_[number].summary;
    });
}

void Doorbells::set_need_wakeup(bool need) {
    for (const std::uint16_t number : active_) {
        std::atomic_ref(page(number).need_wakeup).store(need ? 1 : 0, std::memory_order_release);
    }
}

void Doorbells::kick(unsigned number) {
    if (number >= ORR_DB_PAGES) return;
    // Who rings until the card is awake need not kick too. First: from the kick on the card may lie down
    // again, and ask for the next one.
    std::atomic_ref need(page(number).need_wakeup);
    if (need.load(std::memory_order_relaxed) != 0) need.store(0, std::memory_order_relaxed);
    kicks_[number / 64].fetch_or(std::uint64_t{1} << (number % 64), std::memory_order_release);
    kick_any_.store(true, std::memory_order_seq_cst);
}

}  // namespace orrery::emu
