#include "umd/runtime/group_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "umd/runtime/group_page.h"
#include "umd/winsys/unique_fd.h"

namespace orrery::umd {
namespace {

constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kMaxCards = 64, kMaxLinks = 256, kMaxFile = 32 << 10;
constexpr auto kNap = std::chrono::milliseconds(20);
constexpr std::uint64_t kLastWordNs = 5'000'000'000;

// The same on all machines, whichever version of the library they have.
struct Hello {
    std::uint32_t version;
    std::int32_t rank, members;
    std::uint32_t unused;
    std::byte machine[16];
};
struct Verdict {
    std::int32_t code;  // orrSuccess: good
    char text[300];
};
struct Cards {
    std::uint32_t count, unused;
    GroupCard cards[kMaxCards];
};
struct Links {
    std::uint32_t count, unused;
    GroupLink links[kMaxLinks];
};
struct Joints {
    std::uint32_t count, unused;
    struct {
        std::int32_t above, below;
        GroupLink link;
    } joints[kMaxGroupMembers];
};
static_assert(sizeof(GroupLink) == 24 && sizeof(GroupCard) == 16);

Verdict verdict_of(const Status& status) {
    Verdict verdict{};
    if (status) return verdict;
    verdict.code = static_cast<std::int32_t>(status.error().code);
    status.error().text.copy(verdict.text, sizeof verdict.text - 1);
    return verdict;
}
Status status_of(const Verdict& verdict) {
    if (verdict.code == orrSuccess) return {};
    std::string text(verdict.text, ::strnlen(verdict.text, sizeof verdict.text));
    std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '?');
    if (text.empty()) text = "another member of the group gave up, and did not say why";
    const bool known = verdict.code > 0 && verdict.code <= orrErrorAbandoned;
    return std::unexpected(Error{known ? static_cast<orrError_t>(verdict.code) : orrErrorAborted, text});
}

Links pack(const std::vector<GroupLink>& links) {
    Links packed{};
    packed.count = static_cast<std::uint32_t>(std::min(links.size(), kMaxLinks));
    std::copy_n(links.begin(), packed.count, packed.links);
    return packed;
}

std::string name_of(const char* what, int rank) {
    return fmt::format("{}-{}", what, rank);
}

}  // namespace

Result<std::vector<GroupJoint>> plan_machines(const std::vector<int>& leaders,
                                              const std::vector<std::vector<GroupLink>>& links) {
    std::vector<GroupJoint> joints;
    std::set<std::size_t> reached{0};
    std::deque<std::size_t> next{0};
    // Both ends say so. Rather a link than a way over switches.
    const auto joint = [&](std::size_t above, std::size_t below) -> std::optional<GroupLink> {
        std::optional<GroupLink> found;
        for (const GroupLink& one : links[above]) {
            const auto back = std::ranges::find_if(links[below], [&](const GroupLink& other) {
                const bool ports = one.is_link() ? other.port == one.peer_port && other.peer_port == one.port
                                                 : !other.is_link();
                return other.uid == one.peer_uid && other.peer_uid == one.uid && ports;
            });
            if (back == links[below].end()) continue;
            if (!found || one.is_link()) found = GroupLink{one.uid, one.peer_uid, one.port, back->port};
            if (one.is_link()) break;
        }
        return found;
    };
    while (!next.empty()) {
        const std::size_t from = next.front();
        next.pop_front();
        for (std::size_t to = 0; to < leaders.size(); ++to) {
            if (reached.contains(to)) continue;
            const auto link = joint(from, to);
            if (!link) continue;
            joints.push_back({leaders[from], leaders[to], *link});
            reached.insert(to);
            next.push_back(to);
        }
    }
    for (std::size_t i = 0; i < leaders.size(); ++i) {
        if (reached.contains(i)) continue;
        return fail(
            orrErrorPeerAccess,
            "no link that is up joins a card of rank {}'s machine to one of rank 0's, no switch either, nor "
            "machines of other members, from card to card (orrery-smi shows links)",
            leaders[i]);
    }
    return joints;
}

GroupFolder::GroupFolder(const GroupToken& token, int rank, int members, std::uint64_t limit_ns,
                         std::array<std::byte, 16> machine)
    : token_(token),
      rank_(rank),
      members_(members),
      until_(limit_ns),
      machine_(machine),
      folder_(token.folder + "/orrery-group-" + token.name) {}

