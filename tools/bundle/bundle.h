// A bundle: all that is known of a run that failed, in one file (docs/bundle.md). It is a tar archive of
// regular files, the first of which is the manifest, `orrery-bundle.json`: it says what the run was, how it
// ended, and which files follow, with their lengths and SHA-256.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/text/result.h"

namespace orrery::bundle {

using text::Result;

inline constexpr unsigned kFormat = 1;  // a reader refuses another one
inline constexpr std::string_view kManifest = "orrery-bundle.json";
inline constexpr std::size_t kMostFiles = 256;
inline constexpr std::uint64_t kMostBytes = std::uint64_t{4}
                                            << 30;  // of all files: who reads it has them in memory
inline constexpr std::uint64_t kMostManifest = 4 << 20;
inline constexpr int kMostDepth = 16;  // of its arrays and objects: what copies or shows it recurses

struct File {
    std::string name;  // letters, digits, '.', '-' and '_'; not the manifest's, and no '.' first
    std::string bytes;
};

// Whether a file in a bundle may have this name.
bool good_name(std::string_view name);

// Writes a bundle anew, with no more than a block of it in memory, or leaves no file behind. What stands
// there under the names that it writes to is replaced, not followed.
class Writer {
  public:
    explicit Writer(std::filesystem::path file);
    ~Writer();
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    Result<void> add(const std::string& name, std::string_view bytes);
    // So many bytes of an open file from there on; fewer if it ends before. An error: it is not in the
    // bundle, and all else goes on.
    Result<void> add(const std::string& name, int from, std::uint64_t offset, std::uint64_t bytes);
    bool has(std::string_view name) const;
    // `manifest` is an object; "format" and "files" are added.
    Result<void> end(const nlohmann::ordered_json& manifest);

  private:
    struct Listed {
        std::string name, sha256;
        std::uint64_t bytes;
    };
    template <typename Read>
    Result<void> take(const std::string& name, std::uint64_t bytes, Read&& read);
    Result<void> open();
    Result<void> write_all(const std::string& manifest);
    std::filesystem::path beside(const char* ending) const;

    std::filesystem::path file_;
    int spool_ = -1, out_ = -1;
    std::uint64_t length_ = 0;  // of what is in the spool
    std::vector<Listed> files_;
};

// The same of what is in memory.
Result<void> write(const std::filesystem::path& file, const nlohmann::ordered_json& manifest,
                   const std::vector<File>& files);

struct Bundle {
    nlohmann::ordered_json manifest;  // an object
    std::string manifest_text;        // its bytes
    std::map<std::string, std::string> files;

    // The string, or number, or object that is there, else an empty one: nobody vouches for what a manifest
    // says.
    static std::string text(const nlohmann::ordered_json& object, std::string_view key);
    static std::uint64_t number(const nlohmann::ordered_json& object, std::string_view key);
    static nlohmann::ordered_json part(const nlohmann::ordered_json& object, std::string_view key);
};

// Reads and checks a bundle of anybody's: nothing is unpacked to anywhere, no more is taken into memory than
// the file is long, and each file is the one that the manifest names. The error is one line: file, what is
// wrong, and what to do.
Result<Bundle> read(const std::filesystem::path& file);

}  // namespace orrery::bundle
