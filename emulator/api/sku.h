// What a card is made of and how fast its parts are: a SKU file (emulator/skus/*.toml, docs/skus.md).
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/api/model_time.h"
#include "emulator/api/sku_key.h"

namespace orrery::emu {

// All values have been checked against the ranges of sku_keys(), which also explains each.
struct Sku {
    std::string name;  // 1 to 31 bytes of printable ASCII
    std::string text;  // the file as it was read; what is changed afterwards does not show here
    std::uint64_t vram_bytes = 0;

    std::uint64_t core_hz = 0;
    ModelTime cycle_ps = 0;  // 10^12 / core_hz
    ModelTime register_ps = 0;
    ModelTime vram_load_ps = 0, vram_store_ps = 0;
    ModelTime host_load_ps = 0, host_store_ps = 0;
    ModelTime boot_ps = 0;
    std::uint32_t core_tlb_entries = 0;
    std::uint64_t boot_bytes_per_s = 0;  // 0: no time

    std::uint32_t copy_engines = 0;
    ModelTime copy_setup_ps = 0;
    ModelTime copy_row_ps = 0;
    ModelTime pcie_msi_ps = 0;
    ModelTime pcie_doorbell_ps = 0;
    std::uint64_t copy_engine_bytes_per_s = 0;
    std::uint64_t copy_vram_bytes_per_s = 0;
    std::uint64_t copy_host_bytes_per_s = 0;
    std::uint64_t copy_in_flight = 0;
    std::uint32_t copy_tlb_entries = 0;

    ModelTime memory_latency_ps = 0, memory_host_latency_ps = 0;
    ModelTime mmu_invalidate_ps = 0;

    std::uint32_t vector_ports = 0;
    std::uint32_t vector_cores = 0;
    std::uint64_t vector_hz = 0;
    std::uint32_t vector_vlen = 0;  // bits; 0: no vector registers
    std::uint32_t vector_datapath_bits = 0;
    ModelTime vector_launch_ps = 0;
    ModelTime vector_group_ps = 0;
    std::uint64_t vector_item_cycles = 0;
    ModelTime vector_save_core_ps = 0;
    std::uint64_t vector_l1_bytes = 0;
    std::uint64_t vector_in_flight = 0;
    std::uint32_t vector_tlb_entries = 0;

    std::uint32_t link_ports = 0;
    std::uint32_t link_lanes = 0;
    std::uint32_t link_gbps = 0;
    std::uint32_t link_latency_ns = 0;
    std::uint32_t link_forward_ns = 0;
    std::uint32_t link_retries = 0;
    std::uint32_t link_retrain_ns = 0;
    std::uint32_t link_reads = 16;

    // What estimates of energy are made with; nothing of the card's behaviour follows from it.
    std::uint64_t energy_instruction_fj = 0;
    std::uint64_t energy_f16_fj = 0, energy_f32_fj = 0, energy_f64_fj = 0;
    std::uint64_t energy_vram_fj = 0, energy_host_fj = 0, energy_link_fj = 0;
    std::uint64_t energy_static_mw = 0;

    // Always 0: whoever profiles a card changes nothing of what it does, and when.
    ModelTime profiling_record_ps = 0;

    std::vector<SkuSource> sources;  // one for each of sku_keys()

    // Errors name the file, the line and what is wrong. Every key must be there with its origin, and none
    // else.
    static std::expected<Sku, std::string> load(const std::filesystem::path& file);
    static std::expected<Sku, std::string> parse(std::string_view toml, const std::string& name_for_errors);
    // Of a recording, which may be older than some keys and than origins.
    static std::expected<Sku, std::string> parse_recorded(std::string_view toml,
                                                          const std::string& name_for_errors);

    // What comes with the program: the files of emulator/skus/ as they were when it was built.
    static const Sku& standard();  // orrery-1
    static std::span<const std::string_view> names();
    // A name of these, or else a file; a relative path is sought in `folder`.
    static std::expected<Sku, std::string> find(const std::string& name_or_file,
                                                const std::filesystem::path& folder = {});

    // A line a key, as a card publishes it (orrery/hw/sku.h), with the values as they are now.
    std::string table() const;
};

std::expected<void, std::string> check_vram_size(std::uint64_t bytes);

}  // namespace orrery::emu
