#include "tools/step/commands/completion.h"

#include <algorithm>
#include <filesystem>

#include "tools/records/names.h"
#include "tools/step/commands/commands.h"
#include "tools/step/words.h"

namespace orrery::step {
namespace {

std::vector<std::string> files(const std::string& begun) {
    const std::filesystem::path path(begun);
    const std::filesystem::path folder = begun.find('/') == std::string::npos ? "." : path.parent_path();
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "/" : folder, error)) {
        std::string name = entry.path().string();
        if (begun.find('/') == std::string::npos) name = entry.path().filename().string();
        if (entry.is_directory(error)) name += "/";
        names.push_back(std::move(name));
    }
    return names;
}

// The words that a comparison's left side is compared with: "state" behind "queue[3].state == ". Empty: any.
std::string_view list_before(std::string_view text) {
    while (text.ends_with(' '))
        text.remove_suffix(1);
    if (!text.ends_with("==") && !text.ends_with("!=")) return "";
    text.remove_suffix(2);
    while (text.ends_with(' '))
        text.remove_suffix(1);
    for (const auto& [ending, list] : {std::pair{"].state", "state"},
                                       {"].priority", "class"},
                                       {"event.type", "event"},
                                       {"decision.rule", "rule"},
                                       {"decision.resource", "resource"}})
        if (text.ends_with(ending)) return list;
    return "";
}

bool takes_expression(std::string_view command) {
    return command == "print" || command == "until" || command == "break" || command == "watch" ||
           command == "back" || command == "list" || command == "display" || command == "x";
}

}  // namespace

Completions complete(const Debugger& debugger, std::string_view line) {
    Completions result;
    const std::size_t space = line.find(' ');
    std::vector<std::string> words;
    if (space == std::string_view::npos) {
        for (const Command& command : commands())
            words.emplace_back(command.name);
    } else {
        const auto command = find_command(line.substr(0, space));
        if (!command) return result;
        const std::string_view name = (*command)->name;
        for (const std::string_view word : (*command)->words)
            words.emplace_back(word);
        if (name == "help") {
            for (const Command& c : commands())
                words.emplace_back(c.name);
        }
        if (takes_expression(name)) {
            // Fields behind "table[row]."
            const std::size_t from = line.find_last_of(" (!~<>=&|^+-*/%");
            const std::string_view begun = line.substr(from + 1);
            const std::size_t bracket = begun.find("].");
            const Meanings meanings = debugger.meanings();
            result.from = from + 1;
            const std::string_view list = list_before(line.substr(0, from + 1));
            if (!list.empty()) {
                const auto only = words_of(list);
                words.assign(only.begin(), only.end());
            } else if (bracket != std::string_view::npos && meanings.inspect != nullptr) {
                if (const auto* table = meanings.inspect->table(begun.substr(0, begun.find('['))))
                    for (const auto& field : table->fields)
                        words.push_back(std::string(begun.substr(0, bracket + 2)) + field.name);
            } else {
                const auto operands = operand_names(meanings);
                words.insert(words.end(), operands.begin(), operands.end());
            }
        } else {
            result.from = line.rfind(' ') + 1;
            if (name == "diff" || name == "export" || name == "source" || name == "whatif") {
                const auto names = files(std::string(line.substr(result.from)));
                words.insert(words.end(), names.begin(), names.end());
            }
        }
    }
    const std::string_view begun = line.substr(result.from);
    std::erase_if(words, [&](const std::string& word) { return !word.starts_with(begun); });
    std::ranges::sort(words);
    words.erase(std::ranges::unique(words).begin(), words.end());
    result.words = std::move(words);
    return result;
}

std::string common_beginning(const std::vector<std::string>& words) {
    if (words.empty()) return "";
    std::string common = words.front();
    for (const std::string& word : words) {
        std::size_t n = 0;
        while (n < common.size() && n < word.size() && common[n] == word[n])
            ++n;
        common.resize(n);
    }
    return common;
}

}  // namespace orrery::step
