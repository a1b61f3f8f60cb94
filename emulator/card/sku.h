// What a card is made of and how fast its parts are: read from a SKU file (emulator/skus/*.toml).
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

#include "emulator/time/event_queue.h"

namespace orrery::emu {

struct Sku {
    std::string name;  // at most 31 bytes of printable ASCII

    std::uint64_t vram_bytes = 0;  // power of two, 1 MiB to 64 GiB
    std::uint32_t copy_engines = 0;
    std::uint32_t vector_ports = 0;  // copy engines + vector ports <= SOC_ENGINES_MAX
    std::uint32_t vector_cores = 0;

    // Model frequencies. The control core retires an instruction a cycle, plus the latencies below.
    std::uint64_t core_hz = 0;
    std::uint64_t vector_hz = 0;

    // What an access of the control core takes beyond its cycle.
    ModelTime soc_register_ps = 0;
    ModelTime vram_window_ps = 0;    // VRAM window, and context window onto VRAM
    ModelTime host_window_ps = 0;    // host window, and context window onto host memory: a load
    ModelTime host_store_ps = 0;     // the same: a posted store
    ModelTime doorbell_scan_ps = 0;  // from a doorbell's store to SOC_DB_POP
    ModelTime boot_ps = 0;           // boot ROM's work, once an image is good

    // Engines.
    std::uint64_t vram_bytes_per_s = 0;       // one copy engine to or from VRAM
    std::uint64_t pcie_bytes_per_s = 0;       // the card's host link, one direction
    ModelTime copy_setup_ps = 0;              // from start to the first byte
    ModelTime pcie_latency_ps = 0;            // once a descriptor that touches host memory
    ModelTime kernel_setup_ps = 0;            // from start to the first work-group
    ModelTime group_setup_ps = 0;             // a work-group on its core
    std::uint64_t vector_vram_access_ps = 0;  // a page-cache miss of a vector core

    // Links.
    std::uint32_t link_lanes = 0;
    std::uint64_t link_bytes_per_s = 0;  // payload, one direction
    ModelTime link_latency_ps = 0;       // one way

    // Errors name file, line and what is wrong. Unknown keys are errors.
    static std::expected<Sku, std::string> load(const std::filesystem::path& file);
    static std::expected<Sku, std::string> parse(std::string_view toml, std::string_view name_for_errors);
    // emulator/skus/orrery-1.toml as it was when this program was built.
    static Sku standard();
};

}  // namespace orrery::emu
