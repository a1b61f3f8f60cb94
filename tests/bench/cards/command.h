// Commands that benches with several VMs start, and the numbers that they are given.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace orrery::bench {

// As execvp() takes it.
class Command {
  public:
    explicit Command(std::vector<std::string> words) : words_(std::move(words)) {
        for (std::string& word : words_)
            pointers_.push_back(word.data());
        pointers_.push_back(nullptr);
    }
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    char* const* words() const { return pointers_.data(); }

  private:
    std::vector<std::string> words_;
    std::vector<char*> pointers_;
};

// "N,N,...", as $SIZES is.
inline std::vector<unsigned> numbers(const std::string& text) {
    std::vector<unsigned> found;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');)
        found.push_back(static_cast<unsigned>(std::stoul(word)));
    if (found.empty()) throw std::runtime_error("how many cards?");
    return found;
}

}  // namespace orrery::bench
