// orrery-run --profile: each rank under orrery-prof, and one profile of them all.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/text/result.h"

namespace orrery::run {

// Where ranks leave their profiles: a folder that the guests see, which goes with this object unless one of
// them could not be read.
class RankProfiles {
  public:
    // `share`: the one that is given to orrery-vm, if one is. `programs`: where orrery-prof is.
    static text::Result<std::unique_ptr<RankProfiles>> create(const std::optional<std::string>& share,
                                                              const std::filesystem::path& programs,
                                                              unsigned ranks);
    ~RankProfiles();
    RankProfiles(const RankProfiles&) = delete;
    RankProfiles& operator=(const RankProfiles&) = delete;

    // More options of orrery-vm: the folder, and what its bundle takes along.
    std::vector<std::string> options() const;
    // As guests see it.
    std::string guest_folder() const { return guest_; }
    // Puts together what there is. Says which ranks have left none. What is damaged, as of a rank that was
    // killed, is an error that comes after the others' have been put together, and all are kept. So they are
    // when it is asked to end meanwhile: then nothing more is tried.
    text::Result<void> merge(const std::string& output);

  private:
    RankProfiles(std::filesystem::path folder, int folder_fd, std::string guest, bool own_share,
                 std::filesystem::path program, unsigned ranks)
        : folder_(std::move(folder)),
          folder_fd_(folder_fd),
          guest_(std::move(guest)),
          own_share_(own_share),
          program_(std::move(program)),
          ranks_(ranks) {}
    std::filesystem::path file(unsigned rank) const;
    enum class Put : std::uint8_t { kMade, kRefused, kEnded };
    // Opens what ranks have left, which may be anything, each file once, and gives it a name in a folder that
    // no guest sees. The ranks that have left something.
    text::Result<std::vector<unsigned>> take();
    // Kept: what they have left is not removed.
    std::string kept();
    // A failure: it could not be tried.
    text::Result<Put> put_together(const std::vector<unsigned>& ranks, const std::string& output) const;

    const std::filesystem::path folder_;
    const int folder_fd_;
    const std::string guest_;
    const bool own_share_;
    const std::filesystem::path program_;
    const unsigned ranks_;
    std::filesystem::path own_;
    std::vector<std::unique_ptr<std::FILE, int (*)(std::FILE*)>> files_;
    bool keep_ = false;
};

}  // namespace orrery::run
