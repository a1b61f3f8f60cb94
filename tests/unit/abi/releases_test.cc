// Headers that change what a release had are refused, with one line for each thing that changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/abi/apigen.h"

namespace orrery::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader = R"(
typedef struct orrBox_st* orrBox_t;
typedef void (*orrCall_t)(void* user);
#define orrBoxFlat 0x1u
typedef enum orrCode {
    orrCodeGood = 0,
    orrCodeLate = 2,
    orrCodeNever,
} orrCode;
typedef struct orrPoint {
    unsigned x, y;
} orrPoint;
typedef struct orrBoxInfo {
    size_t size;
    orrPoint at;
    const char* name;
    orrCode code;
} orrBoxInfo;
/** Opens. */
ORR_API orrCode orrBoxOpen(orrBox_t* box, const orrPoint* at, size_t count);
/** Calls. */
ORR_API void orrBoxCall(orrBox_t box, orrCall_t call);
)";

constexpr const char* kList = R"(# What 0.2 brought. Programs use it: no line ever changes, goes or moves.

function orrBoxOpen = enum orrCode (struct orrBox_st **, const struct orrPoint *, unsigned long)
function orrBoxCall = void (struct orrBox_st *, void (*)(void *))

struct orrPoint = 8 bytes, alignment 4
member orrPoint.x = unsigned int at 0
member orrPoint.y = unsigned int at 4

struct orrBoxInfo = 32 bytes, alignment 8
member orrBoxInfo.size = unsigned long at 0
member orrBoxInfo.at = struct orrPoint at 8
member orrBoxInfo.name = const char * at 16
member orrBoxInfo.code = enum orrCode at 24

enum orrCode = 4 bytes, unsigned
enumerator orrCodeGood = 0
enumerator orrCodeLate = 2
enumerator orrCodeNever = 3

typedef orrBox_t = struct orrBox_st *
typedef orrCall_t = void (*)(void *)

constant orrBoxFlat = unsigned int 1
)";

class Releases : public Apigen {
  protected:
    void SetUp() override {
        Apigen::SetUp();
        header(kHeader);
        ASSERT_EQ(list("0.2"), 0) << output_;
        ASSERT_EQ(made("releases/0.2"), kList);
        ASSERT_EQ(release("0.2"), 0) << output_;
        minor_ = 3;
    }

    // The header with `to` in the place of `from`, and more behind.
    void change(const std::string& from, const std::string& to, const std::string& more = "") {
        std::string text = kHeader;
        const auto at = text.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        header(text.replace(at, from.size(), to) + more);
    }

    // It is refused, with just this line. Making reads as listing does: ThatAreRefusedAreNotMade.
    void refused(const std::string& problem, bool making = false) {
        EXPECT_EQ(making ? run() : list("0.3"), 1);
        EXPECT_THAT(output_, HasSubstr("releases/0.2: " + problem));
        EXPECT_EQ(std::ranges::count(output_, '\n'), 2) << output_;
        EXPECT_EQ(made("releases/0.3"), "");
    }

    // It is allowed, and brings these lines.
    void brings(const std::string& lines) {
        EXPECT_EQ(run(), 1);
        EXPECT_THAT(output_, HasSubstr("list MAJOR.MINOR include releases"));
        EXPECT_EQ(list("0.3"), 0) << output_;
        const std::string added = made("releases/0.3");
        EXPECT_EQ(added.substr(added.find('\n') + 1), lines);
        EXPECT_EQ(run(), 0) << output_;
    }
};

TEST_F(Releases, AreListedWithAllThatIsInBinaries) {
    EXPECT_EQ(run(), 0) << output_;
    minor_ = 11;
    header(kHeader);
    EXPECT_EQ(run(), 0) << output_;
}

TEST_F(Releases, KeepParametersAndResults) {
    change("size_t count", "unsigned count");
    refused(
        "function orrBoxOpen was \"enum orrCode (struct orrBox_st **, const struct orrPoint *, unsigned "
        "long)\" "
        "and is \"enum orrCode (struct orrBox_st **, const struct orrPoint *, unsigned int)\" now; programs "
        "of "
        "0.2 use what was: put it back, and add a function with a new name");
    change("ORR_API void orrBoxCall", "ORR_API int orrBoxCall");
    refused(
        "function orrBoxCall was \"void (struct orrBox_st *, void (*)(void *))\" and is "
        "\"int (struct orrBox_st *, void (*)(void *))\" now");
    // Another name of the same type is none.
    change("size_t count", "unsigned long number");
    EXPECT_EQ(run(), 0) << output_;
}

