// What src/platform/poller/poller.hpp promises, for every backend that builds on this machine.
#include "platform/poller/poller.hpp"

#include "allocations.hpp"
#include "child.hpp"
#include "clocks.hpp"
#include "facts.hpp"
#include "platform/poller/doorbells.hpp"
#include "random.hpp"
#include "refused_calls.hpp"
#include "sanitizer.hpp"
#include "system_calls.hpp"
#include "threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#endif

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using support::rounds;
using support::thread_group;
using support::until_sound_asleep;
using tocsin::deadline;
namespace platform = tocsin::platform;
using platform::doorbell_id;
using platform::no_doorbell;
using platform::poll_entry;
using platform::poll_result;
using platform::poll_set;
using platform::readiness;

struct chosen {
    static constexpr auto take = platform::take_doorbell;
    static constexpr auto give_back = platform::give_doorbell_back;
    static constexpr auto ring = platform::ring_doorbell;
    static constexpr auto poll = platform::poll;
    static constexpr auto open = platform::open_poll_set;
    static constexpr auto after_fork = platform::poller_after_fork;
};
struct posix {
    static constexpr auto take = platform::posix_poller::take_doorbell;
    static constexpr auto give_back = platform::posix_poller::give_doorbell_back;
    static constexpr auto ring = platform::posix_poller::ring_doorbell;
    static constexpr auto poll = platform::posix_poller::poll;
    static constexpr auto open = platform::posix_poller::open_poll_set;
    static constexpr auto after_fork = platform::posix_poller::poller_after_fork;
};
struct kqueue {
    static constexpr auto take = platform::kqueue_poller::take_doorbell;
    static constexpr auto give_back = platform::kqueue_poller::give_doorbell_back;
    static constexpr auto ring = platform::kqueue_poller::ring_doorbell;
    static constexpr auto poll = platform::kqueue_poller::poll;
    static constexpr auto open = platform::kqueue_poller::open_poll_set;
    static constexpr auto after_fork = platform::kqueue_poller::poller_after_fork;
};
#if defined(__linux__)
struct linux_kernel {
    static constexpr auto take = platform::linux_poller::take_doorbell;
    static constexpr auto give_back = platform::linux_poller::give_doorbell_back;
    static constexpr auto ring = platform::linux_poller::ring_doorbell;
    static constexpr auto poll = platform::linux_poller::poll;
    static constexpr auto open = platform::linux_poller::open_poll_set;
    static constexpr auto after_fork = platform::linux_poller::poller_after_fork;
};
using backends = testing::Types<chosen, linux_kernel, kqueue, posix>;  // kqueue: support/kqueue
#else
using backends = testing::Types<chosen, kqueue, posix>;
#endif

template <class Backend>
class EveryPoller : public testing::Test {};
TYPED_TEST_SUITE(EveryPoller, backends);

// ---- what the tests are made of -----------------------------------------------------------------

class owned {
public:
    explicit owned(int descriptor = -1) : descriptor_(descriptor) {}
    owned(owned&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    owned& operator=(owned&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~owned() { close(); }
    operator int() const { return descriptor_; }  // so that it can be used as what it is
    void close() {
        if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    }

private:
    int descriptor_;
};

struct both_ends {
    owned read;
    owned write;
    void put() const { ASSERT_EQ(::write(write, "x", 1), 1); }
    void get() const {
        char byte;
        ASSERT_EQ(::read(read, &byte, 1), 1);
    }
};

both_ends make_pipe() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    return {owned(ends[0]), owned(ends[1])};
}

std::pair<owned, owned> make_sockets() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    return {owned(ends[0]), owned(ends[1])};
}

// A connection over loopback: the listening socket, and both ends.
struct connection {
    owned listening{socket(AF_INET, SOCK_STREAM, 0)};
    owned client{socket(AF_INET, SOCK_STREAM, 0)};
    owned server;

    connection() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        socklen_t size = sizeof address;
        EXPECT_EQ(bind(listening, any, size), 0);
        EXPECT_EQ(listen(listening, 1), 0);
        EXPECT_EQ(getsockname(listening, any, &size), 0);
        EXPECT_EQ(connect(client, any, size), 0);
    }
    void accept_it() { server = owned(accept(listening, nullptr, nullptr)); }
};

template <class Backend>
class held_bell {
public:
    held_bell() : taken_(Backend::take()) { EXPECT_EQ(taken_.error, 0); }
    held_bell(const held_bell&) = delete;
    held_bell& operator=(const held_bell&) = delete;
    ~held_bell() { Backend::give_back(taken_.id); }
    operator doorbell_id() const { return taken_.id; }  // so that it can be used as what it is

private:
    platform::taken_doorbell taken_;
};

template <class Backend>
poll_result poll_one(poll_entry& one, const deadline& until, doorbell_id bell = no_doorbell) {
    return Backend::poll({&one, 1}, bell, until);
}

// What one look finds.
template <class Backend>
readiness state_of(int descriptor, readiness asked) {
    poll_entry one{descriptor, asked};
    const auto result = poll_one<Backend>(one, 0s);
    EXPECT_EQ(result.error, 0);
    EXPECT_EQ(result.ready, one.found == readiness::none ? 0u : 1u);
    EXPECT_EQ(result.timed_out, one.found == readiness::none);
    return one.found;
}

// Waits until rung, as callers do it: a bell may have been rung for no reason.
template <class Backend>
bool is_rung(doorbell_id bell, const deadline& until) {
    const auto result = Backend::poll({}, bell, until);
    EXPECT_EQ(result.error, 0);
    EXPECT_NE(result.rung, result.timed_out);
    return result.rung;
}

template <class Backend>
std::unique_ptr<poll_set> open_set() {
    int error = -1;
    auto set = Backend::open(error);
    EXPECT_EQ(error, 0);
    return set;
}

