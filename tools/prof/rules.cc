#include "tools/prof/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tools/prof/explain.h"
#include "tools/prof/show.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

std::string percent(double share) {
    return fmt::format("{:.0f} %", share * 100);
}

// A share of the device's time, as time.
std::string time_of(const Facts& facts, double share) {
    return text::duration(static_cast<std::uint64_t>(share * static_cast<double>(facts.device.span_ps)));
}

std::string known(const std::optional<double>& value, std::string_view unit) {
    return value ? fmt::format("{:.4g} {}", *value, unit) : fmt::format("not known (no SKU in the profile)");
}

// Of the kernels that ran longest, how much there is of what.
template <typename Value>
std::string longest_kernels(const Facts& facts, Value&& value) {
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, facts.device.kernels.size()); ++i) {
        const std::string said = value(facts.device.kernels[i]);
        if (!said.empty())
            text +=
                fmt::format("{}{} {}", text.empty() ? "" : ", ", plain(facts.device.kernels[i].name), said);
    }
    return text;
}

std::string stalls(const Facts& facts, std::uint64_t CounterSums::* which) {
    return longest_kernels(facts, [&](const KernelSums& kernel) {
        return kernel.counters.runs == 0 ? std::string()
                                         : percent(kernel.counters.share(kernel.counters.*which));
    });
}

std::string say(const Copies& copies) {
    if (copies.bytes == 0)
        return fmt::format("{} copies, whose bytes are not known", text::grouped(copies.count));
    return fmt::format("{} copies of {} each, at {:.3g} GB/s", text::grouped(copies.count),
                       bytes_text(copies.mean_bytes()), copies.gb_per_s());
}
std::string of_rate(const Copies& copies) {
    return copies.bound ? fmt::format("{} of that rate", percent(copies.of_bound()))
                        : std::string("rate not known");
}

// Vectors that are full, one after the other: what operations on whole numbers can do at most is in no table,
// and this is it.
bool are_full(const CounterSums& counters) {
    return counters.of_instructions(counters.simd) >= 0.5 && counters.lanes_used() >= 0.9;
}
// What the card takes at least for what its cores computed, by floating point and by whole numbers; and for
// how long they did, as if all did at once. Of kernels that VRAM does not hold up.
struct Computed {
    double floating_ps = 0, whole_ps = 0, ps = 0;
    double of_peak() const { return ps == 0 ? 0 : std::min(1.0, (floating_ps + whole_ps) / ps); }
};
Computed computed(const DeviceSums& device) {
    Computed all;
    for (const KernelSums& kernel : device.kernels) {
        const CounterSums& own = kernel.counters;
        if (is_at_vram(kernel)) continue;
        const double ps = static_cast<double>(own.computing_ps()) / std::max(1u, device.device->cores());
        all.ps += ps;
        all.floating_ps += kernel.roofline.compute_ps;
        if (are_full(own))
            all.whole_ps += ps * static_cast<double>(own.simd_int) / static_cast<double>(own.simd);
    }
    return all;
}

std::optional<Said> compute(const Facts& facts) {
    if (facts.counters.runs == 0) return {};
    Said said{.share = facts.shares.compute};
    const double simd = facts.counters.of_instructions(facts.counters.simd),
                 lanes = facts.counters.lanes_used();
    said.evidence = fmt::format(
        "vector cores executed instructions in {} of the time; {} of those are of vectors, which use {} of "
        "their lanes; {:.4g} GFLOP/s while kernels ran",
        percent(said.share), percent(simd), percent(lanes), facts.device.roofline.gflops());
    // Of the time in which cores compute: those that wait or have nothing to do are other rules' matter, and
    // kernels side by side have a part of the cores each.
    const Computed all = computed(facts.device);
    said.bound = known(facts.device.device->bounds.gflops_f32, "GFLOP/s of 32 bits");
    said.gap = fmt::format("{} of the peak of the types used, while cores computed", percent(all.of_peak()));
    said.at_bound = all.of_peak() >= kNearBound;
    if (said.at_bound && all.whole_ps > all.floating_ps) {
        said.gap = facts.device.roofline.flops == 0
                       ? "no floating point: whole vectors, one after the other"
                       : "mostly whole numbers: whole vectors, one after the other";
        said.advice = "fewer operations, or of fewer bits: cores do nothing else";
    } else if (said.at_bound) {
        said.advice = "fewer operations, or of fewer bits: nothing else makes it faster on this card";
    } else if (simd < 0.3) {
        said.advice =
            "it is scalar code: compile it for vectors, or give its loops a form that vectorises. Loops that "
            "look again and again whether others have come count as that, too, if they do not pause between "
            "looks (as orr::grid_barrier does): record --pc shows them";
    } else if (lanes < 0.6) {
        said.advice = "most of each vector is unused: longer rows, or larger register groups";
    }
    return said;
}

