// SPDX-License-Identifier: Apache-2.0
/* Waits for all of two auto-reset events, written a second time: src/core/wait/multi_wait.cpp, and what src/event.cpp
 * does for it, as Spin sees them. event_lot.pml models what a single wait does.
 *
 * Modelled
 *   the events' bytes (set, parked, held), their queues, and one bucket for both or one for each, as a lock;
 *   a set: without waiters; absorbed; offered to the waits in the queue, or made visible and looked at again;
 *   waits for both, which queue at one after the other, look, sleep, time out, leave; a wait for the first alone;
 *   a commit: all locks, hold, claim, take or give up; the rundown of a wait (`users`), and the wait for it;
 *   a thief, which takes the first without waiting and may set it again; an observer, which asks for one and then the
 *   other.
 *
 * Not modelled
 *   memory orders, more than two events, timers, custom sources, stops (as timeouts), sleeping for a lock or a rundown,
 *   first in first out (waits are offered an event in the order of their numbers).
 *
 * Steps that are one here and several in the library
 *   A load joins the compare-and-exchange after it. What only the holder of a lock touches joins a visible step.
 *
 * Checked, in every reachable state
 *   C1  Nobody sleeps for ever while all it waits for is set: where nothing can move any more, every remaining waiter
 *       is unclaimed and lacks something.
 *   C2  Tokens: in = out + what the bytes still hold, for each event.
 *   C3  A wait says `signaled` exactly if all was taken for it.
 *   C4  Nobody sees one taken and the other not.
 *   C6  No step touches a waiter whose wait has returned.
 *   C7  At every unlock: `parked` is on exactly if the queue is not empty (event-2), not with `set` while a single wait
 *       is queued (event-3), and nothing is held (event-6).
 *   C8  Nobody is stuck anywhere else (Spin's invalid end states): not in a lock, not in a rundown.
 *
 * The cases, with their bounds, are in tools/spin_check.py; results in proofs/README.md.
 */

#ifndef BUCKETS
#define BUCKETS 2
#endif
#ifndef WAITERS
#define WAITERS 2 /* each waits for both; every second one queues in the other order */
#endif
#ifndef SINGLES
#define SINGLES 0 /* further waiters, each for the first event alone */
#endif
#ifndef TIMED
#define TIMED 0 /* how many of those that wait for both may time out */
#endif
#ifndef SETS_A
#define SETS_A 1
#endif
#ifndef SETS_B
#define SETS_B 1
#endif
#ifndef INITIAL
#define INITIAL 0 /* both are set at the start */
#endif
#ifndef THIEF
#define THIEF 0 /* 1: there is one; 2: and it sets the event again */
#endif
#ifndef OBSERVER
#define OBSERVER 0
#endif

#define set_bit 1
#define parked_bit 2
#define held_bit 4

#define open 0
#define signaled 1
#define timed_out 2

#define ALL (WAITERS + SINGLES)
#define nobody ALL
#define none 2
#define bit(w) (1 << (w))
#define bucket(e) ((e) % BUCKETS)
#define is_single(w) ((w) >= WAITERS)

byte event[2];
byte queue[2]; /* the waiters in it */
bool locked[2];

typedef frame {
    bool exists;
    bool released;
    bool committed;
    byte claim;
    byte users; /* threads that look at it outside the locks */
}
frame at[ALL];

/* What only the checks look at. */
byte waiting = 0;
byte tokens_in[2];
byte tokens_out[2];

#define check(property, condition) assert(property && (condition))
#define witness(never) check(9, never)
#define touch(w) check(6, at[w].exists)

inline lock(which) { atomic { !locked[which] -> locked[which] = true } }

#define is_orderly(e) \
    ((event[e] & held_bit) == 0 && ((event[e] & parked_bit) != 0) == (queue[e] != 0) && \
     ((event[e] & set_bit) == 0 || (queue[e] >> WAITERS) == 0))

inline unlock(freed) {
    d_step {
#ifndef CONTRACT_ONLY
        check(7, bucket(0) != freed || is_orderly(0));
        check(7, bucket(1) != freed || is_orderly(1));
#endif
        locked[freed] = false
    }
}

