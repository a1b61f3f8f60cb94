// Circles of waits over machines: what drivers ask each other and answer, in all orders, with losses and with
// one that lies, against what an onlooker sees who knows of all streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

extern "C" {
#include "kmod/orr_far_rule.h"
}

namespace {

constexpr unsigned kNobody = ~0u;

// A stream waits for a semaphore of its own machine, or for none, and would signal others behind that.
struct Stream {
    unsigned machine, waits;
    std::vector<unsigned> signals;
};
struct Semaphore {
    unsigned home;
    std::vector<unsigned> lessees;
};
// A process waits for the first semaphore.
struct Plan {
    unsigned machines;
    std::vector<Semaphore> semaphores;
    std::vector<Stream> streams;
    unsigned liar = kNobody;
};

// Whether the process will wait for ever. Of a liar nothing is known but that it could do nothing.
bool oracle(const Plan& plan) {
    std::vector<char> stuck(plan.streams.size(), 1);
    const auto held = [&](unsigned semaphore) {
        const std::vector<unsigned>& lessees = plan.semaphores.at(semaphore).lessees;
        bool any = std::ranges::find(lessees, plan.liar) != lessees.end();
        for (std::size_t n = 0; n < plan.streams.size(); ++n) {
            const std::vector<unsigned>& signals = plan.streams[n].signals;
            if (std::ranges::find(signals, semaphore) == signals.end()) continue;
            if (!stuck[n]) return false;
            any = true;
        }
        return any;
    };
    for (bool moves = true; moves;) {
        moves = false;
        for (std::size_t n = 0; n < plan.streams.size(); ++n) {
            const Stream& stream = plan.streams[n];
            if (!stuck[n] || stream.machine == plan.liar || (stream.waits != kNobody && held(stream.waits)))
                continue;
            stuck[n] = 0;
            moves = true;
        }
    }
    return held(0);
}

// What orr_look.c finds out about a semaphore on one machine.
struct Look {
    orr_far_answer answer = ORR_FAR_OPEN;
    std::vector<unsigned> far;
};

std::vector<std::size_t> holders(const Plan& plan, unsigned machine, unsigned semaphore) {
    std::vector<std::size_t> found;
    for (std::size_t n = 0; n < plan.streams.size(); ++n) {
        const Stream& stream = plan.streams[n];
        if (stream.machine == machine && std::ranges::find(stream.signals, semaphore) != stream.signals.end())
            found.push_back(n);
    }
    return found;
}

bool is_far(const Plan& plan, unsigned machine, unsigned semaphore) {
    const Semaphore& it = plan.semaphores.at(semaphore);
    return it.home == machine && !it.lessees.empty();
}

Look look_at(const Plan& plan, unsigned machine, unsigned semaphore) {
    std::vector<char> stuck(plan.streams.size(), 1);
    const auto holds = [&](unsigned of) {
        const auto who = holders(plan, machine, of);
        return (!who.empty() || is_far(plan, machine, of)) &&
               std::ranges::all_of(who, [&](std::size_t n) { return stuck[n]; });
    };
    for (bool moves = true; moves;) {
        moves = false;
        for (std::size_t n = 0; n < plan.streams.size(); ++n) {
            const Stream& stream = plan.streams[n];
            if (stream.machine != machine || !stuck[n] || (stream.waits != kNobody && holds(stream.waits)))
                continue;
            stuck[n] = 0;
            moves = true;
        }
    }
    Look look;
    if (holders(plan, machine, semaphore).empty() && !is_far(plan, machine, semaphore))
        look.answer = ORR_FAR_NONE;
    else if (!holds(semaphore))
        look.answer = ORR_FAR_FREE;
    std::vector<unsigned> reached{semaphore};
    for (std::size_t i = 0; look.answer == ORR_FAR_OPEN && i < reached.size(); ++i) {
        if (is_far(plan, machine, reached[i])) look.far.push_back(reached[i]);
        for (const std::size_t n : holders(plan, machine, reached[i]))
            if (std::ranges::find(reached, plan.streams[n].waits) == reached.end())
                reached.push_back(plan.streams[n].waits);
    }
    return look;
}

using Path = std::array<u16, ORR_FAR_PATH>;

struct Note {
    bool is_question;
    unsigned semaphore;
    u16 number;
    Path path{};
    orr_far_answer answer = ORR_FAR_OPEN;
};

struct Search {
    orr_far_state state{};
    unsigned from = kNobody, semaphore = 0;
    u16 number = 0;
    bool sends = false;  // somebody goes on to use it
    u32 next = 0;        // question that is sent next
};

struct Machine {
    std::deque<Search> asked;  // there was no look
    std::vector<Search> searches;
    std::vector<std::deque<Note>> in;  // by sender
};

// Numbers and marks by what they are for, so that they do not depend on the order of things.
struct Names {
    std::map<std::vector<unsigned>, u16> known;
    std::map<std::pair<unsigned, unsigned>, u16> forced;  // mark of a machine's look for a semaphore
    u16 of(const std::vector<unsigned>& what) {
        return known.try_emplace(what, static_cast<u16>(known.size() + 1)).first->second;
    }
};

struct World {
    const Plan* plan;
    std::shared_ptr<Names> names;
    std::vector<Machine> machines;
    bool ended = false, told = false, lossy = false;
    u32 most_kept = 0, questions = 0;
    std::string broken, story;

