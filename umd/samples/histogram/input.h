// The file whose bytes are counted.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

// A mistake of the caller's, with a text that says what to do.
struct InputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What is counted when no FILE is named: the GPL's text and the kernel that this system runs on.
std::vector<std::string> default_files();

// All bytes of the file; InputError if it is missing, empty, no regular file, or larger than `limit` bytes.
std::vector<std::byte> read_input(const std::string& path, std::size_t limit);
