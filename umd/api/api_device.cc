#include <orrery/hw/bar0.h>
#include <orrery/hw/link.h>

#include <algorithm>
#include <cstring>

#include "umd/api/guard.h"
#include "umd/api/structs.h"
#include "umd/runtime/clock_offset.h"

using namespace orrery::umd;

namespace {

template <std::size_t N>
void put_text(char (&to)[N], std::string_view text) {
    std::memset(to, 0, N);
    text.copy(to, N - 1);
}

template <std::size_t N>
std::string_view text_of(const __u8 (&from)[N]) {
    const auto* begin = reinterpret_cast<const char*>(from);
    return {begin, ::strnlen(begin, N)};
}

orrDeviceState state_of(std::uint32_t hardware) {
    switch (hardware) {
        case ORR_STATE_RESET:
            return orrDeviceStateReset;
        case ORR_STATE_BOOTING:
            return orrDeviceStateBooting;
        case ORR_STATE_RUNNING:
            return orrDeviceStateRunning;
        case ORR_STATE_BOOT_FAILED:
            return orrDeviceStateBootFailed;
        case ORR_STATE_HALTED:
            return orrDeviceStateHalted;
        default:
            return orrDeviceStateUnknown;
    }
}

orrLinkState link_state_of(std::uint32_t hardware) {
    switch (hardware) {
        case ORR_LINK_DOWN:
            return orrLinkStateDown;
        case ORR_LINK_TRAINING:
            return orrLinkStateTraining;
        case ORR_LINK_UP:
            return orrLinkStateUp;
        case ORR_LINK_DEGRADED:
            return orrLinkStateDegraded;
        default:
            return orrLinkStateUnknown;
    }
}

std::uint32_t link_known_of(std::uint32_t driver) {
    return ((driver & ORR_LINK_KNOWS_COUNTS) != 0 ? orrLinkKnowsCounts : 0) |
           ((driver & ORR_LINK_KNOWS_DENIALS) != 0 ? orrLinkKnowsDenials : 0) |
           ((driver & ORR_LINK_KNOWS_FORGED) != 0 ? orrLinkKnowsDriver : 0);
}

Status check_joined(Runtime& runtime, int device, int peer) {
    if (peer == device) return fail(orrErrorInvalidDevice, "device {} is no peer of itself", device);
    ORR_TRY(linked, runtime.linked(device, peer));
    if (*linked) return {};
    return fail(orrErrorPeerAccess,
                "no way over links that are up joins device {} and device {}: orrery-smi shows the links",
                device, peer);
}

// Of major << 16 | minor.
std::uint32_t version_of(std::uint32_t contract) {
    return ORR_MAKE_VERSION(contract >> 16, contract & 0xff, 0u);
}

}  // namespace

namespace orrery::umd::api {

orrError_t orrGetDeviceCount(int* count) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (count == nullptr) return null_argument("count");
        ORR_TRY(devices, runtime.device_count());
        *count = *devices;
        return {};
    });
}

orrError_t orrSetDevice(int device) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(found, runtime.device(device));
        current_device() = device;
        return {};
    });
}

orrError_t orrGetDevice(int* device) {
    return guarded([&]() -> Status {
        if (device == nullptr) return null_argument("device");
        *device = current_device();
        return {};
    });
}

orrError_t orrGetDeviceProperties(orrDeviceProp* prop, int device) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(prop, "orrDeviceProp"));
        ORR_TRY(winsys, runtime.device(device));
        ORR_TRY(card, (*winsys)->query());
        orrDeviceProp p{};
        put_text(p.name, text_of(card->sku_name));
        put_text(p.pci_address, (*winsys)->info().pci_address);
        put_text(p.node, (*winsys)->info().node);
        p.uid = card->uid;
        p.vram_bytes = card->vram_size;
        p.vram_used_bytes = card->vram_used;
        p.core_hz = card->core_hz;
        p.vector_hz = card->vector_hz;
        p.copy_engines = card->copy_engines;
        p.vector_ports = card->vector_ports;
        p.vector_cores = card->vector_cores;
        p.link_ports = card->link_ports;
        p.state = state_of(card->state);
        p.vector_vlen = card->vector_vlen;
        put_text(p.vector_isa, text_of(card->vector_isa));
        p.host_atomics = host_atomics(*card) ? 1 : 0;
        return write_struct(prop, p, "orrDeviceProp");
    });
}

orrError_t orrDeviceGetVersion(orrDeviceVersion* version, int device) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(version, "orrDeviceVersion"));
        ORR_TRY(winsys, runtime.device(device));
        ORR_TRY(card, (*winsys)->query());
        orrDeviceVersion v{};
        put_text(v.firmware_build, text_of(card->fw_build_id));
        v.driver = (*winsys)->info().driver_version;
        v.firmware = card->fw_version;
        v.firmware_abi = version_of(card->fw_abi);
        v.hardware = version_of(card->hw_version);
        return write_struct(version, v, "orrDeviceVersion");
    });
}

orrError_t orrDeviceSynchronize(void) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(context, runtime.current_context());
        auto done = (*context)->synchronize();
        (*context)->shared_semaphores().sweep();
        return done;
    });
}

orrError_t orrDeviceSetQuota(int device, uint32_t permille, uint32_t period_us) {
    return with_runtime(
        [&](Runtime& runtime) -> Status { return runtime.set_quota(device, {permille, period_us}); });
}

