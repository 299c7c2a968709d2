// SPDX-License-Identifier: Apache-2.0
// What a wait tries before it sleeps: the policy, without clocks, threads or atomic operations.
//
// A class of addresses (spinner.cpp) has a history. A wait asks it for advice before it looks, and tells it afterwards
// what came of that. There are two things to try, and each has a credit: a *look* (the thread looks again and again)
// and *yields*.
//
// Credit. A success earns a point, a failure costs two. A wait looks for `short_look` if there is credit for looking,
// and yields if there is credit for yielding. If a credit is missing, some waits are *probes*. The distance between two
// probes doubles while they fail.
//
// Why a short look is not enough. Two threads that answer each other have two stable states. If both look before they
// sleep, an answer comes within a microsecond, and looking pays. If both sleep, an answer takes as long as waking the
// other thread, up to 50 us where its core was idle, and a short look never pays. So a thread in the second state has
// to look for longer than a wake-up takes, in two waits in a row: the first look ends when the other thread has woken
// and answered. The answer to that answer comes before the other thread is asleep again. This is an *early release*,
// from which the other thread learns to look, too. The second look then ends within a microsecond, and both threads are
// in the first state.
//
// So a probe for looking begins a *burst* of at most `burst_looks` long looks, in consecutive waits. A long look takes
// at most `wake_multiple` times what waking a thread of the class has taken (`wake`, measured from the release until
// the thread runs), and never more than `max_look`. The burst ends at once if a look fails, or if it takes more than
// half the time of the look before it. It ends well if a look takes no longer than a short look: then there is credit.
// If waking a thread has not been measured yet, probes are short looks.
//
// With each wake-up, the time from the beginning of the sleep until the release is measured, too. If even a long look
// would have been too short for it, signals are *far* apart, and there are no probes for looking until a later
// measurement says otherwise.
//
// What a mistake costs. A burst that finds nothing costs one long look, or two if the answers come by chance, in 32
// waits at first and in 2,048 later. Chance alone does not bring the probes nearer again: that takes `max_credit`. A
// class that has had so much credit is *settled*. If a settled class has lost its credit, a burst begins at once,
// because something has probably disturbed two threads that answer each other (another thread has taken one of their
// cores for a while).
//
// An early release earns the credit for one short look, if there is none. So it costs at most that look.
//
// Checked by: tests/internal/spin_history_test.cpp, with threads and a machine that the test makes up.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tocsin::core {

class spin_history {
public:
    static constexpr std::int64_t short_look = 4'000;  // nanoseconds, as all times here
    static constexpr std::int64_t max_look = 100'000;  // of a long look
    static constexpr std::int64_t wake_multiple = 2;   // as cores and their sleep states differ
    static constexpr unsigned burst_looks = 3;
    static constexpr unsigned max_yields = 8;
    static constexpr unsigned waits_a_sample = 16;
    // Two threads that answer each other in step would begin to measure in the same waits, and only the first of them
    // could (wake_sample.hpp). So one that is far does it more often, until it has seen that it no longer is.
    static constexpr unsigned waits_a_far_sample = 4;

    struct advice {
        std::int64_t look = 0;  // how long to look; 0: not at all
        bool is_long = false;   // whether the look is one of a burst
        bool yields = false;    // whether to yield
        bool measures = false;  // whether to measure the wake-up, if the thread sleeps
    };

    // A wait begins.
    advice begin_wait() noexcept {
        advice now;
        if (look_ == 0 || yield_ == 0) {
            waits_ = static_cast<std::uint16_t>(waits_ + 1);
            now.measures = waits_ % (is_far_ ? waits_a_far_sample : waits_a_sample) == 0;
        }
        now.measures |= wake_ == 0;
        bool probes = false;
        if (look_ == 0 && burst_ == 0 && !is_far_ && is_due(look_probe_)) {
            probes = true;
            look_probe_ = std::min<std::uint8_t>(look_probe_ + 1, last_look_probe);
            if (wake_ != 0) begin_burst();
        }
        now.is_long = burst_ != 0;
        now.look = now.is_long ? long_look() : look_ != 0 || probes ? short_look : 0;
        now.yields = yield_ != 0;
        if (yield_ == 0 && is_due(yield_probe_)) {
            now.yields = true;
            yield_probe_ = std::min<std::uint8_t>(yield_probe_ + 1, last_yield_probe);
        }
        return now;
    }

    // For speed only. Whether a history that is packed like this has as much credit for looking as there can be. Then
    // begin_wait() advises steady_advice() and changes nothing that matters, and a short look that succeeds teaches
    // nothing.
    static bool is_steady(std::uint64_t packed) noexcept {
        constexpr std::uint64_t burst_bits = std::uint64_t{3} << 16;
        constexpr std::uint64_t settled_bit = std::uint64_t{1} << 18;
        return ((packed ^ fresh) & (15 | burst_bits | settled_bit)) == (max_credit | settled_bit);
    }
    static advice steady_advice(std::uint64_t packed) noexcept {
        return {.look = short_look, .yields = ((packed ^ fresh) & 0xF0) != 0};
    }

