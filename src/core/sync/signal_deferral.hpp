// Makes set() safe in a signal handler. The argument is at the top of the .cpp.
#pragma once

namespace tocsin::core {

#if defined(TOCSIN_MODEL) || defined(_WIN32) || defined(__wasm__)

// Here no signal handler interrupts a thread.
class signal_deferral {
public:
    signal_deferral() noexcept {}
    ~signal_deferral() {}
    static bool defer(void (*)(void*) noexcept, void*) noexcept { return false; }
    static bool is_inside() noexcept { return false; }
};

#else

// While an object of this class exists in a thread, the thread is inside.
class signal_deferral {
public:
    signal_deferral() noexcept { enter(); }
    ~signal_deferral() { leave(); }
    signal_deferral(const signal_deferral&) = delete;
    signal_deferral& operator=(const signal_deferral&) = delete;

    // Called in a handler that has interrupted a thread inside: defers `run(what)` and returns true. Elsewhere returns
    // false.
    static bool defer(void (*run)(void*) noexcept, void* what) noexcept;
    // Whether the calling code is such a handler.
    static bool is_inside() noexcept;

private:
    static void enter() noexcept;
    static void leave() noexcept;
};

#endif

}  // namespace tocsin::core
