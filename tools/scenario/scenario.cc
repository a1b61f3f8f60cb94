// What a scenario must hold to, and how it is written down.
#include "tools/scenario/scenario.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <orrery/fw/boot_block.h>
#include <orrery/fw/packet.h>
#include <orrery/hw/doorbell.h>

namespace orrery::scenario {

namespace {

constexpr std::array kOpNames = {"nop",    "kernel",  "copy",      "fill", "wait",
                                 "signal", "barrier", "timestamp", "gang", "malformed"};
constexpr std::array kPriorityNames = {"low", "normal", "high", "realtime"};

std::string place_text(const Place& place) {
    switch (place.kind) {
        case Place::Kind::kVram:
            return "vram";
        case Place::Kind::kHost:
            return "host";
        case Place::Kind::kPeer:
            return fmt::format("card{}", place.card);
    }
    return {};
}

}  // namespace

const char* to_string(Op op) {
    return kOpNames[static_cast<std::size_t>(op)];
}

std::string Scenario::check() const {
    if (until == 0) return "until must be more than 0";
    if (until > 1000 * 1000 * kMs) return "until must be at most 1000s";
    if (cards.empty() || cards.size() > ORR_GANG_MAX_CARDS) return "there must be 1 to 8 cards";
    for (const Card& card : cards) {
        if (card.sku.link_ports + 1 < cards.size())
            return fmt::format("{} cards need {} link ports each, SKU \"{}\" has {}", cards.size(),
                               cards.size() - 1, card.sku.name, card.sku.link_ports);
    }
    std::vector<std::uint32_t> queues_of(contexts.size());
    std::array<std::uint32_t, ORR_GANG_MAX_CARDS> on_card{}, contexts_on{};
    for (const Context& context : contexts) {
        if (context.card >= cards.size())
            return fmt::format("context '{}': no card {}", context.name, context.card);
        if (++contexts_on[context.card] > ORR_DB_PAGES - 1) return "there may be 511 contexts a card";
    }
    for (const Queue& queue : queues) {
        if (queue.context >= contexts.size()) return fmt::format("queue '{}': no such context", queue.name);
        if (queue.weight == 0 || queue.weight > ORR_WEIGHT_MAX || queue.priority > ORR_PRIORITY_REALTIME)
            return fmt::format("queue '{}': weight or priority out of range", queue.name);
        if (++queues_of[queue.context] > ORR_DB_SLOTS)
            return fmt::format("context '{}' has more than {} queues: spread them over several",
                               contexts[queue.context].name, ORR_DB_SLOTS);
        if (++on_card[card_of(queue)] > ORR_FW_QUEUES) return "there may be 1024 queues a card";
    }
    if (semaphores.size() > 4096) return "there may be 4096 semaphores";
    for (const Semaphore& semaphore : semaphores) {
        if (semaphore.card >= cards.size())
            return fmt::format("semaphore '{}': no such card", semaphore.name);
    }
    for (const Gang& gang : gangs) {
        if (gang.members.size() > cards.size())
            return fmt::format("gang '{}' names more cards than there are", gang.name);
    }
    for (const Submit& submit : submits) {
        if (submit.queue >= queues.size()) return "a submit names no queue";
        const std::uint32_t card = card_of(queues[submit.queue]);
        for (const Job& job : submit.jobs) {
            const bool semaphore = job.op == Op::kWait || job.op == Op::kSignal;
            if (semaphore && job.semaphore >= semaphores.size()) return "a job names no semaphore";
            if (job.op == Op::kWait && semaphores[job.semaphore].card != card)
                return fmt::format(
                    "queue '{}' waits for semaphore '{}' of card {}: a queue can wait for semaphores of its "
                    "own card only",
                    queues[submit.queue].name, semaphores[job.semaphore].name,
                    semaphores[job.semaphore].card);
            if (job.op == Op::kGang && job.gang >= gangs.size()) return "a job names no gang";
            if (job.op == Op::kKernel && job.groups == 0) return "a kernel has no groups";
            if ((job.op == Op::kCopy || job.op == Op::kFill) && job.to.kind == Place::Kind::kPeer &&
                (job.to.card >= cards.size() || job.to.card == card))
                return fmt::format("queue '{}': \"card{}\" is no other card", queues[submit.queue].name,
                                   job.to.card);
            if ((job.op == Op::kCopy || job.op == Op::kFill) &&
                (job.bytes == 0 || job.bytes > kMostCopyBytes))
                return "a copy must have 1 byte to 1T";
        }
    }
    for (const Action& action : actions) {
        const bool about_queue = action.kind == Action::Kind::kQueueSet ||
                                 action.kind == Action::Kind::kQueueDestroy ||
                                 action.kind == Action::Kind::kRing;
        if (about_queue && action.queue >= queues.size()) return "an action names no queue";
        if (action.kind == Action::Kind::kQuotaSet && action.context >= contexts.size())
            return "an action names no context";
        if (action.kind == Action::Kind::kCrash &&
            (action.card >= cards.size() ||
             (action.queue != Action::kNobody && action.queue >= queues.size())))
            return "a crash names no card or queue";
        if (action.kind == Action::Kind::kPoke && action.semaphore >= semaphores.size())
            return "a poke names no semaphore";
    }
    return {};
}

namespace {

std::string job_text(const Scenario& scenario, const Job& job) {
    std::string text = fmt::format("{{op = \"{}\"", to_string(job.op));
    if (job.ordered) text += ", ordered = true";
    if (job.interrupt) text += ", interrupt = true";
    switch (job.op) {
        case Op::kKernel:
            text += fmt::format(", groups = {}, cycles = {}", job.groups, job.cycles);
            if (job.resident) text += ", resident = true";
            if (job.traps) text += ", traps = true";
            break;
        case Op::kCopy:
            text += fmt::format(", from = \"{}\"", place_text(job.from));
            [[fallthrough]];
        case Op::kFill:
            text += fmt::format(", to = \"{}\", bytes = {}", place_text(job.to), job.bytes);
            break;
        case Op::kWait:
        case Op::kSignal:
            text += fmt::format(", semaphore = \"{}\", value = {}", scenario.semaphores[job.semaphore].name,
                                job.value);
            break;
        case Op::kGang:
            text += fmt::format(", gang = \"{}\", round = {}", scenario.gangs[job.gang].name, job.round);
            break;
        default:
            break;
    }
    return text + "}";
}

std::string action_text(const Scenario& scenario, const Action& action) {
    switch (action.kind) {
        case Action::Kind::kQueueSet:
            return fmt::format(
                "do = \"set_queue\"\nqueue = \"{}\"\npriority = \"{}\"\nweight = {}\nslice = \"{}us\"\n",
                scenario.queues[action.queue].name, kPriorityNames[action.priority],
                std::max(1u, action.weight), action.slice_us);
        case Action::Kind::kQuotaSet:
            return fmt::format("do = \"set_quota\"\ncontext = \"{}\"\nquota = {}\nperiod = \"{}us\"\n",
                               scenario.contexts[action.context].name, action.quota, action.period_us);
        case Action::Kind::kQueueDestroy:
            return fmt::format("do = \"destroy_queue\"\nqueue = \"{}\"\n",
                               scenario.queues[action.queue].name);
        case Action::Kind::kRing:
            return fmt::format("do = \"ring\"\nqueue = \"{}\"\nvalue = {}\n",
                               scenario.queues[action.queue].name, action.value);
        case Action::Kind::kCrash: {
            std::string text = fmt::format("do = \"crash\"\ncard = {}\n", action.card);
            if (action.queue != Action::kNobody)
                text += fmt::format("queue = \"{}\"\n", scenario.queues[action.queue].name);
            return text;
        }
        case Action::Kind::kPoke:
            return fmt::format("do = \"poke\"\nsemaphore = \"{}\"\nvalue = {}\n",
                               scenario.semaphores[action.semaphore].name, action.value);
    }
    return {};
}

}  // namespace

std::string Scenario::to_toml() const {
    // Commands that make queues take some microseconds each.
    const Ps begin = start != 0 ? start : kStart + queues.size() / 64 * kMs;
    std::string out =
        fmt::format("name = \"{}\"\nstart = \"{}\"\nuntil = \"{}\"\nseed = {}\nsave_areas = {}\n", name,
                    time_text(begin), time_text(begin + until), seed, save_areas);
    for (const Card& card : cards)
        out +=
            fmt::format("\n[[card]]\nvram = {}\ncopy_engines = {}\nvector_ports = {}\nvector_cores = {}\n",
                        card.vram_bytes, card.sku.copy_engines, card.sku.vector_ports, card.sku.vector_cores);
    for (const Context& context : contexts) {
        out += fmt::format("\n[[context]]\nname = \"{}\"\ncard = {}\n", context.name, context.card);
        if (context.user != 0 || context.process != 0)
            out += fmt::format("user = {}\nprocess = {}\n", context.user, context.process);
        if (context.quota != 0)
            out += fmt::format("quota = {}\nperiod = \"{}us\"\n", context.quota, context.period_us);
    }
    for (const Semaphore& semaphore : semaphores)
        out += fmt::format("\n[[semaphore]]\nname = \"{}\"\ncard = {}\n", semaphore.name, semaphore.card);
    for (const Gang& gang : gangs) {
        std::string members;
        for (const std::uint32_t count : gang.members)
            members += fmt::format("{}{}", members.empty() ? "" : ", ", count);
        out += fmt::format("\n[[gang]]\nname = \"{}\"\nmembers = [{}]\n", gang.name, members);
    }
    for (const Queue& queue : queues) {
        out += fmt::format("\n[[queue]]\nname = \"{}\"\ncontext = \"{}\"\npriority = \"{}\"\nweight = {}\n",
                           queue.name, contexts[queue.context].name, kPriorityNames[queue.priority],
                           queue.weight);
        if (queue.slice_us != 0) out += fmt::format("slice = \"{}us\"\n", queue.slice_us);
        if (queue.limit_us != 0) out += fmt::format("limit = \"{}us\"\n", queue.limit_us);
        if (queue.ring_in_vram) out += "ring = \"vram\"\n";
        if (queue.entries != 0) out += fmt::format("entries = {}\n", queue.entries);
    }
    for (const Submit& submit : submits) {
        out += fmt::format("\n[[submit]]\nqueue = \"{}\"\nat = \"{}ps\"\njobs = [\n",
                           queues[submit.queue].name, begin + submit.at);
        for (std::size_t n = 0; n < submit.jobs.size();) {
            std::size_t same = n + 1;
            while (same < submit.jobs.size() && submit.jobs[same] == submit.jobs[n])
                ++same;
            std::string text = job_text(*this, submit.jobs[n]);
            if (same - n > 1) text.insert(text.size() - 1, fmt::format(", repeat = {}", same - n));
            out += "  " + text + ",\n";
            n = same;
        }
        out += "]\n";
    }
    for (const Action& action : actions)
        out += fmt::format("\n[[action]]\nat = \"{}ps\"\n{}", begin + action.at, action_text(*this, action));
    return out;
}

}  // namespace orrery::scenario
