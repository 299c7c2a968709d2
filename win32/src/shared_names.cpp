// SPDX-License-Identifier: Apache-2.0
// Named objects that processes share: each is a file in a folder of the user, with a shared object of tocsin in it
// (shared_event.hpp, shared_semaphore.hpp, shared_lock.hpp). Those objects contain all the concurrency of waits and
// signals, and the recovery from deaths. This file is about the names.
//
// State: the files of the folder. Each process that uses an object has the object's file open, with a lock of flock()
// for readers on it. The kernel ends that lock when the process ends, however it ends. Whoever looks a name up, makes a
// file or deletes one holds the lock of the file `.lock` meanwhile. Waits and signals don't.
//
// Invariants
//   shared_names-1  A file that nobody has locked belongs to nobody: its users have died, or its maker died before it
//       had finished. Under the folder's lock, a lock for writers that is granted at once proves that. Such a file is
//       deleted and never used, so what the dead have left in it is gone with it, as on Windows.
//   shared_names-2  A file gets its first reader's lock after it has been filled in, under the folder's lock. So
//       whoever finds a file with a lock finds it whole.
//   shared_names-3  The process that ends its use asks for the writers' lock through a new descriptor, under the
//       folder's lock. So exactly the last user deletes the file.
//
// A process that is stopped in the middle of a look-up holds up the look-ups of others, until it continues or ends. No
// wait and no signal is held up. flock() knows no process numbers, so processes of several pid namespaces may share a
// folder.
//
// A mutex is a shared_lock, and the thread that owns the mutex holds the lock. `owner_died` becomes WAIT_ABANDONED. A
// thread that ends while its process continues says so in `abandoned`, and unlocks.
//
// Checked by: win32/tests/unit/shared_names_test.cpp.
#include "shared_names.hpp"

#include <tocsin/detail/exceptions.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tocsin::win32 {
namespace {

class open_file {
public:
    explicit open_file(int descriptor) noexcept : descriptor_(descriptor) {}
    open_file(const open_file&) = delete;
    open_file& operator=(const open_file&) = delete;
    ~open_file() { close(); }

    explicit operator bool() const noexcept { return descriptor_ >= 0; }
    int get() const noexcept { return descriptor_; }
    void close() noexcept {
        if (descriptor_ >= 0) (void)::close(descriptor_);
        descriptor_ = -1;
    }
    void open(const std::string& path, int more) noexcept {
        close();
        descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | more, 0600);
    }
    bool lock(int how) const noexcept {
        int done = 0;
        do done = ::flock(descriptor_, how);
        while (done != 0 && errno == EINTR);
        return done == 0;
    }

private:
    int descriptor_;
};

std::string lock_in(const std::string& folder) { return folder + "/.lock"; }

// Holds the lock of the folder.
class folder_lock {
public:
    explicit folder_lock(const std::string& lock) noexcept : file_(-1) {
        file_.open(lock, O_CREAT);
        if (file_ && !file_.lock(LOCK_EX)) file_.close();
    }
    ~folder_lock() {
        // A child that another thread forks meanwhile has the descriptor, too.
        if (file_) (void)file_.lock(LOCK_UN);
    }
    folder_lock(const folder_lock&) = delete;
    folder_lock& operator=(const folder_lock&) = delete;
    explicit operator bool() const noexcept { return bool(file_); }

private:
    open_file file_;
};

// Deletes a file at the end, unless it has been kept.
class unfinished_file {
public:
    explicit unfinished_file(const std::string& path) noexcept : path_(path) {}
    ~unfinished_file() {
        if (is_new) (void)::unlink(path_.c_str());
    }
    unfinished_file(const unfinished_file&) = delete;
    unfinished_file& operator=(const unfinished_file&) = delete;

    bool is_new = false;

private:
    const std::string& path_;
};

DWORD error_of(int number) noexcept {
    switch (number) {
        case EACCES:
        case EPERM: return ERROR_ACCESS_DENIED;
        case ENOENT:
        case ENOTDIR:
        case ELOOP: return ERROR_PATH_NOT_FOUND;
        case EMFILE:
        case ENFILE: return ERROR_TOO_MANY_OPEN_FILES;
        case ENOMEM:
        case ENOSPC: return ERROR_NOT_ENOUGH_MEMORY;
        default: return ERROR_GEN_FAILURE;
    }
}