// Kernels wait for host memory longer than for VRAM, by what each gives at most.
bool host_holds_up(const Facts& facts) {
    const auto& bounds = facts.device.device->bounds;
    const auto needs = [](std::uint64_t bytes, const std::optional<double>& gb_per_s) {
        return static_cast<double>(bytes) / gb_per_s.value_or(1);
    };
    const bool rates = bounds.host_gb_per_s && bounds.vram_gb_per_s;
    return needs(facts.counters.host_bytes, rates ? bounds.host_gb_per_s : std::nullopt) >
           needs(facts.counters.vram_bytes, rates ? bounds.vram_gb_per_s : std::nullopt);
}

std::optional<Said> vram(const Facts& facts) {
    const Copies inside = copies_of(facts.device, {Direction::kInside});
    const bool kernels = facts.shares.bandwidth >= facts.shares.inner_copies;
    Said said{.share = facts.shares.bandwidth + facts.shares.inner_copies};
    const auto& bound = facts.device.device->bounds.vram_gb_per_s;
    if (kernels) {
        const Roofline& roof = facts.device.roofline;
        if (host_holds_up(facts)) {
            said.title = "host memory that kernels use";
            said.evidence =
                fmt::format("kernels moved {} over PCIe and {} of VRAM; waits for bandwidth: {}",
                            bytes_text(facts.counters.host_bytes), bytes_text(facts.counters.vram_bytes),
                            stalls(facts, &CounterSums::bandwidth_ps));
            const auto& pcie = facts.device.device->bounds.host_gb_per_s;
            said.bound = known(pcie, "GB/s of PCIe, one direction");
            if (pcie && roof.ps != 0)
                said.gap = fmt::format(
                    "{:.4g} GB/s there and back while kernels ran",
                    1e3 * static_cast<double>(facts.counters.host_bytes) / static_cast<double>(roof.ps));
            said.advice = "copy what is read often to the card first, and what is written back once";
            return said;
        }
        said.evidence =
            fmt::format("{:.4g} GB/s while kernels ran, {:.3g} FLOP/byte; waits for bandwidth: {}",
                        roof.gb_per_s(), roof.intensity(), stalls(facts, &CounterSums::bandwidth_ps));
        const double reached = roof.ps == 0 ? 0 : roof.memory_ps / static_cast<double>(roof.ps);
        said.gap = fmt::format("{} of it", percent(reached));
        said.at_bound = reached >= kNearBound;
    } else {
        said.evidence = inside.count == 0 ? std::string("fills of its memory")
                                          : say(inside) + " inside of its memory, each byte read and written";
        if (std::ranges::any_of(facts.device.copies, [](const CopySums& copy) {
                return copy.direction == Direction::kInside && copy.reduces;
            }))
            said.evidence += ", and once more read where a reduction writes";
        said.gap = fmt::format("{} of what such copies get", percent(inside.of_bound()));
        said.at_bound = inside.of_bound() >= kNearBound;
    }
    said.bound = known(bound, "GB/s, reads and writes together");
    return said;
}