TEST_F(Releases, ThatAreRefusedAreNotMade) {
    change("unsigned x, y;", "unsigned x; int y;");
    refused("member orrPoint.y was \"unsigned int at 4\" and is \"int at 4\" now", true);
    EXPECT_EQ(made("out/orrery.map"), "");
}

TEST_F(Releases, KeepTheTypesBehindTypedefs) {
    change("(void* user)", "(const void* user)");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_,
                HasSubstr("typedef orrCall_t was \"void (*)(void *)\" and is \"void (*)(const void *)\""));
    EXPECT_THAT(output_, HasSubstr("and is \"void (struct orrBox_st *, void (*)(const void *))\" now"));
}

TEST_F(Releases, KeepFunctions) {
    change("/** Calls. */\nORR_API void orrBoxCall(orrBox_t box, orrCall_t call);\n", "");
    refused(
        "function orrBoxCall = void (struct orrBox_st *, void (*)(void *)): no header has it now; programs "
        "use "
        "it, so put it back");
}

TEST_F(Releases, KeepMembersWhereTheyAre) {
    change("const char* name;\n    orrCode code;", "orrCode code;\n    const char* name;");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_,
                HasSubstr("member orrBoxInfo.name was \"const char * at 16\" and is \"const char * at 24\""));
    EXPECT_THAT(output_,
                HasSubstr("member orrBoxInfo.code was \"enum orrCode at 24\" and is \"enum orrCode at 16\""));
    EXPECT_EQ(std::ranges::count(output_, '\n'), 3) << output_;
}

TEST_F(Releases, KeepTheTypesOfMembers) {
    change("unsigned x, y;", "unsigned x; int y;");
    refused(
        "member orrPoint.y was \"unsigned int at 4\" and is \"int at 4\" now; programs of 0.2 use what was: "
        "put "
        "it back, and add members at the end of a struct that starts with its size, or a new struct");
}

TEST_F(Releases, LetStructsThatStartWithTheirSizeGrow) {
    change("    orrCode code;\n", "    orrCode code;\n    unsigned reserved;\n    double weight;\n");
    // `reserved` lies where a program of 0.2 has padding.
    refused("member orrBoxInfo.reserved = unsigned int at 28: it is new within the 32 bytes of 0.2");
    change("    orrCode code;\n", "    orrCode code;\n    double weight;\n");
    brings("\nstruct orrBoxInfo = 40 bytes, alignment 8\nmember orrBoxInfo.weight = double at 32\n");
}

TEST_F(Releases, KeepWhatAStructHasGrownTo) {
    change("    orrCode code;\n", "    orrCode code;\n    double weight;\n");
    ASSERT_EQ(list("0.3"), 0) << output_;
    header(kHeader);
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_,
                HasSubstr("releases/0.3: struct orrBoxInfo was \"40 bytes, alignment 8\" and is \"32 bytes"));
    EXPECT_THAT(output_,
                HasSubstr("releases/0.3: member orrBoxInfo.weight = double at 32: no header has it"));
}

TEST_F(Releases, LetNoOtherStructGrow) {
    change("unsigned x, y;", "unsigned x, y, z;");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_,
                HasSubstr("struct orrPoint was \"8 bytes, alignment 4\" and is \"12 bytes, alignment 4\""));
    EXPECT_THAT(output_,
                HasSubstr("member orrPoint.z = unsigned int at 8: it is new in a struct that does not "
                          "start with its size, so the library cannot tell who has it: add a new struct"));
}