constexpr std::string_view global_name = "Global\\";
constexpr std::size_t longest_file = 200;

// The file of a name: `l-` or, in the global namespace, `g-`; then the name, with `%` and two digits for each byte that
// is no letter, digit, `-`, `_` or `.`. Of a long name, the beginning, `~` and a hash of the whole name.
std::string file_of(std::string_view name) {
    std::string file = name.starts_with(global_name) ? "g-" : "l-";
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325u;  // FNV-1a
    if (file[0] == 'g') name.remove_prefix(global_name.size());
    for (const char each : name) {
        const auto byte = static_cast<unsigned char>(each);
        hash = (hash ^ byte) * 0x0000'0100'0000'01B3u;
        const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                              (byte >= '0' && byte <= '9') || byte == '-' || byte == '_' || byte == '.';
        if (is_plain) {
            file.push_back(each);
        } else {
            constexpr const char* digits = "0123456789ABCDEF";
            file.append({'%', digits[byte >> 4], digits[byte & 15]});
        }
    }
    if (file.size() <= longest_file) return file;
    char digits[18];
    std::snprintf(digits, sizeof digits, "~%016llx", static_cast<unsigned long long>(hash));
    return file.substr(0, longest_file) + digits;
}

std::size_t size_of(shared_type type) noexcept {
    switch (type) {
        case shared_type::manual_reset_event: return sizeof(named_header) + sizeof(shared_manual_reset_event);
        case shared_type::auto_reset_event: return sizeof(named_header) + sizeof(shared_auto_reset_event);
        case shared_type::semaphore: return sizeof(named_header) + sizeof(shared_semaphore);
        case shared_type::mutex: return sizeof(named_header) + sizeof(tocsin::shared_lock);
        default: return 0;
    }
}

kind kind_of(shared_type type) noexcept {
    if (type == shared_type::semaphore) return kind::semaphore;
    return type == shared_type::mutex ? kind::mutex : kind::event;
}

// shared_names-1. For a file that is open.
bool is_nobodys(const open_file& file) noexcept { return file.lock(LOCK_EX | LOCK_NB); }

void delete_if_nobodys(const std::string& path) noexcept {
    open_file file(-1);
    file.open(path, 0);
    if (file && is_nobodys(file)) (void)::unlink(path.c_str());
}

}  // namespace

void shared_region::begin(const shared_recipe& how) {
    named_header& to = header();
    to.version = named_header::current;
    to.type = type_ = how.type;
    to.maximum = maximum_ = how.maximum;
    if (how.initial == 0) return;
    switch (how.type) {
        case shared_type::manual_reset_event: object_as<shared_manual_reset_event>().set(); break;
        case shared_type::auto_reset_event: object_as<shared_auto_reset_event>().set(); break;
        case shared_type::semaphore: object_as<shared_semaphore>().release(how.initial); break;
        case shared_type::mutex:
            (void)object_as<tocsin::shared_lock>().try_lock();
            is_to_be_owned_ = true;
            break;
        default: break;
    }
}

shared_region::~shared_region() {
    if (!is_to_be_owned_) return;
    (void)without_exceptions<bool>(false, [&] {
        object_as<tocsin::shared_lock>().unlock();
        return true;
    });
}

// 0, or why this is no object of that kind.
DWORD shared_region::check(kind wanted) noexcept {
    if (memory_.size() < sizeof(named_header)) return ERROR_INVALID_HANDLE;
    const named_header& found = header();
    if (found.version != named_header::current) return ERROR_NOT_SUPPORTED;
    type_ = found.type;
    maximum_ = found.maximum;
    const bool is_right = size_of(type_) == memory_.size() && kind_of(type_) == wanted && maximum_ >= 0;
    return is_right ? 0 : ERROR_INVALID_HANDLE;
}

