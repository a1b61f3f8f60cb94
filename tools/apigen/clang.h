// What clang tells about the headers of the C API.
#pragma once

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

namespace orrery::apigen {

// Something in the headers or lists that a person has to mend.
class Problem : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// What clang with these options prints about all headers in `folder`/orrery that are C, with `source` behind
// them. It compiles for the machine that the lists are of, whatever machine builds.
std::string clang(const std::string& folder, const std::string& options, const std::string& source = "");

// Of files as clang names them: those below the folder are the API, others are the system's.
class OwnFiles {
  public:
    explicit OwnFiles(const std::string& folder) : folder_(std::filesystem::canonical(folder)) {}
    bool has(const std::string& file);

  private:
    const std::filesystem::path folder_;
    std::map<std::string, bool> known_;
};

}  // namespace orrery::apigen