std::optional<Said> latency(const Facts& facts) {
    if (facts.counters.runs == 0) return {};
    Said said{.share = facts.shares.latency};
    said.evidence =
        fmt::format("vector cores waited for answers of memory: {}", stalls(facts, &CounterSums::latency_ps));
    said.bound = "a load that misses the cache waits for all of memory's latency";
    said.gap = fmt::format("{} less if none waited", time_of(facts, said.share));
    return said;
}

std::optional<Said> launch(const Facts& facts) {
    const double gaps = facts.shares.idle_of(Idle::kLaunch), kernels = facts.shares.kernel_launch,
                 items = facts.shares.item_launch, copies = facts.shares.small_copies;
    Said said{.share = gaps + kernels + items + copies};
    std::uint64_t runs = 0, ps = 0;
    for (const KernelSums& kernel : facts.device.kernels) {
        runs += kernel.totals.count;
        ps += kernel.totals.total_ps;
    }
    said.evidence =
        fmt::format("{} kernels of {} each", text::grouped(runs), text::duration(runs == 0 ? 0 : ps / runs));
    if (kernels > 0) said.evidence += fmt::format("; to their first work-group {}", percent(kernels));
    said.evidence += fmt::format("; between one piece of work and the next {}", percent(gaps));
    if (items > 0) said.evidence += fmt::format("; starting work-groups and -items {}", percent(items));
    if (copies > 0) said.evidence += fmt::format("; in copies of few bytes {}", percent(copies));
    said.bound = facts.device.device->bounds.launch_ps
                     ? fmt::format("a launch takes {} at least",
                                   text::duration(*facts.device.device->bounds.launch_ps))
                     : std::string("not known (no SKU in the profile)");
    said.gap = fmt::format("{} less without", time_of(facts, said.share));
    if (items > gaps + kernels + copies) {
        said.advice = "work-items and work-groups do too little: give each more elements";
    } else if (copies > gaps + kernels + items) {
        said.advice =
            "copy fewer and larger pieces: orrMemcpyBatchAsync, orrMemcpy2DAsync, or pack them first";
    }
    return said;
}

std::optional<Said> host(const Facts& facts) {
    const double late = facts.shares.idle_of(Idle::kHost), signal = facts.shares.idle_of(Idle::kHostWait);
    Said said{.share = late + signal};
    const double own = facts.sums.working_ns == 0 ? 0
                                                  : static_cast<double>(facts.sums.own_ns) /
                                                        static_cast<double>(facts.sums.working_ns);
    std::size_t gaps = 0;
    for (const Gap& gap : facts.device.gaps)
        gaps += gap.why == Idle::kHost || gap.why == Idle::kHostWait ? 1 : 0;
    said.evidence = fmt::format(
        "{} times the card had nothing until the host had seen the end of what was "
        "before, for {} of its time",
        text::grouped(gaps), percent(said.share));
    if (signal > late) said.evidence += ", mostly in waits for orrSemaphoreSignal";
    said.evidence += fmt::format(
        "; by the host's clock the program was in code of its own for {} of {}, with "
        "nothing submitted",
        percent(own), text::duration(facts.sums.working_ns * 1000));
    said.bound = "the card need never wait if the next work is submitted before the last is done";
    said.gap = fmt::format("{} of the card's time less", time_of(facts, said.share));
    // Model time hardly goes on while a card has nothing to do, so the host's clock has its say, too.
    if (own >= 0.5) said.share = std::max(said.share, own);
    return said;
}

constexpr std::initializer_list<Direction> kHostDirections{Direction::kFromHost, Direction::kToHost,
                                                           Direction::kUnknown};
constexpr std::initializer_list<Direction> kPeerDirections{Direction::kFromPeer, Direction::kToPeer,
                                                           Direction::kOther};

