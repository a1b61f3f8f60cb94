// What members of a group on several machines read of each other: any bytes as a token, and in a folder any
// files, with the secret and without. Refused or understood, never believed: who leads whom, and what joins
// machines, are members that there are, and texts can be printed.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/engines/input.h"
#include "umd/runtime/group_folder.h"
#include "umd/runtime/group_page.h"

namespace {

using namespace orrery::umd;
using orrery::emu::test::Input;

void require(bool holds) {
    if (!holds) std::abort();
}

bool is_printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

std::string rest(Input& input, std::size_t most) {
    std::string bytes;
    while (!input.empty() && bytes.size() < most)
        bytes += static_cast<char>(input.take<std::uint8_t>());
    return bytes;
}

void parse_token(std::string text) {
    // Most of them begin as tokens do.
    if (!text.empty() && text.front() == '1') text = "orrg1-unix-" + text.substr(1);
    if (!text.empty() && text.front() == '2')
        text = "orrg1-dir-0123456789abcdef0123456789abcdef-" + text.substr(1);
    const auto token = GroupToken::parse(text);
    if (!token) {
        require(!token.error().text.empty() && is_printable(token.error().text));
        return;
    }
    require(token->text() == text && is_printable(text));
    require(token->name.size() == GroupToken::kNameChars && token->secret.size() == GroupToken::kSecretChars);
}

constexpr int kMost = 4;
constexpr std::size_t kHello = 32, kVerdict = 304, kCards = 8 + 64 * sizeof(GroupCard),
                      kLinks = 8 + 256 * sizeof(GroupLink), kJoints = 8 + 32 * kMaxGroupMembers;

struct Folder {
    Folder() {
        std::string made = (std::filesystem::temp_directory_path() / "group-files-XXXXXX").string();
        require(::mkdtemp(made.data()) != nullptr);
        token = {"0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210", made};
        folder = made + "/orrery-group-" + token.name;
        require(::mkdir(folder.c_str(), 0700) == 0);
    }
    ~Folder() { std::filesystem::remove_all(token.folder); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    void put(Input& input, const std::string& name, std::size_t size, std::string begin = {}) const {
        const auto how = input.take<std::uint8_t>();
        if (how % 4 == 0) return;
        const std::string path = folder + "/" + name;
        std::filesystem::create_directory(folder);  // who failed may have taken it along
        std::filesystem::remove(path);
        if (how == 0xfd) require(::mkdir(path.c_str(), 0700) == 0);
        if (how == 0xfe) require(::mkfifo(path.c_str(), 0600) == 0);
        if (how == 0xff) require(::symlink("/etc/passwd", path.c_str()) == 0);
        if (how >= 0xfd) return;
        std::string bytes = how % 4 == 1 ? begin : std::string();
        bytes += rest(input, how % 64);
        if (how >= 0xf0) size += how % 16 * 4096u;
        bytes.resize(size);
        std::string all = (how == 0xef ? std::string(token.secret.size(), 'a') : token.secret) + bytes;
        if (how == 0xee) all.resize(how % 40);
        FILE* const file = std::fopen(path.c_str(), "we");
        require(file != nullptr && std::fwrite(all.data(), 1, all.size(), file) == all.size());
        require(std::fclose(file) == 0);
    }

    GroupToken token;
    std::string folder;
};

std::string hello(int rank, int members, int machine) {
    std::array<std::int32_t, kHello / 4> words{2, rank, members, 0, machine};
    return {reinterpret_cast<const char*>(words.data()), kHello};
}

// As a rank of a group, alone with what lies in the folder: nobody is waited for.
void meet(Input& input) {
    const Folder folder;
    const auto shape = input.take<std::uint8_t>();
    const int members = 1 + shape % kMost, rank = shape / 4 % members;
    const auto of = [](const char* what, int who) { return std::string(what) + "-" + std::to_string(who); };
    std::array<std::byte, 16> machine{};
    machine[0] = static_cast<std::byte>(shape / 16 % 2);
    for (int who = 0; who < members; ++who) {
        if (who != rank || shape >= 0xf8)
            folder.put(input, of("hello", who), kHello, hello(who, members, who % 3));
    }
    std::vector<int> leaders;
    {
        GroupFolder own(folder.token, rank, members, 0, machine);
        const auto met = own.introduce();
        if (!met) {
            require(!met.error().text.empty());
            own.give_up(met.error());
        } else {
            require(met->size() == static_cast<std::size_t>(members));
            for (int who = 0; who < members; ++who) {
                const int leader = met->at(static_cast<std::size_t>(who));
                require(leader >= 0 && leader <= who && met->at(static_cast<std::size_t>(leader)) == leader);
                if (leader == who) leaders.push_back(who);
            }
        }
    }
    if (leaders.empty()) leaders = {0, members - 1};
    for (const int who : leaders) {
        folder.put(input, of("cards", who), kCards, std::string(1, '\2'));
        folder.put(input, of("links", who), kLinks, std::string(1, '\2'));
        folder.put(input, of("ready", who), kVerdict);
    }
    folder.put(input, "plan", kJoints, std::string(1, '\1'));
    folder.put(input, "go", kVerdict);
    GroupFolder own(folder.token, rank, members, 0, machine);
    std::size_t cards = 0;
    const auto joints = own.plan(leaders, {{7, 7, 0}}, [&](const std::vector<GroupCard>& others) {
        cards = others.size();
        std::vector<GroupLink> links;
        for (const GroupCard& card : others)
            links.push_back({7, card.uid, 0, card.node % 3 == 0 ? GroupLink::kBehindSwitch : card.node});
        return Result<std::vector<GroupLink>>(links);
    });
    require(cards <= 64 * leaders.size());
    if (joints) {
        require(joints->size() <= kMaxGroupMembers);
        for (const GroupJoint& joint : *joints) {
            require(std::ranges::find(leaders, joint.above) != leaders.end() &&
                    std::ranges::find(leaders, joint.below) != leaders.end() && joint.below != 0);
        }
    } else {
        require(!joints.error().text.empty());
    }
    folder.put(input, "key-0-" + std::to_string(rank), sizeof(FabricKey));
    if (const auto key = own.take(0); !key) require(!key.error().text.empty());
    if (const auto agreed = own.agree(leaders); !agreed) {
        require(!agreed.error().text.empty());
        own.give_up(agreed.error());
    }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    if (input.take<std::uint8_t>() % 8 == 0)
        parse_token(rest(input, 400));
    else
        meet(input);
    return 0;
}
