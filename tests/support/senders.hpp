// SPDX-License-Identifier: Apache-2.0
// A few of the standard's algorithms on senders, and a stop token, written from its text: as much as the tests of
// tocsin's senders need. They use the words that <tocsin/execution.hpp> has of its own (TOCSIN_EXECUTION_OWN).
// - just, then, continues_on (to a run_loop), sync_wait: [exec.just], [exec.then], [exec.continues.on],
//   [exec.sync.wait].
// - when_any is not in the standard. It completes as the first of its senders does, after it has stopped the others and
//   all of them have completed.
// - with_token gives the receiver's environment a stop token: [exec.write.env].
#pragma once

#include <tocsin/execution.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

namespace senders {

namespace ex = tocsin::execution;

// [stoptoken.inplace], [stopsource.inplace] and [stopcallback.inplace]: no state on the heap; the source outlives all.
class inplace_stop_source;
class inplace_stop_token;

class inplace_stop_callback_base {
protected:
    explicit inplace_stop_callback_base(inplace_stop_source* source) noexcept : source_(source) {}
    virtual ~inplace_stop_callback_base() = default;

    inline void enter() noexcept;
    inline void leave() noexcept;

private:
    friend class inplace_stop_source;
    virtual void call() noexcept = 0;

    inplace_stop_source* source_;
    inplace_stop_callback_base* before_ = nullptr;
    inplace_stop_callback_base* after_ = nullptr;
    bool listed_ = false;
};

template <class Function>
class inplace_stop_callback final : inplace_stop_callback_base {
public:
    template <class Given>
    inline inplace_stop_callback(inplace_stop_token token, Given&& function);
    inplace_stop_callback(const inplace_stop_callback&) = delete;
    ~inplace_stop_callback() override { leave(); }

private:
    void call() noexcept override { std::forward<Function>(function_)(); }
    Function function_;
};

class inplace_stop_token {
public:
    template <class Function>
    using callback_type = inplace_stop_callback<Function>;

    inplace_stop_token() = default;
    inline bool stop_requested() const noexcept;
    bool stop_possible() const noexcept { return source_ != nullptr; }
    bool operator==(const inplace_stop_token&) const = default;

private:
    friend class inplace_stop_source;
    template <class>
    friend class inplace_stop_callback;
    explicit inplace_stop_token(inplace_stop_source* source) noexcept : source_(source) {}
    inplace_stop_source* source_ = nullptr;
};

class inplace_stop_source {
public:
    inplace_stop_source() = default;
    inplace_stop_source(const inplace_stop_source&) = delete;

    inplace_stop_token get_token() noexcept { return inplace_stop_token(this); }
    bool stop_requested() const noexcept { return requested_.load(); }
    bool request_stop() noexcept {
        std::unique_lock lock(mutex_);
        if (requested_.exchange(true)) return false;
        in_ = std::this_thread::get_id();
        while (first_ != nullptr) {
            inplace_stop_callback_base& next = *first_;
            remove(next);
            called_ = &next;
            lock.unlock();
            next.call();
            lock.lock();
            called_ = nullptr;
            returned_.notify_all();
        }
        return true;
    }

private:
    friend class inplace_stop_callback_base;

    void remove(inplace_stop_callback_base& what) noexcept {
        (what.before_ != nullptr ? what.before_->after_ : first_) = what.after_;
        if (what.after_ != nullptr) what.after_->before_ = what.before_;
        what.listed_ = false;
    }