// What would be saved if copies each way and kernels ran side by side: what takes longest of these is left.
double side_by_side(const DeviceSums& device, bool hosts, bool peers) {
    Intervals all = device.vector;
    std::uint64_t longest = device.vector_ps();
    const auto add = [&](std::initializer_list<Direction> directions) {
        for (const Direction direction : directions) {
            const auto found = device.copy_by.find(direction);
            if (found == device.copy_by.end()) continue;
            longest = std::max(longest, length_of(found->second));
            all.insert(all.end(), found->second.begin(), found->second.end());
        }
    };
    if (hosts) add(kHostDirections);
    if (peers) add(kPeerDirections);
    return device.share(length_of(union_of(std::move(all))) - longest);
}

// Copies from or to other cards take turns with kernels, and links have room for both at a time.
bool peers_take_turns(const Facts& facts) {
    return !facts.shares.links_are_full && !facts.shares.pcie_is_full &&
           facts.shares.peer_copies >= kLeastShare && side_by_side(facts.device, false, true) >= kLeastShare;
}

std::optional<Said> copies(const Facts& facts) {
    const bool with_peers = peers_take_turns(facts);
    Said said{.share = facts.shares.host_copies + (with_peers ? facts.shares.peer_copies : 0)};
    const Copies host = copies_of(facts.device, kHostDirections),
                 peers = copies_of(facts.device, kPeerDirections);
    if (host.count == 0 && !with_peers) return {};
    const double beside = 1 - said.share * static_cast<double>(facts.device.span_ps) /
                                  static_cast<double>(std::max<std::uint64_t>(facts.device.copy_ps(), 1));
    const bool mostly_peers = with_peers && facts.shares.peer_copies > facts.shares.host_copies;
    said.bound = mostly_peers ? known(peers.bound, "GB/s of a link, one direction")
                              : known(host.bound, "GB/s of PCIe, one direction");
    said.gap = of_rate(mostly_peers ? peers : host);
    if (!with_peers && (facts.shares.pcie_is_full || facts.device.share(facts.device.vector_ps()) < 0.05)) {
        said.evidence = say(host) + fmt::format("; they ran for {} of the time", percent(said.share));
        said.title = "PCIe bandwidth";
        said.at_bound = host.of_bound() >= kNearBound;
        said.advice =
            "it does little but copy: keep data on the card, move less of it, and use both directions at "
            "once (two streams)";
        return said;
    }
    if (host.count != 0) said.evidence = say(host);
    if (with_peers)
        said.evidence += (host.count != 0 ? " and " : "") + say(peers) + " from or to other cards";
    said.evidence += fmt::format("; in {} of the time they ran and no kernel did", percent(said.share));
    said.gap += fmt::format(
        "; {} less if copies each way and kernels ran side by side; now {} of what copies take is beside "
        "kernels",
        time_of(facts, std::min(said.share, side_by_side(facts.device, true, with_peers))),
        percent(std::max(0.0, beside)));
    if (mostly_peers)
        said.advice =
            "split the work: send a piece in a second stream as soon as it is made, while the next one's "
            "kernel runs";
    return said;
}

std::optional<Said> link(const Facts& facts) {
    const bool turns = peers_take_turns(facts);  // that is copies' matter
    Said said{.share = facts.shares.link + (turns ? 0 : facts.shares.peer_copies)};
    const Copies peers = copies_of(facts.device, kPeerDirections);
    if (peers.count > 0 && !turns) {
        said.evidence = say(peers) + " from or to other cards";
        if (facts.shares.links_are_full)
            said.evidence += fmt::format(", for {} of the time: kernels beside them take less",
                                         percent(facts.shares.peer_copies));
        said.gap = of_rate(peers);
        said.at_bound = facts.shares.link == 0 && peers.of_bound() >= kNearBound;
    }
    if (facts.shares.link > 0) {
        said.evidence += fmt::format("{}kernels waited for memory of other cards: {}",
                                     said.evidence.empty() ? "" : "; ", stalls(facts, &CounterSums::link_ps));
    }
    constexpr std::uint32_t kDegraded = 4;  // as orrLinkState has it
    for (const LinkRecord* one : facts.device.device->links) {
        if (one->state == kDegraded)
            said.evidence += fmt::format("; port {} has lost lanes ({} Gbit/s)", one->port, one->gbit_per_s);
    }
    said.bound = peers.bound
                     ? known(peers.bound, "GB/s of a link, one direction")
                     : known(facts.device.device->bounds.link_gb_per_s, "GB/s of a link, one direction");
    return said;
}