GroupFolder::~GroupFolder() {
    // Who has read the last word takes back that it is ready. If it is not to go, nobody has to have read it.
    const Until until(in_ ? kLastWordNs : 0);
    for (const int leader : told_) {
        while (::access(path(name_of("ready", leader)).c_str(), F_OK) == 0 && until.left_ns() != 0)
            std::this_thread::sleep_for(kNap);
    }
    for (const std::string& name : own_) {
        const bool tells = name.starts_with("hello") || name == "go";
        if (in_ || !tells) ::unlink(path(name).c_str());
    }
    if (gave_up_ && has_introduced()) leave_failed();
    ::rmdir(folder_.c_str());  // the last one's
}

bool GroupFolder::has_introduced() const {
    return std::ranges::find(own_, name_of("hello", rank_)) != own_.end();
}

// What tells others why they cannot meet this member stays until all have come and gone; the last one takes
// everything along, at once, so that nobody sees a part of it. Where members contradict each other nobody
// knows who is still to come, and it stays for good.
void GroupFolder::leave_failed() {
    const Verdict nothing{};
    if (!write(name_of("left", rank_), &nothing, sizeof nothing)) return;
    for (int rank = 0; rank < members_; ++rank) {
        const auto hello = read_as<Hello>(name_of("hello", rank));
        if (!hello || !*hello || (*hello)->members != members_) return;
        if (::access(path(name_of("left", rank)).c_str(), F_OK) != 0) return;
    }
    const std::string gone = fmt::format("{}.gone-{}", folder_, rank_);
    if (::rename(folder_.c_str(), gone.c_str()) != 0) return;
    std::error_code ignored;
    std::filesystem::remove_all(gone, ignored);
}

Result<std::array<std::byte, 16>> GroupFolder::this_machine() {
    std::array<std::byte, 16> id{};
    const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    char text[36];
    if (file.get() < 0 || ::read(file.get(), text, sizeof text) != static_cast<ssize_t>(sizeof text))
        return fail_errno(errno, "reading /proc/sys/kernel/random/boot_id");
    std::size_t digits = 0;
    for (const char c : text) {
        if (c == '-' || digits == 2 * id.size()) continue;
        const int value = c >= 'a' ? c - 'a' + 10 : c - '0';
        id[digits / 2] = id[digits / 2] << 4 | static_cast<std::byte>(value & 0xf);
        ++digits;
    }
    return id;
}

