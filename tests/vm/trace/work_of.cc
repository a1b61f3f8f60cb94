// The model-time trace of the work behind one release, out of recordings of linked cards: two runs of the
// same work have done the same at the same times if this prints the same.
//   work_of RECORDING...
// The recordings are those of cards that ran a play of InStep.APlay (tests/vm/umd/lockstep_test.cc), card 0
// first. Its work begins when the last kernel of more than 10 ms has ended on card 0, and ends on each card
// with the last packet that was done before its host spoke to it again. Times and steps count from the
// beginning.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/mmu.h>
#include <orrery/hw/soc.h>

#include "emulator/api/replayer.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kLongPs = 10'000'000'000;  // kBetweenLooksPs of the play
constexpr std::uint64_t kManyPs = kLongPs;         // no number of anything but time

struct Card {
    std::unique_ptr<Replayer> replay;
    std::vector<PortAccess> accesses;
};

std::optional<Card> open(const char* file) {
    auto reader = TraceReader::open(file);
    if (!reader) {
        fmt::print(stderr, "work_of: {}\n", reader.error());
        return std::nullopt;
    }
    Card card;
    auto opened = Replayer::open(*std::move(reader), {}, Opening::kWhole,
                                 [&](const PortAccess& access) { card.accesses.push_back(access); });
    if (!opened) {
        fmt::print(stderr, "work_of: {}\n", opened.error());
        return std::nullopt;
    }
    card.replay = *std::move(opened);
    if (card.replay->divergence() || !card.replay->verified()) {
        fmt::print(stderr, "work_of: {}: its replay is not what was recorded\n", file);
        return std::nullopt;
    }
    return card;
}

// Where works begin: on card 0's clock, which is everybody's if the cards keep step. Of several long kernels
// behind each other the last one counts.
std::vector<std::uint64_t> beginnings(const Replayer& replay) {
    std::vector<std::uint64_t> all;
    bool was_long = false;
    for (std::size_t n = 0; n < replay.record_count(); ++n) {
        const PortRecord record = replay.record(n);
        if (ORR_TRACE_TYPE(record.header) != ORR_TRACE_END_JOB || record.words.size() < 4) continue;
        const bool is_long = record.words[2] - record.words[1] > kLongPs;
        if (is_long && was_long) all.pop_back();
        if (is_long) all.push_back(record.words[2]);
        was_long = is_long;
    }
    return all;
}

bool is_of_links(const TraceNote& note) {
    return note.kind == ORR_OTRACE_NOTE_LINK_SENT || note.kind == ORR_OTRACE_NOTE_LINK_TAKEN;
}

// What words say beside the work itself is said from its beginning on. Each VM has processes and memory of
// the host in other places: of such addresses the page is told by its place in the order in which the card
// came across them. Moments count from the beginning of the work. What is counted since the power-on, as the
// time that a context has used, is told by how much it grows.
class Words {
  public:
    Words(std::uint64_t begin, std::uint64_t end) : begin_(begin), end_(end) {}
    std::string of(std::uint64_t word) {
        if (!is_address(word)) return fmt::format("{:#x}", word);
        const auto known = pages_.try_emplace(word / ORR_PAGE_SIZE, pages_.size()).first;
        return fmt::format("page {}+{:#x}", known->second, word % ORR_PAGE_SIZE);
    }
    std::string of(const PortAccess& access) {
        const std::uint64_t at = access.address - ORR_SOC_BASE;
        if (at < ORR_SOC_SIZE) {
            const bool time = at == SOC_TIME || at == SOC_SYSTEM_TIME || at == SOC_TIMER ||
                              at == SOC_DONE_START_PS || at == SOC_DONE_END_PS;
            if (time && access.value != ~std::uint64_t{0}) return moment(access.value);
            return at == SOC_HEARTBEAT ? counted(access) : of(access.value);
        }
        // In memory, moments are what the core stores, and semaphores' in VRAM, whoever stored them.
        const bool semaphore = access.address >> 62 == 0 && access.address % 16 == 8;
        if ((access.store || semaphore) && access.value >= begin_ && access.value <= end_)
            return moment(access.value);
        return access.store && access.value >= kManyPs && !is_address(access.value) ? counted(access)
                                                                                    : of(access.value);
    }
    std::string moment(std::uint64_t word) const {
        return fmt::format("at {}", static_cast<std::int64_t>(word - begin_));
    }

  private:
    std::string counted(const PortAccess& access) {
        const auto [last, first] = last_.try_emplace(access.address, access.value);
        if (first) return "counted";
        return fmt::format("counted {} more", access.value - std::exchange(last->second, access.value));
    }
    // Those of processes are high ones, so nothing that is small, and no address of VRAM, is taken for one.
    static bool is_address(std::uint64_t word) {
        constexpr std::uint64_t kVa = (std::uint64_t{1} << 48) - 1;
        const std::uint64_t above = word & ~kVa;
        return (word & kVa) >> 44 != 0 ? above == 0 || above >> 62 == 1 : above == ORR_HOST_WINDOW(0);
    }