// Who was waited for longest at barriers in streams, of those of which all ranks' arrivals are known.
struct Late {
    std::uint64_t rank = 0, barriers = 0, wait_ps = 0;
    std::uint64_t known = 0;  // barriers of all
};
std::optional<Late> late_rank(const Facts& facts) {
    // By the group: rank 1 of another one is somebody else.
    std::map<std::pair<std::uint64_t, std::uint64_t>, Late> ranks;
    std::uint64_t known = 0;
    for (const StepRecord& step : facts.activity.process->steps) {
        if (!std::cmp_equal(step.device, facts.device.device->number)) continue;
        const auto last = facts.lasts.last(facts.activity, step);
        if (!last) continue;
        ++known;
        if (*last == step.number) continue;
        Late& late = ranks[{step.owner, *last}];
        late.rank = *last;
        ++late.barriers;
        late.wait_ps += step.end_ps - step.begin_ps;
    }
    if (ranks.empty()) return {};
    Late most =
        std::ranges::max_element(ranks, {}, [](const auto& one) { return one.second.wait_ps; })->second;
    most.known = known;
    return most;
}

std::optional<Said> rank(const Facts& facts) {
    Said said{.share = facts.shares.idle_of(Idle::kOutside)};
    const auto& who = facts.device.idle_who;
    std::pair<std::string, std::uint64_t> most;
    for (const WaitSums& wait : facts.device.waits) {
        const auto found = wait.kind == From::kOutside ? who.find(wait.from) : who.end();
        if (found != who.end() && found->second > most.second) most = *found;
    }
    if (most.second == 0) return {};
    said.title = fmt::format("waiting for {}", plain(most.first));
    said.evidence = fmt::format(
        "{} of the time nothing ran as a stream waited for who is not in this process: {} for "
        "{}",
        percent(said.share), plain(most.first), text::duration(most.second));
    const bool at_barrier = most.first.starts_with("the barrier of rank "),
               member = most.first.starts_with("rank ");
    // The library's own names of a group's semaphores. Whom a rank waits for, it may have waited itself.
    // Names are lost if the group was destroyed before they were asked for.
    const auto late = late_rank(facts);
    // It has to explain much of the wait; more where no name says that it was at a barrier.
    if (late && late->wait_ps >= most.second / (at_barrier || member ? 4 : 2)) {
        said.title = fmt::format("waiting for rank {}", late->rank);
        said.evidence += fmt::format(
            "; rank {} came last to {} of {} barriers of which the last is known, and this "
            "one waited {} for it",
            late->rank, text::grouped(late->barriers), text::grouped(late->known),
            text::duration(late->wait_ps));
    } else if (at_barrier)
        said.evidence +=
            ". That is the semaphore's name: cards' barrier units signal it once all ranks have come, and "
            "which "
            "was the last is in the ranks' own profiles";
    else if (member)
        said.evidence +=
            ". That is the semaphore's name: in a barrier that rank may have waited for another one itself, "
            "which its own profile says";
    said.bound = "none of this card's";
    said.gap = fmt::format("{} less if nobody was late", time_of(facts, said.share));
    return said;
}

std::optional<Said> other_card(const Facts& facts) {
    Said said{.share = facts.shares.idle_of(Idle::kOtherCard)};
    std::pair<std::string, std::uint64_t> most;
    for (const Gap& gap : facts.device.gaps) {
        if (gap.why != Idle::kOtherCard) continue;
        const std::uint64_t ps = facts.device.idle_who.at(gap.who);
        if (ps > most.second) most = {gap.who, ps};
    }
    if (most.second == 0) return {};
    said.evidence = fmt::format("nothing ran while it waited for {}, {} of the time", plain(most.first),
                                percent(said.share));
    said.bound = "none of this card's";
    said.gap = fmt::format("{} less if nobody was late", time_of(facts, said.share));
    return said;
}

