#include "tools/smi/pci.h"

#include <fmt/format.h>
#include <orrery/hw/pci.h>

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <memory>

extern "C" {
#include <pci/pci.h>
}

namespace orrery::smi {
namespace {

// libpci's default error handler ends the program; ours comes back to find_pci_cards().
std::jmp_buf g_escape;
char g_problem[256];

__attribute__((noreturn)) void on_error(char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(g_problem, sizeof(g_problem), format, arguments);
    va_end(arguments);
    std::longjmp(g_escape, 1);
}

// GT/s by the number in the link registers.
unsigned gts(unsigned speed) {
    switch (speed) {
        case 1:
            return 2;  // 2.5, shown as such by the table
        case 2:
            return 5;
        case 3:
            return 8;
        case 4:
            return 16;
        case 5:
            return 32;
        case 6:
            return 64;
        default:
            return 0;
    }
}

PciCard describe(pci_dev* device) {
    PciCard card;
    card.address =
        fmt::format("{:04x}:{:02x}:{:02x}.{}", device->domain, device->bus, device->dev, device->func);
    std::error_code error;
    const auto driver =
        std::filesystem::read_symlink(fmt::format("/sys/bus/pci/devices/{}/driver", card.address), error);
    if (!error) card.driver = driver.filename();
    card.responds = pci_read_word(device, PCI_VENDOR_ID) == ORR_PCI_VENDOR_ID;
    if (!card.responds) return card;
    if (pci_cap* cap = pci_find_cap(device, PCI_CAP_ID_EXP, PCI_CAP_NORMAL)) {
        const unsigned can = pci_read_long(device, static_cast<int>(cap->addr + PCI_EXP_LNKCAP));
        const unsigned is = pci_read_word(device, static_cast<int>(cap->addr + PCI_EXP_LNKSTA));
        card.link_width_max = (can & PCI_EXP_LNKCAP_WIDTH) >> 4;
        card.link_gts_max = gts(can & PCI_EXP_LNKCAP_SPEED);
        card.link_width = (is & PCI_EXP_LNKSTA_WIDTH) >> 4;
        card.link_gts = gts(is & PCI_EXP_LNKSTA_SPEED);
    }
    return card;
}

}  // namespace

std::expected<std::vector<PciCard>, std::string> find_pci_cards() {
    const std::unique_ptr<pci_access, void (*)(pci_access*)> access(pci_alloc(), pci_cleanup);
    access->error = on_error;
    // Only objects made before this line live on when libpci gives up below.
    std::vector<PciCard> cards;
    if (setjmp(g_escape) != 0) {
        return std::unexpected(fmt::format("the PCI bus cannot be read: {}. Is /sys mounted?", g_problem));
    }
    pci_init(access.get());
    pci_scan_bus(access.get());
    for (pci_dev* device = access->devices; device != nullptr; device = device->next) {
        pci_fill_info(device, PCI_FILL_IDENT | PCI_FILL_CAPS);
        if (device->vendor_id != ORR_PCI_VENDOR_ID || device->device_id != ORR_PCI_DEVICE_ID) continue;
        cards.push_back(describe(device));
    }
    std::ranges::sort(cards, {}, &PciCard::address);
    return cards;
}

}  // namespace orrery::smi
