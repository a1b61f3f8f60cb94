// What processes wrote, each a file of its own in a folder (part.h), as one profile. They are programs of
// anybody's: one that spoils its part, by a stray store for example, takes nothing of the others with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/prof/open_file.h"
#include "tools/prof/record.h"
#include "tools/text/result.h"

namespace orrery::prof {

// What the parts have: who writes them goes on.
struct SoFar {
    std::uint64_t processes = 0, bytes = 0, lost = 0, ended = 0;
    bool operator==(const SoFar&) const = default;
};
SoFar so_far(const std::string& parts);

// At the end it is told how far that is. What a reader would refuse is not written, and is in
// `recorded.spoilt`.
text::Result<void> put_together(const std::string& parts, const File& to, Recorded& recorded, bool at_end);

// Keeps what is spoilt as it was beside the profile, and says of each in `recorded.told` what became of it.
// All together have the room of one part, which has `limit` bytes of records: what has none is left out.
// False: one could not be kept, and its file must stay.
bool keep_spoilt(const std::string& profile, std::uint64_t limit, Recorded& recorded);

}  // namespace orrery::prof