/* ------------------------------------------------------------------------------------------ one wait for both */

inline look(looked, offered) {
    touch(looked);
    ready = (at[looked].claim == open);
    ready = (ready && (offered == 0 || (event[0] & set_bit) != 0));
    ready = (ready && (offered == 1 || (event[1] & set_bit) != 0))
}

inline lock_all(locker) {
#ifdef MUTANT_LOCKS_IN_ANY_ORDER
    lock(locker % BUCKETS);
    if
    :: BUCKETS == 2 -> lock((locker + 1) % BUCKETS)
    :: else
    fi
#else
    lock(0);
    if
    :: BUCKETS == 2 -> lock(BUCKETS - 1)
    :: else
    fi
#endif
}

inline unlock_all() {
    unlock(0);
    if
    :: BUCKETS == 2 -> unlock(BUCKETS - 1)
    :: else
    fi
}

inline hold(kept, but) {
    if
    :: kept == but -> held = held | bit(kept)
#ifdef MUTANT_HOLDS_NOTHING
    :: d_step { kept != but && (event[kept] & set_bit) != 0 -> held = held | bit(kept) }
#else
    :: d_step { kept != but && (event[kept] & set_bit) != 0 -> event[kept] = event[kept] | held_bit; held = held | bit(kept) }
#endif
    :: else
    fi
}

inline take_or_give_up(taker, gone, brought) {
    if
    :: gone != brought && (held & bit(gone)) != 0 ->
        d_step {
            if
            :: mine ->
                tokens_out[gone] = tokens_out[gone] + 1;
                event[gone] = event[gone] & (255 - held_bit - set_bit)
            :: else -> event[gone] = event[gone] & (255 - held_bit)
            fi
        }
    :: gone == brought && mine -> d_step { tokens_in[gone] = tokens_in[gone] + 1; tokens_out[gone] = tokens_out[gone] + 1 }
    :: else
    fi;
    if
    :: mine && (queue[gone] & bit(taker)) != 0 ->
        d_step {
            queue[gone] = queue[gone] & (255 - bit(taker));
            if
            :: queue[gone] == 0 -> event[gone] = event[gone] & (255 - parked_bit)
            :: else
            fi
        }
    :: else
    fi
}

inline take_everything(whole, extra) {
    lock_all(whole);
    touch(whole);
    held = 0;
    mine = false;
#ifdef MUTANT_CLAIMS_BEFORE_ALL_ARE_HELD
    d_step {
        if
        :: at[whole].claim == open -> at[whole].claim = signaled; mine = true
        :: else
        fi
    }
    if
    :: mine -> hold(0, extra); hold(1, extra); mine = (held == 3)
    :: else
    fi;
#else
    hold(0, extra);
    if
    :: held != 0 -> hold(1, extra)
    :: else
    fi;
    d_step {
        if
        :: held == 3 && at[whole].claim == open -> at[whole].claim = signaled; mine = true
#ifdef MUTANT_TAKES_WITHOUT_CLAIM
        :: held == 3 && at[whole].claim != open -> mine = true
#endif
        :: else
        fi
    }
#endif
    take_or_give_up(whole, 0, extra);
    take_or_give_up(whole, 1, extra);
    if
    :: mine -> touch(whole); at[whole].committed = true
    :: else
    fi;
    unlock_all()
}

#ifdef MUTANT_USED_WITHOUT_ACQUIRE
inline acquire(used) { skip }
inline relinquish(used) { touch(used) }
#else
inline acquire(used) { at[used].users = at[used].users + 1 }
inline relinquish(used) { d_step { touch(used); at[used].users = at[used].users - 1 } }
#endif
inline release(freed_one) { d_step { touch(freed_one); at[freed_one].released = true } }

/* The caller is a user of the wait (acquire); this ends that use. */
inline commit(whose, offered) {
    take_everything(whose, offered);
    relinquish(whose);
    if
    :: mine -> release(whose)
    :: else
    fi
}

/* ------------------------------------------------------------------------------------------ set */

