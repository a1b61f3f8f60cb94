// Reads Perfetto's trace format without our .proto: by the names, numbers and types of its public messages
// (perfetto.dev, protos/perfetto/trace), as a table here. What is in no table, or of another type, is a
// failure.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::prof::test {

// What a reader makes of a trace: slices with their tracks, arrows between them, counters, stages of GPUs.
struct PerfettoTrace {
    struct Track {
        std::string name, unit;  // unit: of a counter's
        std::uint64_t parent = 0;
        std::int64_t pid = 0, tid = 0;  // of processes and threads
        bool counter = false;
        std::vector<std::pair<std::uint64_t, double>> values;
    };
    struct Slice {
        std::uint64_t track = 0, begin = 0, end = 0;
        std::string name, category;
        std::map<std::string, std::uint64_t> notes;
        bool instant = false;
    };
    struct Stage {
        std::uint64_t id = 0, begin = 0, length = 0;
        std::int64_t gpu = 0, pid = 0;
        std::string name, queue, stage;
        std::uint64_t category = 0;
        std::vector<std::uint64_t> waits;  // ids
        std::map<std::string, std::string> extra;
    };
    std::map<std::uint64_t, Track> tracks;
    std::vector<Slice> slices;
    std::vector<std::pair<std::size_t, std::size_t>> flows;  // of slices
    std::vector<Stage> stages;
};

// Adds a failure to the running test for all that is wrong with it.
PerfettoTrace read_perfetto(std::string_view bytes);

// Lines of a .proto that do not say what the public messages say; empty: none.
std::vector<std::string> wrong_in_proto(std::istream& proto);

}  // namespace orrery::prof::test