    std::mutex mutex_;
    std::condition_variable returned_;
    std::atomic<bool> requested_{false};
    std::thread::id in_;
    inplace_stop_callback_base* called_ = nullptr;
    inplace_stop_callback_base* first_ = nullptr;
};

inline bool inplace_stop_token::stop_requested() const noexcept {
    return source_ != nullptr && source_->stop_requested();
}
inline void inplace_stop_callback_base::enter() noexcept {
    if (source_ == nullptr) return;
    std::unique_lock lock(source_->mutex_);
    if (source_->requested_.load()) {
        lock.unlock();
        return call();
    }
    after_ = source_->first_;
    if (after_ != nullptr) after_->before_ = this;
    source_->first_ = this;
    listed_ = true;
}
inline void inplace_stop_callback_base::leave() noexcept {
    if (source_ == nullptr) return;
    std::unique_lock lock(source_->mutex_);
    if (listed_) return source_->remove(*this);
    if (source_->called_ != this || source_->in_ == std::this_thread::get_id()) return;
    source_->returned_.wait(lock, [this] { return source_->called_ != this; });
}
template <class Function>
template <class Given>
inplace_stop_callback<Function>::inplace_stop_callback(inplace_stop_token token, Given&& function)
    : inplace_stop_callback_base(token.source_), function_(std::forward<Given>(function)) {
    enter();
}

// An environment with a stop token.
template <class Token>
struct token_env {
    Token token;
    Token query(const ex::get_stop_token_t&) const noexcept { return token; }
};

// Of a sender's signatures: the values' types as a tuple (each sender here has one signature with values), and whether
// it sends errors or may be stopped.
template <class...>
struct joined {
    using values = void;
    static constexpr bool fails = false;
    static constexpr bool stops = false;
};
template <class... Values, class... Others>
struct joined<ex::set_value_t(Values...), Others...> : joined<Others...> {
    using values = std::tuple<Values...>;
};
template <class Error, class... Others>
struct joined<ex::set_error_t(Error), Others...> : joined<Others...> {
    static constexpr bool fails = true;
};
template <class... Others>
struct joined<ex::set_stopped_t(), Others...> : joined<Others...> {
    static constexpr bool stops = true;
};
template <class>
struct sent;
template <class... Signatures>
struct sent<ex::completion_signatures<Signatures...>> : joined<Signatures...> {};
template <class Sender, class Env>
using sent_by = sent<ex::completion_signatures_of_t<Sender, Env>>;

template <class Value, bool Fails, bool Stops>
auto signatures() {
    using error = ex::set_error_t(std::exception_ptr);
    using stopped = ex::set_stopped_t();
    if constexpr (Fails && Stops) {
        return ex::completion_signatures<Value, error, stopped>();
    } else if constexpr (Fails) {
        return ex::completion_signatures<Value, error>();
    } else if constexpr (Stops) {
        return ex::completion_signatures<Value, stopped>();
    } else {
        return ex::completion_signatures<Value>();
    }
}
template <class>
struct value_of;
template <class... Values>
struct value_of<std::tuple<Values...>> {
    using type = ex::set_value_t(Values...);
};

// just
template <class... Values>
struct just_sender {
    using sender_concept = ex::sender_tag;
    using completion_signatures = ex::completion_signatures<ex::set_value_t(Values...)>;

    template <class Receiver>
    struct state {
        using operation_state_concept = ex::operation_state_tag;
        void start() & noexcept {
            std::apply([&](Values&... each) { ex::set_value(std::move(to), std::move(each)...); }, values);
        }
        Receiver to;
        std::tuple<Values...> values;
    };
    template <class Receiver>
    auto connect(Receiver to) const {
        return state<Receiver>{std::move(to), values};
    }
    std::tuple<Values...> values;
};
template <class... Values>
just_sender<Values...> just(Values... values) {
    return {{std::move(values)...}};
}

// then
template <class Sender, class Function>
struct then_sender {
    using sender_concept = ex::sender_tag;

    template <class Values>
    struct applied;
    template <class... Values>
    struct applied<std::tuple<Values...>> {
        using result = std::invoke_result_t<Function, Values...>;
        using type = typename std::conditional_t<std::is_void_v<result>, value_of<std::tuple<>>,
                                                 value_of<std::tuple<result>>>::type;
    };
    template <class Self, class Env>
    static consteval auto get_completion_signatures() {
        using from = sent_by<Sender, Env>;
        return decltype(signatures<typename applied<typename from::values>::type, true, from::stops>())();
    }

    template <class Receiver>
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        decltype(auto) get_env() const noexcept { return ex::get_env(to); }
        template <class... Values>
        void set_value(Values&&... values) && noexcept {
            try {
                if constexpr (std::is_void_v<std::invoke_result_t<Function, Values...>>) {
                    std::invoke(std::move(function), std::forward<Values>(values)...);
                    ex::set_value(std::move(to));
                } else {
                    ex::set_value(std::move(to),
                                  std::invoke(std::move(function), std::forward<Values>(values)...));
                }
            } catch (...) {
                ex::set_error(std::move(to), std::current_exception());
            }
        }
        void set_error(std::exception_ptr why) && noexcept { ex::set_error(std::move(to), std::move(why)); }
        void set_stopped() && noexcept { ex::set_stopped(std::move(to)); }