// Of the time that kernels took, in which they paused: of those that ran alone, or of the others.
std::string pauses(const Facts& facts, bool alone) {
    return longest_kernels(facts, [&](const KernelSums& kernel) {
        return kernel.is_alone() != alone || kernel.counters.pause_ps == 0
                   ? std::string()
                   : percent(kernel.counters.share(kernel.counters.pause_ps));
    });
}

// There is no other group of its launch that it could wait for.
std::optional<Said> polling(const Facts& facts) {
    Said said{.share = facts.shares.polling};
    said.evidence = "of the time that kernels of one work-group took, they paused: " + pauses(facts, true);
    said.bound = "none of this card's";
    said.gap = fmt::format("{} less if nobody was late", time_of(facts, said.share));
    return said;
}

std::optional<Said> imbalance(const Facts& facts) {
    const std::uint32_t cores = facts.device.device->cores();
    if (cores == 0) return {};
    Said said{.share = facts.shares.unused_cores + facts.shares.waits};
    bool few = false;
    said.evidence = longest_kernels(facts, [&](const KernelSums& kernel) {
        few = few || (kernel.groups != 0 && kernel.groups < cores);
        return fmt::format("kept {} of {} cores busy with {} work-groups", percent(kernel.core_use(cores)),
                           cores, text::grouped(kernel.groups));
    });
    said.bound = fmt::format("{} vector cores", cores);
    said.gap = fmt::format("{} less with all of them at work", time_of(facts, said.share));
    if (facts.shares.waits > facts.shares.unused_cores) {
        said.title = "cores that paused for others";
        said.evidence += "; of the time that these took, cores paused for others that had not come: " +
                         pauses(facts, false);
        said.advice =
            "between two barriers of the launch (orr::grid_barrier) give each group as much to do, or let "
            "groups that have less go on with what needs no others; if they look for the host, or for "
            "another card's part (orrLaunchGang), that one came late";
    } else if (few)
        said.advice = fmt::format(
            "there are fewer work-groups than cores: make more of them, {} or a multiple "
            "of it, or run kernels beside each other in several streams",
            cores);
    return said;
}

// The same between cards. Said of the card that had most to do.
std::optional<Said> uneven_cards(const Facts& facts) {
    std::uint64_t most = 0, all = 0;
    for (const DeviceSums& device : facts.sums.devices) {
        most = std::max(most, device.busy_ps());
        all += device.busy_ps();
    }
    const auto count = static_cast<double>(facts.sums.devices.size());
    if (count < 2 || most == 0 || facts.device.busy_ps() != most) return {};
    Said said{.share = 1 - static_cast<double>(all) / (count * static_cast<double>(most))};
    for (const DeviceSums& device : facts.sums.devices) {
        said.evidence += fmt::format("{}device {} worked for {}", said.evidence.empty() ? "" : ", ",
                                     device.device->number, text::duration(device.busy_ps()));
    }
    said.bound = fmt::format("{} each, shared out evenly",
                             text::duration(static_cast<std::uint64_t>(static_cast<double>(all) / count)));
    said.gap = fmt::format("the longest takes {} more",
                           percent(said.share == 1 ? 0 : said.share / (1 - said.share)));
    return said;
}

// All of the cores is none.
bool has_quota(const Facts& facts) {
    return facts.device.quota_permille != 0 && facts.device.quota_permille < 1000;
}