    // The thread has looked for the time `took`. `found`: the wait ended meanwhile.
    void end_look(const advice& given, bool found, std::int64_t took) noexcept {
        const bool quick = found && took <= short_look;
        if (given.is_long && burst_ != 0) {
            const auto width = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(took / unit)));
            const bool goes_well = found && !quick && width < last_width_;
            burst_ = goes_well ? static_cast<std::uint8_t>(burst_ - 1) : std::uint8_t{0};
            last_width_ = static_cast<std::uint8_t>(std::min(width, max_width));
        }
        if (quick) {
            look_ = std::min<std::uint8_t>(look_ + 1, max_credit);
            if (given.is_long) look_ = std::max(look_, credit_after_burst);
            if (look_ == max_credit) is_settled_ = true;
            return;
        }
        if (given.is_long || look_ == 0) return;
        look_ = after_failure(look_);
        if (look_ != 0 || !is_settled_) return;
        is_settled_ = false;
        look_probe_ = first_probe;
        if (wake_ != 0 && !is_far_) begin_burst();
    }

    // The thread has yielded. `late`: a yield let an unrelated thread run.
    void end_yields(bool found, bool late) noexcept {
        yield_ = late    ? std::uint8_t{0}
                 : found ? std::min<std::uint8_t>(yield_ + 1, max_credit)
                         : after_failure(yield_);
        if (found && !late) yield_probe_ = first_probe;
    }

    // The thread was released after it was queued, and before it was asleep. If it had looked or yielded before, the
    // release says only that the signal comes later than a look would take.
    void end_early(const advice& given) noexcept {
        if (given.look == 0 && !given.yields) look_ = std::max(look_, first_credit);
    }

    // A thread ran `took` after its release.
    void note_wake(std::int64_t took) noexcept {
        const auto sample =
            static_cast<std::uint32_t>(std::clamp<std::int64_t>(took / unit, 1, max_wake / unit));
        if (wake_ == 0) {
            wake_ = static_cast<std::uint16_t>(sample);
            return;
        }
        // A thread that did not get a core counts no more than one that woke slowly.
        const std::uint32_t bounded = std::min<std::uint32_t>(sample, 4u * wake_);
        wake_ = static_cast<std::uint16_t>(std::max(1u, (3u * wake_ + bounded + 2) / 4));
    }
    // For waits whose wake-ups are never measured: as if one had taken the longest time that a long look allows for.
    void assume_wake() noexcept {
        if (wake_ == 0) wake_ = max_wake / unit;
    }
    // A thread slept for `slept` until its release.
    void note_sleep(std::int64_t slept) noexcept { is_far_ = wake_ != 0 && slept > long_look(); }

    std::int64_t long_look() const noexcept { return std::min(wake_multiple * wake_ * unit, max_look); }
    bool looks() const noexcept { return look_ != 0; }

    // As one word: 0 is a new history.
    std::uint64_t packed() const noexcept {
        const std::uint64_t word = std::uint64_t{look_} | std::uint64_t{yield_} << 4 |
                                   std::uint64_t{look_probe_} << 8 | std::uint64_t{yield_probe_} << 12 |
                                   std::uint64_t{burst_} << 16 | std::uint64_t{is_settled_} << 18 |
                                   std::uint64_t{last_width_} << 19 | std::uint64_t{is_far_} << 24 |
                                   std::uint64_t{waits_} << 32 | std::uint64_t{wake_} << 48;
        return word ^ fresh;
    }
    static spin_history unpacked(std::uint64_t from) noexcept {
        const std::uint64_t word = from ^ fresh;
        spin_history made;
        made.look_ = word & 15;
        made.yield_ = word >> 4 & 15;
        made.look_probe_ = word >> 8 & 15;
        made.yield_probe_ = word >> 12 & 15;
        made.burst_ = word >> 16 & 3;
        made.is_settled_ = (word >> 18 & 1) != 0;
        made.last_width_ = word >> 19 & max_width;
        made.is_far_ = (word >> 24 & 1) != 0;
        made.waits_ = static_cast<std::uint16_t>(word >> 32);
        made.wake_ = static_cast<std::uint16_t>(word >> 48);
        return made;
    }

private:
    static constexpr std::uint8_t max_credit = 15;
    static constexpr std::uint8_t first_credit = 2;
    static constexpr std::uint8_t credit_after_burst = 4;
    static constexpr std::uint8_t failure_costs = 2;
    static constexpr std::uint8_t first_probe = 5;  // the first probe comes after 2^5 waits without credit,
    static constexpr std::uint8_t last_look_probe = 11;  // later probes after up to 2^11,
    static constexpr std::uint8_t last_yield_probe = 9;  // or 2^9
    static constexpr std::int64_t unit = 64;             // nanoseconds, of `wake_`
    static constexpr std::int64_t max_wake = max_look / wake_multiple;
    static constexpr unsigned max_width = 31;
    static constexpr std::uint64_t fresh = std::uint64_t{first_credit} | std::uint64_t{first_credit} << 4 |
                                           std::uint64_t{first_probe} << 8 | std::uint64_t{first_probe} << 12;

    static constexpr std::uint8_t after_failure(std::uint8_t credit) noexcept {
        return credit > failure_costs ? static_cast<std::uint8_t>(credit - failure_costs) : std::uint8_t{0};
    }
    bool is_due(std::uint8_t probe) const noexcept { return waits_ % (1u << probe) == 0; }
    void begin_burst() noexcept {
        burst_ = burst_looks;
        last_width_ = max_width;
    }

    std::uint8_t look_ = first_credit;
    std::uint8_t yield_ = first_credit;
    std::uint8_t look_probe_ = first_probe;
    std::uint8_t yield_probe_ = first_probe;
    std::uint8_t burst_ = 0;       // long looks that are left
    bool is_settled_ = false;      // has had `max_credit` since the last burst that followed a loss of credit
    bool is_far_ = false;          // whether the last measured sleep was longer than a long look
    std::uint8_t last_width_ = 0;  // of the last long look: the bits of its time in units
    std::uint16_t waits_ = 0;      // that lacked a credit
    std::uint16_t wake_ = 0;       // what waking a thread takes, in units; 0: not measured yet
};

}  // namespace tocsin::core