std::unique_ptr<shared_region> shared_region::attach(const std::string& directory, const std::string& name,
                                                     kind wanted, const shared_recipe* how, bool& is_new,
                                                     DWORD& error) {
    const auto refuse = [&](DWORD why) {
        error = why;
        return nullptr;
    };
    std::string path = directory + '/' + file_of(name);
    std::string lock = lock_in(directory);
    const folder_lock held(lock);
    if (!held) return refuse(error_of(errno));
    open_file file(-1);
    file.open(path, 0);
    if (file && is_nobodys(file)) {
        if (::unlink(path.c_str()) != 0) return refuse(error_of(errno));
        file.close();
        errno = ENOENT;
    }
    unfinished_file made(path);
    if (!file) {
        if (errno != ENOENT) return refuse(error_of(errno));
        if (how == nullptr) return refuse(ERROR_FILE_NOT_FOUND);
        file.open(path, O_CREAT | O_EXCL);
        if (!file) return refuse(error_of(errno));
        made.is_new = true;
        // The memory is reserved at once, so that a full file system is an error here, and no SIGBUS later.
        int number = EINTR;
        while (number == EINTR)
            number = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size_of(how->type)));
        if (number != 0) return refuse(error_of(number));
    }
    is_new = made.is_new;
    struct stat about{};
    if (::fstat(file.get(), &about) != 0) return refuse(error_of(errno));
    if (about.st_size == 0) return refuse(ERROR_INVALID_HANDLE);
    // The region has a copy of the descriptor, which shares the lock.
    std::unique_ptr<shared_region> region(
        new shared_region(path, std::move(lock), shared_memory::map(file.get())));
    if (!is_new) {
        if (const DWORD why = region->check(wanted)) return refuse(why);
    } else {
        region->begin(*how);
    }
    if (!file.lock(LOCK_SH | LOCK_NB)) return refuse(error_of(errno));  // shared_names-2
    region->file_.begin();
    made.is_new = false;
    return region;
}

file_in_use::~file_in_use() {
    if (!is_used_) return;
    const folder_lock held(lock_);
    if (held) delete_if_nobodys(path_);  // shared_names-3
}

DWORD prepare_shared_names([[maybe_unused]] const char* folder, [[maybe_unused]] std::string& path) {
#if !defined(__linux__)
    return ERROR_NOT_SUPPORTED;
#else
    path = folder != nullptr ? folder : "/dev/shm/tocsin-" + std::to_string(::geteuid());
    if (!path.starts_with('/') || path.ends_with('/')) return ERROR_INVALID_PARAMETER;
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return error_of(errno);
    // Only the user may write there. So every file in it is the user's own.
    const open_file opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened) return error_of(errno);
    struct stat about{};
    if (::fstat(opened.get(), &about) != 0) return error_of(errno);
    if (about.st_uid != ::geteuid() || (about.st_mode & 077) != 0) return ERROR_ACCESS_DENIED;
    const folder_lock held(lock_in(path));
    if (!held) return error_of(errno);
    DIR* const all = ::opendir(path.c_str());
    if (all == nullptr) return error_of(errno);
    while (const dirent* const each =
               ::readdir(all)) {  // NOLINT(concurrency-mt-unsafe): `all` is this call's own
        const std::string_view file = each->d_name;
        if (file.starts_with("l-") || file.starts_with("g-"))
            delete_if_nobodys(path + '/' + std::string(file));
    }
    (void)::closedir(all);
    return 0;
#endif
}

shared_mutex::result shared_mutex::ended(lock_status how) {
    switch (how) {
        case lock_status::acquired:
        case lock_status::owner_died: break;
        case lock_status::lost:
            detail::throw_or_die(std::system_error(std::make_error_code(std::errc::state_not_recoverable),
                                                   "tocsin: a named mutex is lost"));
        default: return result::not_taken;
    }
    if (how == lock_status::owner_died) lock().mark_repaired();
    // no order: under the lock
    const bool was_left = region_->header().abandoned.exchange(0, std::memory_order_relaxed) != 0;
    return how == lock_status::owner_died || was_left ? result::taken_abandoned : result::taken;
}

void shared_mutex::hand_on(bool abandoned) noexcept {
    // no order: under the lock
    if (abandoned) region_->header().abandoned.store(1, std::memory_order_relaxed);
    // It throws only if other processes change the memory without end.
    (void)without_exceptions<bool>(false, [&] {
        lock().unlock();
        return true;
    });
}

}  // namespace tocsin::win32
