// How results are shown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "umd/samples/histogram/card_part.h"

struct FileResult {
    std::string path;
    std::size_t bytes = 0;
    Run run;
    double cpu_ns = 0;  // the same count by the guest's CPU
    bool correct = false;
    std::string difference;  // when it is not correct
};

void print_table(const std::vector<FileResult>& results);
void print_json(const std::vector<FileResult>& results);
