#include "tools/vm/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "tools/vm/process.h"

namespace orrery::vm {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) return fail(fmt::format("{} is a directory", path.string()));
    std::ifstream file(path, std::ios::binary);
    if (!file) return fail(fmt::format("cannot read {}", path.string()));
    std::string text;
    if (const auto size = fs::file_size(path, error); !error) text.reserve(size + 1);
    constexpr std::size_t kStep = std::size_t{256} << 10;  // what a file of /proc has is not known before
    while (file) {
        const std::size_t had = text.size();
        text.resize(std::max(had + 1, std::min(text.capacity(), had + kStep)));
        file.read(text.data() + had, static_cast<std::streamsize>(text.size() - had));
        text.resize(had + static_cast<std::size_t>(file.gcount()));
    }
    return text;
}

Result<void> keep(const fs::path& target, const std::string& bytes) {
    std::error_code error;
    fs::create_directories(target.parent_path(), error);
    const fs::path fresh = target.string() + fmt::format(".{}", ::getpid());
    {
        std::ofstream file(fresh, std::ios::binary);
        file << bytes;
        file.close();
        // A host that crashes leaves the old file or the new one.
        const Fd written(::open(fresh.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file || !written || ::fsync(written.get()) != 0) {
            fs::remove(fresh, error);
            return fail(fmt::format("cannot write {}", fresh.string()));
        }
    }
    fs::rename(fresh, target, error);
    if (error) return fail(fmt::format("cannot write {}: {}", target.string(), error.message()));
    return {};
}

Result<FileView> FileView::open(const fs::path& path) {
    const auto failed = [&path] {
        return fail(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
    };
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info;
    if (!file || ::fstat(file.get(), &info) != 0) return failed();
    const auto size = static_cast<std::size_t>(info.st_size);
    if (size == 0) return FileView({});
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (at == MAP_FAILED) return failed();
    return FileView({static_cast<const char*>(at), size});
}

FileView::~FileView() {
    if (!view_.empty()) ::munmap(const_cast<char*>(view_.data()), view_.size());
}

}  // namespace orrery::vm
