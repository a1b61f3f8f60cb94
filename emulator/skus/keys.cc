#include <array>

#include <fmt/format.h>

#include <orrery/hw/link.h>
#include <orrery/hw/soc.h>

#include "emulator/api/sku.h"
#include "emulator/memory/vram.h"

namespace orrery::emu {

namespace {

constexpr std::uint64_t kMaxHz = 100'000'000'000;
constexpr std::uint64_t kMaxPs = kPsPerSecond;  // a latency of a second is a mistake
constexpr std::uint64_t kMaxMessagePs = 100'000'000;
constexpr std::uint64_t kMaxGb = 1'000'000;
constexpr std::uint64_t kMaxFj = 1'000'000'000;  // a microjoule for one operation is a mistake
constexpr std::uint64_t kGb = 1'000'000'000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kMb = 1'000'000;
constexpr std::uint64_t kMostTlbEntries = 4'096;
constexpr std::uint64_t kMostCopyEngines = 16, kMostVectorPorts = 32;
static_assert(kMostCopyEngines + kMostVectorPorts <= SOC_ENGINES_MAX);

struct Range {
    std::uint64_t low, high, scale = 1;
};

constexpr SkuKey key(std::string_view section, std::string_view name, std::string_view unit,
                     SkuKey::Field field, Range range, std::string_view meaning) {
    return {.section = section,
            .name = name,
            .unit = unit,
            .field = field,
            .low = range.low,
            .high = range.high,
            .scale = range.scale,
            .meaning = meaning};
}

constexpr SkuKey of(SkuKey::Kind kind, SkuKey row) {
    row.kind = kind;
    return row;
}

// A key that came with version `since` of the table; recordings from before are as if it had been `before`.
constexpr SkuKey later(SkuKey row, unsigned since, std::uint64_t before) {
    row.since = since;
    row.before = before;
    return row;
}

// A new key is a row here, a field of Sku, a value in each file of this folder and a row of docs/skus.md.
constexpr auto kKeys = std::to_array<SkuKey>({
    of(SkuKey::Kind::kName, key("card", "name", "", &Sku::name, {1, 31}, "what the card calls itself")),
    of(SkuKey::Kind::kSize, key("card", "vram", "bytes", &Sku::vram_bytes, {kMiB, Vram::kMaxBytes},
                                "size of VRAM, unless --vram says another")),

    key("core", "hz", "Hz", &Sku::core_hz, {1, kMaxHz},
        "control core: one instruction a cycle; divides 10^12, so that a cycle is whole picoseconds"),
    key("core", "register_ps", "ps", &Sku::register_ps, {0, kMaxPs},
        "control core: an access to a SoC register, on top of its cycle"),
    key("core", "vram_load_ps", "ps", &Sku::vram_load_ps, {0, kMaxPs},
        "control core: a load through the VRAM window, or a context window onto VRAM"),
    key("core", "vram_store_ps", "ps", &Sku::vram_store_ps, {0, kMaxPs},
        "control core: a store there, which is posted"),
    key("core", "host_load_ps", "ps", &Sku::host_load_ps, {0, kMaxPs},
        "control core: a load through the host window: a PCIe round trip"),
    key("core", "host_store_ps", "ps", &Sku::host_store_ps, {0, kMaxPs},
        "control core: a store there, which is posted"),
    key("core", "boot_ps", "ps", &Sku::boot_ps, {0, kMaxPs},
        "boot ROM: from start to the first instruction, without the image"),
    later(key("core", "boot_mb_per_s", "MB/s", &Sku::boot_bytes_per_s, {0, kMaxGb, kMb},
              "boot ROM: the image, read and hashed; 0: takes no time"),
          2, 0),
    later(key("core", "tlb_entries", "pages", &Sku::core_tlb_entries, {1, kMostTlbEntries},
              "control core: translations at hand for context windows, ring slots and signals; before: free"),
          3, 0),

    key("copy", "engines", "", &Sku::copy_engines, {1, kMostCopyEngines}, "copy engines"),
    key("copy", "setup_ps", "ps", &Sku::copy_setup_ps, {0, kMaxPs}, "a copy: from start to the first byte"),
    later(key("copy", "row_ps", "ps", &Sku::copy_row_ps, {0, kMaxPs},
              "a copy: each row after the first, and each entry of a list, at least; before: no time"),
          3, 0),
    key("copy", "engine_gb_per_s", "GB/s", &Sku::copy_engine_bytes_per_s, {1, kMaxGb, kGb},
        "what one copy engine moves at most"),
    key("copy", "vram_gb_per_s", "GB/s", &Sku::copy_vram_bytes_per_s, {1, kMaxGb, kGb},
        "VRAM, reads and writes together"),
    key("copy", "host_gb_per_s", "GB/s", &Sku::copy_host_bytes_per_s, {1, kMaxGb, kGb},
        "PCIe, one direction"),
    later(key("copy", "in_flight", "lines", &Sku::copy_in_flight, {1, 1'000'000},
              "of 64 bytes, that one copy engine asks for before the first has come; before: any number"),
          3, 0),
    later(key("copy", "tlb_entries", "pages", &Sku::copy_tlb_entries, {1, kMostTlbEntries},
              "copy engine: translations at hand, and of a quarter as many tables; before: free"),
          3, 0),

    later(key("memory", "latency_ps", "ps", &Sku::memory_latency_ps, {0, kMaxPs},
              "VRAM: a read of an engine or vector core, from request to data; before: none"),
          3, 0),
    later(key("memory", "host_latency_ps", "ps", &Sku::memory_host_latency_ps, {0, kMaxPs},
              "host memory: the same, a PCIe round trip; before: none"),
          3, 0),

    later(key("mmu", "invalidate_ps", "ps", &Sku::mmu_invalidate_ps, {0, kMaxPs},
              "control core: to have translations forgotten, or a root changed, by all engines; before: no "
              "time"),
          3, 0),

    later(key("pcie", "msi_ps", "ps", &Sku::pcie_msi_ps, {0, kMaxMessagePs},
              "an interrupt: from the card to the host's status and message; before: no time"),
          3, 0),
    later(key("pcie", "doorbell_ps", "ps", &Sku::pcie_doorbell_ps, {0, kMaxMessagePs},
              "a doorbell, the mailbox's too: from the host's store until the card has it; before: no time"),
          3, 0),

    key("vector", "ports", "", &Sku::vector_ports, {1, kMostVectorPorts},
        "kernels that can be in flight at once"),
    key("vector", "cores", "", &Sku::vector_cores, {1, 256}, "vector cores"),
    key("vector", "hz", "Hz", &Sku::vector_hz, {1, kMaxHz}, "vector cores: one scalar instruction a cycle"),
    later(of(SkuKey::Kind::kPowerOfTwo, key("vector", "vlen", "bits", &Sku::vector_vlen, {128, 4'096},
                                            "VLEN, a vector register; before: there were none")),
          3, 0),
    later(key("vector", "datapath_bits", "bits", &Sku::vector_datapath_bits, {64, 1'048'576},
              "vector cores: elements that a vector instruction does in a cycle"),
          3, 512),
    key("vector", "launch_ps", "ps", &Sku::vector_launch_ps, {0, kMaxPs},
        "a kernel: from start to the first work-group"),
    key("vector", "group_ps", "ps", &Sku::vector_group_ps, {0, kMaxPs}, "to hand a work-group to a core"),
    key("vector", "item_cycles", "cycles", &Sku::vector_item_cycles, {0, 1'000'000},
        "to start a work-item on a core"),
    key("vector", "save_core_ps", "ps", &Sku::vector_save_core_ps, {0, kMaxPs},
        "to save a work-group inside a kernel, or to load it again; its bytes come on top"),
    later(key("vector", "l1_bytes", "bytes", &Sku::vector_l1_bytes, {4'096, 16 * kMiB},
              "vector core: cache in front of memory; before: kernels' memory took no time"),
          3, 0),
    later(
        key("vector", "in_flight", "lines", &Sku::vector_in_flight, {1, 1'000'000},
            "of 64 bytes, that a core's vector loads ask for before the first has come; before: any number"),
        3, 0),
    later(key("vector", "tlb_entries", "pages", &Sku::vector_tlb_entries, {1, kMostTlbEntries},
              "vector core: translations at hand, and of a quarter as many tables; before: free"),
          3, 0),

    key("link", "ports", "", &Sku::link_ports, {0, ORR_LINK_MAX_PORTS}, "links to other cards"),
    key("link", "lanes", "", &Sku::link_lanes, {1, 64},
        "lanes of a link; both ends use the fewer, and each has its share of the rate"),
    key("link", "gbit_per_s", "Gbit/s", &Sku::link_gbps, {1, 100'000},
        "payload of a link over all its lanes, one direction"),
    key("link", "latency_ns", "ns", &Sku::link_latency_ns, {0, 1'000'000'000}, "of a link, one way"),
    later(key("link", "forward_ns", "ns", &Sku::link_forward_ns, {0, 1'000'000},
              "a card that passes a message on: from its head at one port to its head at another; before: "
              "none did"),
          4, 0),
    later(key("link", "retries", "", &Sku::link_retries, {0, 16},
              "of a frame that comes damaged, before the link trains anew; as many again, and it goes down"),
          5, 0),
    later(key("link", "retrain_ns", "ns", &Sku::link_retrain_ns, {0, 1'000'000'000},
              "to train a link anew that stays up"),
          5, 0),
    later(key("link", "reads", "", &Sku::link_reads, {1, 64},
              "of 32 KiB, that a copy engine asks other cards for before the first has come; before: none"),
          6, 16),

    later(key("energy", "instruction_fj", "fJ", &Sku::energy_instruction_fj, {0, kMaxFj},
              "estimate: an instruction of a vector core, without what its lanes compute"),
          7, 0),
    later(key("energy", "f16_fj", "fJ", &Sku::energy_f16_fj, {0, kMaxFj},
              "estimate: an operation of 16-bit floating point; a multiply-add is two"),
          7, 0),
    later(key("energy", "f32_fj", "fJ", &Sku::energy_f32_fj, {0, kMaxFj}, "estimate: the same of 32 bits"), 7,
          0),
    later(key("energy", "f64_fj", "fJ", &Sku::energy_f64_fj, {0, kMaxFj}, "estimate: the same of 64 bits"), 7,
          0),
    later(key("energy", "vram_fj", "fJ", &Sku::energy_vram_fj, {0, kMaxFj},
              "estimate: a byte from or to VRAM, the chip and the way there"),
          7, 0),
    later(key("energy", "host_fj", "fJ", &Sku::energy_host_fj, {0, kMaxFj},
              "estimate: a byte over PCIe, the card's end of it"),
          7, 0),
    later(key("energy", "link_fj", "fJ", &Sku::energy_link_fj, {0, kMaxFj},
              "estimate: a byte over a link, both ends"),
          7, 0),
    later(key("energy", "static_mw", "mW", &Sku::energy_static_mw, {0, 10'000'000},
              "estimate: what the card takes all the time, whatever it does"),
          7, 0),

    later(key("profiling", "record_ps", "ps", &Sku::profiling_record_ps, {0, 0},
              "profiling: what a snapshot, sample or record takes of the card's time: it is free"),
          8, 0),
});

constexpr std::array<std::string_view, static_cast<std::size_t>(kLastSkuOrigin) + 1> kOrigins{
    "unsaid", "published", "measured", "derived", "assumed"};

}  // namespace

std::span<const SkuKey> sku_keys() {
    return kKeys;
}

std::string full_name(const SkuKey& key) {
    return fmt::format("{}.{}", key.section, key.name);
}

std::string_view name_of(SkuOrigin origin) {
    return kOrigins.at(static_cast<std::size_t>(origin));
}

}  // namespace orrery::emu