// Only who gets a pointer to a struct can look at the size in it.
TEST_F(Releases, LetNoStructGrowThatGoesByValue) {
    for (const char* use :
         {"/** A. */\nORR_API void orrBoxUse(int a, orrBoxInfo info);\n",
          "/** A. */\nORR_API orrBoxInfo orrBoxUse(void);\n",
          "/** A. */\nORR_API void orrBoxUse(const orrBoxInfo (*infos)[2]);\n",
          "typedef void (*orrUse_t)(const orrBoxInfo info);\n",
          "typedef struct orrTwo { orrBoxInfo a; } orrTwo;\n",
          "typedef struct orrTwo { orrBoxInfo a[2]; } orrTwo;\n", "typedef orrBoxInfo orrUse_t[2];\n"}) {
        write("releases/0.3", "");
        header(std::string(kHeader) + use);
        ASSERT_EQ(list("0.3"), 0) << output_;
        change("    orrCode code;\n", "    orrCode code;\n    double weight;\n", use);
        EXPECT_EQ(list("0.3"), 1) << use;
        EXPECT_THAT(output_, HasSubstr("struct orrBoxInfo was \"32 bytes, alignment 8\" and is \"40 bytes, "
                                       "alignment 8\" now: it never grows, as "));
    }
    // Nor does a line that somebody wrote say more.
    write("releases/0.4", "struct orrBoxInfo = 40 bytes, alignment 8\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, HasSubstr("releases/0.4: struct orrBoxInfo was"));
    std::filesystem::remove(folder_ / "releases/0.4");
    // It may grow before.
    std::filesystem::remove(folder_ / "releases/0.3");
    change("    orrCode code;\n", "    orrCode code;\n    double weight;\n",
           "/** A. */\nORR_API void orrBoxUse(int a, orrBoxInfo info);\n");
    ASSERT_EQ(list("0.3"), 0) << output_;
    EXPECT_EQ(run(), 0) << output_;
}

TEST_F(Releases, MayNameAStructThatGrows) {
    const std::string use =
        "typedef orrBoxInfo orrOther;\n/** B. */\nORR_API void orrBoxSee(orrOther *const "
        "*info, const orrOther* infos);\n";
    header(std::string(kHeader) + use);
    ASSERT_EQ(list("0.3"), 0) << output_;
    change("    orrCode code;\n", "    orrCode code;\n    double weight;\n", use);
    EXPECT_EQ(list("0.3"), 0) << output_;
}

TEST_F(Releases, KeepAlignment) {
    change("    orrCode code;\n", "    orrCode code;\n    _Alignas(32) double weight;\n");
    refused("struct orrBoxInfo was \"32 bytes, alignment 8\" and is \"64 bytes, alignment 32\"");
}

TEST_F(Releases, KeepEnumerators) {
    change("orrCodeLate = 2", "orrCodeLate = 1");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_,
                HasSubstr("enumerator orrCodeLate was \"2\" and is \"1\" now; programs of 0.2 use what was: "
                          "put it back, and add an enumerator with a new name"));
    EXPECT_THAT(output_, HasSubstr("enumerator orrCodeNever was \"3\" and is \"2\""));
    change("    orrCodeNever,\n", "");
    refused("enumerator orrCodeNever = 3: no header has it now");
    change("    orrCodeNever,\n", "    orrCodeNever = 3,\n    orrCodeHuge = 0x100000000,\n");
    refused("enum orrCode was \"4 bytes, unsigned\" and is \"8 bytes, unsigned\"");
}

TEST_F(Releases, KeepConstants) {
    change("orrBoxFlat 0x1u", "orrBoxFlat 0x2u");
    refused("constant orrBoxFlat was \"unsigned int 1\" and is \"unsigned int 2\"");
    change("orrBoxFlat 0x1u", "orrBoxFlat 1");
    refused("constant orrBoxFlat was \"unsigned int 1\" and is \"int 1\"");
    change("orrBoxFlat 0x1u", "orrBoxFlat (1u << orrCodeGood)");
    EXPECT_EQ(run(), 0) << output_;
}

TEST_F(Releases, MayBringMore) {
    header(std::string(kHeader) +
           "typedef struct orrBall_st* orrBall_t;\n#define orrBoxRound 0x2u\n"
           "typedef enum orrSide { orrSideLeft = -1 } orrSide;\n/** New. */\nORR_API orrSide "
           "orrBallSide(orrBall_t "
           "ball);\n");
    brings(
        "\nfunction orrBallSide = enum orrSide (struct orrBall_st *)\n"
        "\nenum orrSide = 4 bytes, signed\nenumerator orrSideLeft = -1\n"
        "\ntypedef orrBall_t = struct orrBall_st *\n\nconstant orrBoxRound = unsigned int 2\n");
}

TEST_F(Releases, AreWrittenInTheOrderOfTheirVersions) {
    minor_ = 10;
    change("#define orrBoxFlat 0x1u\n", "#define orrBoxFlat 0x1u\n#define orrBoxRound 0x2u\n");
    ASSERT_EQ(list("0.10"), 0) << output_;
    change("#define orrBoxFlat 0x1u\n",
           "#define orrBoxFlat 0x1u\n#define orrBoxRound 0x2u\n#define orrBoxRed 4\n");
    EXPECT_EQ(list("0.3"), 1);
    EXPECT_THAT(output_, HasSubstr("0.3 was followed by 0.10"));
    EXPECT_EQ(list("next"), 1);
    EXPECT_THAT(output_, HasSubstr("next is no version of a release: MAJOR.MINOR"));
    ASSERT_EQ(list("0.10"), 0) << output_;
    EXPECT_THAT(made("releases/0.10"), HasSubstr("constant orrBoxRed = int 4\n"));
    EXPECT_EQ(run(), 0) << output_;
}

