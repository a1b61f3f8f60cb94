#include "tools/step/report/path.h"

#include <orrery/fw/packet.h>
#include <orrery/fw/trace.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>

#include "tools/records/names.h"
#include "tools/text/units.h"

namespace orrery::step {
namespace {

constexpr std::size_t kMostPieces = 3000;  // of a play that goes back and forth for long
constexpr std::size_t kMostNamedJobs = 3;

// Where the search stands: a queue, just before a record of its card.
struct Place {
    std::size_t card = 0;
    std::uint32_t queue = 0;
    std::uint64_t step = 0;
    Time own = 0;
};

const Wait* open_wait(const History& history, std::uint32_t queue, std::uint64_t step) {
    for (const Wait& wait : history.waits())
        if (wait.queue == queue && wait.from_step < step && wait.to_step >= step) return &wait;
    return nullptr;
}

// The last one before that a signal has ended.
const Wait* last_wait(const History& history, std::uint32_t queue, std::uint64_t step) {
    // A queue waits for one thing at a time, so its waits end in the order in which they began.
    for (const Wait& wait : history.waits() | std::views::reverse)
        if (wait.queue == queue && wait.to_step < step && wait.wake != 0) return &wait;
    return nullptr;
}

// What the queue saw when it was woken.
std::uint64_t woken_with(const History& history, const Wait& wait) {
    const auto& records = history.records();
    for (std::size_t n = history.first_at_or_after(wait.to_step); n < records.size(); ++n) {
        if (records[n].step != wait.to_step) break;
        if (records[n].type == ORR_TRACE_WAKE && records[n].a == wait.queue) return records[n].word[1];
    }
    return 0;
}

bool is_failure(std::uint64_t value) {
    return value >> 63 != 0;
}

// When it last got something to do, having had nothing.
std::optional<StateChange> last_start(const QueueLife& life, std::uint64_t step) {
    std::optional<StateChange> start;
    for (std::size_t n = 0; n < life.states.size() && life.states[n].step < step; ++n)
        if (life.states[n].state != ORR_TSTATE_IDLE &&
            (n == 0 || life.states[n - 1].state == ORR_TSTATE_IDLE))
            start = life.states[n];
    return start;
}

std::string size_text(const Job& job) {
    return fmt::format("{} of {} {}", records::packet_name(job.opcode), job.size,
                       job.opcode == ORR_PKT_DISPATCH ? "groups" : "bytes");
}

PathPiece work(const CardHistory& card, const Place& place, const QueueLife& life, Time from) {
    PathPiece piece{PathPiece::Kind::kWorks, place.card, place.queue, card.system(from),
                    card.system(place.own),  {}};
    std::vector<const Job*> jobs;
    for (const std::size_t n : life.jobs) {
        const Job& job = card.history->jobs()[n];
        Time on_engines = 0;
        for (const Segment& segment : job.segments) {
            const Time begin = std::max(segment.start, from), end = std::min(segment.end, place.own);
            if (end > begin) on_engines += end - begin;
        }
        if (on_engines == 0) continue;
        jobs.push_back(&job);
        piece.engines += on_engines;
    }
    piece.turns = life.waiting(from, place.own);
    if (jobs.empty()) {
        piece.text = "goes on";
    } else if (jobs.size() <= kMostNamedJobs) {
        for (const Job* job : jobs)
            piece.text += (piece.text.empty() ? "" : ", ") + size_text(*job);
    } else {
        piece.text = fmt::format("{} jobs, the last {}", jobs.size(), size_text(*jobs.back()));
    }
    return piece;
}

class Search {
  public:
    Search(const std::vector<CardHistory>& cards, const std::vector<Message>& messages) : cards_(cards) {
        for (const Message& message : messages)
            heard_[{message.to, message.poke}] = &message;
    }

    Path run(Place place) {
        if (const Wait* wait = open_wait(history(place), place.queue, place.step)) {
            // A failure is not what it waits for: then the question is who should have signalled.
            const bool ends = wait->wake != 0 && !is_failure(woken_with(history(place), *wait));
            add_wait(place, *wait, ends ? wait->to : kNever);
            if (!ends) path_.begin = who_raised(place, *wait);
            if (!ends || !follow(place, *wait)) return std::move(path_);
        }
        while (path_.pieces.size() < kMostPieces && back(place)) {
        }
        if (path_.pieces.size() >= kMostPieces) path_.begin = "and so on: it goes back further";
        return std::move(path_);
    }

