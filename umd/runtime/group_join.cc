// How a group comes to be: in one process, or of processes that have found each other.
#include <fcntl.h>
#include <orrery/fw/failure.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "umd/runtime/context.h"
#include "umd/runtime/group.h"
#include "umd/runtime/group_folder.h"
#include "umd/runtime/group_rendezvous.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd {

Result<std::vector<int>> plan_group(const std::vector<int>& devices,
                                    const std::function<Result<bool>(int, int)>& linked) {
    // By device, its first member.
    std::map<int, int> heads;
    for (std::size_t rank = 0; rank < devices.size(); ++rank)
        heads.try_emplace(devices[rank], static_cast<int>(rank));
    std::vector<int> above(devices.size(), -1);
    std::set<int> reached{devices[0]};
    std::deque<int> next{devices[0]};
    while (!next.empty()) {
        const int from = next.front();
        next.pop_front();
        for (const auto& [device, head] : heads) {
            if (reached.contains(device)) continue;
            ORR_TRY(joined, linked(device, from));
            if (!*joined) continue;
            reached.insert(device);
            next.push_back(device);
            above[static_cast<std::size_t>(head)] = heads.at(from);
        }
    }
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        const int device = devices[rank], head = heads.at(device);
        if (!reached.contains(device)) {
            return fail(
                orrErrorPeerAccess,
                "no link that is up joins device {} of rank {} to device {} of rank 0, nor over devices of "
                "other members (orrery-smi shows links)",
                device, rank, devices[0]);
        }
        if (head != static_cast<int>(rank)) above[rank] = head;
    }
    return above;
}

Result<Group::Seat> Group::take_seat(Context& context, int rank) {
    ORR_TRY(slot, context.shared_semaphores().create(SharedSemaphores::Kind::kGroup));
    QueueOptions options;
    options.name = fmt::format("group, rank {}", rank);
    ORR_TRY(guard, Stream::create(context, 64, 0, std::move(options)));
    Seat seat{std::make_shared<Semaphore>(std::move(*slot)), std::move(*guard)};
    // Before anybody else has it.
    ORR_TRY(declared, seat.own->add_signaller(seat.guard));
    return seat;
}

Result<GroupPlan> Group::plan(Runtime& runtime, const std::vector<Context*>& contexts,
                              const std::vector<int>& memory, bool by_units) {
    std::vector<int> devices;
    devices.reserve(contexts.size());
    for (const Context* context : contexts)
        devices.push_back(context->device());
    ORR_TRY(above, plan_group(devices, [&](int one, int other) { return runtime.linked(one, other); }));
    GroupPlan plan{.above = std::move(*above), .unit = false, .pages = std::vector<UniqueFd>(devices.size())};
    std::vector<std::size_t> heads;
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        const int over = plan.above[rank];
        if (over < 0 || devices[static_cast<std::size_t>(over)] != devices[rank]) heads.push_back(rank);
    }
    const bool able =
        by_units && std::ranges::all_of(heads, [&](auto rank) { return contexts[rank]->has_barriers(); });
    if (!able || heads.size() < 2 || heads.size() > ORR_BARRIER_MEMBERS_MAX) return plan;
    std::vector<BarrierSeat> seats;
    seats.reserve(heads.size());
    for (const std::size_t rank : heads)
        seats.push_back({memory[rank], offsetof(SharedPage, release)});
    ORR_TRY(pages, contexts[heads[0]]->winsys().make_barrier(seats));
    if (pages->empty()) return plan;
    plan.unit = true;
    for (std::size_t i = 0; i < heads.size(); ++i) {
        plan.above[heads[i]] = -1;
        plan.pages[heads[i]] = std::move((*pages)[i]);
    }
    return plan;
}