// The tags that one wait reports.
std::set<std::uint64_t> tags_in(poll_set& set, const deadline& until = 0s) {
    std::array<poll_set::item, 64> items;
    const auto result = set.wait(items, until);
    EXPECT_EQ(result.error, 0);
    std::set<std::uint64_t> tags;
    for (const auto& each : std::span(items).first(result.ready)) {
        EXPECT_TRUE(tags.insert(each.tag).second) << "twice in one report: " << each.tag;
    }
    return tags;
}
using tags = std::set<std::uint64_t>;

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Raises the limit for this process as far as it may go; how many descriptors may be open then.
std::size_t raise_descriptor_limit() {
    rlimit limit{};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_max, 1'000'000));
}

// Leaves no descriptor to be opened, in a child process.
void exhaust_descriptors() {
    const rlimit few{64, 64};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(90);
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
    if (errno != EMFILE) _exit(91);
}

// ---- one poll -----------------------------------------------------------------------------------

TYPED_TEST(EveryPoller, FindsWhatIsReadyWhereItStands) {
    const both_ends idle = make_pipe();
    const both_ends full = make_pipe();
    full.put();
    std::array<poll_entry, 4> all{{{idle.read, readiness::readable},
                                   {full.read, readiness::readable},
                                   {idle.write, readiness::writable},
                                   {full.read, readiness::writable}}};
    const auto result = TypeParam::poll(all, no_doorbell, deadline::never());
    EXPECT_EQ(result.ready, 2u);
    EXPECT_FALSE(result.rung || result.timed_out);
    EXPECT_EQ(all[0].found, readiness::none);
    EXPECT_EQ(all[1].found, readiness::readable);
    EXPECT_EQ(all[2].found, readiness::writable);
    EXPECT_EQ(all[3].found, readiness::none);
}

TYPED_TEST(EveryPoller, ForgetsWhatAnEarlierPollFound) {
    const both_ends pipe = make_pipe();
    poll_entry one{pipe.read, readiness::readable, readiness::error};
    EXPECT_TRUE(poll_one<TypeParam>(one, 0s).timed_out);
    EXPECT_EQ(one.found, readiness::none);
}

TYPED_TEST(EveryPoller, ADescriptorEndsTheSleep) {
    const both_ends pipe = make_pipe();
    thread_group threads;
    threads.start("sleeper", [&] {
        const held_bell<TypeParam> bell;
        poll_entry one{pipe.read, readiness::readable};
        const auto result = poll_one<TypeParam>(one, deadline::never(), bell);
        EXPECT_EQ(result.ready, 1u);
        EXPECT_FALSE(result.rung);
    });
    until_sound_asleep(threads.id(0));
    pipe.put();
    threads.join();
}

TYPED_TEST(EveryPoller, KnowsWhenThePeerIsGone) {
    auto [here, there] = make_sockets();
    EXPECT_EQ(state_of<TypeParam>(here, readiness::hang_up | readiness::readable), readiness::none);
    shutdown(there, SHUT_WR);
    EXPECT_EQ(state_of<TypeParam>(here, readiness::readable), readiness::readable);
#if defined(POLLRDHUP)
    EXPECT_EQ(state_of<TypeParam>(here, readiness::hang_up), readiness::hang_up);
#endif
    EXPECT_EQ(state_of<TypeParam>(here, readiness::urgent), readiness::none);
    there.close();
    EXPECT_TRUE(has(state_of<TypeParam>(here, readiness::none), readiness::hang_up));

    both_ends first = make_pipe();
    first.write.close();
    EXPECT_TRUE(has(state_of<TypeParam>(first.read, readiness::readable), readiness::hang_up));
    both_ends second = make_pipe();
    second.read.close();
    EXPECT_TRUE(has(state_of<TypeParam>(second.write, readiness::none), readiness::error));
}

TYPED_TEST(EveryPoller, KnowsConnectionsAndUrgentData) {
    connection made;
    EXPECT_EQ(state_of<TypeParam>(made.listening, readiness::readable), readiness::readable);
    EXPECT_EQ(state_of<TypeParam>(made.client, readiness::writable), readiness::writable);
    made.accept_it();
    EXPECT_EQ(state_of<TypeParam>(made.listening, readiness::readable), readiness::none);
    ASSERT_EQ(send(made.client, "!", 1, MSG_OOB), 1);
    poll_entry one{made.server, readiness::urgent};
    EXPECT_EQ(poll_one<TypeParam>(one, deadline::never()).ready, 1u);
    EXPECT_EQ(one.found, readiness::urgent);
}

#if defined(__linux__)
TYPED_TEST(EveryPoller, WaitsForEveryKindThatLinuxHas) {
    const owned event(eventfd(0, 0));
    EXPECT_EQ(state_of<TypeParam>(event, readiness::readable | readiness::writable), readiness::writable);
    ASSERT_EQ(eventfd_write(event, 1), 0);
    EXPECT_EQ(state_of<TypeParam>(event, readiness::readable), readiness::readable);

    const owned timer(timerfd_create(CLOCK_MONOTONIC, 0));
    itimerspec soon{};
    soon.it_value.tv_nsec = 1'000'000;
    ASSERT_EQ(timerfd_settime(timer, 0, &soon, nullptr), 0);
    poll_entry one{timer, readiness::readable};
    EXPECT_EQ(poll_one<TypeParam>(one, deadline::never()).ready, 1u);

    const both_ends pipe = make_pipe();
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        _exit(read(pipe.read, &byte, 1) == 1 ? 0 : 1);
    }
    const owned process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
    if (process >= 0) {
        EXPECT_EQ(state_of<TypeParam>(process, readiness::readable), readiness::none);
        pipe.put();
        one = {process, readiness::readable};
        EXPECT_EQ(poll_one<TypeParam>(one, deadline::never()).ready, 1u);
    } else {
        pipe.put();
    }
    EXPECT_EQ(support::ending_of(child), "");
}
#endif

