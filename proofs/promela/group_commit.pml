// SPDX-License-Identifier: Apache-2.0
/* Group commit, written a second time: src/group_commit.cpp, and how src/core/lot/relay.cpp releases a chain, as Spin
 * sees them. event_lot.pml models a single sleep (the word, the futex, a stop's callback) and the lock.
 *
 * Modelled
 *   joining or leading; a member that makes a group full and wakes the leader that lets it gather;
 *   gathering for a time, for ever or not at all; a leader that withdraws while it gathers, and hands the lead on;
 *   taking a group, in one step or one by one with claims, up to the largest; the flush, which may fail;
 *   the result for each of the group; the next leader, released first, or behind the group if few have joined;
 *   the chain: released one by one by the leader, or passed on to the member that was released;
 *   submissions with a deadline, which may pass at any point of a sleep, and their withdrawal;
 *   the memory of members and of a leader's pause, which are gone when their submit() or its gathering is over.
 *
 * Not modelled
 *   memory orders, first in first out (the queue is Spin's), statistics, stops (as timeouts), a submitter that finds
 *   its deadline passed or a stop requested before it submits (nothing is submitted), a cancelled flush (as a failed
 *   one), and the words that members share: a sharer's release is modelled as any other (shared_word_model_test.cpp
 *   and group_commit_model_test.cpp check the words).
 *
 * Steps that are one here and several in the library
 *   Everything that a thread does while it holds the lock once. The lock protects all of this except the claim words of
 *   the members taken. Each member is claimed once, and a timeout between two claims could as well come before both.
 *   The flush is two steps, so that another flush could come between them; what a leader gives its followers is one
 *   step.
 *
 * Checked, in every reachable state
 *   C1  Nobody sleeps for ever: where nothing can move any more, everybody has returned.
 *   C2  A submission either is in exactly one flush, which has ended when its submitter is told, or was withdrawn and
 *       is in none.
 *   C3  Every submitter is told the result of its own group.
 *   C4  No two flushes run at once.
 *   C5  Nobody is released twice; no group is larger than the largest.
 *   C6  No step touches a member whose submit() has returned, or a pause that is over.
 *   C7  When the lock is free: if the queue is not empty, somebody leads (group_commit-2); at the end nobody does.
 *   C8  Nobody is stuck anywhere else (Spin's invalid end states).
 *
 * The cases, with their bounds, are in tools/spin_check.py; results in proofs/README.md.
 */

#ifndef SUBMITTERS
#define SUBMITTERS 3
#endif
#ifndef ROUNDS
#define ROUNDS 1 /* submissions of each, one after the other at the same address */
#endif
#ifndef LARGEST
#define LARGEST SUBMITTERS
#endif
#ifndef FAILURES
#define FAILURES 0 /* flushes that may fail */
#endif
#ifndef TIMED
#define TIMED 0 /* how many submitters have a deadline */
#endif

#define at_once 0
#define for_a_time 1
#define for_ever 2
#ifndef GATHERING
#define GATHERING at_once
#endif

#define open 0
#define signaled 1
#define timed_out 2

#define nobody SUBMITTERS
#define bit(w) (1 << (w))

/* Under the lock. */
bool led = false;
byte gatherer = nobody;
chan queue = [SUBMITTERS] of { byte };
byte cancelables = 0;

/* A member with its waiter, and the waiter of a leader's pause, which live on one stack. */
typedef frame {
    bool exists;
    bool cancelable;
    bool queued;
    byte claim;
    bool released;
    bool leads;
    bool error;
    byte next;
    byte others;
    bool pausing;
    byte pause_claim;
    bool pause_released;
    byte flushes; /* only the checks look at this and the next */
    bool failed;
}
frame at[SUBMITTERS];

byte failures_left = FAILURES;

/* What only the checks look at. */
byte waiting = 0;
bool flushing = false;

#define check(property, condition) assert(property && (condition))
#define witness(never) check(9, never)
#ifdef MEMORY_STAYS /* for mutants that C6 would otherwise find before the property they are about */
#define check_memory(condition) skip
#else
#define check_memory(condition) check(6, condition)
#endif
#define touch(w) check_memory(at[w].exists)

#ifdef CONTRACT_ONLY
#define check_order skip
#else
#define check_order check(7, led || len(queue) == 0)
#endif

/* ------------------------------------------------------------------------------------------ under the lock */

/* The oldest that has not withdrawn, or nobody. */
inline pop(got) {
    got = nobody;
    do
    :: got == nobody && len(queue) != 0 ->
        queue?oldest;
        touch(oldest);
        at[oldest].queued = false;
        cancelables = cancelables - at[oldest].cancelable;
        if
        :: !at[oldest].cancelable -> got = oldest
        :: at[oldest].cancelable && at[oldest].claim == open -> at[oldest].claim = signaled; got = oldest
#ifdef MUTANT_TAKES_WITHOUT_CLAIM
        :: at[oldest].cancelable && at[oldest].claim != open -> got = oldest
#endif
#ifdef WITNESS_WITHDRAWN_IS_DROPPED
        :: else -> witness(false)
#else
        :: else
#endif
        fi
    :: else -> break
    od;
    oldest = 0
}