    World(const Plan& of, std::shared_ptr<Names> known) : plan(&of), names(std::move(known)) {
        machines.resize(of.machines);
        for (Machine& machine : machines)
            machine.in.resize(of.machines);
        Search root;
        root.state.id = 1;
        look(of.semaphores.front().home, root);
    }

    void tell(const std::string& what) { story += ' ' + what + ';'; }
    static std::string name(unsigned machine) { return std::string(1, static_cast<char>('A' + machine)); }

    void look(unsigned m, Search search) {
        const Look look = look_at(*plan, m, search.semaphore);
        orr_far_state& state = search.state;
        state.answer = look.answer;
        std::vector<unsigned> key{m, search.from, search.semaphore};
        key.insert(key.end(), std::begin(state.path), std::end(state.path));
        for (const unsigned far : look.far) {
            state.held[state.waits] = !holders(*plan, m, far).empty();
            for (const unsigned lessee : plan->semaphores.at(far).lessees) {
                key.push_back(static_cast<unsigned>(state.asks));
                orr_far_ask& ask = state.ask[state.asks++];
                ask.at = static_cast<u32>(lessee);
                ask.tag = static_cast<u32>(far);
                ask.wait = state.waits;
                ask.number = names->of(key);
                ask.answer = ORR_FAR_OPEN;
                ask.known = 1;
            }
            ++state.waits;
        }
        for (const Search& other : machines.at(m).searches)
            orr_far_assume(&state, &other.state);
        key.push_back(kNobody);
        const auto forced = names->forced.find({m, search.semaphore});
        orr_far_start(&state, forced != names->forced.end() ? forced->second : names->of(key));
        search.sends = true;
        machines.at(m).searches.push_back(search);
        end_if_known();
    }
    void end_if_known() {
        for (Search& search : machines.at(plan->semaphores.front().home).searches)
            if (search.from == kNobody && orr_far_next(&search.state) == ORR_FAR_END) {
                ended = true;
                told = search.state.answer == ORR_FAR_HELD;
            }
    }

