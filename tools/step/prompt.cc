#include "tools/step/prompt.h"

#include <histedit.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "tools/step/commands/commands.h"
#include "tools/step/commands/completion.h"
#include "tools/step/commands/script.h"
#include "tools/text/shown.h"

namespace orrery::step {
namespace {

struct EditEnd {
    void operator()(EditLine* edit) const { el_end(edit); }
};
struct HistoryEnd {
    void operator()(::History* history) const { history_end(history); }
};

char* prompt_text(EditLine* edit) {
    static std::string text;
    void* client = nullptr;
    el_get(edit, EL_CLIENTDATA, &client);
    text = prompt_of(*static_cast<const Debugger*>(client));
    return text.data();
}

// What can follow, with an end to it.
std::string in_columns(const std::vector<std::string>& words, std::size_t width) {
    constexpr std::size_t kMost = 60;
    const std::size_t count = std::min(words.size(), kMost);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < count; ++i)
        longest = std::max(longest, words[i].size());
    const std::size_t columns = std::max<std::size_t>(1, width / (longest + 2));
    const std::size_t rows = (count + columns - 1) / columns;
    std::string text;
    for (std::size_t row = 0; row < rows; ++row) {
        std::string line;
        for (std::size_t i = row; i < count; i += rows)
            line += fmt::format("{:<{}}", words[i], longest + 2);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    }
    if (words.size() > kMost) text += fmt::format("... {} more\n", words.size() - kMost);
    return text;
}

// Those that an empty line does again.
bool moves_on(std::string_view line) {
    const auto command = find_command(line.substr(0, line.find(' ')));
    if (!command) return false;
    const std::string_view name = (*command)->name;
    return name == "step" || name == "back" || name == "continue" || name == "reverse-continue" ||
           name == "finish";
}

unsigned char complete_line(EditLine* edit, int) {
    void* client = nullptr;
    el_get(edit, EL_CLIENTDATA, &client);
    const Debugger& debugger = current_of(*static_cast<Debugger*>(client));
    const LineInfo* line = el_line(edit);
    const std::string_view text(line->buffer, static_cast<std::size_t>(line->cursor - line->buffer));
    const Completions found = complete(debugger, text);
    if (found.words.empty()) return CC_REFRESH_BEEP;
    std::string common = common_beginning(found.words);
    const std::size_t begun = text.size() - found.from;
    if (found.words.size() == 1 && common.back() != '/' && common.back() != '[' && common.back() != '(')
        common += ' ';
    if (common.size() > begun) {
        if (el_insertstr(edit, common.c_str() + begun) == -1) return CC_ERROR;
        return CC_REFRESH;
    }
    std::fputs(('\n' + in_columns(found.words, debugger.style().width)).c_str(), stdout);
    return CC_REDISPLAY;
}

// $XDG_STATE_HOME/orrery/step_history; empty: no home, no history.
std::string history_file() {
    const char* state = std::getenv("XDG_STATE_HOME");
    const char* home = std::getenv("HOME");
    std::filesystem::path folder;
    if (state != nullptr && *state != '\0') {
        folder = state;
    } else if (home != nullptr && *home != '\0') {
        folder = std::filesystem::path(home) / ".local" / "state";
    } else {
        return "";
    }
    std::error_code error;
    std::filesystem::create_directories(folder / "orrery", error);
    return error ? "" : (folder / "orrery" / "step_history").string();
}

void greet(const Debugger& debugger) {
    const About& about = debugger.session().about();
    const History& history = debugger.history();
    fmt::print("{}: card {}, firmware {}, {}\n{} events, {} decisions, {} jobs. 'help' lists the commands.\n",
               about.file, shown(about.sku), shown(about.build_id),
               duration(debugger.session().end_time() - about.start), history.records().size(),
               history.decisions().size(), history.jobs().size());
    for (const std::string& note : debugger.notes())
        fmt::print("{}: {}\n", debugger.style().bad("note"), shown(note));
}

}  // namespace

int run_prompt(Debugger& debugger, const std::function<void()>& begin) {
    greet(debugger);
    begin();
    const std::unique_ptr<EditLine, EditEnd> edit(el_init("orrery-step", stdin, stdout, stderr));
    const std::unique_ptr<::History, HistoryEnd> history(history_init());
    if (!edit || !history) {
        fmt::print(stderr,
                   "orrery-step: the terminal cannot be used for line editing; use --script or --command\n");
        return 1;
    }
    HistEvent event{};
    ::history(history.get(), &event, H_SETSIZE, 1000);
    ::history(history.get(), &event, H_SETUNIQUE, 1);
    const std::string file = history_file();
    if (!file.empty()) ::history(history.get(), &event, H_LOAD, file.c_str());
    el_set(edit.get(), EL_CLIENTDATA, &debugger);
    el_set(edit.get(), EL_PROMPT, prompt_text);
    el_set(edit.get(), EL_EDITOR, "emacs");
    el_set(edit.get(), EL_SIGNAL, 1);
    el_set(edit.get(), EL_HIST, ::history, history.get());
    // The wide form keeps these two strings; the narrow one copies them, and nothing frees the copies.
    el_wset(edit.get(), EL_ADDFN, L"orrery-complete", L"completes the word", complete_line);
    el_set(edit.get(), EL_BIND, "^I", "orrery-complete", nullptr);
    el_set(edit.get(), EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit.get(), nullptr);

    // Not restarted: a read at the prompt is to end too.
    struct sigaction action{};
    action.sa_handler = [](int) { Debugger::interrupt(); };
    sigaction(SIGINT, &action, nullptr);

    std::string last;
    while (!current_of(debugger).quit) {
        int count = 0;
        const char* typed = el_gets(edit.get(), &count);
        if (typed == nullptr && Debugger::take_interrupt()) {
            // Ctrl-C drops what was typed.
            el_reset(edit.get());
            fmt::print("\n");
            continue;
        }
        if (typed == nullptr || count <= 0) {
            fmt::print("\n");
            break;
        }
        std::string line(typed);
        while (!line.empty() && (line.back() == '\n' || line.back() == ' '))
            line.pop_back();
        if (line.empty()) {
            // An empty line steps on, as debuggers do.
            if (last.empty() || !moves_on(last)) continue;
            line = last;
        } else {
            ::history(history.get(), &event, H_ENTER, line.c_str());
        }
        last = line;
        (void)Debugger::take_interrupt();
        const auto reply = current_of(debugger).execute(line);
        if (reply) fmt::print("{}", shown(reply->text));
        if (const std::string error = reply ? reply->failure : reply.error().text; !error.empty())
            fmt::print("{}\n", debugger.style().bad("error: " + shown(error)));
        std::fflush(stdout);
    }
    if (!file.empty()) ::history(history.get(), &event, H_SAVE, file.c_str());
    return 0;
}

}  // namespace orrery::step