Result<std::vector<std::shared_ptr<Group>>> Group::create_all(Runtime& runtime,
                                                              const std::vector<int>& devices) {
    ORR_TRY(page, GroupPage::create(static_cast<int>(devices.size())));
    std::vector<Context*> contexts;
    std::vector<Seat> seats;
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        ORR_TRY(context, runtime.context(devices[rank]));
        ORR_TRY(seat, take_seat(**context, static_cast<int>(rank)));
        contexts.push_back(*context);
        seats.push_back(std::move(*seat));
    }
    std::vector<UniqueFd> exported;
    std::vector<int> memory;
    for (const Seat& seat : seats) {
        ORR_TRY(fd, SharedSemaphores::export_fd(*seat.own->slot));
        memory.push_back(fd->get());
        exported.push_back(std::move(*fd));
    }
    const std::vector<Way> ways = ways_between(contexts);
    ORR_TRY(planned, plan(runtime, contexts, memory, true));
    const std::uint64_t owner = next_step_owner();
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        if (const int fd = planned->pages[rank].get(); fd >= 0) {
            ORR_TRY(added, contexts[rank]->shared_semaphores().add_barrier(*seats[rank].own->slot, fd));
        }
    }
    std::vector<std::shared_ptr<Group>> all;
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        std::vector<GroupMember> members;
        members.reserve(devices.size());
        for (std::size_t other = 0; other < devices.size(); ++other)
            members.push_back({seats[other].own->slot, UniqueFd(), planned->above[other]});
        std::shared_ptr<Group> one(new Group(*contexts[rank], static_cast<int>(rank), seats[rank],
                                             std::move(members), *page, planned->unit));
        one->owner_ = owner;
        if (planned->unit) one->ways_ = ways;
        all.push_back(enter(std::move(one)));
    }
    return all;
}

namespace {

// The members of this machine, by rank, and how it is joined to others.
struct Neighbourhood {
    std::vector<int> here;     // ranks
    std::vector<int> leaders;  // by rank: the lowest one of its machine
    std::unique_ptr<GroupFolder> folder{};

    std::vector<int> machines() const {
        std::vector<int> all = leaders;
        std::ranges::sort(all);
        all.erase(std::ranges::unique(all).begin(), all.end());
        return all;
    }
};

Result<Neighbourhood> look_around(const GroupToken& token, int rank, int members, std::uint64_t limit_ns) {
    Neighbourhood all;
    all.leaders.assign(static_cast<std::size_t>(members), 0);
    if (!token.folder.empty()) {
        ORR_TRY(machine, GroupFolder::this_machine());
        all.folder = std::make_unique<GroupFolder>(token, rank, members, limit_ns, *machine);
        auto leaders = all.folder->introduce();
        if (!leaders) {
            all.folder->give_up(leaders.error());
            return std::unexpected(leaders.error());
        }
        all.leaders = std::move(*leaders);
    }
    for (int other = 0; other < members; ++other) {
        if (all.leaders[static_cast<std::size_t>(other)] == all.leaders[static_cast<std::size_t>(rank)])
            all.here.push_back(other);
    }
    return all;
}

}  // namespace

namespace {

// Of a group of several processes: not its secret, and no number of one that is of one process.
std::uint64_t owner_of(std::string_view name) {
    std::uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
    for (const char c : name)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3;
    return hash | 1ull << 63;
}

}  // namespace

