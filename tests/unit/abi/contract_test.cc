// What the headers declare is in the contract, however it is written and whatever it is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/abi/apigen.h"

namespace orrery::test {
namespace {

using ::testing::HasSubstr;

class Contract : public Apigen {
  protected:
    // The list of it, without the line at its head.
    std::string listed(const std::string& text) {
        header(text);
        EXPECT_EQ(list("0.2"), 0) << output_;
        const std::string lines = made("releases/0.2");
        return lines.substr(std::min(lines.find('\n'), lines.size()));
    }

    void refused(const std::string& text, const std::string& problem) {
        header(text);
        for (const bool listing : {false, true}) {
            EXPECT_EQ(listing ? list("0.2") : run(), 1);
            EXPECT_THAT(output_, HasSubstr(problem));
            EXPECT_EQ(std::ranges::count(output_, '\n'), 1) << output_;
        }
        EXPECT_EQ(made("releases/0.2"), "");
    }
};

TEST_F(Contract, HasOnlyTypesWithATag) {
    const std::string use = "/** Uses. */\nORR_API int orrUse(const orrFoo* foo, int count);\n";
    const std::string problem =
        "orrFoo is a struct, union or enum without a tag: write `typedef struct orrFoo {...} orrFoo;`";
    refused("typedef struct { int x; int y; } orrFoo;\n" + use, problem);
    refused("struct orrZ { int q; };\ntypedef struct { int x; int y; } orrFoo;\n" + use, problem);
    refused("typedef enum { orrL, orrR } orrFoo;\n" + use, problem);
    refused("typedef union { int x; float y; } *orrFoo;\n" + use, problem);
    EXPECT_EQ(listed("struct orrZ { int q; };\ntypedef struct orrFoo { int x; } orrFoo;\n" + use),
              "\n\nfunction orrUse = int (const struct orrFoo *, int)\n"
              "\nstruct orrZ = 4 bytes, alignment 4\nmember orrZ.q = int at 0\n"
              "\nstruct orrFoo = 4 bytes, alignment 4\nmember orrFoo.x = int at 0\n");
}

TEST_F(Contract, HasOnlyMembersWithANameAndOfATypeWithATag) {
    const std::string use = "/** Uses. */\nORR_API int orrUse(const struct orrFoo* foo);\n";
    for (const char* member :
         {"union { int a; float b; };", "struct { int a; } in;", "enum { orrL } side;", "unsigned : 3;"}) {
        refused("struct orrFoo { int x; " + std::string(member) + " };\n" + use,
                "orrFoo has a member without a name, or of a type without one");
    }
}

TEST_F(Contract, HasTypesThatAreDeclaredWithinOthers) {
    EXPECT_EQ(listed("struct orrFoo { enum orrSide { orrLeft } side; struct orrIn { char a; } in; };\n"
                     "/** Uses. */\nORR_API int orrUse(const struct orrFoo* foo);\n"),
              "\n\nfunction orrUse = int (const struct orrFoo *)\n"
              "\nstruct orrIn = 1 bytes, alignment 1\nmember orrIn.a = char at 0\n"
              "\nstruct orrFoo = 8 bytes, alignment 4\nmember orrFoo.side = enum orrSide at 0\n"
              "member orrFoo.in = struct orrIn at 4\n"
              "\nenum orrSide = 4 bytes, unsigned\nenumerator orrLeft = 0\n");
}

// The API is what stands in its headers; no prefix leaves anything out.
TEST_F(Contract, HasAllNames) {
    EXPECT_EQ(listed("#include <stdint.h>\n"
                     "typedef enum occlOp { occlSum, occlMax } occlOp;\n"
                     "typedef struct occlArgs { size_t size; int a; } occlArgs;\n"
                     "typedef struct occlComm_st occlComm;\n"
                     "#define OCCL_ANY 3\n"
                     "/** Reduces. */\nORR_API int occlAllReduce(const occlArgs* args, occlOp op);\n"),
              "\n\nfunction occlAllReduce = int (const struct occlArgs *, enum occlOp)\n"
              "\nstruct occlArgs = 16 bytes, alignment 8\nmember occlArgs.size = unsigned long at 0\n"
              "member occlArgs.a = int at 8\n"
              "\nenum occlOp = 4 bytes, unsigned\nenumerator occlSum = 0\nenumerator occlMax = 1\n"
              "\ntypedef occlComm = struct occlComm_st\n\nconstant OCCL_ANY = int 3\n");
    EXPECT_EQ(run(), 0) << output_;
}

TEST_F(Contract, HasAllHeaders) {
    std::filesystem::create_directories(folder_ / "include/orrery/more");
    write("include/orrery/more/more.h", "#include <orrery/api.h>\nstruct moreBox { int a; };\n");
    EXPECT_THAT(listed("/** A. */\nORR_API int orrA(void);\n"), HasSubstr("member moreBox.a = int at 0\n"));
}

// A place says only what differs from the one before, also where a macro of another header was in between.
TEST_F(Contract, HasNothingOfTheSystem) {
    std::filesystem::create_directories(folder_ / "system");
    write("system/theirs.h", "typedef int theirs_t;\n#define THEIRS struct theirsBox\n#define THEIR_ONE 1\n");
    EXPECT_EQ(
        listed("#include \"../../system/theirs.h\"\n"
               "/** A. */\nORR_API int orrA(THEIRS* a);\nTHEIRS { theirs_t a; };\nstruct orrB { char b; "
               "};\n#undef THEIR_ONE\n"),
        "\n\nfunction orrA = int (struct theirsBox *)\n"
        "\nstruct theirsBox = 4 bytes, alignment 4\nmember theirsBox.a = int at 0\n"
        "\nstruct orrB = 1 bytes, alignment 1\nmember orrB.b = char at 0\n");
}

TEST_F(Contract, HasValuesOfConstants) {
    const std::string text =
        "#define orrDerived (orrBase | ORR_HIDDEN)\n#define orrBase 4u\n#define ORR_HIDDEN {}\n"
        "#define ORR_NAME \"box\"\n#define ORR_HALF 0.5\n#define ORR_OLD __attribute__((deprecated))\n"
        "#define ORR_MOST 0xffffffffffffffffull\n/** A. */\nORR_API int orrA(void);\n";
    EXPECT_EQ(listed(fmt::format(fmt::runtime(text), 1)),
              "\n\nfunction orrA = int (void)\n"
              "\nconstant ORR_HALF = double 0.5\nconstant ORR_HIDDEN = int 1\n"
              "constant ORR_MOST = unsigned long long 18446744073709551615\n"
              "constant ORR_NAME = char[4] \"box\"\nconstant orrBase = unsigned int 4\n"
              "constant orrDerived = unsigned int 5\n");
    header(fmt::format(fmt::runtime(text), 2));
    EXPECT_EQ(run(), 1);
    EXPECT_THAT(output_,
                HasSubstr("constant orrDerived was \"unsigned int 5\" and is \"unsigned int 6\" now"));
}

TEST_F(Contract, TellsATypedefOfAnArrayFromItsStruct) {
    EXPECT_THAT(listed("struct orrP { int a; };\ntypedef struct orrP orrQs[4];\n"
                       "typedef struct orrP (*orrFn)(int);\n/** A. */\nORR_API int orrA(void);\n"),
                HasSubstr("typedef orrQs = struct orrP[4]\ntypedef orrFn = struct orrP (*)(int)\n"));
}

}  // namespace
}  // namespace orrery::test