TEST_F(Releases, AreNotAheadOfTheHeaders) {
    minor_ = 2;
    change("#define orrBoxFlat 0x1u\n", "#define orrBoxFlat 0x1u\n#define orrBoxRound 0x2u\n");
    EXPECT_EQ(list("0.3"), 1);
    EXPECT_THAT(output_,
                HasSubstr("the headers are of 0.2, so nothing is in the list of 0.3 yet: first raise "
                          "ORR_VERSION_MINOR"));
    EXPECT_EQ(made("releases/0.3"), "");
    write("releases/0.3", "constant orrBoxRound = unsigned int 2\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, HasSubstr("the headers are of 0.2"));
    minor_ = 3;
    change("#define orrBoxFlat 0x1u\n", "#define orrBoxFlat 0x1u\n#define orrBoxRound 0x2u\n");
    EXPECT_EQ(run(), 0) << output_;
}

constexpr const char* kRed = "#define orrBoxFlat 0x1u\n#define orrBoxRed 4\n";

TEST_F(Releases, ThatAreOutGetNoMore) {
    const std::string locked = made("releases/0.2");
    minor_ = 2;
    change("#define orrBoxFlat 0x1u\n", kRed);
    EXPECT_EQ(list("0.2"), 1);
    EXPECT_THAT(output_, HasSubstr("0.2 is out, so programs may have its library without what is new: raise "
                                   "ORR_VERSION_MINOR"));
    EXPECT_EQ(std::ranges::count(output_, '\n'), 1) << output_;
    EXPECT_EQ(release("0.2"), 1);
    EXPECT_EQ(made("releases/0.2"), locked);
    minor_ = 3;
    change("#define orrBoxFlat 0x1u\n", kRed);
    EXPECT_EQ(list("0.3"), 0) << output_;
    EXPECT_EQ(run(), 0) << output_;
}

TEST_F(Releases, ThatAreOutDoNotChange) {
    const std::string locked = made("releases/0.2");
    const std::string first =
        "function orrBoxOpen = enum orrCode (struct orrBox_st **, const struct orrPoint *, unsigned long)\n";
    const std::string second = "function orrBoxCall = void (struct orrBox_st *, void (*)(void *))\n";
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string text = locked;
        return text.replace(text.find(from), from.size(), to);
    };
    for (const std::string& text :
         {with(first + second, second + first), with(second, ""),
          with(second, second + "enumerator orrCodeBad = 4\n"), with("# What", "# what"),
          locked + "constant orrBoxRed = int 4\n", locked.substr(0, locked.size() - 9) + "\n"}) {
        write("releases/0.2", text);
        for (const char* command : {"make", "list", "release"}) {
            const std::string word = command;
            EXPECT_EQ(word == "make" ? run() : word == "list" ? list("0.3") : release("0.2"), 1) << text;
            EXPECT_THAT(output_, HasSubstr("releases/0.2: 0.2 is out, and its list is not as it was then"));
            EXPECT_EQ(std::ranges::count(output_, '\n'), 1) << output_;
        }
        EXPECT_EQ(made("releases/0.2"), text);
    }
    write("releases/0.2", locked);
    EXPECT_EQ(run(), 0) << output_;
}

// Nobody forgets it: a later version of the headers wants it.
TEST_F(Releases, AreLockedBeforeTheNextOneIsMade) {
    write("releases/0.2", kList);
    change("#define orrBoxFlat 0x1u\n", kRed);
    EXPECT_EQ(list("0.3"), 1);
    EXPECT_THAT(output_,
                HasSubstr("releases/0.2: the headers are of 0.3, so 0.2 is out: first lock its list by "
                          "`orrery-apigen release 0.2 releases`"));
    EXPECT_EQ(made("releases/0.3"), "");
    ASSERT_EQ(release("0.2"), 0) << output_;
    EXPECT_EQ(list("0.3"), 0) << output_;
    EXPECT_EQ(run(), 0) << output_;
}

TEST_F(Releases, HaveListsThatCanBeRead) {
    write("releases/0.2", std::string(kList) + "orrBoxOpen\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, HasSubstr("releases/0.2: \"orrBoxOpen\" is not KIND NAME = VALUE"));
    write("releases/0.2", std::string(kList) + "constant orrBoxFlat = unsigned int 1\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, HasSubstr("releases/0.2: constant orrBoxFlat is listed twice"));
    write("releases/0.2", std::string(kList) + "struct orrPoint = large\n");
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_, HasSubstr("releases/0.2: struct orrPoint was \"large\" and is \"8 bytes"));
}

}  // namespace
}  // namespace orrery::test
