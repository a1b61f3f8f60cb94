// Programs that are each slow for one reason, which the author knows: what `orrery-prof explain` says of them
// is held against that. Who adds one has not read explain's rules.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace planted {

// Of the time that the program took on its card.
struct Range {
    double least = 0, most = 1;
};

struct Case {
    const char* name;
    // The rule that explain's verdict has to name first; "none": it has to say that nothing limits it.
    const char* limit;
    const char* why;
    void (*run)();
    int device = 0;  // of which it has to say so
    // What it has to say of it, in its title or its evidence; "": whatever.
    const char* words = "";
    // A rule that it may name before, as something that is at its bound for much of the time: it is.
    const char* at_bound = "";
    // How much of the time the limit takes, as far as it follows from the program. For "none": how much
    // something else than what is at its bound may take.
    Range share = {};
    // What would be gained without it, which explain then has to say as a time; this one: whatever.
    Range gain = {1, 0};
    // Another device that nothing holds up; -1: there is none.
    int innocent = -1;
    // It has work on both cards, which have to keep step: free ones wait for each other as their hosts do.
    bool in_step = false;
    // It does too little for explain to say more than that.
    bool is_short = false;
    // It waits for its card and then for its host: of one that is late meanwhile that is the limit.
    bool needs_prompt_host = false;
};

const std::vector<Case>& one_card_cases();
const std::vector<Case>& several_cards_cases();
const std::vector<Case>& fresh_one_card_cases();
const std::vector<Case>& fresh_several_cards_cases();
// Run when asked for only.
const std::vector<Case>& blind_one_card_cases();
const std::vector<Case>& blind_several_cards_cases();
const std::vector<Case>& blind2_one_card_cases();
const std::vector<Case>& blind2_several_cards_cases();

const Case* find(std::string_view name);
// The names of all whose cards keep step, or need not.
void list(bool in_step, bool fresh);
// The same of the blind ones; prompt: also of those that need a host that is not late, and of the second set.
void list_blind(bool in_step, bool prompt);

// What is wrong in what `orrery-prof explain --json` says of it; empty: nothing.
std::string wrong_in(const Case& one, std::istream& explained);
// What explain is known to say wrongly of a program.
struct Known {
    std::string_view name;
    const char* said;  // what wrong_in() has of it, with these words: anything else is a new fault
    const char* why;
};
const Known* known_wrong(std::string_view name);  // null: nothing
// What the test has to complain of: what is wrong, unless that is known, and what is known to be wrong and is
// not.
std::string complaint(const Case& one, const Known* known, const std::string& wrong);

}  // namespace planted