inline satisfy_all_waits(shown) {
    do
    :: true ->
        lock(bucket(shown));
        w = 0;
        found = nobody;
        do
        :: w < WAITERS && found == nobody ->
            if
            :: (queue[shown] & bit(w)) != 0 ->
                look(w, none);
                if
                :: ready -> found = w; acquire(w)
                :: else
                fi
            :: else
            fi;
            w++
        :: else -> break
        od;
        unlock(bucket(shown));
        if
        :: found == nobody -> break
        :: else -> commit(found, none)
        fi
    od
}

inline hand_over(given) {
    do
    :: true ->
        lock(bucket(given));
        w = 0;
        found = nobody;
        taken = nobody;
        do
        :: w < ALL && found == nobody && taken == nobody ->
            if
            :: (queue[given] & bit(w)) != 0 && is_single(w) -> taken = w
            :: (queue[given] & bit(w)) != 0 && !is_single(w) ->
                look(w, given);
                if
                :: ready -> found = w
                :: else
                fi
            :: else
            fi;
            w++
        :: else -> break
        od;
        if
        :: found != nobody ->
            acquire(found);
            unlock(bucket(given));
            commit(found, given);
            if
            :: mine -> break
#ifdef MUTANT_OFFER_DROPPED
            :: else -> tokens_in[given] = tokens_in[given] + 1; break
#else
            :: else
#endif
            fi
        :: found == nobody && taken != nobody ->
            d_step {
                touch(taken);
                at[taken].claim = signaled;
                tokens_in[given] = tokens_in[given] + 1;
                tokens_out[given] = tokens_out[given] + 1;
                queue[given] = queue[given] & (255 - bit(taken));
                if
                :: queue[given] == 0 -> event[given] = event[given] & (255 - parked_bit)
                :: else
                fi
            }
            unlock(bucket(given));
            release(taken);
            break
        :: else ->
            d_step {
                if
                :: (event[given] & set_bit) == 0 -> tokens_in[given] = tokens_in[given] + 1
                :: else
                fi;
                all_waits = (queue[given] != 0);
#ifdef MUTANT_PARKED_TURNED_OFF
                event[given] = set_bit
#else
                event[given] = set_bit + (all_waits -> parked_bit : 0)
#endif
            }
            unlock(bucket(given));
            if
#ifndef MUTANT_NO_LOOK_AFTER_SHOW
            :: all_waits -> satisfy_all_waits(given)
#endif
            :: else
            fi;
            break
        fi
    od
}

inline set(now_set) {
    if
    :: d_step { event[now_set] == 0 -> event[now_set] = set_bit; tokens_in[now_set] = tokens_in[now_set] + 1 }
    :: (event[now_set] & (set_bit + held_bit)) == set_bit
    :: else -> hand_over(now_set)
    fi
}

/* ------------------------------------------------------------------------------------------ threads */

proctype setter(byte e; byte sets) {
    byte w = 0, found = 0, taken = 0, held = 0;
    bool ready = false, mine = false, all_waits = false;
    do
    :: sets > 0 -> set(e); sets--
    :: else -> break
    od
}

inline enlist(entered) {
    lock(bucket(entered));
    if
#ifndef MUTANT_QUEUES_THOUGH_COMMITTED
    :: at[me].claim != open
#endif
    :: else -> d_step { event[entered] = event[entered] | parked_bit; queue[entered] = queue[entered] | bit(me) }
    fi;
    unlock(bucket(entered))
}

inline delist(left) {
    lock(bucket(left));
    d_step {
        if
        :: (queue[left] & bit(me)) != 0 ->
            queue[left] = queue[left] & (255 - bit(me));
            if
            :: queue[left] == 0 -> event[left] = event[left] & (255 - parked_bit)
            :: else
            fi
        :: else
        fi
    }
    unlock(bucket(left))
}

proctype waiter(byte me; bool timed) {
    byte held = 0;
    bool ready = false, mine = false;
    at[me].exists = true;
    if
    :: me % 2 == 0 -> enlist(0); enlist(1)
    :: else -> enlist(1); enlist(0)
    fi;
#ifndef MUTANT_NO_LOOK_AFTER_QUEUEING
    look(me, none);
    if
    :: ready -> take_everything(me, none)
    :: else
    fi;
#endif
    if
    :: mine
    :: else ->
        waiting = waiting | bit(me);
end_asleep:
        if
        :: at[me].released
        :: d_step { timed && at[me].claim == open -> at[me].claim = timed_out }
        fi;
        waiting = waiting & (255 - bit(me))
    fi;
    check(3, (at[me].claim == signaled) == at[me].committed);
    if
    :: !at[me].committed -> delist(0); delist(1)
    :: else
    fi;
#ifndef MUTANT_RETURNS_WHILE_USED
    at[me].users == 0;
#endif
    at[me].exists = false
}