inline link(added) {
    at[tail].next = added;
    tail = added;
    count++
}

inline take_group() {
    d_step {
        count = 1;
        tail = me;
        if
#ifdef MUTANT_TAKES_ALL_WITHOUT_CLAIMS
        :: len(queue) + 1 <= LARGEST ->
#elif defined(MUTANT_LARGEST_IGNORED)
        :: cancelables == 0 ->
#else
        :: cancelables == 0 && len(queue) + 1 <= LARGEST ->
#endif
            do
            :: len(queue) != 0 -> queue?other; touch(other); link(other)
            :: else -> break
            od;
            cancelables = 0
        :: else ->
            do
            :: count < LARGEST ->
                pop(other);
                if
                :: other != nobody -> link(other)
                :: else -> break
                fi
            :: else -> break
            od
        fi;
        at[tail].next = nobody;
        other = nobody;
        check_order
    }
}

/* Chooses the member to release so that it leads. If there is none, nobody leads any more. */
inline choose_successor() {
    pop(successor);
    if
    :: successor != nobody -> at[successor].leads = true
#ifndef MUTANT_LEAD_GIVEN_UP_IN_A_SECOND_STEP
    :: else -> led = false
#else
    :: else
#endif
    fi
}

/* ------------------------------------------------------------------------------------------ releasing */

inline release(freed, chain_after) {
    d_step {
        touch(freed);
        check(5, !at[freed].released);
        at[freed].others = chain_after;
        at[freed].released = true
    }
}

/* The first member that has to be woken is given the remaining ones; which members sleep is left open. */
inline release_chain(first) {
    d_step {
        other = first;
        many = false;
        if
        :: other != nobody -> touch(other); many = (at[other].next != nobody)
        :: else
        fi
    }
    do
    :: other != nobody ->
        d_step { touch(other); after = at[other].next }
        if
        :: many -> release(other, after); other = nobody
        :: true ->
            release(other, nobody);
#ifdef MUTANT_NEXT_READ_AFTER_RELEASE
            d_step { touch(other); after = at[other].next }
#endif
            other = after
        fi
    :: else -> break
    od;
    after = nobody
}

inline hand_on() {
#ifdef MUTANT_LEAD_GIVEN_UP_IN_A_SECOND_STEP
    if
    :: successor == nobody -> led = false
    :: else
    fi;
#endif
    if
    :: successor != nobody -> release(successor, nobody); successor = nobody
    :: else
    fi
}

/* ------------------------------------------------------------------------------------------ leading */

#ifdef MUTANT_LEADER_NOT_COUNTED
#define is_full (len(queue) >= LARGEST)
#else
#define is_full (len(queue) + 1 >= LARGEST)
#endif

inline gather() {
    d_step {
        if
#ifndef MUTANT_GATHERS_WITHOUT_LOOKING
        :: len(queue) + 1 >= LARGEST
#endif
        :: else -> gatherer = me; at[me].pausing = true; at[me].pause_claim = open; at[me].pause_released = false
        fi
    }
    if
    :: at[me].pausing ->
        waiting = waiting | bit(me);
end_pause:
        if
        :: at[me].pause_released -> waiting = waiting & (255 - bit(me))
#ifdef WITNESS_GROUP_BECAME_FULL
            ; witness(false)
#endif
        :: d_step { GATHERING == for_a_time && at[me].pause_claim == open ->
               at[me].pause_claim = timed_out; waiting = waiting & (255 - bit(me)) }
        :: d_step { me < TIMED && at[me].pause_claim == open ->
               at[me].pause_claim = timed_out; waiting = waiting & (255 - bit(me)); withdrew = true }
        fi;
        d_step {
#ifndef MUTANT_GATHERER_LEFT_BEHIND
            if
            :: at[me].pause_claim == timed_out -> gatherer = nobody
            :: else
            fi;
#endif
            at[me].pausing = false;
            at[me].pause_claim = open;
            at[me].pause_released = false
        }
    :: else
    fi
}

inline flush() {
    d_step {
        check(4, !flushing);
        flushing = true;
        check(5, count <= LARGEST);
        other = me;
        do
        :: other != nobody -> touch(other); other = at[other].next
        :: else -> break
        od
    }
#ifdef MUTANT_RELEASED_BEFORE_THE_END
    release_chain(at[me].next);
#endif
    if
    :: failures_left != 0 -> failures_left--; failed = true
    :: true
    fi;
    d_step {
        other = me;
        do
        :: other != nobody ->
            touch(other);
            at[other].flushes++;
            at[other].failed = failed;
            other = at[other].next
        :: else -> break
        od;
        flushing = false
    }
}

inline tell_the_result() {
    d_step {
        other = at[me].next;
        do
        :: other != nobody -> touch(other); at[other].error = failed; other = at[other].next
        :: else -> break
        od
    }
}