    std::uint64_t begin_, end_;
    std::map<std::uint64_t, std::size_t> pages_;
    std::map<std::uint64_t, std::uint64_t> last_;
};

// false: this is not the work of a play. `last`: the next one has begun, if there is one.
bool print(unsigned number, const Card& card, std::uint64_t begin, std::uint64_t last) {
    const Replayer& replay = *card.replay;
    std::uint64_t host = replay.end_time() + 1;
    for (const TraceNote& note : replay.notes()) {
        if (note.kind == ORR_OTRACE_NOTE_JUMP) {
            fmt::print("card {} jumped to its peers' time\n", number);
            continue;
        }
        const bool speaks = note.kind == ORR_OTRACE_NOTE_DOORBELL || note.kind == ORR_OTRACE_NOTE_MAILBOX;
        if (speaks && note.time_ps >= begin) host = std::min(host, note.time_ps);
    }
    std::uint64_t end = 0;
    unsigned packets = 0, jobs = 0;
    for (std::size_t n = 0; n < replay.record_count(); ++n) {
        const PortRecord record = replay.record(n);
        if (record.time_ps < begin || record.time_ps >= last) continue;
        const unsigned type = ORR_TRACE_TYPE(record.header);
        if (record.time_ps >= host) break;
        if (type == ORR_TRACE_END_JOB) ++jobs;
        if (type != ORR_TRACE_RETIRE) continue;
        ++packets;
        end = record.time_ps;
    }
    if (packets < 10 || jobs < 4) {
        fmt::print(stderr,
                   "work_of: card {} did {} packets and {} jobs behind the release: that is no play\n",
                   number, packets, jobs);
        return false;
    }
    const std::size_t first = [&] {
        std::size_t n = 0;
        while (replay.record(n).time_ps < begin)
            ++n;
        return n;
    }();
    const std::uint64_t step = replay.record(first).step;
    const auto since = [&](std::uint64_t time) { return static_cast<std::int64_t>(time - begin); };
    fmt::print("card {} until {}\n", number, since(end));
    Words said(begin, end);
    for (std::size_t n = first; n < replay.record_count() && replay.record(n).time_ps <= end; ++n) {
        const PortRecord record = replay.record(n);
        fmt::print("{} record {} {:#x}", since(record.time_ps), record.step - step, record.header);
        const bool job = ORR_TRACE_TYPE(record.header) == ORR_TRACE_END_JOB;  // 1: start, 2: end
        for (std::size_t w = 0; w < record.words.size(); ++w)
            fmt::print(" {}",
                       job && (w == 1 || w == 2) ? said.moment(record.words[w]) : said.of(record.words[w]));
        fmt::print("\n");
    }
    for (const PortAccess& access : card.accesses) {
        if (access.step < step || access.time_ps > end) continue;
        fmt::print("{} {} {} {} {} {}\n", since(access.time_ps), access.store ? "store" : "load",
                   access.step - step, said.of(access.address), said.of(access), access.stall_ps);
    }
    // Bursts are noted when they are known to be over, which the host says.
    std::vector<std::string> bursts;
    for (const TraceNote& note : replay.notes()) {
        if (note.time_ps < begin || (note.time_ps > end && !is_of_links(note))) continue;
        if (!is_of_links(note)) {
            fmt::print("{} note {} {} {:#x}\n", since(note.time_ps), note.kind, note.step - step,
                       fmt::join(note.field, " "));
        } else if (note.field[4] >= begin && note.field[4] <= end) {
            bursts.push_back(fmt::format("{:12} burst {} {:#x} message {} {} {} for {}\n",
                                         since(note.field[4]), note.kind, note.field[0], note.field[1],
                                         note.field[2], note.field[3], note.field[5]));
        }
    }
    std::ranges::sort(bursts);
    for (const std::string& burst : bursts)
        fmt::print("{}", burst);
    return true;
}

int run(int argc, char** argv) {
    std::vector<Card> cards;
    for (int n = 1; n < argc; ++n) {
        auto card = open(argv[n]);
        if (!card) return 1;
        cards.push_back(*std::move(card));
    }
    if (cards.size() < 2) {
        std::fputs("usage: work_of RECORDING RECORDING...\n", stderr);
        return 2;
    }
    const std::vector<std::uint64_t> begin = beginnings(*cards[0].replay);
    if (begin.empty()) {
        std::fputs("work_of: no kernel of card 0 took more than 10 ms: that is no play\n", stderr);
        return 1;
    }
    bool good = true;
    for (std::size_t work = 0; work < begin.size(); ++work)
        for (unsigned n = 0; n < cards.size(); ++n)
            good = print(n, cards[n], begin[work],
                         work + 1 < begin.size() ? begin[work + 1] : ~std::uint64_t{0}) &&
                   good;
    return good ? 0 : 1;
}

}  // namespace
}  // namespace orrery::emu

int main(int argc, char** argv) {
    return orrery::emu::run(argc, argv);
}
