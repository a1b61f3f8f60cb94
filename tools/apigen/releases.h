// What each release brought: a file for each, named by its version, with an item of the contract a line. When
// the release is out a last line locks the file: it has the SHA-256 of all lines before. What a release
// brought stays as it is for ever, as there are programs that use it.
#pragma once

#include <string>
#include <vector>

#include "tools/apigen/contract.h"

namespace orrery::apigen {

struct Release {
    std::string version;  // "0.2"
    // A struct that has grown stands here again, with its new size and its new members.
    std::vector<Item> items;
    bool out = false;
};

// Oldest first. Locked ones are as they were when they were locked.
std::vector<Release> read_releases(const std::string& folder);

// Each item of a release is in the contract of today as it was. Structs that start with their size may have
// grown at the end.
void check_releases(const std::vector<Release>& releases, const std::vector<Item>& contract,
                    const std::string& folder);

// A program that sees a version of headers has all that was listed for it.
void check_version(const std::string& listed, const std::string& headers);

// All that are older than the headers are locked.
void check_locks(const std::vector<Release>& releases, const std::string& headers, const std::string& folder);

// The release is out.
void lock_release(const std::string& folder, const std::string& version);

// What no release has yet.
std::vector<Item> unlisted(const std::vector<Release>& releases, const std::vector<Item>& contract);

// Behind what the list of that release has. It is the newest one, as numbers go by the order of the lists,
// and not out.
void add_to_release(const std::string& folder, const std::string& version, const std::vector<Item>& items);

// In the order of the lists, in which each has its place for ever.
std::vector<Function> in_order_of(const std::vector<Release>& releases,
                                  const std::vector<Function>& functions);

}  // namespace orrery::apigen
