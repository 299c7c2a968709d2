// SPDX-License-Identifier: Apache-2.0
// The engine runs one execution at a time. It owns the model threads (fibers), hands every visible operation to the
// memory, and asks the chooser wherever more than one thing may happen.
//
// A thread announces its next operation. Then the chooser picks the thread that makes the next step. That thread
// performs the operation that it has announced, and runs up to its next announcement. Code between two operations is
// atomic.
#pragma once

#include "chooser.hpp"
#include "fiber.hpp"
#include "memory.hpp"
#include "trace.hpp"

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin::model {

using source = std::source_location;

enum class rmw_kind { exchange, add, subtract, bit_or, bit_and, bit_xor };
enum class thread_state { ready, sleeping, joining, expecting, finished };
enum class wake_reason { woken, timed_out, spurious };

struct model_thread {
    fiber stack;
    std::string name;
    std::function<void()> body;
    thread_memory memory;
    int returns_to = -1;   // until its first announcement: the thread that started it
    unsigned relaxed = 0;  // calls of cpu_relax in the current window; see fair()
    unsigned spurious_left = 0;
    unsigned timeouts_left = 0;
    unsigned weak_left = 0;
    // asleep
    const void* sleeps_on = nullptr;
    bool on_several = false;  // words
    bool may_time_out = false;
    wake_reason reason = wake_reason::woken;
    unsigned slept_at = 0;
    word slept_for = 0;
    thread_mask waits_for = 0;                       // while joining
    const std::function<bool()>* expects = nullptr;  // while expecting
    bool came_true = false;                          // whether what it expects is true
    const char* doing = "";
};

// A word on which a thread sleeps, and the value of its lowest four bytes.
struct sleeping_place {
    object at;
    word expected;
};

// What fair() knows of the current window of each thread. These are arrays, because fair() updates all threads at every
// step.
struct windows {
    using masks = std::array<thread_mask, max_threads>;
    masks after{};       // threads that run first, if they can
    masks stepped{};     // threads that made a step since the window began
    masks could_step{};  // threads that could make a step all through the window
    masks stopped{};     // threads that this thread's steps in the window have blocked
};

class engine {
public:
    // The engine whose model thread is running; null outside explorations.
    static inline engine* active = nullptr;

    explicit engine(const options& how);
    ~engine();

    report explore(const std::function<void()>& body, std::unique_ptr<chooser> how);

    // --- operations of the running thread ---
    word load(object o, std::memory_order order, source where);
    void store(object o, word value, std::memory_order order, source where);
    word rmw(object o, rmw_kind kind, word operand, std::memory_order order, source where);
    bool compare_exchange(object o, word& expected, word desired, std::memory_order success,
                          std::memory_order failure, bool weak, source where);
    void fence(std::memory_order order, source where);
    void relax(source where);
    wake_reason futex_wait(object o, word expected, bool may_time_out, bool& slept, source where);
    unsigned futex_wake(const void* address, unsigned count, source where);
    // Wakes one of those who sleep on the word, whichever. All of them see its newest value from then on.
    void futex_wake_any_and_show(object o, source where);
    // On several words: returns when it is woken through one of them.
    wake_reason futex_wait_any(const std::vector<sleeping_place>& places, bool may_time_out, source where);
    // Turns bits of the word on and wakes all who sleep on it, in one step.
    void futex_wake_op(object o, word bits, source where);
    // Ends a thread where it stands. Returns whether it still ran.
    bool end_thread(int thread, source where);
    // The changes that the thread has made to the atomic so far in this run. Not a step.
    std::vector<std::pair<word, word>> changes_by(int thread, const void* address);

    void constructed(object o, word value);
    void destroyed(object o);
    void forgotten(object o);  // destroyed, unchecked
    void cell_constructed(object o);
    void cell_destroyed(object o);
    void cell_read(object o, source where);
    void cell_written(object o, source where);

    int spawn(std::string_view name, std::function<void()> body);
    void spawn_service(std::string_view name, std::function<void()> body);
    void join(thread_mask threads, source where);
    void wait_until(const std::function<bool()>& fact, source where);
    unsigned choose(unsigned count, std::string_view what, source where);
    int running() const noexcept { return running_; }
    void fix_schedule(bool on);
    thread_mask spawned() const noexcept { return (mask_of(thread_count_) - 1) & ~services_; }
    bool others_are_blocked();
    const std::string& thread_name(int t) const { return thread_at(t).name; }

    void name(const void* address, std::string_view text);
    void note(std::string_view text, source where);
    [[noreturn]] void fail(std::string text);
    [[noreturn]] void fail(const void* address, std::string_view what, source where);

    const options& how() const noexcept { return options_; }
    std::string replay_so_far() const { return to_replay(decisions_); }
    void write_table() noexcept { trace_.on = true; }

private:
    struct sleeper {
        const void* address;
        int thread;
    };
    struct queue_name {
        const void* address;
        std::int32_t number;
    };

    // --- one run ---
    void run(const std::function<void()>& body);
    void begin(const std::function<void()>& body);
    void finish();
    [[noreturn]] void leave() noexcept;  // back to the explorer's own stack, for good
    void count_run();
    report again_with_table(const std::function<void()>& body);
    static void thread_main(void* self);
    void thread_body();

    // --- scheduling ---
    bool announce(const footprint& f, const char* doing);
    int next_thread();
    void look();
    thread_mask fair(thread_mask ready);
    void close_window();
    void start_anew(int thread);
    thread_mask joined() const;  // threads whose join() may return
    thread_mask in(thread_state s) const { return in_[static_cast<std::size_t>(s)]; }
    void set_state(int thread, thread_state s);
    bool fact_of(model_thread& t);
    void switch_to(int thread);
    void executed(const footprint& f);
    std::string deadlock();
    void sleep(object o, word expected, bool may_time_out, const footprint& f, source where);
    void leave_sleep(const footprint& f);
    void tell_why_awake(const void* address, source where);
    void fall_asleep(bool may_time_out, word expected, source where);
    unsigned wake_sleepers(const void* address, unsigned count, std::string& names);
    void release(std::size_t sleeper);

    // --- helpers of the operations ---
    int enter(object o, footprint& f, const char* doing, source where);
    unsigned pick(unsigned count, choice what);
    unsigned pick_key(choice what);
    int pick_message(const location& x, const std::vector<int>& among, choice what);
    void full_fence_if(bool wanted) {
        if (wanted) memory_.fence(me().memory, std::memory_order_seq_cst);
    }
    int write(int x, int behind, word value, std::memory_order order, bool rmw);
    const std::vector<int>& positions(int x, std::memory_order order, bool fence);
    const std::vector<int>& readable(int x, std::memory_order order);
    bool follows(bool everything, std::uint32_t behind, const message& m) const;
    std::int32_t queue_of(const void* address);
    std::memory_order strengthened(std::memory_order o, bool reads, bool writes) const noexcept;
    struct outcome {
        int from;
        bool succeeds;
    };
    unsigned pick_outcome(int x);
    void outcomes(int x, word expected, std::memory_order success, std::memory_order failure, bool weak,
                  unsigned size);

    model_thread& me() { return thread_at(running_); }
    model_thread& thread_at(int t) { return *threads_[static_cast<std::size_t>(t)]; }
    const model_thread& thread_at(int t) const { return *threads_[static_cast<std::size_t>(t)]; }
    void end_of_step() { ++me().memory.current.clock[static_cast<std::size_t>(running_)]; }
    bool settled(thread_mask threads) const { return (threads & ~in(thread_state::finished)) == 0; }
    std::string object_name(const void* address) { return trace_.name_of(address); }
    std::string origin(const location& x, int from) const;
    void tell(std::string_view operation, const void* address, std::string value, std::string_view order,
              std::string remark, source where);

    options options_;
    std::unique_ptr<chooser> chooser_;
    memory memory_;
    tracer trace_;
    fiber outside_;
    std::vector<std::unique_ptr<model_thread>> threads_;
    std::array<thread_mask, 5> in_{};  // the threads in each state
    windows windows_;
    int thread_count_ = 0;
    thread_mask services_ = 0;  // need not end before the run does
    int running_ = 0;
    int last_stepped_ = 0;
    situation now_;
    bool fixed_ = false;
    thread_mask could_step_ = 0;
    intentions intentions_;
    std::vector<sleeper> sleepers_;  // in order of arrival
    std::vector<queue_name> queues_;
    std::vector<std::uint32_t> decisions_;
    std::vector<outcome> outcomes_;
    std::vector<unsigned> keys_;
    unsigned steps_ = 0;
    bool failed_ = false;
    std::string failure_;
    report report_;
};

}  // namespace tocsin::model