Status GroupFolder::write(std::string_view name, const void* bytes, std::size_t size) {
    const std::string to = path(name), made = to + ".new";
    UniqueFd file(::open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return fail_errno(errno, "writing what a group's members read, " + made);
    std::vector<std::byte> all(GroupToken::kSecretChars + size);
    std::memcpy(all.data(), token_.secret.data(), GroupToken::kSecretChars);
    std::memcpy(all.data() + GroupToken::kSecretChars, bytes, size);
    const bool whole = ::write(file.get(), all.data(), all.size()) == static_cast<ssize_t>(all.size());
    const int number = errno;
    file = UniqueFd();
    if (!whole || ::rename(made.c_str(), to.c_str()) != 0) {
        const int why = whole ? errno : number;
        ::unlink(made.c_str());
        return fail_errno(why, "writing what a group's members read, " + to);
    }
    if (std::ranges::find(own_, name) == own_.end()) own_.emplace_back(name);
    return {};
}

Result<std::optional<std::vector<std::byte>>> GroupFolder::read(std::string_view name) const {
    const std::string from = path(name);
    const UniqueFd file(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0) {
        if (errno == ENOENT) return std::nullopt;
        return fail_errno(errno, "reading what a group's member wrote, " + from);
    }
    std::vector<std::byte> bytes(kMaxFile);
    std::size_t size = 0;
    while (size < bytes.size()) {
        const ssize_t got = ::read(file.get(), bytes.data() + size, bytes.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(errno, "reading what a group's member wrote, " + from);
        if (got == 0) break;
        size += static_cast<std::size_t>(got);
    }
    // Of somebody else: as if it were not there.
    if (size < GroupToken::kSecretChars ||
        !same_secret({reinterpret_cast<const char*>(bytes.data()), GroupToken::kSecretChars}, token_.secret))
        return std::nullopt;
    bytes.resize(size);
    bytes.erase(bytes.begin(), bytes.begin() + GroupToken::kSecretChars);
    return bytes;
}

template <typename Message>
Result<std::optional<Message>> GroupFolder::read_as(std::string_view name) const {
    static_assert(std::is_trivially_copyable_v<Message>);
    ORR_TRY(bytes, read(name));
    if (!*bytes) return std::nullopt;
    if ((*bytes)->size() != sizeof(Message)) {
        return fail(orrErrorNotSupported, "{} has {} bytes, not {}: is it of another version of the library?",
                    path(name), (*bytes)->size(), sizeof(Message));
    }
    Message message;
    std::memcpy(&message, (*bytes)->data(), sizeof message);
    return message;
}

Status GroupFolder::wait(const std::function<Result<bool>()>& look,
                         const std::function<std::string()>& missing) {
    while (true) {
        ORR_TRY(there, look());
        if (*there) return {};
        ORR_TRY(verdict, read_as<Verdict>("go"));
        if (*verdict) {
            ORR_TRY(good, status_of(**verdict));
        }
        // One that came as another of its rank, or with a number of members that the others do not have.
        if (has_introduced() && ::access(path(name_of("hello", rank_)).c_str(), F_OK) != 0 && errno == ENOENT)
            return fail(orrErrorAborted,
                        "all other members of the group have given up, and taken away what they and rank {} "
                        "had written in {}",
                        rank_, folder_);
        if (until_.left_ns() == 0)
            return fail(orrErrorTimeout, "not all members came within {} ns: {}", until_.limit_ns(),
                        missing());
        std::this_thread::sleep_for(kNap);
    }
}

Result<std::vector<int>> GroupFolder::introduce() {
    if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
        return fail_errno(errno, "making the folder in which a group's members meet, " + folder_);
    const std::string own_name = name_of("hello", rank_);
    ORR_TRY(before, read(own_name));
    if (*before)
        return fail(orrErrorInvalidValue, "two joined as rank {}, or its token was used before", rank_);
    Hello own{kVersion, rank_, members_, 0, {}};
    std::ranges::copy(machine_, own.machine);
    ORR_TRY(written, write(own_name, &own, sizeof own));

    std::vector<std::optional<Hello>> all(static_cast<std::size_t>(members_));
    // One after the other: nobody can go on before the last has come.
    const auto look = [&]() -> Result<bool> {
        for (int rank = 0; rank < members_; ++rank) {
            auto& hello = all[static_cast<std::size_t>(rank)];
            if (hello) continue;
            ORR_TRY(came, read_as<Hello>(name_of("hello", rank)));
            hello = *came;
            if (!hello) return false;
        }
        return true;
    };
    const auto missing = [&] {
        std::vector<int> ranks;
        for (int rank = 0; rank < members_; ++rank) {
            const auto came = read_as<Hello>(name_of("hello", rank));
            if (!came || !*came) ranks.push_back(rank);
        }
        return fmt::format("rank {} did not", fmt::join(ranks, ", "));
    };
    ORR_TRY(there, wait(look, missing));
    // Also who comes last, when somebody has left again.
    ORR_TRY(verdict, read_as<Verdict>("go"));
    if (*verdict) {
        ORR_TRY(good, status_of(**verdict));
    }
    std::vector<int> leaders;
    for (int rank = 0; rank < members_; ++rank) {
        const Hello& hello = *all[static_cast<std::size_t>(rank)];
        if (hello.version != kVersion)
            return fail(orrErrorNotSupported, "rank {} has another version of the library", rank);
        if (hello.rank != rank || hello.members != all[0]->members) {
            return fail(orrErrorInvalidValue, "rank {} joined a group of {} members, and rank 0 one of {}",
                        hello.rank, hello.members, all[0]->members);
        }
        int leader = 0;
        while (!std::ranges::equal(all[static_cast<std::size_t>(leader)]->machine, hello.machine))
            ++leader;
        leaders.push_back(leader);
    }
    return leaders;
}

Result<std::vector<GroupCard>> GroupFolder::cards_of(const std::vector<int>& leaders) const {
    std::vector<GroupCard> all;
    for (const int leader : leaders) {
        if (leader == rank_) continue;
        ORR_TRY(came, read_as<Cards>(name_of("cards", leader)));
        if (!*came) continue;
        const auto count = std::min<std::size_t>((*came)->count, kMaxCards);
        all.insert(all.end(), (*came)->cards, (*came)->cards + count);
    }
    return all;
}

Result<std::vector<GroupJoint>> GroupFolder::plan(const std::vector<int>& leaders,
                                                  const std::vector<GroupCard>& cards, const LinksTo& links) {
    Cards own{};
    own.count = static_cast<std::uint32_t>(std::min(cards.size(), kMaxCards));
    std::copy_n(cards.begin(), own.count, own.cards);
    ORR_TRY(said_cards, write(name_of("cards", rank_), &own, sizeof own));
    std::vector<std::vector<GroupLink>> all(leaders.size());
    std::vector<GroupLink> said;
    bool first = true;
    Error why;
    Joints joints{};
    // Links may not be up yet where a machine has just booted: they say it again.
    const auto look = [&]() -> Result<bool> {
        ORR_TRY(others, cards_of(leaders));
        ORR_TRY(now, links(*others));
        if (rank_ != 0) {
            if (std::exchange(first, false) || *now != said) {
                said = *now;
                const Links packed = pack(said);
                ORR_TRY(written, write(name_of("links", rank_), &packed, sizeof packed));
            }
            ORR_TRY(planned, read_as<Joints>("plan"));
            if (*planned) joints = **planned;
            return planned->has_value();
        }
        all[0] = std::move(*now);
        for (std::size_t i = 1; i < leaders.size(); ++i) {
            ORR_TRY(came, read_as<Links>(name_of("links", leaders[i])));
            if (!*came) {
                why = Error{orrErrorTimeout, fmt::format("rank {} did not", leaders[i])};
                return false;
            }
            const auto count = std::min<std::size_t>((*came)->count, kMaxLinks);
            all[i].assign((*came)->links, (*came)->links + count);
        }
        auto planned = plan_machines(leaders, all);
        if (!planned) {
            why = planned.error();
            return false;
        }
        joints.count = static_cast<std::uint32_t>(planned->size());
        for (std::size_t i = 0; i < planned->size(); ++i)
            joints.joints[i] = {(*planned)[i].above, (*planned)[i].below, (*planned)[i].link};
        ORR_TRY(written, write("plan", &joints, sizeof joints));
        return true;
    };
    const auto missing = [&] { return rank_ == 0 ? why.text : std::string("rank 0 made no plan"); };
    auto there = wait(look, missing);
    if (!there && why.code == orrErrorPeerAccess) return std::unexpected(why);
    if (!there) return std::unexpected(there.error());
    std::vector<GroupJoint> result;
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(joints.count, kMaxGroupMembers); ++i) {
        const auto& one = joints.joints[i];
        const bool known = std::ranges::find(leaders, one.above) != leaders.end() &&
                           std::ranges::find(leaders, one.below) != leaders.end() && one.below != 0;
        if (!known) return fail(orrErrorInvalidValue, "rank 0 wrote nonsense about the machines");
        result.push_back({one.above, one.below, one.link});
    }
    return result;
}

Status GroupFolder::give(int to, const FabricKey& key) {
    return write(fmt::format("key-{}-{}", rank_, to), &key, sizeof key);
}

Result<FabricKey> GroupFolder::take(int from) {
    FabricKey key;
    const auto look = [&]() -> Result<bool> {
        ORR_TRY(came, read_as<FabricKey>(fmt::format("key-{}-{}", from, rank_)));
        if (*came) key = **came;
        return came->has_value();
    };
    ORR_TRY(there, wait(look, [&] { return fmt::format("rank {} gave no handle", from); }));
    return key;
}

Status GroupFolder::agree(const std::vector<int>& leaders) {
    if (rank_ != 0) {
        const Verdict good{};
        ORR_TRY(written, write(name_of("ready", rank_), &good, sizeof good));
        return wait(
            [&]() -> Result<bool> {
                ORR_TRY(verdict, read_as<Verdict>("go"));
                if (!*verdict) return false;
                ORR_TRY(all, status_of(**verdict));
                return true;
            },
            [] { return std::string("rank 0 did not say that all are in"); });
    }
    int missing = -1;
    const auto look = [&]() -> Result<bool> {
        for (const int leader : leaders) {
            if (leader == 0) continue;
            ORR_TRY(verdict, read_as<Verdict>(name_of("ready", leader)));
            missing = leader;
            if (!*verdict) return false;
        }
        return true;
    };
    ORR_TRY(all, wait(look, [&] { return fmt::format("rank {} is not ready", missing); }));
    const Verdict good{};
    ORR_TRY(written, write("go", &good, sizeof good));
    told_ = leaders;
    std::erase(told_, 0);
    return {};
}

void GroupFolder::give_up(const Error& error) {
    gave_up_ = true;
    if (const auto said = read("go"); said && *said) return;
    const Verdict bad = verdict_of(std::unexpected(error));
    (void)write("go", &bad, sizeof bad);
}

}  // namespace orrery::umd