        Receiver to;
        Function function;
    };
    template <class Receiver>
    auto connect(Receiver to) const {
        return ex::connect(from, receiver<Receiver>{std::move(to), function});
    }

    Sender from;
    Function function;
};
template <class Sender, class Function>
then_sender<Sender, Function> then(Sender from, Function function) {
    return {std::move(from), std::move(function)};
}

// with_token
template <class Sender, class Token>
struct with_token_sender {
    using sender_concept = ex::sender_tag;
    template <class Self, class Env>
    static consteval auto get_completion_signatures() {
        return ex::get_completion_signatures<Sender, token_env<Token>>();
    }

    template <class Receiver>
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        token_env<Token> get_env() const noexcept { return {token}; }
        template <class... Values>
        void set_value(Values&&... values) && noexcept {
            ex::set_value(std::move(to), std::forward<Values>(values)...);
        }
        void set_error(std::exception_ptr why) && noexcept { ex::set_error(std::move(to), std::move(why)); }
        void set_stopped() && noexcept { ex::set_stopped(std::move(to)); }

        Receiver to;
        Token token;
    };
    template <class Receiver>
    auto connect(Receiver to) const {
        return ex::connect(from, receiver<Receiver>{std::move(to), token});
    }

    Sender from;
    Token token;
};
template <class Sender, class Token>
with_token_sender<Sender, Token> with_token(Sender from, Token token) {
    return {std::move(from), token};
}

// How a sender completed. Each operation state that stores this passes it on later.
template <class Values>
struct outcome {
    std::optional<Values> values;
    std::exception_ptr error;  // neither: stopped

    template <class Receiver>
    void pass_to(Receiver& to) noexcept {
        if (values) {
            std::apply([&](auto&... each) { ex::set_value(std::move(to), std::move(each)...); }, *values);
        } else if (error) {
            if constexpr (requires { ex::set_error(std::move(to), error); })
                ex::set_error(std::move(to), error);
        } else {
            if constexpr (requires { ex::set_stopped(std::move(to)); }) ex::set_stopped(std::move(to));
        }
    }
};

// A queue of tasks, and the thread that is in run() as their executor: [exec.run.loop].
class run_loop {
public:
    struct task {
        virtual void run() noexcept = 0;

    protected:
        ~task() = default;
    };

    void push(task& what) {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(&what);
        changed_.notify_one();
    }
    void finish() {
        const std::lock_guard lock(mutex_);
        finished_ = true;
        changed_.notify_one();
    }
    void run() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return finished_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            task* const next = tasks_.front();
            tasks_.pop_front();
            lock.unlock();
            next->run();
            lock.lock();
        }
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<task*> tasks_;
    bool finished_ = false;
};

// continues_on
template <class Sender>
struct continues_on_sender {
    using sender_concept = ex::sender_tag;
    template <class Self, class Env>
    static consteval auto get_completion_signatures() {
        return ex::get_completion_signatures<Sender, Env>();
    }

    template <class Receiver>
    struct state final : run_loop::task {
        using operation_state_concept = ex::operation_state_tag;
        using values = typename sent_by<Sender, ex::env_of_t<Receiver>>::values;
        struct receiver {
            using receiver_concept = ex::receiver_tag;
            decltype(auto) get_env() const noexcept { return ex::get_env(of->to); }
            template <class... Values>
            void set_value(Values&&... each) && noexcept {
                of->how.values.emplace(std::forward<Values>(each)...);
                of->loop->push(*of);
            }
            void set_error(std::exception_ptr why) && noexcept {
                of->how.error = std::move(why);
                of->loop->push(*of);
            }
            void set_stopped() && noexcept { of->loop->push(*of); }
            state* of;
        };

        state(const Sender& from, Receiver&& receiving, run_loop* where)
            : to(std::move(receiving)), loop(where), child(ex::connect(from, receiver{this})) {}
        void start() & noexcept { ex::start(child); }
        void run() noexcept override { how.pass_to(to); }

