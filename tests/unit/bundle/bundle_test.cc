// Bundles of anybody's: the good one is read as it was written, all others are refused in a line that says
// why.
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "tools/bundle/bundle.h"

namespace orrery::bundle {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

class Bundles : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = "/tmp/orrery-bundle-test-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    fs::path file() const { return folder_ / "bundle"; }
    void write_good() {
        const auto done =
            write(file(), {{"command", {"histogram"}}}, {{"guest.log", "hello"}, {"card0.otrace", "..."}});
        ASSERT_TRUE(done) << done.error().text;
    }
    std::string error() const {
        const auto bundle = read(file());
        if (bundle) return "taken";
        EXPECT_THAT(bundle.error().text, testing::StartsWith(file().string() + ": "));
        EXPECT_THAT(bundle.error().text, Not(HasSubstr("\n")));
        return bundle.error().text;
    }

    // An archive of any kind.
    struct Made {
        std::string name, bytes;
        int type = AE_IFREG;
        std::string link = {};
    };
    void make(const std::vector<Made>& entries,
              int (*format)(archive*) = archive_write_set_format_pax_restricted) {
        archive* const out = archive_write_new();
        format(out);
        ASSERT_EQ(archive_write_open_filename(out, file().c_str()), ARCHIVE_OK);
        for (const Made& each : entries) {
            archive_entry* const entry = archive_entry_new();
            archive_entry_set_pathname(entry, each.name.c_str());
            archive_entry_set_size(entry, static_cast<la_int64_t>(each.bytes.size()));
            archive_entry_set_filetype(entry, static_cast<unsigned>(each.type));
            if (!each.link.empty() && each.type == AE_IFLNK)
                archive_entry_set_symlink(entry, each.link.c_str());
            if (!each.link.empty() && each.type == AE_IFREG)
                archive_entry_set_hardlink(entry, each.link.c_str());
            archive_write_header(out, entry);
            if (!each.bytes.empty()) archive_write_data(out, each.bytes.data(), each.bytes.size());
            archive_entry_free(entry);
        }
        archive_write_free(out);
    }
    // SHA-256 of nothing.
    static constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    static Made manifest(const std::vector<std::string>& names) {
        ordered_json out{{"format", 1}, {"files", ordered_json::array()}};
        for (const std::string& name : names)
            out["files"].push_back({{"name", name}, {"bytes", 0}, {"sha256", kEmpty}});
        return {std::string(kManifest), out.dump()};
    }
    std::string bytes() const {
        std::ifstream in(file(), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void put(const std::string& bytes) const { std::ofstream(file(), std::ios::binary) << bytes; }

    fs::path folder_;
};

TEST_F(Bundles, IsReadAsItWasWritten) {
    write_good();
    const auto bundle = read(file());
    ASSERT_TRUE(bundle) << bundle.error().text;
    EXPECT_EQ(bundle->files.size(), 2u);
    EXPECT_EQ(bundle->files.at("guest.log"), "hello");
    EXPECT_EQ(bundle->manifest["command"][0], "histogram");
    EXPECT_EQ(bundle->manifest["format"], kFormat);
    EXPECT_EQ(bundle->manifest["files"][0]["bytes"], 5u);
    write_good();  // again, over the old one
    EXPECT_EQ(error(), "taken");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Bundles, WhatCannotBeWrittenLeavesNothing) {
    const auto done = write(folder_ / "none" / "bundle", ordered_json::object(), {});
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text, HasSubstr("the report cannot be written"));
    EXPECT_TRUE(fs::is_empty(folder_));
    const auto many = write(file(), ordered_json::object(), std::vector<File>(kMostFiles + 1, {"a", ""}));
    ASSERT_FALSE(many);
    EXPECT_THAT(many.error().text, HasSubstr("there are 256 files already"));
    EXPECT_TRUE(fs::is_empty(folder_));
}

// In a folder where somebody else may make files.
TEST_F(Bundles, IsWrittenThroughNoLink) {
    const fs::path other = folder_ / "other";
    std::ofstream(other) << "kept";
    for (const char* ending : {"", ".new", ".files"})
        fs::create_symlink(other, file().string() + ending);
    write_good();
    EXPECT_EQ(error(), "taken");
    EXPECT_FALSE(fs::is_symlink(file()));
    std::string text;
    std::ifstream(other) >> text;
    EXPECT_EQ(text, "kept");
}

TEST_F(Bundles, AFileThatCannotBeTakenIsLeftOut) {
    Writer writer(file());
    const int folder = ::open(folder_.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_FALSE(writer.add("a", folder, 0, 5));
    ::close(folder);
    ASSERT_TRUE(writer.add("b", "bytes"));
    EXPECT_FALSE(writer.has("a"));
    ASSERT_TRUE(writer.end(ordered_json::object()));
    const auto bundle = read(file());
    ASSERT_TRUE(bundle) << bundle.error().text;
    EXPECT_EQ(bundle->files.size(), 1u);
    EXPECT_EQ(bundle->files.at("b"), "bytes");
}

// However long the files are.
TEST_F(Bundles, IsWrittenInLittleMemory) {
    constexpr std::uint64_t kLarge = 96 << 20;
    const fs::path large = folder_ / "large";
    std::ofstream(large) << "begin";
    fs::resize_file(large, kLarge);
    rusage before{}, after{};
    std::ofstream("/proc/self/clear_refs") << 5;  // the most so far is what there is now
    ASSERT_EQ(::getrusage(RUSAGE_SELF, &before), 0);
    {
        Writer writer(file());
        const int from = ::open(large.c_str(), O_RDONLY | O_CLOEXEC);
        ASSERT_TRUE(writer.add("a", from, 0, kLarge));
        ASSERT_TRUE(writer.add("b", from, kLarge - 5, 10));
        ::close(from);
        ASSERT_TRUE(writer.end(ordered_json::object()));
    }
    ASSERT_EQ(::getrusage(RUSAGE_SELF, &after), 0);
    EXPECT_LT(after.ru_maxrss, before.ru_maxrss + (16 << 10)) << "KiB";
    const auto bundle = read(file());
    ASSERT_TRUE(bundle) << bundle.error().text;
    EXPECT_EQ(bundle->files.at("a").size(), kLarge);
    EXPECT_EQ(bundle->files.at("b"), std::string(5, '\0'));
}

TEST_F(Bundles, NamesThatLeadElsewhereAreRefused) {
    for (const char* name :
         {"../evil", "/etc/evil", "a/../../evil", "a/b", ".hidden", "..", "with space", "\x1b]0;"}) {
        make({manifest({name}), {name, ""}});
        EXPECT_THAT(error(), HasSubstr("which no bundle has")) << name;
        EXPECT_THAT(error(), Not(HasSubstr("\x1b")));
    }
    EXPECT_FALSE(good_name(std::string(65, 'a')));
    EXPECT_FALSE(good_name(kManifest));
    EXPECT_TRUE(good_name("card0.otrace"));
}

TEST_F(Bundles, WhatIsNoPlainFileIsRefused) {
    make({manifest({"a"}), {"a", "", AE_IFLNK, "/etc/passwd"}});
    EXPECT_THAT(error(), HasSubstr("'a' in it is no plain file"));
    make({manifest({"a"}), {"a", "", AE_IFDIR}});
    EXPECT_THAT(error(), testing::AnyOf(HasSubstr("no plain file"), HasSubstr("no bundle has")));
    make({manifest({"a"}), {"a", "", AE_IFREG, std::string(kManifest)}});
    EXPECT_THAT(error(), HasSubstr("'a' in it is no plain file"));
    make({manifest({"a"}), {"a", "", AE_IFIFO}});
    EXPECT_THAT(error(), HasSubstr("'a' in it is no plain file"));
}

TEST_F(Bundles, ALengthThatIsALieTakesNoMemory) {
    make({manifest({"a"}), {"a", ""}});
    std::string all = bytes();
    // The length of "a", in octal, and the sum of its header's bytes.
    const std::size_t at = all.find(std::string("a\0", 2) + std::string(90, '\0'));
    ASSERT_NE(at, std::string::npos);
    all.replace(at + 124, 12, std::string("77777777777\0", 12));
    all.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < 512; ++i)
        sum += static_cast<unsigned char>(all[at + i]);
    char text[8];
    std::snprintf(text, sizeof text, "%06o", sum);
    all.replace(at + 148, 8, std::string(text, 7) + ' ');
    put(all);
    EXPECT_THAT(error(), HasSubstr("'a' is said to have 8589934591 bytes, more than there are"));
}

TEST_F(Bundles, AnotherFileThanTheManifestNamesIsRefused) {
    write_good();
    std::string all = bytes();
    all[all.find("hello")] = 'j';
    put(all);
    EXPECT_THAT(error(), HasSubstr("'guest.log' is not the file that the manifest names"));
    make({manifest({"a"}), {"a", "x"}});
    EXPECT_THAT(error(), HasSubstr("'a' is not the file that the manifest names"));
    make({manifest({"a", "b"}), {"b", ""}, {"a", ""}});
    EXPECT_THAT(error(), HasSubstr("'b' stands where 'a' belongs"));
    make({manifest({"a", "b"}), {"a", ""}});
    EXPECT_THAT(error(), HasSubstr("'b' is missing"));
    make({manifest({"a"}), {"a", ""}, {"b", ""}});
    EXPECT_THAT(error(), HasSubstr("'b' is not in its manifest"));
    make({manifest({"a", "a"}), {"a", ""}, {"a", ""}});
    EXPECT_THAT(error(), HasSubstr("'a' is in it twice"));
}

TEST_F(Bundles, ManifestsAreLookedAt) {
    make({{"a", ""}});
    EXPECT_THAT(error(), HasSubstr("it does not begin with orrery-bundle.json"));
    make({{std::string(kManifest), "{"}});
    EXPECT_THAT(error(), HasSubstr("its manifest is no JSON object"));
    make({{std::string(kManifest), std::string(100'000, '[')}});
    EXPECT_THAT(error(), HasSubstr("its manifest is nested more than 16 deep"));
    make({{std::string(kManifest), R"({"format": 2})"}});
    EXPECT_THAT(error(), HasSubstr("a bundle of format 2; this program reads format 1"));
    make({{std::string(kManifest), R"({"format": 1, "files": 3})"}});
    EXPECT_THAT(error(), HasSubstr("lists no files"));
    make({{std::string(kManifest), R"({"format": 1, "files": [3]})"}, {"a", ""}});
    EXPECT_THAT(error(), HasSubstr("'a' stands where '' belongs"));
    make({{std::string(kManifest), std::string(kMostManifest + 1, ' ')}});
    EXPECT_THAT(error(), HasSubstr("its manifest has 4194305 bytes"));
    make({manifest(std::vector<std::string>(kMostFiles + 1, "a"))});
    EXPECT_THAT(error(), HasSubstr("more than 256"));
}

// Whatever copies or shows a value takes stack for each of its levels.
TEST_F(Bundles, ADeepManifestIsRefused) {
    const auto nested = [&](const char* key, std::size_t levels) {
        make({{std::string(kManifest), R"({"format":1,"files":[],")" + std::string(key) + "\":" +
                                           std::string(levels, '[') + std::string(levels, ']') + "}"}});
        return error();
    };
    for (const char* key : {"files", "cards", "ended", "missing"})
        EXPECT_THAT(nested(key, 1'000'000), HasSubstr("its manifest is nested more than 16 deep"));
    EXPECT_EQ(nested("cards", kMostDepth - 1), "taken");
    EXPECT_THAT(nested("cards", kMostDepth + 1), HasSubstr("more than 16 deep"));
}

TEST_F(Bundles, WhatIsNoArchiveIsRefused) {
    EXPECT_THAT(error(), HasSubstr("No such file"));
    fs::create_directory(file());
    EXPECT_THAT(error(), HasSubstr("no regular file"));
    fs::remove(file());
    put("");
    EXPECT_THAT(error(), HasSubstr("cannot be read"));
    put(std::string(5000, 'x'));
    EXPECT_THAT(error(), HasSubstr("cannot be read"));
    make({manifest({})}, archive_write_set_format_cpio);
    EXPECT_THAT(error(), HasSubstr("cannot be read"));
    write_good();
    const std::string all = bytes();
    for (const std::size_t length : {100u, 600u, 1200u, 2100u}) {
        put(all.substr(0, length));
        EXPECT_NE(error(), "taken") << length;
    }
}

}  // namespace
}  // namespace orrery::bundle