orrError_t orrMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (free_bytes == nullptr || total_bytes == nullptr)
            return null_argument("free_bytes or total_bytes");
        ORR_TRY(winsys, runtime.device(current_device()));
        runtime.sweep();
        ORR_TRY(card, (*winsys)->query());
        *total_bytes = card->vram_size;
        *free_bytes = card->vram_size - std::min(card->vram_used, card->vram_size);
        return {};
    });
}

orrError_t orrDeviceGetLink(orrLinkInfo* info, int device, int port) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(info, "orrLinkInfo"));
        ORR_TRY(winsys, runtime.device(device));
        ORR_TRY(card, (*winsys)->query());
        if (port < 0 || static_cast<std::uint32_t>(port) >= card->link_ports) {
            return fail(orrErrorInvalidValue, "device {} has no link port {}: it has {}", device, port,
                        card->link_ports);
        }
        ORR_TRY(link, (*winsys)->link(static_cast<std::uint32_t>(port)));
        orrLinkInfo told{};
        told.state = link_state_of(link->state);
        told.peer_port = link->peer_port;
        told.peer_uid = link->peer_uid;
        told.peer_device = runtime.device_of_uid(link->peer_uid);
        told.lanes = link->lanes;
        told.gbps = link->gbps;
        told.latency_ns = link->latency_ns;
        told.tx_messages = link->tx_messages;
        told.tx_bytes = link->tx_bytes;
        told.rx_messages = link->rx_messages;
        told.rx_bytes = link->rx_bytes;
        told.crc_errors = link->crc_errors;
        told.retries = link->retries;
        told.retrains = link->retrains;
        told.changes = link->changes;
        told.denied = link->denied;
        told.bad_keys = link->bad_keys;
        told.refused = link->refused;
        told.forged = link->forged;
        told.losses = link->losses;
        told.built_lanes = link->built;
        told.known = link_known_of(link->known);
        if ((told.known & orrLinkKnowsDriver) == 0) told.losses = 0;
        return write_struct(info, told, "orrLinkInfo");
    });
}

orrError_t orrDeviceCanAccessPeer(int* can, int device, int peer) {
    return with_runtime([&](Runtime& runtime) -> Status {
        if (can == nullptr) return null_argument("can");
        ORR_TRY(linked, runtime.linked(device, peer));
        *can = *linked ? 1 : 0;
        return {};
    });
}

orrError_t orrDeviceEnablePeerAccess(int peer, unsigned flags) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(known, check_flags(flags, 0, "orrDeviceEnablePeerAccess"));
        const int device = current_device();
        ORR_TRY(joined, check_joined(runtime, device, peer));
        ORR_TRY(own, runtime.context(device));
        ORR_TRY(other, runtime.context(peer));
        // Before buffers take all grants of the link: what says that copies have arrived there.
        ORR_TRY(slot, (*other)->semaphores().take(true));
        ORR_TRY(shared, runtime.memory().share_block(*(*slot)->block, device));
        runtime.offer_again();
        ORR_TRY(enabled, runtime.memory().enable_peer(device, peer));
        (*own)->add_peer(**other);
        return {};
    });
}

orrError_t orrDeviceGetPeerWay(orrPeerWay* way, int device, int peer) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(way, "orrPeerWay"));
        ORR_TRY(found, runtime.way(device, peer));
        orrPeerWay told{};
        told.enabled = device != peer && runtime.memory().peer_enabled(device, peer) ? 1 : 0;
        const bool by_host = device != peer && runtime.went_by_host(device, peer) && told.enabled == 0;
        if (device == peer) {
            told.kind = orrPeerWaySelf;
            put_text(told.reason, fmt::format("both are device {}", device));
        } else if (found->links == 0 || by_host) {
            told.kind = orrPeerWayHost;
            put_text(
                told.reason,
                found->links == 0
                    ? fmt::format("no way over links that are up joins device {} and device {}", device, peer)
                    : fmt::format("no link joined device {} and device {} when they copied first; "
                                  "orrDeviceEnablePeerAccess({}, 0) takes the {} that are up now",
                                  device, peer, peer, found->links));
        } else {
            told.kind = orrPeerWayLink;
            told.links = found->links;
            told.bytes_per_s = std::uint64_t{found->gbps} * 125'000'000;
            told.latency_ps = std::uint64_t{found->latency_ns} * 1000;
            put_text(
                told.reason,
                fmt::format(
                    "{} link{} up from port {} of device {} to device {}{}", found->links,
                    found->links == 1 ? "" : "s", found->port, device, peer,
                    told.enabled != 0 ? "" : ": orrDeviceEnablePeerAccess has to come before it is used"));
        }
        return write_struct(way, told, "orrPeerWay");
    });
}

orrError_t orrDeviceGetClockOffset(orrClockOffset* offset, int device, int reference) {
    return with_runtime([&](Runtime& runtime) -> Status {
        ORR_TRY(good, check_result_struct(offset, "orrClockOffset"));
        ORR_TRY(joined, check_joined(runtime, device, reference));
        ORR_TRY(own, runtime.context(device));
        ORR_TRY(other, runtime.context(reference));
        ORR_TRY(measured, measure_clock_offset(**own, **other));
        orrClockOffset told{};
        told.offset_ps = measured->offset_ps;
        told.error_ps = measured->error_ps;
        told.device_ps = measured->device_ps;
        told.worst_ps = measured->worst_ps;
        return write_struct(offset, told, "orrClockOffset");
    });
}

}  // namespace orrery::umd::api