std::optional<Said> preemption(const Facts& facts) {
    if (has_quota(facts)) return {};
    const double held = facts.shares.idle_of(Idle::kHeldBack), others = facts.shares.others_cores;
    Said said{.share = held + others};
    said.evidence =
        fmt::format("work was there and did not run for {} of the time; kernels were interrupted {} times",
                    percent(held), text::grouped(facts.device.preemptions));
    if (others > 0)
        said.evidence +=
            fmt::format("; while they ran, other processes here had cores for {}", percent(others));
    said.bound = "the whole card";
    said.gap = fmt::format("{} less if it had the card for itself", time_of(facts, said.share));
    return said;
}

std::optional<Said> quota(const Facts& facts) {
    if (!has_quota(facts)) return {};
    Said said{.share = facts.shares.idle_of(Idle::kHeldBack)};
    const double allowed = static_cast<double>(facts.device.quota_permille) / 1000;
    said.evidence = fmt::format(
        "the process may use {} of the cores' time, and its work was held back for {} of it; "
        "kernels were interrupted {} times",
        percent(allowed), percent(said.share), text::grouped(facts.device.preemptions));
    const double cores = facts.device.device->cores();
    const double used = cores == 0 || facts.device.span_ps == 0
                            ? 0
                            : static_cast<double>(facts.device.kernel_used_ps) /
                                  (cores * static_cast<double>(facts.device.span_ps));
    said.bound = fmt::format("{} of the cores", percent(allowed));
    said.gap = fmt::format("it used {}", percent(used));
    return said;
}

std::optional<Said> uncounted(const Facts& facts) {
    Said said{.share = facts.shares.uncounted};
    said.evidence = "kernels were not counted, so what held them up is not known: " +
                    longest_kernels(facts, [&](const KernelSums& kernel) {
                        return percent(facts.device.share(kernel.totals.total_ps)) + " of the time";
                    });
    said.bound = known(facts.device.device->bounds.gflops_f32, "GFLOP/s of 32 bits, ") +
                 known(facts.device.device->bounds.vram_gb_per_s, "GB/s of VRAM");
    said.gap = "not known";
    return said;
}

constexpr Rule kRules[] = {
    {"compute", "compute", "look at the kernel's inner loop: fewer instructions for each result", compute},
    {"vram_bandwidth", "VRAM bandwidth",
     "move fewer bytes for each result: fuse kernels, keep data in work-group memory, use smaller types",
     vram},
    {"latency", "latency of memory",
     "load by vectors, or many values before the first is used; keep tables in work-group memory; avoid "
     "atomics",
     latency},
    {"launch", "launches", "put more into each kernel, or launch a graph of many", launch},
    {"host", "the host",
     "submit ahead of what has been waited for; let streams wait by events instead of the host; take the "
     "host's "
     "own work off the way",
     host},
    {"copy_not_overlapped", "copies beside which no kernel runs",
     "split the work: copy the next piece in a second stream while a kernel runs, from pinned memory "
     "(orrMallocHost)",
     copies},
    {"link", "links",
     "send less or later, use the direct link of more ports, copy in large pieces, beside kernels", link},
    {"rank", "another process",
     "find out by that one's profile why it was late: more work, a slower card, or it waits itself", rank},
    {"other_card", "waiting for another card",
     "shift work from the card that is waited for, or wait for it later", other_card},
    {"polling", "kernels that wait for the host or another card",
     "start them when what they look for is there: let the stream wait for a semaphore or an event, or have "
     "what they wait for come earlier",
     polling},
    {"imbalance", "cores without work",
     "make work-groups of equal length, and more of them than cores, the longest first", imbalance},
    {"uneven_cards", "cards with unequal work", "share the work out by what each card takes for it",
     uneven_cards},
    {"preemption", "others on the card",
     "ask who else uses it (orrery-smi), or give the stream a higher priority", preemption},
    {"quota", "its quota", "a larger quota (orrDeviceSetQuota, ORR_QUOTA), if it may have one", quota},
    {"kernels", "kernels, for reasons that were not recorded", "record again with --counters", uncounted},
};

}  // namespace

std::span<const Rule> rules() {
    return kRules;
}

}  // namespace orrery::prof