inline settle() {
    d_step {
        choose_successor();
        if
        :: successor != nobody && 2 * (len(queue) + 1) < count ->
#ifdef WITNESS_SUCCESSOR_BEHIND_THE_GROUP
            witness(false);
#endif
#ifndef MUTANT_SUCCESSOR_FORGOTTEN
            at[tail].next = successor;
#endif
#ifndef MUTANT_SUCCESSOR_IN_BOTH_PLACES
            successor = nobody
#endif
        :: else
        fi;
        check_order
    }
    hand_on();
#ifdef MUTANT_RESULT_AFTER_RELEASE
    release_chain(at[me].next);
    tell_the_result()
#elif defined(MUTANT_RELEASED_BEFORE_THE_END)
    skip
#else
    release_chain(at[me].next)
#endif
}

inline lead() {
    if
    :: GATHERING != for_ever /* the time is over, or there is none */
    :: GATHERING != at_once -> gather()
    fi;
    if
    :: withdrew ->
#ifdef WITNESS_LEADER_WITHDRAWS
        witness(len(queue) == 0);
#endif
#ifndef MUTANT_LEAD_KEPT
        d_step { choose_successor(); check_order }
        hand_on()
#endif
    :: else ->
        take_group();
        flush();
#ifndef MUTANT_RESULT_AFTER_RELEASE
        tell_the_result();
#endif
        settle()
    fi
}

/* ------------------------------------------------------------------------------------------ submitting */

inline join_or_lead() {
    d_step {
        at[me].exists = true;
        at[me].cancelable = me < TIMED;
        at[me].next = nobody;
        at[me].others = nobody;
        if
#ifndef MUTANT_LEADS_BESIDE_ANOTHER
        :: !led ->
#else
        :: true ->
#endif
            led = true;
            leading = true
        :: else ->
            queue!me;
            at[me].queued = true;
            cancelables = cancelables + at[me].cancelable;
            if
            :: gatherer != nobody && is_full ->
                check_memory(at[gatherer].pausing);
                if
#ifdef MUTANT_FULL_WITHOUT_CLAIM
                :: true -> at[gatherer].pause_claim = signaled; other = gatherer
#else
                :: at[gatherer].pause_claim == open -> at[gatherer].pause_claim = signaled; other = gatherer
#endif
                :: else
                fi;
                gatherer = nobody
            :: else
            fi
        fi;
        check_order
    }
    if
    :: other != nobody -> d_step { check_memory(at[other].pausing); at[other].pause_released = true; other = nobody }
    :: else
    fi
}

inline sleep() {
    waiting = waiting | bit(me);
end_asleep:
    if
    :: at[me].released -> waiting = waiting & (255 - bit(me))
#ifdef MUTANT_WITHDRAWS_WITHOUT_CLAIM
    :: d_step { me < TIMED && !at[me].released ->
#else
    :: d_step { me < TIMED && at[me].claim == open ->
#endif
           at[me].claim = timed_out; waiting = waiting & (255 - bit(me)); withdrew = true }
#ifdef WITNESS_TIMEOUT_LOSES
    :: d_step { me < TIMED && at[me].claim == signaled && !at[me].released -> witness(false) }
#endif
    fi
}

inline withdraw() {
#ifndef MUTANT_WITHDRAWS_WITHOUT_UNLINKING
    d_step {
        if
        :: at[me].queued && queue??[eval(me)] -> queue??eval(me); at[me].queued = false; cancelables--
        :: at[me].queued && !queue??[eval(me)] -> check_memory(false)
        :: else
        fi;
        check_order
    }
#else
    skip
#endif
}

proctype submitter(byte me) {
    byte rounds = ROUNDS, count = 0, tail = 0, oldest = 0, other = nobody, after = nobody, successor = nobody;
    bool leading = false, withdrew = false, failed = false, many = false;
    do
    :: rounds != 0 ->
        join_or_lead();
        if
        :: !leading ->
            sleep();
            if
            :: withdrew -> withdraw()
#ifdef MUTANT_RELAY_DROPPED
            :: else -> leading = at[me].leads
#else
            :: else -> leading = at[me].leads; release_chain(at[me].others)
#endif
            fi
        :: else
        fi;
        if
        :: !withdrew && leading -> lead()
        :: else -> failed = at[me].error
        fi;
        d_step {
            check(2, at[me].flushes == (withdrew -> 0 : 1));
            check(3, withdrew || failed == at[me].failed);
            at[me].exists = false;
            at[me].cancelable = false;
            at[me].queued = false;
            at[me].claim = open;
            at[me].released = false;
            at[me].leads = false;
            at[me].error = false;
            at[me].next = nobody;
            at[me].others = nobody;
            at[me].flushes = 0;
            at[me].failed = false;
            leading = false;
            withdrew = false;
            failed = false;
            many = false;
            count = 0;
            tail = 0;
            rounds--
        }
    :: else -> break
    od
}

/* -------------------------------------------------------------------------------- start, and the last state */

init {
    byte w = 0;
    atomic {
        do
        :: w < SUBMITTERS -> run submitter(w); w++
        :: else -> break
        od;
        w = 0
    }
    timeout -> /* nobody can move any more */
    d_step {
        check(1, waiting == 0);
#ifndef CONTRACT_ONLY
        check(7, !led && len(queue) == 0 && cancelables == 0 && gatherer == nobody)
#endif
    }
}