    // --- moves ---
    void take(unsigned m, unsigned from) {
        Machine& machine = machines.at(m);
        const Note note = machine.in.at(from).front();
        machine.in.at(from).pop_front();
        if (!note.is_question) {
            tell(name(m) + " hears " + std::to_string(note.answer) + " of " + name(from));
            for (Search& search : machine.searches) {
                orr_far_ask* ask =
                    orr_far_find(&search.state, nullptr, from, static_cast<u32>(note.semaphore), note.number);
                if (ask == nullptr) continue;
                orr_far_take_answer(ask, note.answer, 0, 0);
                orr_far_settle(&search.state);
                break;
            }
            return end_if_known();
        }
        tell(name(m) + " is asked by " + name(from));
        Search search;
        search.state.id = 1;
        search.state.is_others = true;
        std::ranges::copy(note.path, search.state.path);
        search.from = from;
        search.semaphore = note.semaphore;
        search.number = note.number;
        u32 kept = 0, of_one = 0;
        const auto count = [&](const Search& other) {
            if (other.from == kNobody || other.state.told) return;
            ++kept;
            of_one += other.from == from;
        };
        std::ranges::for_each(machine.asked, count);
        std::ranges::for_each(machine.searches, count);
        most_kept = std::max(most_kept, of_one + 1);
        if (orr_far_has_room(kept, of_one)) machine.asked.push_back(search);
    }
    void lose(unsigned m, unsigned from) {
        tell(name(m) + " does not hear " + name(from));
        machines.at(m).in.at(from).pop_front();
        lossy = true;
    }
    void look_next(unsigned m) {
        tell(name(m) + " looks");
        const Search search = machines.at(m).asked.front();
        machines.at(m).asked.pop_front();
        look(m, search);
    }
    void send_next(unsigned m, std::size_t n) {
        Search& search = machines.at(m).searches.at(n);
        while (search.next < search.state.asks && !orr_far_asks_now(&search.state, search.next))
            ++search.next;
        if (search.next == search.state.asks) {
            tell(name(m) + " has asked");
            orr_far_asked_all(&search.state);
            search.sends = false;
            return;
        }
        const orr_far_ask& ask = search.state.ask[search.next++];
        Note note{.is_question = true, .semaphore = static_cast<unsigned>(ask.tag), .number = ask.number};
        std::ranges::copy(search.state.path, note.path.begin());
        tell(name(m) + " asks " + name(static_cast<unsigned>(ask.at)));
        ++questions;
        machines.at(ask.at).in.at(m).push_back(note);
    }
    static bool has_to_tell(const Search& search) {
        const orr_far_step step = orr_far_next(&search.state);
        return step == ORR_FAR_TELL || step == ORR_FAR_TELL_AND_KEEP;
    }
    void answer(unsigned m, std::size_t n) {
        std::vector<Search>& searches = machines.at(m).searches;
        Search& search = searches.at(n);
        const bool keeps = orr_far_next(&search.state) == ORR_FAR_TELL_AND_KEEP;
        if (search.state.told) broken = "two answers";
        search.state.told = true;
        tell(name(m) + " tells " + name(search.from));
        machines.at(search.from)
            .in.at(m)
            .push_back({.is_question = false,
                        .semaphore = search.semaphore,
                        .number = search.number,
                        .answer = search.state.answer});
        if (keeps) return;
        if (search.sends) broken = "who is being asked for is let go of";
        searches.erase(searches.begin() + static_cast<std::ptrdiff_t>(n));
    }
    // The liar answers whatever it likes, and asks what only it may ask, by any way that it has seen.
    void lie(unsigned from, orr_far_answer with) {
        Machine& liar = machines.at(plan->liar);
        const Note note = liar.in.at(from).front();
        liar.in.at(from).pop_front();
        tell(name(plan->liar) + " lies");
        if (note.is_question)
            machines.at(from)
                .in.at(plan->liar)
                .push_back({.is_question = false,
                            .semaphore = note.semaphore,
                            .number = note.number,
                            .answer = with});
    }
    void pry(unsigned whom, unsigned semaphore, const Path& path) {
        tell(name(plan->liar) + " pries");
        machines.at(whom)
            .in.at(plan->liar)
            .push_back({.is_question = true, .semaphore = semaphore, .number = 1, .path = path});
    }