TYPED_TEST(EveryPoller, ABadDescriptorIsFoundAtOnce) {
    const both_ends idle = make_pipe();
    both_ends closed = make_pipe();
    const int number = closed.read;
    closed.read.close();
    for (const int bad : {number, -1, -7, 1 << 30}) {
        std::array<poll_entry, 2> all{{{idle.read, readiness::readable}, {bad, readiness::readable}}};
        const auto result = TypeParam::poll(all, no_doorbell, deadline::never());
        EXPECT_EQ(result.ready, 1u);
        EXPECT_EQ(result.error, 0);
        EXPECT_EQ(all[0].found, readiness::none);
        EXPECT_EQ(all[1].found, readiness::invalid) << bad;
    }
}

TYPED_TEST(EveryPoller, TakesAnyNumberOfDescriptors) {
    const both_ends idle = make_pipe();
    const both_ends full = make_pipe();
    full.put();
    const std::size_t most = std::min<std::size_t>(raise_descriptor_limit(), 10'000) - 2;
    for (const std::size_t count :
         {platform::polled_without_allocation, platform::polled_without_allocation + 1,
          std::min<std::size_t>(2'000, most), most}) {
        std::vector<poll_entry> all(count, poll_entry{idle.read, readiness::readable});
        EXPECT_TRUE(TypeParam::poll(all, no_doorbell, 0s).timed_out);
        all.back().descriptor = full.read;
        const held_bell<TypeParam> bell;
        TypeParam::ring(bell);
        const auto result = TypeParam::poll(all, bell, system_clock::now() + 1h);
        EXPECT_EQ(result.error, 0);
        EXPECT_EQ(result.ready, 1u);
        EXPECT_TRUE(result.rung);
        EXPECT_EQ(all.front().found, readiness::none);
        EXPECT_EQ(all.back().found, readiness::readable);
    }
}

TYPED_TEST(EveryPoller, APollOfFewAllocatesNothing) {
    const both_ends idle = make_pipe();
    std::vector<poll_entry> few(platform::polled_without_allocation,
                                poll_entry{idle.read, readiness::readable});
    const held_bell<TypeParam> bell;
    const long before = support::allocations();
    (void)TypeParam::poll(few, bell, 1ms);
    (void)TypeParam::poll(few, bell, system_clock::now() + 1ms);
    EXPECT_EQ(support::allocations(), before);
}

// ---- doorbells ----------------------------------------------------------------------------------

TYPED_TEST(EveryPoller, ARingBeforeThePollIsNotLostAndEndsOnePoll) {
    const held_bell<TypeParam> bell;
    (void)is_rung<TypeParam>(bell, 0s);  // by whoever had it before
    for (int turn = 0; turn < 5; ++turn) {
        EXPECT_FALSE(is_rung<TypeParam>(bell, 0s));
        for (int i = 0; i <= turn; ++i) TypeParam::ring(bell);
        EXPECT_TRUE(is_rung<TypeParam>(bell, deadline::never()));
    }
    EXPECT_FALSE(is_rung<TypeParam>(bell, 1ms));
}

TYPED_TEST(EveryPoller, ARingEndsTheSleep) {
    std::atomic<doorbell_id> id{no_doorbell};
    std::atomic<int> wanted{0};
    thread_group threads;
    threads.start("sleeper", [&] {
        const held_bell<TypeParam> bell;
        id.store(bell);
        for (int i = 1; i <= 4; ++i) {
            while (wanted.load() < i) (void)is_rung<TypeParam>(bell, deadline::never());
        }
    });
    for (int i = 1; i <= 4; ++i) {
        until_sound_asleep(threads.id(0));
        wanted.store(i);
        TypeParam::ring(id.load());
    }
    threads.join();
}

TYPED_TEST(EveryPoller, ARingAndADescriptorAreBothSaid) {
    const both_ends pipe = make_pipe();
    pipe.put();
    const held_bell<TypeParam> bell;
    TypeParam::ring(bell);
    poll_entry one{pipe.read, readiness::readable};
    const auto result = poll_one<TypeParam>(one, deadline::never(), bell);
    EXPECT_EQ(result.ready, 1u);
    EXPECT_TRUE(result.rung);
}

std::atomic<doorbell_id> rung_in_handler{no_doorbell};

TYPED_TEST(EveryPoller, MayBeRungInASignalHandler) {
    const held_bell<TypeParam> bell;
    (void)is_rung<TypeParam>(bell, 0s);
    rung_in_handler.store(bell);
    const support::handled_signal handled(SIGUSR1, [](int) { TypeParam::ring(rung_in_handler.load()); });
    raise(SIGUSR1);
    EXPECT_TRUE(is_rung<TypeParam>(bell, deadline::never()));
}

TYPED_TEST(EveryPoller, AThreadKeepsItsDoorbellAndNestedOnesDiffer) {
    doorbell_id first{};
    {
        const held_bell<TypeParam> outer;
        const held_bell<TypeParam> inner;
        EXPECT_NE(doorbell_id{outer}, doorbell_id{inner});
    }
    {
        const held_bell<TypeParam> one;
        first = one;
    }
    const std::size_t before = open_descriptors();
    const held_bell<TypeParam> again;
    EXPECT_EQ(doorbell_id{again}, first);
    EXPECT_EQ(open_descriptors(), before);
}

TYPED_TEST(EveryPoller, DoorbellsOfEndedThreadsAreUsedAgain) {
    const auto use_one = [] {
        doorbell_id id{};
        std::thread([&] {
            const held_bell<TypeParam> bell;
            id = bell;
        }).join();
        return id;
    };
    const doorbell_id first = use_one();
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(use_one(), first);
    EXPECT_EQ(open_descriptors(), before);
}

template <class Backend>
struct late_user {
    ~late_user() {
        const held_bell<Backend> bell;
        Backend::ring(bell);
        EXPECT_TRUE(is_rung<Backend>(bell, deadline::never()));
    }
};

TYPED_TEST(EveryPoller, LaterDestructorsOfAThreadStillWait) {
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 10; ++i) {
        std::thread([] {
            thread_local late_user<TypeParam> late;  // made first, so destroyed last
            (void)&late;
            const held_bell<TypeParam> bell;
        }).join();
    }
    EXPECT_LE(open_descriptors(), before + 2);  // one doorbell, for all of them
}

TYPED_TEST(EveryPoller, ALateRingReachesAtMostTheNextOwner) {
    doorbell_id gone{};
    std::thread([&] {
        const held_bell<TypeParam> bell;
        gone = bell;
    }).join();
    TypeParam::ring(gone);
    const both_ends stranger = make_pipe();
    TypeParam::ring(gone);
    EXPECT_EQ(state_of<TypeParam>(stranger.read, readiness::readable), readiness::none);
    std::thread([&] {
        const held_bell<TypeParam> next;
        (void)is_rung<TypeParam>(next, 0s);  // perhaps, for no reason
        EXPECT_FALSE(is_rung<TypeParam>(next, 0s));
        TypeParam::ring(next);
        EXPECT_TRUE(is_rung<TypeParam>(next, deadline::never()));
    }).join();
    TypeParam::ring(no_doorbell);
    TypeParam::ring(no_doorbell - 1);
}

// A process may be the last of many that forked one another. Doorbells must be found as before, and none may have
// the number that says there is none.
TEST(DoorbellPool, NumbersDoorbellsHoweverManyForksCameBefore) {
    static platform::doorbell_pool pool;
    const auto make = [](int (&ends)[2]) { return pipe(ends) == 0 ? 0 : errno; };
    doorbell_id before = no_doorbell;
    for (doorbell_id forks = 0; forks != platform::doorbell_pool::most_forks + 3; ++forks) {
        if (forks % 10'000 == 0 || forks + 3 >= platform::doorbell_pool::most_forks) {
            const auto made = pool.acquire(make);
            ASSERT_EQ(made.error, 0);
            EXPECT_NE(made.id, no_doorbell);
            EXPECT_EQ(pool.find(made.id), &pool[made.id]) << forks;
            EXPECT_EQ(pool.find(no_doorbell), nullptr) << forks;
            EXPECT_EQ(pool.find(before), nullptr) << forks;  // at first no_doorbell
            before = made.id;
        }
        pool.forget();
    }
}

TYPED_TEST(EveryPoller, NoDescriptorLeftIsAnErrorThatLosesNothing) {
    EXPECT_EQ(support::ending_of_child([] {
                  TypeParam::after_fork();
                  {
                      const held_bell<TypeParam> kept;
                      // Its bell goes into the pool. (And UndefinedBehaviorSanitizer, which opens a pipe to
                      // look at an object of a type it has not seen, has seen this one.)
                      (void)open_set<TypeParam>();
                  }
                  exhaust_descriptors();
                  errno = 55;
                  const auto kept = TypeParam::take();
                  if (kept.error != 0 || TypeParam::take().error != 0) return 1;
                  const auto more = TypeParam::take();
                  if (more.error != EMFILE || more.id != no_doorbell) return 2;
                  int error = 0;
                  if (TypeParam::open(error) != nullptr || error != EMFILE) return 3;
                  if (errno != 55) return 4;
                  TypeParam::ring(kept.id);
                  if (!TypeParam::poll({}, kept.id, deadline::never()).rung) return 5;
                  TypeParam::ring(kept.id);
                  // A system clock's deadline needs a descriptor more; what is there already is found without
                  // it.
                  if (!TypeParam::poll({}, kept.id, system_clock::now() + 1h).rung) return 6;
                  const auto failed = TypeParam::poll({}, kept.id, system_clock::now() + 1h);
                  return failed.error == EMFILE && !failed.timed_out ? 0 : 7;
              }),
              "");
}

TYPED_TEST(EveryPoller, AChildHasDoorbellsOfItsOwn) {
    const held_bell<TypeParam> bell;
    (void)is_rung<TypeParam>(bell, 0s);
    const doorbell_id parents = bell;
    auto set = open_set<TypeParam>();
    const std::size_t before = open_descriptors();
    EXPECT_EQ(support::ending_of_child([&] {
                  TypeParam::after_fork();
                  if (open_descriptors() >= before) return 1;
                  TypeParam::ring(parents);  // nobody's: nothing
                  set = nullptr;
                  const auto own = TypeParam::take();
                  if (own.error != 0) return 2;
                  if (!TypeParam::poll({}, own.id, 0s).timed_out) return 3;
                  TypeParam::ring(own.id);
                  if (!TypeParam::poll({}, own.id, deadline::never()).rung) return 4;
                  TypeParam::give_back(own.id);
                  TypeParam::after_fork();  // by another copy of the library: once more is harmless
                  const auto again = TypeParam::take();
                  TypeParam::ring(again.id);
                  return TypeParam::poll({}, again.id, deadline::never()).rung ? 0 : 5;
              }),
              "");
    EXPECT_FALSE(is_rung<TypeParam>(bell, 0s));
    TypeParam::ring(bell);
    EXPECT_TRUE(is_rung<TypeParam>(bell, deadline::never()));
}

// ---- time, signals, cost ------------------------------------------------------------------------

// The same for both ways of waiting: `wait(until)` for nothing, which times out.
template <class Wait>
void times_out_on_every_clock(Wait wait) {
    support::random_source random(1);
    for (int i = 0; i < 12; ++i) {
        const auto after = std::chrono::nanoseconds(1 + random.below(1'500'000));
        const auto steady = steady_clock::now() + after;
        EXPECT_TRUE(wait(steady).timed_out);
        EXPECT_GE(steady_clock::now(), steady);
        const auto system = system_clock::now() + std::chrono::ceil<system_clock::duration>(after);
        EXPECT_TRUE(wait(system).timed_out);
        EXPECT_GE(system_clock::now(), system);
        const auto slow = support::slow_clock::now() + after / 3.0;
        EXPECT_TRUE(wait(slow).timed_out);
        EXPECT_GE(support::slow_clock::now(), slow);
    }
    EXPECT_TRUE(wait(0s).timed_out);
    EXPECT_TRUE(wait(-1h).timed_out);
    EXPECT_TRUE(wait(steady_clock::time_point::min()).timed_out);
    EXPECT_TRUE(wait(system_clock::time_point::min()).timed_out);
    EXPECT_TRUE(wait(system_clock::time_point{}).timed_out);
    EXPECT_TRUE(wait(support::slow_clock::now() - 1s).timed_out);
}

TYPED_TEST(EveryPoller, ATimeoutIsNeverEarlyOnItsOwnClock) {
    const both_ends idle = make_pipe();
    const held_bell<TypeParam> bell;
    (void)is_rung<TypeParam>(bell, 0s);
    times_out_on_every_clock([&](const deadline& until) {
        poll_entry one{idle.read, readiness::readable};
        return poll_one<TypeParam>(one, until, bell);
    });
    const auto set = open_set<TypeParam>();
    ASSERT_EQ(set->add(idle.read, readiness::readable, 1), 0);
    times_out_on_every_clock([&](const deadline& until) {
        std::array<poll_set::item, 4> items;
        return set->wait(items, until);
    });
}

TYPED_TEST(EveryPoller, ADeadlineThatHasPassedStillGetsItsLook) {
    const both_ends full = make_pipe();
    full.put();
    const auto set = open_set<TypeParam>();
    ASSERT_EQ(set->add(full.read, readiness::readable, 1), 0);
    for (const auto& until : {deadline(0s), deadline(steady_clock::time_point::min()),
                              deadline(system_clock::time_point::min())}) {
        poll_entry one{full.read, readiness::readable};
        EXPECT_EQ(poll_one<TypeParam>(one, until).ready, 1u);
        EXPECT_EQ(tags_in(*set, until), tags{1});
    }
}

TYPED_TEST(EveryPoller, AFarDeadlineIsSleptFor) {
    for (const auto& until :
         {deadline(steady_clock::now() + 24h * 365 * 200), deadline(system_clock::now() + 1h),
          deadline(system_clock::time_point::max() - 1s), deadline(std::chrono::nanoseconds::max() / 2)}) {
        const auto set = open_set<TypeParam>();
        std::atomic<doorbell_id> id{no_doorbell};
        thread_group threads;
        threads.start("polls", [&] {
            const held_bell<TypeParam> bell;
            (void)is_rung<TypeParam>(bell, 0s);
            id.store(bell);
            EXPECT_TRUE(is_rung<TypeParam>(bell, until));
        });
        threads.start("waits", [&] {
            std::array<poll_set::item, 4> items;
            EXPECT_TRUE(set->wait(items, until).rung);
        });
        for (std::size_t i = 0; i < 2; ++i) until_sound_asleep(threads.id(i));
        TypeParam::ring(id.load());
        TypeParam::ring(set->bell());
        threads.join();
    }
}

TYPED_TEST(EveryPoller, SignalsNeitherEndNorProlongAWait) {
    const support::signal_counter signals(SIGUSR1);
    const auto set = open_set<TypeParam>();
    const auto begin = steady_clock::now();
    thread_group threads;
    threads.start("polls", [&] {
        const held_bell<TypeParam> bell;
        (void)is_rung<TypeParam>(bell, 0s);
        errno = 77;
        EXPECT_FALSE(is_rung<TypeParam>(bell, 60ms));
        EXPECT_FALSE(is_rung<TypeParam>(bell, system_clock::now() + 20ms));
        EXPECT_EQ(errno, 77);
    });
    threads.start("waits", [&] {
        std::array<poll_set::item, 4> items;
        errno = 78;
        EXPECT_TRUE(set->wait(items, 60ms).timed_out);
        EXPECT_TRUE(set->wait(items, system_clock::now() + 20ms).timed_out);
        EXPECT_EQ(errno, 78);
    });
    for (std::size_t i = 0; i < 2; ++i) (void)threads.id(i);
    while (threads.finished() < 2) {
        for (std::size_t i = 0; i < 2; ++i) {
            if (!threads.finished(i)) pthread_kill(threads.handle(i), SIGUSR1);
        }
        std::this_thread::sleep_for(500us);  // no fact to wait for: signals at intervals
        if (steady_clock::now() - begin > support::patience()) support::give_up("prolonged by signals");
    }
    threads.join();
    EXPECT_GT(signals.count(), 0);
}

TYPED_TEST(EveryPoller, ErrnoIsPreserved) {
    const both_ends pipe = make_pipe();
    errno = 4242;
    {
        const held_bell<TypeParam> first;
        const held_bell<TypeParam> second;
        TypeParam::ring(first);
        EXPECT_TRUE(is_rung<TypeParam>(first, 100us));
        (void)is_rung<TypeParam>(first, 100us);
        poll_entry bad{-1};
        (void)poll_one<TypeParam>(bad, 1s);
    }
    {
        const auto set = open_set<TypeParam>();
        EXPECT_EQ(set->add(-1, readiness::readable, 1), EBADF);
        EXPECT_EQ(set->add(pipe.read, readiness::readable, 1), 0);
        EXPECT_EQ(set->add(pipe.read, readiness::readable, 1), EEXIST);
        EXPECT_EQ(set->change(pipe.write, readiness::readable, 1), ENOENT);
        EXPECT_EQ(set->remove(pipe.write), ENOENT);
        (void)tags_in(*set, 100us);
    }
    EXPECT_EQ(errno, 4242);
}

TYPED_TEST(EveryPoller, ASleeperBurnsNoTime) {
    const auto set = open_set<TypeParam>();
    const both_ends idle = make_pipe();
    ASSERT_EQ(set->add(idle.read, readiness::readable, 1), 0);
    std::atomic<doorbell_id> id{no_doorbell};
    thread_group threads;
    threads.start("polls", [&] {
        const held_bell<TypeParam> bell;
        (void)is_rung<TypeParam>(bell, 0s);
        id.store(bell);
        (void)is_rung<TypeParam>(bell, system_clock::now() + 1h);
    });
    threads.start("waits", [&] { (void)tags_in(*set, deadline::never()); });
    std::array<long, 2> switched{};
    for (std::size_t i = 0; i < 2; ++i) {
        until_sound_asleep(threads.id(i));
        switched[i] = support::switches_of(threads.id(i)).voluntary;
    }
    std::this_thread::sleep_for(200ms);  // no fact to wait for: nothing must happen
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(support::switches_of(threads.id(i)).voluntary, switched[i]);
    }
    TypeParam::ring(id.load());
    TypeParam::ring(set->bell());
}

// Each wait ends by one ring; a ring that came to nothing would hang it.
TYPED_TEST(EveryPoller, NoRingIsLostInAPingPong) {
    const int count = rounds(20'000, 4'000);
    const auto set = open_set<TypeParam>();
    std::atomic<int> there{0};
    std::atomic<int> back{0};
    const held_bell<TypeParam> own;
    thread_group threads;
    threads.start("answers", [&] {
        std::array<poll_set::item, 4> items;
        for (int i = 1; i <= count; ++i) {
            while (there.load(std::memory_order_relaxed) < i) (void)set->wait(items, deadline::never());
            back.store(i, std::memory_order_relaxed);
            TypeParam::ring(own);
        }
    });
    for (int i = 1; i <= count; ++i) {
        there.store(i, std::memory_order_relaxed);
        TypeParam::ring(set->bell());
        while (back.load(std::memory_order_relaxed) < i) (void)is_rung<TypeParam>(own, deadline::never());
    }
}

// Many ring one bell for their own reasons, which they give with relaxed stores; the sleeper's timeouts and a
// descriptor race with them.
TYPED_TEST(EveryPoller, NoRingIsLostAmongManyRingers) {
    constexpr int ringers = 3;
    const int count = rounds(8'000, 1'500);
    std::array<std::atomic<int>, ringers> given{};
    std::array<std::atomic<int>, ringers> taken{};
    const both_ends pipe = make_pipe();
    const held_bell<TypeParam> bell;
    thread_group threads;
    threads.start_many(ringers, "ringer", [&](int number) {
        const auto self = static_cast<std::size_t>(number);
        for (int i = 1; i <= count; ++i) {
            given[self].store(i, std::memory_order_relaxed);
            TypeParam::ring(bell);
            if (number == 0 && i % 64 == 0) pipe.put();
            if (i % 8 != 0) continue;
            support::until("the ring is heard", [&] { return taken[self].load() == i; });
        }
    });
    support::random_source random(2);
    for (bool all = false; !all;) {
        poll_entry one{pipe.read, readiness::readable};
        // Mostly without a deadline: only a ring ends such a sleep.
        const auto until = random.below(4) == 0 ? deadline(std::chrono::nanoseconds(random.below(50'000)))
                                                : deadline::never();
        const auto result = poll_one<TypeParam>(one, until, bell);
        EXPECT_EQ(result.error, 0);
        if (result.ready != 0) pipe.get();
        all = true;
        for (std::size_t i = 0; i < ringers; ++i) {
            const int seen = given[i].load(std::memory_order_relaxed);
            taken[i].store(seen);
            all = all && seen == count;
        }
    }
    threads.join();
}

#if defined(__linux__)
TEST(LinuxPoller, ASleepIsOneSystemCallAndSoIsARing) {
    const auto calls = support::system_calls_of(linux_kernel::after_fork, [] {
        const auto bell = linux_kernel::take().id;
        for (int i = 0; i < 3; ++i) {
            linux_kernel::ring(bell);
            linux_kernel::ring(bell);
            (void)linux_kernel::poll({}, bell, deadline::never());
        }
        (void)linux_kernel::poll({}, bell, 1ms);
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
#if defined(SYS_mmap2)  // on 32-bit systems
    constexpr long map = SYS_mmap2;
#else
    constexpr long map = SYS_mmap;
#endif
    const std::size_t made =
        calls.numbers.size() - calls.count(map);  // ThreadSanitizer's, for a new descriptor
    EXPECT_LE(made, 1u + 3 * 2 + 1) << testing::PrintToString(calls);
}

TEST(LinuxPoller, AStandingWaitIsOneSystemCall) {
    std::unique_ptr<poll_set> set;
    const auto open = [&] {
        linux_kernel::after_fork();
        set = open_set<linux_kernel>();
    };
    const auto calls = support::system_calls_of(open, [&] {
        std::array<poll_set::item, 4> items;
        for (int i = 0; i < 3; ++i) {
            linux_kernel::ring(set->bell());
            (void)set->wait(items, deadline::never());
        }
        (void)set->wait(items, 1ms);
    });
    REQUIRE_KNOWN_CALLS(calls);
    EXPECT_EQ(calls.exit_code, 0);
    EXPECT_EQ(calls.numbers.size(), 3u * 2 + 1) << testing::PrintToString(calls);
}

#if defined(SYS_ppoll_time64)
// As for the futex: kernels before 5.1, and older filters.
TEST(LinuxPoller, PollsWhereTheCallWith64BitTimeIsRefused) {
    constexpr int no_filter = 77;
    for (const int error : {ENOSYS, EPERM}) {
        const auto ending = support::ending_of_child([error] {
            linux_kernel::after_fork();
            if (!support::refuse_call(SYS_ppoll_time64, error)) return no_filter;
            const auto bell = linux_kernel::take().id;
            const auto end = steady_clock::now() + 20ms;
            if (!linux_kernel::poll({}, bell, end).timed_out) return 1;
            if (steady_clock::now() < end) return 2;
            linux_kernel::ring(bell);
            return linux_kernel::poll({}, bell, steady_clock::time_point::max() - 1s).rung ? 0 : 3;
        });
        if (ending == "exit code 77") GTEST_SKIP() << "this system permits no filters of system calls";
        EXPECT_EQ(ending, "") << error;
    }
}
#endif
#endif

// ---- a standing poll ----------------------------------------------------------------------------

TYPED_TEST(EveryPoller, ASetReportsWhatIsReadyAsLongAsItIs) {
    const auto set = open_set<TypeParam>();
    const both_ends first = make_pipe();
    const both_ends second = make_pipe();
    EXPECT_EQ(tags_in(*set), tags{});
    ASSERT_EQ(set->add(first.read, readiness::readable, 10), 0);
    ASSERT_EQ(set->add(second.read, readiness::readable, 20), 0);
    ASSERT_EQ(set->add(second.write, readiness::urgent, 30), 0);
    EXPECT_EQ(tags_in(*set), tags{});
    first.put();
    EXPECT_EQ(tags_in(*set, deadline::never()), tags{10});
    second.put();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(tags_in(*set, deadline::never()), (tags{10, 20}));
    first.get();
    EXPECT_EQ(tags_in(*set), tags{20});
    ASSERT_EQ(set->change(second.write, readiness::writable, 31), 0);
    ASSERT_EQ(set->change(second.read, readiness::none, 20), 0);
    EXPECT_EQ(tags_in(*set), tags{31});
    ASSERT_EQ(set->remove(second.write), 0);
    EXPECT_EQ(tags_in(*set), tags{});
    ASSERT_EQ(set->add(second.write, readiness::writable, 32), 0);
    EXPECT_EQ(tags_in(*set), tags{32});
}

TYPED_TEST(EveryPoller, ASetSaysWhatWasFound) {
    const auto set = open_set<TypeParam>();
    auto [here, there] = make_sockets();
    ASSERT_EQ(set->add(here, readiness::readable | readiness::writable | readiness::hang_up, 1), 0);
    poll_set::item found{};
    EXPECT_EQ(set->wait({&found, 1}, deadline::never()).ready, 1u);
    EXPECT_EQ(found.found, readiness::writable);
    there.close();
    EXPECT_EQ(set->wait({&found, 1}, deadline::never()).ready, 1u);
    EXPECT_TRUE(has(found.found, readiness::hang_up));
    EXPECT_TRUE(has(found.found, readiness::readable));
}

TYPED_TEST(EveryPoller, ASetSaysWhatItCannotTake) {
    const auto set = open_set<TypeParam>();
    const both_ends pipe = make_pipe();
    both_ends closed = make_pipe();
    const int number = closed.read;
    closed.read.close();
    EXPECT_EQ(set->add(-1, readiness::readable, 1), EBADF);
    EXPECT_EQ(set->add(number, readiness::readable, 1), EBADF);
    EXPECT_EQ(set->change(number, readiness::readable, 1), EBADF);
    EXPECT_EQ(set->remove(number), EBADF);
    EXPECT_EQ(set->change(pipe.read, readiness::readable, 1), ENOENT);
    EXPECT_EQ(set->remove(pipe.read), ENOENT);
    EXPECT_EQ(set->add(pipe.read, readiness::readable, 1), 0);
    EXPECT_EQ(set->add(pipe.read, readiness::readable, 2), EEXIST);
    const owned file(open("/proc/self/exe", O_RDONLY));
    const owned folder(open("/", O_RDONLY));
    EXPECT_EQ(set->add(file, readiness::readable, 3), EPERM);
    EXPECT_EQ(set->add(folder, readiness::readable, 3), EPERM);
    pipe.put();
    EXPECT_EQ(tags_in(*set), tags{1});
}

TYPED_TEST(EveryPoller, AllInASetGetTheirTurn) {
    const auto set = open_set<TypeParam>();
    std::vector<both_ends> pipes;
    for (std::uint64_t i = 0; i < 10; ++i) {
        pipes.push_back(make_pipe());
        pipes.back().put();
        ASSERT_EQ(set->add(pipes.back().read, readiness::readable, i), 0);
    }
    for (const std::size_t room : {std::size_t{1}, std::size_t{3}}) {
        tags seen;
        for (int waits = 0; waits < 20; ++waits) {
            std::array<poll_set::item, 3> items;
            const auto result = set->wait(std::span(items).first(room), deadline::never());
            ASSERT_EQ(result.ready, room);
            for (std::size_t i = 0; i < room; ++i) seen.insert(items[i].tag);
        }
        EXPECT_EQ(seen.size(), pipes.size());
    }
}

TYPED_TEST(EveryPoller, ARingEndsOneWaitInASet) {
    const auto set = open_set<TypeParam>();
    std::array<poll_set::item, 4> items;
    for (int turn = 0; turn < 5; ++turn) {
        EXPECT_TRUE(set->wait(items, 0s).timed_out);
        TypeParam::ring(set->bell());
        TypeParam::ring(set->bell());
        const auto result = set->wait(items, deadline::never());
        EXPECT_TRUE(result.rung);
        EXPECT_EQ(result.ready, 0u);
    }
    const both_ends full = make_pipe();
    full.put();
    ASSERT_EQ(set->add(full.read, readiness::readable, 1), 0);
    TypeParam::ring(set->bell());
    bool rung = false;
    for (int waits = 0; waits < 2; ++waits) {
        const auto result = set->wait(std::span(items).first(1), deadline::never());
        rung = rung || result.rung;
    }
    EXPECT_TRUE(rung) << "hidden behind what is always ready";
}

TYPED_TEST(EveryPoller, WhatIsAddedDuringAWaitEndsIt) {
    const auto set = open_set<TypeParam>();
    const both_ends idle = make_pipe();
    const both_ends full = make_pipe();
    full.put();
    ASSERT_EQ(set->add(idle.read, readiness::readable, 1), 0);
    ASSERT_EQ(set->add(idle.write, readiness::urgent, 2), 0);
    const auto waits_for = [&](std::uint64_t tag) {
        return [&set, tag] {
            for (tags found; !found.contains(tag);) found = tags_in(*set, deadline::never());
        };
    };
    thread_group threads;
    threads.start("waits for what is added", waits_for(3));
    until_sound_asleep(threads.id(0));
    ASSERT_EQ(set->add(full.read, readiness::readable, 3), 0);
    threads.until_finished(1);
    ASSERT_EQ(set->remove(full.read), 0);
    threads.start("waits for what is changed", waits_for(2));
    until_sound_asleep(threads.id(1));
    ASSERT_EQ(set->change(idle.write, readiness::writable, 2), 0);
}

TYPED_TEST(EveryPoller, WhatIsRemovedDuringAWaitDoesNotEndIt) {
    const auto set = open_set<TypeParam>();
    const both_ends pipe = make_pipe();
    ASSERT_EQ(set->add(pipe.read, readiness::readable, 1), 0);
    std::atomic<bool> go_on{true};
    thread_group threads;
    threads.start("waits", [&] {
        while (go_on.load()) EXPECT_EQ(tags_in(*set, deadline::never()), tags{});
    });
    until_sound_asleep(threads.id(0));
    ASSERT_EQ(set->remove(pipe.read), 0);
    pipe.put();
    until_sound_asleep(threads.id(0));
    go_on.store(false);
    TypeParam::ring(set->bell());
}

// One thread puts descriptors in and out while another waits: what was out when a wait began is not reported.
TYPED_TEST(EveryPoller, NoWaitReportsWhatWasOutWhenItBegan) {
    constexpr std::size_t members = 8;
    const auto set = open_set<TypeParam>();
    const both_ends full = make_pipe();
    full.put();
    std::array<owned, members> all;
    for (auto& each : all) each = owned(dup(full.read));
    // The latest tag of each member that is out; tags only grow.
    std::array<std::atomic<std::uint64_t>, members> out{};
    std::atomic<bool> done{false};
    thread_group threads;
    threads.start("changes", [&] {
        support::random_source random(3);
        std::uint64_t tag = 1;
        for (int i = 0; i < rounds(1'500, 800); ++i) {
            const std::size_t which = random.below(members);
            const std::uint64_t own = tag++ * members + which;
            ASSERT_EQ(set->add(all[which], readiness::readable, own), 0);
            if (i % 3 == 0) std::this_thread::yield();
            ASSERT_EQ(set->remove(all[which]), 0);
            out[which].store(own);
        }
        done.store(true);
        TypeParam::ring(set->bell());
    });
    while (!done.load()) {
        std::array<std::uint64_t, members> out_before;
        for (std::size_t i = 0; i < members; ++i) out_before[i] = out[i].load();
        for (const std::uint64_t tag : tags_in(*set, deadline::never())) {
            ASSERT_GT(tag, out_before[tag % members]);
        }
    }
}

TYPED_TEST(EveryPoller, ASetHoldsThousands) {
    const std::size_t count = std::min<std::size_t>(raise_descriptor_limit() - 100, 10'000);
    const auto set = open_set<TypeParam>();
    const both_ends idle = make_pipe();
    const both_ends full = make_pipe();
    full.put();
    std::vector<owned> members;
    for (std::size_t i = 0; i < count; ++i) {
        members.emplace_back(dup(i % 1'000 == 999 ? full.read : idle.read));
        ASSERT_EQ(set->add(members.back(), readiness::readable, i), 0);
    }
    const auto found = tags_in(*set, deadline::never());
    EXPECT_EQ(found.size(), count / 1'000);
    for (const std::uint64_t tag : found) EXPECT_EQ(tag % 1'000, 999u);
    for (const auto& each : members) ASSERT_EQ(set->remove(each), 0);
    EXPECT_EQ(tags_in(*set), tags{});
}

TYPED_TEST(EveryPoller, ASetLeavesNothingBehind) {
    doorbell_id last{};
    {
        const auto set = open_set<TypeParam>();
        last = set->bell();
        TypeParam::ring(last);
    }
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 10; ++i) {
        TypeParam::ring(last);
        const auto set = open_set<TypeParam>();
        EXPECT_EQ(set->bell(), last);
        EXPECT_LE(open_descriptors(), before + 1);
        std::array<poll_set::item, 1> items;
        (void)set->wait(items, 0s);  // perhaps, for no reason
        EXPECT_TRUE(set->wait(items, 0s).timed_out);
        TypeParam::ring(last);
        EXPECT_TRUE(set->wait(items, deadline::never()).rung);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TYPED_TEST(EveryPoller, ASetMayBePolledItselfWhereItHasADescriptor) {
    const auto set = open_set<TypeParam>();
    if (set->descriptor() < 0) GTEST_SKIP() << "this backend has none";
    EXPECT_EQ(state_of<TypeParam>(set->descriptor(), readiness::readable), readiness::none);
    for (int turn = 0; turn < 3; ++turn) {
        TypeParam::ring(set->bell());
        EXPECT_EQ(state_of<TypeParam>(set->descriptor(), readiness::readable), readiness::readable);
        poll_set::item item;
        EXPECT_TRUE(set->wait({&item, 1}, deadline::never()).rung);
        EXPECT_EQ(state_of<TypeParam>(set->descriptor(), readiness::readable), readiness::none);
    }
}

}  // namespace