  private:
    const History& history(const Place& place) const { return *cards_[place.card].history; }

    void add_wait(const Place& place, const Wait& wait, Time to) {
        const CardHistory& card = cards_[place.card];
        path_.pieces.push_back(
            {PathPiece::Kind::kWaits, place.card, place.queue, card.system(wait.from),
             to == kNever ? kNever : card.system(to),
             fmt::format("waits for {} >= {}", history(place).memory(wait.memory), wait.value)});
    }

    // To the signal that ended the wait; false: it is not known.
    bool follow(Place& place, const Wait& wait) {
        if (wait.wake == ORR_WAKE_LOCAL && wait.signal && wait.signalled_by) {
            const Record& signal = history(place).records()[*wait.signal];
            place = {place.card, *wait.signalled_by, signal.step, signal.time};
            return true;
        }
        const auto message = wait.signal ? heard_.find({place.card, *wait.signal}) : heard_.end();
        if (wait.wake != ORR_WAKE_PEER || message == heard_.end()) {
            path_.begin = wait.wake == ORR_WAKE_PEER
                              ? "a linked card signalled it: none of these recordings, or more than one, has "
                                "that signal"
                              : fmt::format("it was woken by {}", records::wake_name(wait.wake));
            return false;
        }
        const Message& sent = *message->second;
        const Record& signal = cards_[sent.from].history->records()[sent.signal];
        const Record& poke = history(place).records()[sent.poke];
        const Place sender{sent.from, signal.a, signal.step, signal.time};
        path_.pieces.push_back(
            {PathPiece::Kind::kLink, sent.from, signal.a, cards_[sent.from].system(signal.time),
             cards_[place.card].system(poke.time),
             is_failure(signal.word[1])
                 ? fmt::format("its failure goes to card {}", place.card)
                 : fmt::format("its signal of {} goes to card {}", signal.word[1], place.card)});
        place = sender;
        return true;
    }

    bool back(Place& place) {
        const CardHistory& card = cards_[place.card];
        const QueueLife* life = history(place).queue_at(place.queue, place.own);
        if (life == nullptr) {
            path_.begin = "the recording knows no more of that queue";
            return false;
        }
        const Wait* wait = last_wait(history(place), place.queue, place.step);
        const auto start = last_start(*life, place.step);
        if (wait != nullptr && (!start || wait->to_step > start->step)) {
            path_.pieces.push_back(work(card, place, *life, wait->to));
            add_wait(place, *wait, wait->to);
            return follow(place, *wait);
        }
        const Time from = start ? start->time : std::max(life->created, history(place).begin());
        path_.pieces.push_back(work(card, place, *life, from));
        path_.begin = start ? fmt::format("the host rang the doorbell of {} of card {}",
                                          history(place).queue(place.queue, from), place.card)
                            : "the recording begins";
        return false;
    }

    // Nobody ends this wait: who has raised the semaphore until now?
    std::string who_raised(const Place& place, const Wait& wait) const {
        const Time now = cards_[place.card].system(place.own);
        const Record* last = nullptr;
        std::size_t by = 0;
        Time when = 0;
        for (std::size_t card = 0; card < cards_.size(); ++card)
            for (const Record& record : cards_[card].history->records()) {
                if (record.type != ORR_TRACE_SIGNAL || record.word[2] != wait.va ||
                    is_failure(record.word[1]))
                    continue;
                const Time at = cards_[card].system(record.time);
                if (at > now || (last != nullptr && at < when)) continue;
                last = &record;
                by = card;
                when = at;
            }
        if (last == nullptr) return "nobody has signalled it until now, as far as these recordings know";
        return fmt::format("nobody signals that; {} of card {} was the last who raised it, to {}, at {}",
                           cards_[by].history->queue(last->a, last->time), by, last->word[1],
                           text::moment(when));
    }

    const std::vector<CardHistory>& cards_;
    std::map<std::pair<std::size_t, std::size_t>, const Message*> heard_;
    Path path_;
};

}  // namespace

Path path_back(const std::vector<CardHistory>& cards, const std::vector<Message>& messages, std::size_t card,
               std::uint32_t queue, std::uint64_t step, Time now) {
    return Search(cards, messages).run({card, queue, step, now});
}

}  // namespace orrery::step