    bool quiet() const {
        for (const Machine& machine : machines) {
            if (!machine.asked.empty()) return false;
            for (const Search& search : machine.searches)
                if (search.sends || has_to_tell(search)) return false;
            for (const auto& in : machine.in)
                if (!in.empty()) return false;
        }
        return true;
    }

    std::vector<u16> key() const {
        std::vector<u16> key{ended, lossy};
        const auto put = [&](const Search& search) {
            const orr_far_state& state = search.state;
            key.insert(key.end(),
                       {static_cast<u16>(search.from), static_cast<u16>(search.semaphore), search.number,
                        static_cast<u16>(search.sends), static_cast<u16>(search.next),
                        static_cast<u16>(state.answer), state.told});
            key.insert(key.end(), std::begin(state.path), std::end(state.path));
            for (u32 i = 0; i < state.asks; ++i)
                key.push_back(static_cast<u16>(state.ask[i].answer));
        };
        for (const Machine& machine : machines) {
            key.push_back(static_cast<u16>(machine.asked.size()));
            std::ranges::for_each(machine.asked, put);
            key.push_back(static_cast<u16>(machine.searches.size()));
            std::ranges::for_each(machine.searches, put);
            for (const auto& in : machine.in) {
                key.push_back(static_cast<u16>(in.size()));
                for (const Note& note : in) {
                    key.insert(key.end(), {note.is_question, static_cast<u16>(note.semaphore), note.number,
                                           static_cast<u16>(note.answer)});
                    key.insert(key.end(), note.path.begin(), note.path.end());
                }
            }
        }
        return key;
    }
};

// All states to which a plan comes, or some ways through them.
class Explorer {
  public:
    explicit Explorer(Plan plan) : plan_(std::move(plan)), stuck_(oracle(plan_)) {}

    void force_mark(unsigned machine, unsigned semaphore, u16 mark) {
        names_->forced[{machine, semaphore}] = mark;
    }
    std::size_t states() const { return seen_.size(); }
    bool stuck() const { return stuck_; }
    bool was_told() const { return was_told_; }
    const std::string& broken() const { return broken_; }
    u32 most_kept() const { return most_kept_; }
    u32 questions() const { return questions_; }

    // All orders of all, or only of what is heard.
    enum class Orders : std::uint8_t { kAll, kHeard };
    void all(Orders orders, unsigned losses, unsigned pries = 0) {
        std::vector<Open> open;
        const auto add = [&](Open next) {
            std::vector<u16> key = next.world.key();
            key.push_back(static_cast<u16>(next.losses));
            key.push_back(static_cast<u16>(next.pries));
            if (!seen_.insert(std::move(key)).second || !holds(next.world)) return;
            if (!next.world.ended) open.push_back(std::move(next));
        };
        add({World(plan_, names_), losses, pries});
        while (!open.empty() && broken_.empty()) {
            const Open now = std::move(open.back());
            open.pop_back();
            moves(now, orders, [&](unsigned lost, unsigned pried, const auto& what) {
                Open next = now;
                next.losses -= lost;
                next.pries -= pried;
                what(next.world);
                add(std::move(next));
            });
        }
    }
    void some(unsigned ways) {
        std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same ways each time
        for (unsigned way = 0; way < ways && broken_.empty(); ++way) {
            Open now{World(plan_, names_), 0, 0};
            while (holds(now.world) && !now.world.ended) {
                unsigned count = 0;
                moves(now, Orders::kAll, [&](unsigned, unsigned, const auto&) { ++count; });
                if (count == 0) break;
                unsigned chosen = random() % count;
                Open next = now;
                moves(now, Orders::kAll, [&](unsigned, unsigned, const auto& what) {
                    if (chosen-- == 0) what(next.world);
                });
                now = std::move(next);
            }
        }
    }

