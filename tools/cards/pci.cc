#include "tools/cards/pci.h"

#include <fmt/format.h>
#include <orrery/hw/pci.h>

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

extern "C" {
#include <pci/pci.h>
}

namespace orrery::cards {
namespace {

// libpci's default error handler ends the program; ours comes back to one of the two functions below that
// call it. They own no C++ objects, because a jump runs no destructors.
std::jmp_buf g_escape;
char g_problem[256];

__attribute__((noreturn)) void on_error(char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(g_problem, sizeof(g_problem), format, arguments);
    va_end(arguments);
    std::longjmp(g_escape, 1);
}

bool scan(pci_access* access) {
    if (setjmp(g_escape) != 0) return false;
    pci_init(access);
    pci_scan_bus(access);
    for (pci_dev* device = access->devices; device != nullptr; device = device->next)
        pci_fill_info(device, PCI_FILL_IDENT | PCI_FILL_CAPS);
    return true;
}

struct Words {
    bool responds = false;
    unsigned link_can = 0, link_is = 0;  // the link registers; 0: the card has none
};

bool read_words(pci_dev* device, Words* words) {
    if (setjmp(g_escape) != 0) return false;
    words->responds = pci_read_word(device, PCI_VENDOR_ID) == ORR_PCI_VENDOR_ID;
    if (!words->responds) return true;
    if (pci_cap* cap = pci_find_cap(device, PCI_CAP_ID_EXP, PCI_CAP_NORMAL)) {
        words->link_can = pci_read_long(device, static_cast<int>(cap->addr + PCI_EXP_LNKCAP));
        words->link_is = pci_read_word(device, static_cast<int>(cap->addr + PCI_EXP_LNKSTA));
    }
    return true;
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

std::string sysfs_line(const std::string& address, const char* name) {
    std::ifstream file(fmt::format("/sys/bus/pci/devices/{}/{}", address, name));
    std::string line;
    std::getline(file, line);
    return line;
}

PciCard describe(const pci_dev& device, const Words& words) {
    PciCard card;
    card.address = fmt::format("{:04x}:{:02x}:{:02x}.{}", device.domain, device.bus, device.dev, device.func);
    std::error_code error;
    const auto driver =
        std::filesystem::read_symlink(fmt::format("/sys/bus/pci/devices/{}/driver", card.address), error);
    if (!error) card.driver = driver.filename();
    card.held = sysfs_line(card.address, "held");
    card.checks = sysfs_line(card.address, "checks");
    card.responds = words.responds;
    card.link_width_max = (words.link_can & PCI_EXP_LNKCAP_WIDTH) >> 4;
    card.link_gts_max = gts(words.link_can & PCI_EXP_LNKCAP_SPEED);
    card.link_width = (words.link_is & PCI_EXP_LNKSTA_WIDTH) >> 4;
    card.link_gts = gts(words.link_is & PCI_EXP_LNKSTA_SPEED);
    return card;
}

std::unexpected<std::string> problem() {
    std::string_view cause = g_problem;
    if (cause.ends_with('.')) cause.remove_suffix(1);
    return std::unexpected(fmt::format("the PCI bus cannot be read: {}. Is /sys mounted?", cause));
}

}  // namespace

std::expected<std::vector<PciCard>, std::string> find_pci_cards() {
    const std::unique_ptr<pci_access, void (*)(pci_access*)> access(pci_alloc(), pci_cleanup);
    access->error = on_error;
    if (!scan(access.get())) return problem();
    std::vector<PciCard> cards;
    for (pci_dev* device = access->devices; device != nullptr; device = device->next) {
        if (device->vendor_id != ORR_PCI_VENDOR_ID || device->device_id != ORR_PCI_DEVICE_ID) continue;
        Words words;
        if (!read_words(device, &words)) return problem();
        cards.push_back(describe(*device, words));
    }
    std::ranges::sort(cards, {}, &PciCard::address);
    return cards;
}

}  // namespace orrery::cards