        Receiver to;
        run_loop* loop;
        outcome<values> how;
        decltype(ex::connect(std::declval<const Sender&>(), std::declval<receiver>())) child;
    };
    template <class Receiver>
    auto connect(Receiver to) const {
        return state<Receiver>(from, std::move(to), loop);
    }

    Sender from;
    run_loop* loop;
};
template <class Sender>
continues_on_sender<Sender> continues_on(Sender from, run_loop& loop) {
    return {std::move(from), &loop};
}

// when_any
template <class... Senders>
struct when_any_sender {
    using sender_concept = ex::sender_tag;
    using child_env = token_env<inplace_stop_token>;
    using values = typename sent_by<std::tuple_element_t<0, std::tuple<Senders...>>, child_env>::values;
    using completion_signatures = decltype(signatures<typename value_of<values>::type, true, true>());

    template <class Receiver>
    struct state {
        using operation_state_concept = ex::operation_state_tag;
        struct receiver {
            using receiver_concept = ex::receiver_tag;
            child_env get_env() const noexcept { return {of->stop.get_token()}; }
            template <class... Values>
            void set_value(Values&&... each) && noexcept {
                of->end([&](auto& how) { how.values.emplace(std::forward<Values>(each)...); });
            }
            void set_error(std::exception_ptr why) && noexcept {
                of->end([&](auto& how) { how.error = std::move(why); });
            }
            void set_stopped() && noexcept {
                of->end([](auto&) {});
            }
            state* of;
        };
        struct stopper {
            void operator()() const noexcept { of->stop.request_stop(); }
            state* of;
        };
        // A child that is constructed where it stays.
        template <std::size_t, class Sender>
        struct child {
            child(const Sender& from, state* of) : it(ex::connect(from, receiver{of})) {}
            decltype(ex::connect(std::declval<const Sender&>(), std::declval<receiver>())) it;
        };
        template <class Index>
        struct children;
        template <std::size_t... I>
        struct children<std::index_sequence<I...>> : child<I, Senders>... {
            children(const std::tuple<Senders...>& from, state* of)
                : child<I, Senders>(std::get<I>(from), of)... {}
            void start() noexcept { (ex::start(static_cast<child<I, Senders>&>(*this).it), ...); }
        };
        using token = ex::stop_token_of_t<ex::env_of_t<Receiver>>;

        state(const std::tuple<Senders...>& from, Receiver&& receiving)
            : to(std::move(receiving)), all(from, this) {}
        void start() & noexcept {
            outer.emplace(ex::get_stop_token(ex::get_env(to)), stopper{this});
            all.start();
            leave();
        }
        template <class Note>
        void end(Note note) noexcept {
            if (!over.exchange(true)) {
                note(how);
                stop.request_stop();
            }
            leave();
        }
        void leave() noexcept {
            if (--left != 0) return;
            outer.reset();
            how.pass_to(to);
        }

        Receiver to;
        inplace_stop_source stop;
        std::optional<typename token::template callback_type<stopper>> outer;
        std::atomic<bool> over{false};
        std::atomic<std::size_t> left{sizeof...(Senders) + 1};
        outcome<values> how;
        children<std::index_sequence_for<Senders...>> all;
    };
    template <class Receiver>
    auto connect(Receiver to) const {
        return state<Receiver>(from, std::move(to));
    }

    std::tuple<Senders...> from;
};
template <class... Senders>
when_any_sender<Senders...> when_any(Senders... from) {
    return {{std::move(from)...}};
}

// sync_wait: the values, or nothing if the sender was stopped. Throws the error.
template <class Values>
struct sync_state {
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        template <class... Each>
        void set_value(Each&&... each) && noexcept {
            to->how.values.emplace(std::forward<Each>(each)...);
            to->loop.finish();
        }
        void set_error(std::exception_ptr why) && noexcept {
            to->how.error = std::move(why);
            to->loop.finish();
        }
        void set_stopped() && noexcept { to->loop.finish(); }
        sync_state* to;
    };
    outcome<Values> how;
    run_loop loop;
};
template <class Sender>
auto sync_wait(const Sender& from) {
    using state = sync_state<typename sent_by<Sender, ex::env<>>::values>;
    state at;
    auto operation = ex::connect(from, typename state::receiver{&at});
    ex::start(operation);
    at.loop.run();
    if (at.how.error) std::rethrow_exception(at.how.error);
    return std::move(at.how.values);
}

}  // namespace senders