  private:
    struct Open {
        World world;
        unsigned losses, pries;
    };
    bool holds(const World& world) {
        most_kept_ = std::max(most_kept_, world.most_kept);
        questions_ = std::max(questions_, world.questions);
        was_told_ |= world.told;
        if (!world.broken.empty()) fail(world, world.broken);
        if (world.told && !stuck_) fail(world, "told, but somebody would signal");
        if (plan_.liar != kNobody || world.lossy) return broken_.empty();
        if (world.ended && world.told != stuck_) fail(world, "not told");
        if (!world.ended && world.quiet()) fail(world, "no answer");
        if (world.ended) ends_well(world);
        return broken_.empty();
    }
    // Each question has its answer.
    void ends_well(World world) {
        while (!world.quiet()) {
            for (unsigned m = 0; m < plan_.machines; ++m) {
                Machine& machine = world.machines.at(m);
                for (unsigned from = 0; from < plan_.machines; ++from)
                    while (!machine.in.at(from).empty())
                        world.take(m, from);
                if (!machine.asked.empty()) world.look_next(m);
                for (std::size_t n = 0; n < machine.searches.size(); ++n)
                    if (machine.searches[n].sends) world.send_next(m, n);
                for (std::size_t n = machine.searches.size(); n-- > 0;)
                    if (World::has_to_tell(machine.searches[n])) world.answer(m, n);
            }
        }
        if (!world.broken.empty()) fail(world, world.broken);
        for (const Machine& machine : world.machines)
            for (const Search& search : machine.searches)
                if (search.from != kNobody && !search.state.told) fail(world, "a question without an answer");
    }
    void fail(const World& world, const std::string& what) {
        if (broken_.empty()) broken_ = what + ':' + world.story;
    }
    template <class Then>
    void moves(const Open& now, Orders orders, const Then& then) {
        for (unsigned m = 0; m < plan_.machines; ++m) {
            const Machine& machine = now.world.machines.at(m);
            const auto then_one = [&](const auto& what) {
                then(0, 0, what);
                return orders == Orders::kHeard;
            };
            if (!machine.asked.empty() && then_one([m](World& w) { w.look_next(m); })) return;
            for (std::size_t n = 0; n < machine.searches.size(); ++n) {
                const Search& search = machine.searches[n];
                if (search.sends && then_one([m, n](World& w) { w.send_next(m, n); })) return;
                if (World::has_to_tell(search) && then_one([m, n](World& w) { w.answer(m, n); })) return;
            }
        }
        for (unsigned m = 0; m < plan_.machines; ++m)
            for (unsigned from = 0; from < plan_.machines; ++from) {
                const std::deque<Note>& in = now.world.machines.at(m).in.at(from);
                if (in.empty()) continue;
                if (m == plan_.liar) {
                    for (const orr_far_answer with : {ORR_FAR_FREE, ORR_FAR_NONE, ORR_FAR_HELD})
                        then(0, 0, [&](World& w) { w.lie(from, with); });
                    if (in.front().is_question && now.pries > 0) pry(in.front().path, then);
                    continue;
                }
                then(0, 0, [&](World& w) { w.take(m, from); });
                if (now.losses > 0) then(1, 0, [&](World& w) { w.lose(m, from); });
            }
    }
    // With each beginning of the path by which the liar was asked.
    template <class Then>
    void pry(const Path& seen, const Then& then) {
        for (std::size_t n = 0; n < plan_.semaphores.size(); ++n)
            for (const unsigned whom : plan_.semaphores[n].home == plan_.liar ? plan_.semaphores[n].lessees
                                                                              : std::vector<unsigned>{}) {
                Path path{};
                for (std::size_t depth = 0;; ++depth) {
                    then(0, 1, [&](World& w) { w.pry(whom, static_cast<unsigned>(n), path); });
                    if (depth == path.size() || seen.at(depth) == 0) break;
                    path.at(depth) = seen.at(depth);
                }
            }
    }

