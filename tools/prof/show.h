// What is made of a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tools/prof/model.h"

namespace orrery::prof {

// How often, how long: tables for a terminal.
std::string stat_text(const Model& model);
// How busy, how near to what the card can, and where nothing ran: the first `top` rows of each table.
std::string report_text(const Model& model, std::size_t top);
// The same for programs; docs/profiling.md has the keys. `top` is how many gaps there are.
std::string report_json(const Model& model, std::size_t top);
// Each instruction of cores that were traced, a line each.
std::string instructions_text(const Model& model);
// For chrome://tracing and others: an object with traceEvents, times in microseconds from the profile's
// begin.
std::string chrome_json(const Model& model);
// For Perfetto: its Trace message, times in nanoseconds of CLOCK_MONOTONIC.
std::string perfetto_trace(const Model& model);
// A page for a browser, whole in itself. The title is of anybody. Sources of kernels, by name: the lines that
// samples name stand in the page.
std::string html_page(const Model& model, const std::string& title,
                      const std::map<std::string, std::string>& sources = {});
// The files, without their folders, whose lines the samples of vector cores name.
std::set<std::string> sampled_sources(const Model& model);

// "process 7: program" and a line's end; with its machine, if there are several.
std::string process_title(const Model& model, const Activity& activity);
// " of machine 2", if there are several.
std::string of_machine(const Model& model, const Process& process);
// Of a timeline of the host, with how that has the card's work: "device 0 of process 7, the host's time to 7
// us", "… model time".
std::string device_title(const Model& model, const Activity& activity, std::uint32_t number);
// Of several machines: how exact their hosts' clocks are to the first one's; else "".
std::string machines_text(const Model& model);
// Names are of anybody's file: a terminal gets no control characters, and a line no end.
std::string plain(std::string_view text);
// The same for files: what is not UTF-8 becomes '?'.
std::string valid_utf8(std::string_view text);
// A cell of CSV (RFC 4180).
std::string csv_cell(std::string_view text);
// What is known to be missing of it, a line each; "" if nothing is.
std::string missing_text(const Process& process);
// "1.5 MiB"
std::string bytes_text(std::uint64_t bytes);

}  // namespace orrery::prof