Result<std::shared_ptr<Group>> Group::join(Runtime& runtime, const GroupToken& token, int rank, int members,
                                           std::uint64_t limit_ns) {
    ORR_TRY(context, runtime.current_context());
    const Until until(limit_ns);
    ORR_TRY(around, look_around(token, rank, members, limit_ns));
    const std::vector<int>& here = around->here;
    const bool several = around->machines().size() > 1;
    const auto own = static_cast<std::size_t>(std::ranges::find(here, rank) - here.begin());
    std::vector<GroupMember> all(static_cast<std::size_t>(members));
    std::unique_ptr<GroupBridge> bridge;
    std::shared_ptr<GroupPage> page;
    std::vector<Way> ways;
    bool unit = false;

    const auto member = [&](std::size_t i) -> GroupMember& { return all[static_cast<std::size_t>(here[i])]; };
    const auto set_above = [&](std::size_t i, int above) {
        member(i).above = above < 0 ? -1 : here[static_cast<std::size_t>(above)];
    };
    const auto meet = [&]() -> Result<Seat> {
        ORR_TRY(seat, take_seat(**context, rank));
        ORR_TRY(fd, SharedSemaphores::export_fd(*seat->own->slot));
        const auto take_in = [&](Gathering& gathering) -> Status {
            for (std::size_t i = 0; i < here.size(); ++i) {
                Comer& comer = gathering.all[i];
                set_above(i, comer.above);
                if (i == own) {
                    member(i).slot = seat->own->slot;
                    continue;
                }
                ORR_TRY(found, runtime.find_foreign(comer.semaphore.get()));
                ORR_TRY(slot, found->context->shared_semaphores().import(std::move(found->foreign),
                                                                         SharedSemaphores::Kind::kGroup));
                UniqueFd process(::fcntl(comer.process.get(), F_DUPFD_CLOEXEC, 0));
                if (process.get() < 0) return fail_errno(errno, "keeping a member's pidfd");
                member(i).slot = std::move(*slot);
                member(i).process = std::move(process);
            }
            std::vector<Context*> contexts;
            for (std::size_t i = 0; i < here.size(); ++i)
                contexts.push_back(member(i).slot->context);
            if (!several) ways = ways_between(contexts);
            return {};
        };
        Rendezvous meeting{.token = token,
                           .rank = static_cast<int>(own),
                           .members = static_cast<int>(here.size()),
                           .limit_ns = std::max<std::uint64_t>(until.left_ns(), 1),
                           .semaphore = fd->get(),
                           .plan = {},
                           .admit = {},
                           .names = here};
        meeting.plan = [&](Gathering& gathering) -> Status {
            ORR_TRY(taken, take_in(gathering));
            std::vector<Context*> contexts;
            std::vector<int> memory;
            for (std::size_t i = 0; i < here.size(); ++i) {
                contexts.push_back(member(i).slot->context);
                memory.push_back(gathering.all[i].semaphore.get());
            }
            // Units know the cards of one machine.
            ORR_TRY(planned, Group::plan(runtime, contexts, memory, !several));
            gathering.unit = planned->unit;
            for (std::size_t i = 0; i < here.size(); ++i) {
                gathering.all[i].above = planned->above[i];
                set_above(i, planned->above[i]);
                gathering.all[i].barrier = std::move(planned->pages[i]);
            }
            ORR_TRY(made, GroupPage::create(members, several && here.front() != 0));
            page = std::move(*made);
            gathering.page = UniqueFd(::fcntl(page->fd(), F_DUPFD_CLOEXEC, 0));
            return {};
        };
        meeting.admit = [&](Gathering& gathering) -> Status {
            if (own != 0) {
                ORR_TRY(taken, take_in(gathering));
            }
            unit = gathering.unit;
            Comer& self = gathering.all[own];
            if (self.barrier.get() >= 0) {
                ORR_TRY(added,
                        (*context)->shared_semaphores().add_barrier(*seat->own->slot, self.barrier.get()));
            } else if (unit && self.above < 0) {
                return fail(orrErrorInvalidValue, "rank 0 sent no page of the barrier");
            }
            if (own == 0) return {};
            ORR_TRY(opened, GroupPage::open(std::move(gathering.page), members));
            page = std::move(*opened);
            return {};
        };
        if (several) {
            meeting.settle = [&]() -> Status {
                GroupFolder& folder = *around->folder;
                const std::vector<int> machines = around->machines();
                ORR_TRY(cards, own_cards(runtime));
                ORR_TRY(joints, folder.plan(machines, *cards, [&](const std::vector<GroupCard>& others) {
                    return links_to_others(runtime, others);
                }));
                ORR_TRY(made,
                        GroupBridge::connect(runtime, **context, folder, *joints, rank, around->leaders));
                bridge = std::move(*made);
                return folder.agree(machines);
            };
        }
        ORR_TRY(met, meeting.meet());
        return std::move(*seat);
    };
    auto seat = meet();
    if (!seat) {
        // Others may be in: this one said that it could take them in.
        if (page != nullptr) {
            page->tell(rank, {seat.error().code, rank, "its orrGroupJoin failed: " + seat.error().text});
            page->leave(rank);
        }
        if (around->folder != nullptr) around->folder->give_up(seat.error());
        return std::unexpected(seat.error());
    }
    if (around->folder != nullptr) around->folder->all_in();
    // What rank 0 has said is there for the others as long as the group.
    auto folder = rank == 0 ? std::move(around->folder) : nullptr;
    std::shared_ptr<Group> group(
        new Group(**context, rank, std::move(*seat), std::move(all), std::move(page), unit));
    group->owner_ = owner_of(token.name);
    if (unit) group->ways_ = std::move(ways);
    group->bridge_ = std::move(bridge);
    group->folder_ = std::move(folder);
    if (group->bridge_ != nullptr)
        group->bridge_->start(group->page_, [group = group.get()] { group->look(); });
    return enter(std::move(group));
}

}  // namespace orrery::umd