    Plan plan_;
    bool stuck_, was_told_ = false;
    u32 most_kept_ = 0, questions_ = 0;
    std::string broken_;
    std::shared_ptr<Names> names_ = std::make_shared<Names>();
    std::set<std::vector<u16>> seen_;
};

// What each stream waits for the one of the machine before it would signal.
Plan ring(unsigned machines) {
    Plan plan{.machines = machines, .semaphores = {}, .streams = {}};
    for (unsigned m = 0; m < machines; ++m) {
        plan.semaphores.push_back({.home = m, .lessees = {(m + machines - 1) % machines}});
        plan.streams.push_back({.machine = m, .waits = m, .signals = {(m + 1) % machines}});
    }
    return plan;
}

// Each has lent to all, and would signal all.
Plan clique(unsigned machines) {
    Plan plan{.machines = machines, .semaphores = {}, .streams = {}};
    for (unsigned m = 0; m < machines; ++m) {
        Semaphore semaphore{.home = m, .lessees = {}};
        Stream stream{.machine = m, .waits = m, .signals = {}};
        for (unsigned other = 0; other < machines; ++other)
            if (other != m) {
                semaphore.lessees.push_back(other);
                stream.signals.push_back(other);
            }
        plan.semaphores.push_back(semaphore);
        plan.streams.push_back(stream);
    }
    return plan;
}

// Two ways to one machine, whose stream waits for @last, has done so (kNobody), or is not there.
enum class Last : std::uint8_t { kHeld, kFree, kNone };
Plan diamond(Last last) {
    Plan plan{.machines = 4,
              .semaphores = {{0, {1, 2}}, {1, {3}}, {2, {3}}, {3, {0}}},
              .streams = {{1, 1, {0}}, {2, 2, {0}}, {0, 0, {3}}}};
    if (last != Last::kNone) plan.streams.push_back({3, last == Last::kHeld ? 3 : kNobody, {1, 2}});
    return plan;
}

struct Case {
    const char* name;
    Plan plan;
    bool stuck;
};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const unsigned machines : {2u, 3u, 4u})
        all.push_back({"ring", ring(machines), true});
    all.push_back({"clique", clique(2), true});
    all.push_back({"ways meet, held", diamond(Last::kHeld), true});
    all.push_back({"ways meet, free", diamond(Last::kFree), false});
    all.push_back({"ways meet, nobody", diamond(Last::kNone), false});
    Plan plan = ring(2);
    plan.streams.push_back({1, kNobody, {0}});
    all.push_back({"somebody helps", plan, false});
    plan = ring(2);
    plan.streams.push_back({0, kNobody, {1}});
    all.push_back({"somebody helps where the process is", plan, false});
    // Lent to one more who has nothing to do with it: he says that there is nobody.
    plan = ring(2);
    plan.machines = 3;
    plan.semaphores[0].lessees.push_back(2);
    plan.semaphores[1].lessees.push_back(2);
    all.push_back({"one more who has nothing", plan, true});
    // What only packets of the process's own machine hold, and nobody where it is lent.
    plan = {.machines = 2, .semaphores = {{0, {1}}}, .streams = {{0, 0, {0}}}};
    all.push_back({"held where the process is, nobody there", plan, true});
    plan.streams.clear();
    all.push_back({"nobody at all", plan, false});
    plan = {.machines = 2, .semaphores = {{0, {1}}, {1, {}}}, .streams = {{1, 1, {0, 1}}}};
    all.push_back({"a circle of the machine that is asked", plan, true});
    // Two of one machine by two ways, whose answers differ.
    plan = {.machines = 3,
            .semaphores = {{0, {1, 2}}, {1, {0}}, {2, {0}}, {0, {1}}},
            .streams = {{1, 1, {0}}, {2, 2, {0}}, {0, 0, {1}}, {0, 3, {2}}, {1, kNobody, {3}}}};
    all.push_back({"two of one machine, one is free", plan, false});
    plan.streams.back().waits = 1;
    all.push_back({"two of one machine, both are held", plan, true});
    return all;
}

