#include "tools/bench/guest/patterns.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <orrery/orrery.hpp>
#include <set>

#include "tools/bench/guest/pair.h"

namespace orrery::bench {
namespace {

constexpr int kCopies = 4;    // of one card to another, in a row
constexpr int kSignals = 16;  // there and back
constexpr int kRealTime = -2;
// Shares of what is expected.
constexpr double kNear = 0.95, kFar = 0.9, kTogether = 0.9, kIncast = 0.95;
constexpr double kShareGoal = 20;  // per mille

bool reaches(unsigned from, unsigned to) {
    int can = 0;
    check(orrDeviceCanAccessPeer(&can, static_cast<int>(from), static_cast<int>(to)));
    return can != 0;
}

double time_ns(const Event& event) {
    std::uint64_t ps = 0;
    check(orrEventGetModelTime(&ps, event.get()));
    return static_cast<double>(ps) / 1e3;
}

// Copies from cards to others that all begin at once, but for the signals that tell them to.
class Crowd {
  public:
    // `priority` of the streams that copy.
    explicit Crowd(std::size_t bytes, int priority = 0) : bytes_(bytes) { attributes_.priority = priority; }

    // Before run(). The first one's card starts the others.
    void add(unsigned from, unsigned to) {
        Card& source = card(from);
        enable(from, to);
        const DeviceGuard there(static_cast<int>(to));
        Target target(to, bytes_);
        const DeviceGuard here(static_cast<int>(from));
        flows_.push_back(std::make_unique<Flow>(source, std::move(target), attributes_));
    }