proctype single(byte me) {
    at[me].exists = true;
    lock(bucket(0));
    if
    :: d_step { (event[0] & set_bit) != 0 -> event[0] = event[0] - set_bit; tokens_out[0] = tokens_out[0] + 1 }
       unlock(bucket(0))
    :: d_step { (event[0] & set_bit) == 0 -> event[0] = event[0] | parked_bit; queue[0] = queue[0] | bit(me) }
       unlock(bucket(0));
       waiting = waiting | bit(me);
end_asleep:
       at[me].released;
       waiting = waiting & (255 - bit(me))
    fi;
    at[me].exists = false
}

proctype thief() {
    byte w = 0, found = 0, taken = 0, held = 0;
    bool ready = false, mine = false, all_waits = false, got = false;
    if
#ifdef MUTANT_TAKES_WHAT_IS_HELD
    :: d_step { (event[0] & set_bit) != 0 ->
           event[0] = event[0] - set_bit; tokens_out[0] = tokens_out[0] + 1; got = true }
#else
    :: d_step { (event[0] & (set_bit + held_bit)) == set_bit ->
           event[0] = event[0] - set_bit; tokens_out[0] = tokens_out[0] + 1; got = true }
#endif
    :: (event[0] & set_bit) == 0
    :: else ->
        lock(bucket(0));
        d_step {
            if
            :: (event[0] & set_bit) != 0 ->
                event[0] = event[0] - set_bit; tokens_out[0] = tokens_out[0] + 1; got = true
            :: else
            fi
        }
        unlock(bucket(0))
    fi;
    if
    :: got && THIEF == 2 -> set(0)
    :: else
    fi
}

inline is_set(asked, answer) {
    if
#ifdef MUTANT_TELLS_WHAT_IS_HELD
    :: d_step { true -> answer = ((event[asked] & set_bit) != 0) }
#else
    :: d_step { (event[asked] & held_bit) == 0 -> answer = ((event[asked] & set_bit) != 0) }
    :: else -> lock(bucket(asked)); answer = ((event[asked] & set_bit) != 0); unlock(bucket(asked))
#endif
    fi
}

proctype observer() {
    bool one = false, other = false;
    if
    :: true -> is_set(0, one); is_set(1, other)
    :: true -> is_set(1, one); is_set(0, other)
    fi;
    check(4, one || !other)
#ifdef WITNESS_TAKEN_BETWEEN_TWO_LOOKS
    ;witness(!one || other)
#endif
}

/* -------------------------------------------------------------------------------- start, and the last state */

#define holds(e) (event[e] & set_bit)

init {
    byte w = 0;
    atomic {
        if
        :: INITIAL -> event[0] = set_bit; event[1] = set_bit; tokens_in[0] = 1; tokens_in[1] = 1
        :: else
        fi;
        do
        :: w < WAITERS -> run waiter(w, w < TIMED); w++
        :: w >= WAITERS && w < ALL -> run single(w); w++
        :: else -> break
        od;
        run setter(0, SETS_A);
        run setter(1, SETS_B);
        if
        :: THIEF > 0 -> run thief()
        :: else
        fi;
        if
        :: OBSERVER -> run observer()
        :: else
        fi;
        w = 0
    }
    timeout -> /* nobody can move any more */
    d_step {
        do
        :: w < ALL ->
            if
            :: (waiting & bit(w)) != 0 ->
                check(1, at[w].claim == open && !at[w].released);
                check(1, !holds(0) || (!is_single(w) && !holds(1)))
            :: else
            fi;
            w++
        :: else -> break
        od;
        check(2, tokens_in[0] == tokens_out[0] + holds(0));
        check(2, tokens_in[1] == tokens_out[1] + holds(1))
    }
}