TEST(FarCircle, WhoIsToldWaitsForEverInEveryOrderAndWithLosses) {
    std::size_t states = 0;
    for (const Case& one : cases()) {
        SCOPED_TRACE(one.name);
        Explorer explorer(one.plan);
        EXPECT_EQ(explorer.stuck(), one.stuck);
        explorer.all(Explorer::Orders::kAll, 1);
        EXPECT_EQ(explorer.broken(), "");
        EXPECT_EQ(explorer.was_told(), one.stuck);
        states += explorer.states();
    }
    RecordProperty("states", std::to_string(states));
    EXPECT_GT(states, 1'000u);
}

TEST(FarCircle, OverAsManyMachinesAsAPathHas) {
    for (unsigned machines = 2; machines <= static_cast<unsigned>(ORR_FAR_PATH) + 2; ++machines) {
        Explorer explorer(ring(machines));
        explorer.some(1);
        if (machines <= static_cast<unsigned>(ORR_FAR_PATH)) {
            EXPECT_EQ(explorer.broken(), "") << machines;
            EXPECT_TRUE(explorer.was_told()) << machines;
        } else {
            EXPECT_EQ(explorer.broken().substr(0, 8), "not told") << machines;
            EXPECT_FALSE(explorer.was_told()) << machines;
        }
    }
}

// Nobody's share of what is kept is used up.
TEST(FarCircle, WhereAllWaitForAll) {
    for (const unsigned machines : {3u, 4u}) {
        Explorer explorer(clique(machines));
        explorer.some(machines == 3 ? 300 : 100);
        EXPECT_EQ(explorer.broken(), "") << machines;
        EXPECT_TRUE(explorer.was_told()) << machines;
        EXPECT_LE(explorer.most_kept(), ORR_FAR_KEPT_OF_ONE) << machines;
        RecordProperty("questions" + std::to_string(machines), std::to_string(explorer.questions()));
        RecordProperty("most_kept" + std::to_string(machines), std::to_string(explorer.most_kept()));
    }
}

// A waits for B, B for C, C for D, who is free. M has lent something to C and is asked by A as well.
Plan with_a_liar(bool free) {
    return {.machines = 5,
            .semaphores = {{0, {1, 4}}, {1, {2}}, {2, {3}}, {4, {2}}, {3, {0}}},
            .streams = {{1, 1, {0}}, {2, 2, {1, 3}}, {3, free ? kNobody : 4, {2}}, {0, 0, {4}}},
            .liar = 4};
}

TEST(FarCircle, NobodyBelievesMoreOfALiarThanWhatItCouldDo) {
    for (const bool free : {true, false}) {
        Explorer explorer(with_a_liar(free));
        explorer.all(Explorer::Orders::kHeard, 0, 1);
        EXPECT_EQ(explorer.broken(), "");
        EXPECT_EQ(explorer.was_told(), !free);
        EXPECT_GT(explorer.states(), 1'000u);
    }
    for (Case& one : std::vector<Case>{{"", ring(3), true}, {"", diamond(Last::kFree), false}}) {
        one.plan.liar = 2;
        Explorer explorer(one.plan);
        explorer.all(Explorer::Orders::kHeard, 0, 2);
        EXPECT_EQ(explorer.broken(), "");
    }
}

// That is what marks are for, and why they cannot be guessed: if B's and C's look for M have one, a lie gets
// through.
TEST(FarCircle, EqualMarksAreSeenByThisTest) {
    Explorer explorer(with_a_liar(true));
    explorer.force_mark(1, 0, 999);
    explorer.force_mark(2, 3, 999);
    explorer.all(Explorer::Orders::kHeard, 0, 1);
    EXPECT_EQ(explorer.broken().substr(0, 5), "told,");
}

}  // namespace