    void run() {
        Card& first = flows_.front()->from;
        for (const auto& flow : flows_)
            enable(first.device, flow->from.device);
        for (int round = 0; round < 2; ++round) {  // the first so that cards know the translations
            const DeviceGuard guard(static_cast<int>(first.device));
            const std::uint64_t value = static_cast<std::uint64_t>(round) + 1;
            first.control.wait(first.gate, value);
            // When the host has let go it still says this and that to the card.
            for (int pause = 0; pause < 4; ++pause)
                check(orrMemsetAsync(first.source.data(), 0, bytes_, first.control.handle()));
            std::set<unsigned> told;
            for (const auto& flow : flows_)
                if (told.insert(flow->from.device).second) first.control.signal(flow->from.start, value);
            for (const auto& flow : flows_)
                flow->queue(value, bytes_);
            first.gate.signal(value);
            ::usleep(20'000);  // nobody waits in the driver, which would have it speak to the cards
            for (const auto& flow : flows_)
                while (!flow->done())
                    ::usleep(1000);
        }
        for (const auto& flow : flows_)
            flow->read_times();
    }

    // Bytes a nanosecond of all, from the first begin to the last end.
    double rate() const {
        double first = INFINITY, last = 0;
        for (const auto& flow : flows_) {
            first = std::min(first, flow->times.front());
            last = std::max(last, flow->times.back());
        }
        return static_cast<double>(bytes_) * kCopies * static_cast<double>(flows_.size()) / (last - first);
    }

    // What each got, in per mille, from when all had begun until the first had ended.
    std::vector<double> shares() const {
        double begin = 0, end = INFINITY, all = 0;
        for (const auto& flow : flows_) {
            begin = std::max(begin, flow->times.front());
            end = std::min(end, flow->times.back());
        }
        std::vector<double> got;
        for (const auto& flow : flows_) {
            got.push_back(flow->copies_until(end) - flow->copies_until(begin));
            all += got.back();
        }
        for (double& each : got)
            each *= 1000 / all;
        return got;
    }

  private:
    // Made with its device as the current one.
    struct Card {
        Card(unsigned number, std::size_t bytes) : device(number), source(bytes) {}
        unsigned device;
        DeviceArray<std::byte> source;
        Stream control;
        Semaphore gate, start;
    };
    // A flow's end, which knows when copies are there: those who send them only know when they have left.
    struct Target {
        Target(unsigned number, std::size_t bytes) : device(number), place(bytes), marks(kCopies) {}
        unsigned device;
        DeviceArray<std::byte> place;
        Stream stream;
        Semaphore arrived;
        std::vector<Event> marks;
    };
    struct Flow {
        // Made with the source's device as the current one.
        Flow(Card& source, Target place, const orrStreamAttributes& attributes)
            : from(source), to(std::move(place)), stream(attributes) {}

        void queue(std::uint64_t round, std::size_t bytes) const {
            const DeviceGuard here(static_cast<int>(from.device));
            stream.wait(from.start, round);
            begin.record(stream);
            for (std::uint64_t i = 1; i <= kCopies; ++i) {
                copy(to.place.data(), from.source.data(), bytes, stream);
                stream.signal(to.arrived, (round - 1) * kCopies + i);
            }
            const DeviceGuard there(static_cast<int>(to.device));
            for (std::uint64_t i = 1; i <= kCopies; ++i) {
                to.stream.wait(to.arrived, (round - 1) * kCopies + i);
                to.marks[i - 1].record(to.stream);
            }
        }
        bool done() const { return stream.done() && to.stream.done(); }
        void read_times() {
            times.push_back(time_ns(begin));
            for (const Event& mark : to.marks)
                times.push_back(time_ns(mark));
        }
        // With fraction.
        double copies_until(double when) const {
            for (std::size_t i = 1; i < times.size(); ++i)
                if (when <= times[i])
                    return static_cast<double>(i - 1) +
                           std::max(when - times[i - 1], 0.0) / (times[i] - times[i - 1]);
            return kCopies;
        }

        Card& from;
        Target to;
        Stream stream;
        Event begin;
        std::vector<double> times;  // ns: of the begin, and of each copy's arrival
    };

    Card& card(unsigned number) {
        for (const auto& one : cards_)
            if (one->device == number) return *one;
        const DeviceGuard guard(static_cast<int>(number));
        return *cards_.emplace_back(std::make_unique<Card>(number, bytes_));
    }
    void enable(unsigned from, unsigned to) {
        if (from != to && enabled_.emplace(from, to).second)
            enable_peer_access(static_cast<int>(from), static_cast<int>(to));
    }

    std::size_t bytes_;
    orrStreamAttributes attributes_ = ORR_INIT(orrStreamAttributes);
    std::set<std::pair<unsigned, unsigned>> enabled_;
    std::vector<std::unique_ptr<Card>> cards_;
    std::vector<std::unique_ptr<Flow>> flows_;
};

// One pair of cards for each number of links that cards are apart.
void over_links(const Links& links, const topology::Ways& ways, std::size_t bytes,
                std::vector<Pattern>& all) {
    for (unsigned count = 1; count < links.cards; ++count) {
        bool found = false;
        for (unsigned pair = 0; pair < links.cards * links.cards && !found; ++pair) {
            const unsigned from = pair / links.cards, to = pair % links.cards;
            const auto& way = ways.between(from, to);
            if (!way || way->links != count || !reaches(from, to) || !reaches(to, from)) continue;
            found = true;
            Crowd crowd(bytes);
            crowd.add(from, to);
            crowd.run();
            Pair signals(static_cast<int>(from), static_cast<int>(to), bytes);
            const std::string number = fmt::format("over {} link{}", count, count == 1 ? "" : "s");
            const std::string which = fmt::format("card {} to {}", from, to);
            all.push_back({"copies " + number, which, "GB/s", crowd.rate(), way->gbps / 8.0,
                           count == 1 ? kNear : kFar});
            all.push_back({"signal " + number, which, "ns", signals.signal_ns(kSignals),
                           static_cast<double>(way->latency_ns + (count - 1) * links.forward_ns)});
        }
    }
}

// How long the busiest link is at work if each card sends each other one a byte, in ns: by the shortest ways,
// in equal parts where there are several.
double busiest_ns(const Links& links, const topology::Ways& ways) {
    const unsigned n = links.cards;
    const auto far = [&](unsigned a, unsigned b) {
        return a == b ? 0u : ways.between(a, b) ? ways.between(a, b)->links : n;
    };
    std::vector<topology::Edge> both = links.edges;
    for (const topology::Edge& edge : links.edges)
        both.push_back(edge.back());
    // How many shortest ways lead from one card to another, by their length.
    std::vector<double> number(std::size_t{n} * n);
    for (unsigned a = 0; a < n; ++a)
        number[a * n + a] = 1;
    for (unsigned length = 1; length < n; ++length)
        for (const topology::Edge& edge : both)
            for (unsigned a = 0; a < n; ++a)
                if (far(a, edge.first.card) == length - 1 && far(a, edge.second.card) == length)
                    number[a * n + edge.second.card] += number[a * n + edge.first.card];
    double most = 0;
    for (const topology::Edge& edge : both) {
        double load = 0;
        for (unsigned a = 0; a < n; ++a)
            for (unsigned b = 0; b < n; ++b)
                if (a != b && far(a, edge.first.card) + 1 + far(edge.second.card, b) == far(a, b))
                    load += number[a * n + edge.first.card] * number[edge.second.card * n + b] /
                            number[a * n + b];
        most = std::max(most, load / (edge.gbps / 8.0));
    }
    return most;
}

void all_to_all(const Links& links, const topology::Ways& ways, std::size_t bytes, int priority,
                const char* name, std::vector<Pattern>& all) {
    Crowd crowd(bytes, priority);
    // Card by card further on, so that no card has all others' copies first.
    for (unsigned step = 1; step < links.cards; ++step)
        for (unsigned from = 0; from < links.cards; ++from) {
            const unsigned to = (from + step) % links.cards;
            if (!ways.between(from, to) || !reaches(from, to)) return;
            crowd.add(from, to);
        }
    crowd.run();
    const double pairs = links.cards * (links.cards - 1);
    // There is a goal where each has a link to each.
    const bool mesh = pairs == 2 * static_cast<double>(links.edges.size());
    all.push_back({name, fmt::format("{} cards", links.cards), "GB/s", crowd.rate(),
                   pairs / busiest_ns(links, ways), mesh ? std::optional(kTogether) : std::nullopt});
}

// To the card with the fewest links.
void incast(const Links& links, const topology::Ways& ways, std::size_t bytes, std::vector<Pattern>& all) {
    std::vector<unsigned> ports(links.cards);
    std::vector<double> rates(links.cards);
    for (const topology::Edge& edge : links.edges)
        for (const topology::Edge& in : {edge, edge.back()}) {
            ++ports[in.second.card];
            rates[in.second.card] += in.gbps / 8.0;
        }
    const auto to = static_cast<unsigned>(std::ranges::min_element(ports) - ports.begin());
    Crowd crowd(bytes);
    unsigned senders = 0;
    for (unsigned from = 0; from < links.cards; ++from) {
        if (from == to || !ways.between(from, to) || !reaches(from, to)) continue;
        crowd.add(from, to);
        ++senders;
    }
    if (senders < 2) return;
    crowd.run();
    Pattern pattern{fmt::format("{} to 1", senders),
                    fmt::format("card {}, by {} port{}", to, ports[to], ports[to] == 1 ? "" : "s"),
                    "GB/s",
                    crowd.rate(),
                    rates[to],
                    ports[to] == 1 ? std::optional(kIncast) : std::nullopt};
    if (ports[to] == 1) pattern.shares = crowd.shares();
    all.push_back(std::move(pattern));
}

}  // namespace

bool Pattern::holds() const {
    return !goal || measured >= *goal * expected;
}

bool Pattern::shares_hold() const {
    const double even = 1000.0 / static_cast<double>(std::max<std::size_t>(shares.size(), 1));
    return std::ranges::all_of(shares, [&](double share) { return std::abs(share - even) <= kShareGoal; });
}

std::vector<Pattern> measure_patterns(const Links& links, std::size_t bytes) {
    const topology::Ways ways(links.cards, links.edges);
    std::vector<Pattern> all;
    over_links(links, ways, bytes, all);
    if (links.cards > 2) {
        int least = 0, greatest = 0;
        check(orrDeviceGetStreamPriorityRange(&least, &greatest));
        all_to_all(links, ways, bytes, 0, "all to all", all);
        if (greatest <= kRealTime) all_to_all(links, ways, bytes, kRealTime, "all to all, real time", all);
        incast(links, ways, bytes, all);
    }
    return all;
}

}  // namespace orrery::bench
