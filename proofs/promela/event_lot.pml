// SPDX-License-Identifier: Apache-2.0
/* An event over the lot, written a second time: src/event.cpp, and lot.cpp, relay.cpp, waiter.cpp and futex_lock.cpp
 * of src/core, as Spin sees them. It shares no line with the library or its explorer, and no idea about how to search.
 *
 * Modelled
 *   the event's byte (set, parked), changed by set, reset, try_wait, park and unpark;
 *   the bucket's lock, as a lock (default) or as the three-state futex word that it is (FUTEX_LOCK);
 *   the queue; nodes that are cancelable and nodes that are not; take-all in one step or one by one;
 *   the claim word, the state word, and a futex: look and fall asleep in one step, wake by address;
 *   a futex that returns for no reason (SPURIOUS times in all), timeouts at any point of a sleep,
 *   a stop requested at any time or never, its callbacks one after the other, the wait for a running callback;
 *   the relay of a broadcast: each thread wakes up to WIDTH sleepers and gives the last of them the remaining chain;
 *   the memory of waiters (gone when their wait returns, used again by the next wait) and of the event
 *   (destroyed by a waiter that knows of every set, as soon as its own wait has returned).
 *
 * Not modelled
 *   memory orders (every step is seen at once; the explorer covers weak memory), other keys in the bucket and the
 *   filter, first in first out (the queue is Spin's), coroutines, fairness. Spinning is one more try_wait.
 *
 * Steps that are one here and several in the library
 *   Steps that touch only what the lock's holder, or the thread itself, may touch join a visible step beside them. So
 *   do locking and unlocking (not with FUTEX_LOCK). All these steps commute with the steps of others.
 *   A load that is only a hint joins the compare-and-exchange after it, which decides.
 *   A failed claim joins the next one: a claim word that is not open stays as it is.
 *   The end of a deadline joins the attempt to claim that follows it.
 *
 * Checked, in every reachable state
 *   C1  Nobody sleeps for ever on a set event, or after having been taken off the queue: where nothing can move
 *       any more, every remaining waiter is queued, unclaimed and asleep, and the event is unset.
 *   C2  Tokens (auto): in = out + wiped by reset + what the byte still holds.
 *   C3  A wait says `signaled` exactly if a set took the wait, or the wait itself took the set event: no spurious
 *       return, no signal eaten by a timeout or a stop.
 *   C4  When a manual set returns, it has released everyone who was queued when it was called.
 *   C5  A set releases nobody who queued after it became visible.
 *   C6  No step touches a waiter whose wait has returned, or an event that has been destroyed.
 *   C7  At every unlock: `parked` is on exactly if the queue is not empty (event-2), and not with `set` (event-3).
 *   C8  Nobody is stuck anywhere else (Spin's invalid end states): not in the lock, not in the stop callback.
 *
 * Every state is visited and no property is violated. tools/spin_check.py names every case's bounds; proofs/README.md
 * lists how many states each has.
 *
 * Each MUTANT_... breaks one step and must violate a property. Each WITNESS_... asserts that a race of interest never
 * happens. That must turn out wrong, which shows that the bounds are large enough to reach the race. proofs/README.md
 * lists both.
 */

#ifndef AUTO
#define AUTO 1 /* 0: manual */
#endif
#ifndef SETTERS
#define SETTERS 2
#endif
#ifndef SETS
#define SETS 1 /* by each setter */
#endif
#ifndef RESETS
#define RESETS 0 /* at most, each by a setter after a set of its own */
#endif
#ifndef WAITERS
#define WAITERS 2
#endif
#ifndef WAITS
#define WAITS 1 /* by each waiter, one after the other at the same address */
#endif
#ifndef SPURIOUS
#define SPURIOUS 1
#endif
#ifndef WIDTH
#define WIDTH 1
#endif

/* The kinds of waiter allowed, as a set; each waiter is of one kind. */
#define PLAIN 1
#define TIMED 2
#define STOPPABLE 4
#define BOTH 8
#define POLLING 16 /* asks try_wait until it succeeds */
#ifndef KINDS
#define KINDS (PLAIN + TIMED + STOPPABLE)
#endif

#define unset 0
#define set_bit 1
#define parked_bit 2

#define running 0
#define sleeping 1
#define released 2

#define open 0
#define signaled 1
#define timed_out 2
#define stopped 3

#define nobody WAITERS
#define bit(w) (1 << (w))
#define THREADS (WAITERS + SETTERS)

#ifdef FUTEX_LOCK
#define together
#else
#define together atomic
#endif

/* The event and its bucket. */
byte event = unset;
chan queue = [WAITERS] of { byte };
byte queued = 0; /* the waiters in it */
byte cancelables = 0;

/* A waiter and its node, which live on one stack. */
typedef frame {
    bool exists;
    bool cancelable;
    byte word;
    byte claim;
    byte others;
    byte next;
    bool asleep;      /* in the kernel, on `word` */
    bool registered;  /* with the stop token */
    bool called_back; /* its stop callback runs */
}
frame at[WAITERS];

bool stop_requested = false;
byte spurious_left = SPURIOUS;
byte resets_left = RESETS;

/* What only the checks look at. */
bool event_exists = true;
byte inside = 0;           /* threads in a wait */
byte waiting = 0;          /* those that sleep or are about to */
byte taken = 0;            /* those that a set has taken */
byte owed[SETTERS];        /* C4: queued when the set was called, and nothing has happened to them since */
byte may_take[SETTERS];    /* C5: queued when the set became visible */
byte tokens_in = 0;
byte tokens_out = 0;
byte tokens_wiped = 0;

/* The assertion contains the number of its property, so that Spin prints it. */
#define check(property, condition) assert(property && (condition))
#define witness(never) check(9, never)
#define touch_event check(6, event_exists)
#define touch(w) check(6, at[w].exists)

/* -------------------------------------------------------------------------------- the bucket's lock */

#ifdef CONTRACT_ONLY
#define check_queue skip
#else
#define check_queue \
    check(7, !event_exists || ((event & parked_bit) != 0) == (queued != 0)); \
    check(7, event != (set_bit | parked_bit))
#endif

#ifdef FUTEX_LOCK

byte lock_word = 0; /* free, held, wanted */
bool lock_sleeper[THREADS];

inline lock(self) {
    if
    :: d_step { lock_word == 0 -> lock_word = 1 }
    :: lock_word != 0 ->
        do
        :: d_step {
               seen = lock_word;
#ifdef MUTANT_LOCK_RETAKEN_AS_HELD
               lock_word = (seen == 0 -> 1 : 2)
#else
               lock_word = 2
#endif
           }
           if
           :: seen == 0 -> break
           :: else ->
               if /* look and fall asleep */
               :: d_step { lock_word == 2 -> lock_sleeper[self] = true }
                  if
                  :: !lock_sleeper[self]
                  :: d_step { spurious_left > 0 -> spurious_left--; lock_sleeper[self] = false }
                  fi
               :: lock_word != 2
               fi
           fi
        od
    fi;
    seen = 0
}

#define wake_lock_sleeper(n) d_step { n < THREADS && lock_sleeper[n % THREADS] -> lock_sleeper[n % THREADS] = false }

inline unlock(self) {
    d_step {
        check_queue;
        seen = lock_word;
        lock_word = 0
    }
    if
    :: seen == 2 ->
#ifdef MUTANT_UNLOCK_WITHOUT_WAKE
        skip
#else
        if /* any one of them */
        :: wake_lock_sleeper(0)
        :: wake_lock_sleeper(1)
        :: wake_lock_sleeper(2)
        :: wake_lock_sleeper(3)
        :: wake_lock_sleeper(4)
        :: else
        fi
#endif
    :: else
    fi;
    seen = 0
}

#else

bool locked = false;

inline lock(self) { d_step { !locked -> locked = true } }
inline unlock(self) { d_step { check_queue; locked = false } }

#endif

/* -------------------------------------------------------------------------------- the waiter */

/* Whoever moves the claim word from open decides how the wait ends. */
inline try_claim(w, reason) {
    d_step {
        touch(w);
        won = at[w].claim == open;
        if
        :: won -> at[w].claim = reason; forgive(w)
        :: else
        fi
    }
}

/* C4: something has happened to this one. For one or two setters. */
inline forgive(w) {
    owed[0] = owed[0] & ~bit(w);
    owed[SETTERS - 1] = owed[SETTERS - 1] & ~bit(w)
}

/* waiter::release, first and second half. The wake uses the address: it reaches whoever sleeps there by then. */
inline move_to_released(w, chain_after) {
    d_step {
        touch(w);
        at[w].others = chain_after; /* seen by nobody before the exchange */
        seen = at[w].word;
        at[w].word = released
    }
}
inline wake_by_address(w) {
    if
#ifndef MUTANT_WAKE_BEFORE_RELEASE
    :: seen == sleeping ->
#ifdef WITNESS_WAKE_IN_THE_NEXT_LIFE
        witness(!at[w].asleep || at[w].word == released);
#endif
        at[w].asleep = false
#endif
    :: else
    fi;
    seen = 0
}

/* release_list::wake. The nodes of a chain belong to the thread that holds the chain. That thread wakes up to WIDTH
 * sleepers and gives the last of these the remaining chain. A thread that has not fallen asleep yet does not count; it
 * may fall asleep after the look. */
inline wake(first) {
    d_step { each = first; count = WIDTH }
    do
    :: each != nobody ->
#ifdef MUTANT_NEXT_READ_AFTER_RELEASE
        move_to_released(each, nobody);
        d_step { touch(each); following = at[each].next }
#else
#ifdef MUTANT_WAKE_BEFORE_RELEASE
        at[each].asleep = false;
#endif
        if
        :: atomic { at[each].next == nobody -> move_to_released(each, nobody) } /* no need to look */
        :: d_step {
               at[each].next != nobody ->
               touch(each);
               following = at[each].next;
               if
               :: at[each].word == sleeping -> count--
               :: else
               fi;
               if
               :: count == 0 -> remaining = following; following = nobody
               :: else
               fi
#ifdef MUTANT_RELAY_DROPPED
               ; remaining = nobody
#endif
           }
           move_to_released(each, remaining)
        fi;
#endif
        wake_by_address(each);
        d_step { remaining = nobody; each = following; following = nobody }
    :: else -> break
    od;
    count = 0
}

/* -------------------------------------------------------------------------------- the queue, under the lock */

inline append(w) {
    d_step {
        queue!w;
        queued = queued | bit(w);
        cancelables = cancelables + at[w].cancelable
    }
}

inline unlink(w) {
    d_step {
        touch(w);
        queue??eval(w);
        queued = queued & ~bit(w);
        cancelables = cancelables - at[w].cancelable;
        at[w].next = nobody
    }
}

inline note_taken(by, w) {
    check(5, (may_take[by] & bit(w)) != 0);
    taken = taken | bit(w);
    tokens_in = tokens_in + AUTO;
    forgive(w)
}

/* The oldest that can be claimed, or nobody. */
inline pop(by, oldest) {
    do
    :: d_step {
           queued != 0 ->
           queue?<oldest>;
#ifndef MUTANT_SIGNAL_WITHOUT_DEQUEUE
           unlink(oldest);
#endif
           won = !at[oldest].cancelable || at[oldest].claim == open;
           if
           :: won && at[oldest].cancelable -> at[oldest].claim = signaled
           :: else
           fi;
#ifdef MUTANT_TAKE_WITHOUT_CLAIM
           won = true;
#endif
           if
           :: won -> note_taken(by, oldest)
           :: else -> oldest = nobody
           fi
       }
       if
       :: won -> break
       :: else ->
#ifdef WITNESS_DEAD_NODE_DROPPED
           witness(false);
#endif
           skip
       fi
    :: queued == 0 -> break
    od;
    won = false
}

/* -------------------------------------------------------------------------------- set and reset */

inline hand_over(by) {
    together {
        lock(WAITERS + by);
        may_take[by] = queued;
        pop(by, head)
    }
    together {
        if
        :: head == nobody ->
            d_step {
                touch_event;
                tokens_in = tokens_in + ((event & set_bit) == 0);
#ifdef MUTANT_TOKEN_DROPPED_WITH_DEAD_NODES
                event = event & ~parked_bit
#else
                event = set_bit
#endif
            }
#ifndef MUTANT_PARKED_CLEARED_AFTER_RELEASE
        :: head != nobody && queued == 0 ->
            d_step {
                touch_event;
#ifndef MUTANT_PARKED_LEFT_ON
                event = event & ~parked_bit
#endif
            }
#endif
        :: else
        fi;
        may_take[by] = 0;
        unlock(WAITERS + by)
    }
    if
    :: head != nobody -> wake(head)
    :: else
    fi;
#ifdef MUTANT_PARKED_CLEARED_AFTER_RELEASE
    together {
        lock(WAITERS + by);
        if
        :: head != nobody && queued == 0 ->
            touch_event;
            event = event & ~parked_bit
        :: else
        fi;
        unlock(WAITERS + by)
    }
#endif
    head = nobody
}

inline all_taken(by) {
    d_step {
        check(4, owed[by] == 0);
        may_take[by] = 0
    }
}

inline chain_up(w) {
    if
    :: head == nobody -> head = w
    :: else -> at[tail].next = w
    fi;
    tail = w;
    w = nobody
}

inline open_gate(by) {
#ifdef MUTANT_SET_BEFORE_LOCK
    d_step { touch_event; event = event | set_bit; may_take[by] = queued }
    together {
        lock(WAITERS + by);
        d_step { touch_event; event = event & ~parked_bit }
#else
    together {
        lock(WAITERS + by);
        d_step { touch_event; event = set_bit; may_take[by] = queued } /* the last touch (event-5) */
#endif
        if
#ifdef MUTANT_TAKE_ALL_WITHOUT_CLAIMS
        :: true ->
#else
        :: cancelables == 0 -> /* all in one step, without claims */
#endif
            d_step {
                do
#ifdef MUTANT_GATE_TAKES_ONE
                :: queued != 0 && head == nobody ->
#else
                :: queued != 0 ->
#endif
                    queue?each;
                    touch(each);
                    queued = queued & ~bit(each);
                    note_taken(by, each);
                    chain_up(each)
                :: else -> break
                od
            }
            all_taken(by);
            unlock(WAITERS + by)
#ifndef MUTANT_TAKE_ALL_WITHOUT_CLAIMS
        :: else -> one_by_one = true
#endif
        fi
    }
    do
    :: one_by_one ->
        together {
            pop(by, each);
            d_step {
                if
                :: each != nobody -> chain_up(each)
                :: else
                fi
            }
            if
            :: queued == 0 -> one_by_one = false; all_taken(by); unlock(WAITERS + by)
            :: else
            fi
        }
    :: else -> break
    od;
    tail = nobody;
    if
    :: head != nobody -> wake(head)
    :: else
    fi;
    head = nobody
}

inline set(by) {
    atomic {
        touch_event;
        if
        :: event == unset -> event = set_bit; tokens_in = tokens_in + AUTO; done = true
        :: (event & set_bit) != 0 -> done = true  /* x86: a fence and this look */
        :: (event & set_bit) != 0 -> done = false /* elsewhere, or it was gone at the second look */
        :: event == parked_bit ->
            d_step {
                do
                :: !AUTO && count < WAITERS ->
                    owed[by] = owed[by] | (((queued & bit(count)) != 0 && at[count].claim == open) -> bit(count) : 0);
                    count++
                :: else -> break
                od;
                count = 0
            }
        fi
    }
    if
    :: done
    :: !done && AUTO -> hand_over(by)
    :: !done && !AUTO -> open_gate(by)
    fi;
#if defined(WITNESS_DESTROYED_DURING_SET) || defined(WITNESS_DESTROYED_BY_A_POLLER)
    witness(event_exists);
#endif
    done = false
}

inline reset() {
    d_step {
        touch_event;
        tokens_wiped = tokens_wiped + (event & set_bit);
        event = event & ~set_bit;
        resets_left--
    }
}

proctype setter(byte by) {
    byte left = SETS, seen = 0, count = 0;
    byte head = nobody, tail = nobody, each = nobody, following = nobody, remaining = nobody;
    bool done = false, won = false, one_by_one = false;
    do
    :: left > 0 ->
        left--;
        set(by);
#if RESETS
        if
        :: resets_left > 0 -> reset()
        :: true
        fi
#endif
    :: else -> break
    od
}

/* -------------------------------------------------------------------------------- wait */

inline try_wait() {
    d_step {
        touch_event;
        took = (event & set_bit) != 0;
        event = ((took && AUTO) -> event & ~set_bit : event)
    }
}

/* Prepares the waiter and its node; nobody else sees them before they are queued. */
inline begin_wait(me) {
    d_step {
        at[me].exists = true;
        at[me].cancelable = kind != PLAIN;
        at[me].word = running;
        at[me].claim = open;
        at[me].others = nobody;
        at[me].next = nobody;
        may_time_out = (kind & (TIMED + BOTH)) != 0;
        waiting = waiting | bit(me)
    }
}

inline take_or_park(me) {
#ifdef MUTANT_NO_PARKED_RECHECK
    together { lock(me); begin_wait(me); event = event | parked_bit; append(me); unlock(me) }
#else
    together {
        lock(me);
        begin_wait(me);
        try_wait();
        if
        :: !took && queued != 0 -> append(me)
        :: else
        fi
    }
    together {
        if
        :: took || (queued & bit(me)) != 0
        :: else -> /* the compare-and-exchange, or try_wait again because it failed */
            d_step {
                touch_event;
                if
                :: (event & set_bit) != 0 -> event = (AUTO -> event & ~set_bit : event); took = true
#ifdef MUTANT_APPEND_AFTER_UNLOCK
                :: else -> event = parked_bit
#else
                :: else -> event = parked_bit; append(me)
#endif
                fi
            }
        fi;
        unlock(me)
    }
#ifdef MUTANT_APPEND_AFTER_UNLOCK
    if
    :: !took && (queued & bit(me)) == 0 -> append(me)
    :: else
    fi
#endif
#endif
}

inline unpark(me) {
    together {
        lock(me);
        if
        :: (queued & bit(me)) != 0 -> unlink(me)
        :: else
        fi;
        d_step {
            touch_event;
#ifdef MUTANT_UNPARK_CLEARS_ALWAYS
            event = event & ~parked_bit
#else
            event = (queued == 0 -> event & ~parked_bit : event)
#endif
        }
        unlock(me)
    }
}

/* What a stop request does, in whichever thread requests it. */
inline stop(w) {
#ifdef MUTANT_STOP_IGNORES_CLAIM
    d_step { touch(w); at[w].claim = stopped; won = true }
#else
    try_claim(w, stopped);
#endif
    if
    :: won -> won = false; move_to_released(w, nobody); wake_by_address(w)
    :: else ->
#ifdef WITNESS_STOP_LOSES
        witness(false);
#endif
        skip
    fi
}

inline sleep(me) {
#ifdef MUTANT_SLEEPING_STORED
    at[me].word = sleeping;
#else
    at[me].word = (at[me].word == running -> sleeping : at[me].word);
#endif
    do
    :: atomic {
           at[me].word == released ->
           chain = at[me].others;
           how = (at[me].claim >= timed_out -> at[me].claim : signaled);
           break
       }
#ifdef MUTANT_FUTEX_SLEEPS_WITHOUT_LOOK
    :: at[me].word != released -> at[me].asleep = true
#else
    :: d_step { at[me].word == sleeping -> at[me].asleep = true } /* look and fall asleep */
#endif
end_asleep:
        if
        :: !at[me].asleep
        :: d_step { at[me].asleep && spurious_left > 0 -> spurious_left--; at[me].asleep = false }
        :: atomic {
               may_time_out ->
               at[me].asleep = false;
#ifdef MUTANT_TIMEOUT_IGNORES_CLAIM
               d_step { at[me].claim = timed_out; won = true }
#else
               try_claim(me, timed_out);
#endif
               may_time_out = false;
               if
               :: won -> won = false; how = timed_out; break
               :: else ->
#ifdef WITNESS_TIMEOUT_LOSES
                   witness(false);
#endif
#ifdef MUTANT_LOSER_DOES_NOT_WAIT
                   how = signaled;
                   break
#else
                   skip
#endif
               fi
           }
        fi
    od;
    may_time_out = false;
    if
    :: chain != nobody ->
#ifdef WITNESS_RELAY
        witness(false);
#endif
        wake(chain);
        chain = nobody
    :: else
    fi
}

/* The constructor of the stop callback registers it, or calls it at once. */
inline register_callback(me) {
    if
    :: d_step { !stop_requested -> at[me].registered = true }
    :: stop_requested -> stop(me)
    fi
}

/* Its destructor waits until a call in another thread has ended. */
inline deregister_callback(me) {
#ifdef MUTANT_CALLBACK_NOT_AWAITED
    at[me].registered = false
#else
    d_step { !at[me].called_back -> at[me].registered = false }
#endif
}

#define stoppable ((kind & (STOPPABLE + BOTH)) != 0)

inline end_wait(me) {
    d_step {
        check(3, took || (how == signaled) == ((taken & bit(me)) != 0));
        at[me].exists = false;
        at[me].cancelable = false;
        at[me].word = running;
        at[me].claim = open;
        at[me].others = nobody;
        at[me].next = nobody;
        taken = taken & ~bit(me);
        waiting = waiting & ~bit(me);
        took = false;
        inside--;
        tokens_out = tokens_out + (AUTO && how == signaled);
        /* Once every set has shown its effect, none may touch the event any more: destroy it. */
        if
        :: how == signaled && inside == 0 && RESETS == 0 &&
           ((AUTO && tokens_out == SETTERS * SETS) || (!AUTO && SETTERS * SETS == 1)) -> event_exists = false
        :: else
        fi;
        how = open
    }
}

proctype waiter(byte me; byte kind) {
    byte left = WAITS, seen = 0, count = 0, how = open;
    byte each = nobody, following = nobody, remaining = nobody, chain = nobody;
    bool took = false, won = false, may_time_out = false;
    do
    :: left > 0 ->
        atomic {
            left--;
            if
            :: event_exists -> inside++
            :: else -> break
            fi;
            if
            :: kind != POLLING -> try_wait()
            :: else
            fi
        }
        if
        :: kind == POLLING ->
end_polling:
            if
            :: atomic { (event & set_bit) != 0 -> try_wait() }
            fi
        :: else
        fi;
        if
        :: took -> how = signaled
        :: !took && stoppable && stop_requested -> how = stopped
        :: else ->
            take_or_park(me);
            if
            :: took -> how = signaled
            :: else ->
                if
                :: stoppable -> register_callback(me)
                :: else
                fi;
                sleep(me);
                if
                :: stoppable -> deregister_callback(me)
                :: else
                fi;
                if
#ifdef MUTANT_SIGNAL_WITHOUT_DEQUEUE
                :: true -> unpark(me) /* each takes itself off the queue once it is awake */
#else
#ifndef MUTANT_LEAVES_WITHOUT_DELISTING
                :: how != signaled -> unpark(me)
#endif
                :: else
#endif
                fi
            fi
        fi;
        end_wait(me)
    :: else -> break
    od
}

/* One stop source for all. */
proctype requester() {
    byte seen = 0, w = 0;
    bool won = false;
    if
    :: stop_requested = true
    :: w = WAITERS /* never */
    fi;
    do
    :: w < WAITERS ->
        if
        :: d_step { at[w].registered -> at[w].registered = false; at[w].called_back = true }
           stop(w);
           at[w].called_back = false
        :: !at[w].registered
        fi;
        w++
    :: else -> break
    od
}

/* -------------------------------------------------------------------------------- start, and the last state */

init {
    byte w = 0, kind = PLAIN;
    atomic {
        do
        :: w < WAITERS ->
            do /* no kind before one with a smaller number: their order makes no difference */
            :: KINDS >= (kind << 1) -> kind = kind << 1
            :: (KINDS & kind) != 0 -> break
            od;
            run waiter(w, kind);
            w++
        :: else -> break
        od;
        w = 0;
        do
        :: w < SETTERS -> run setter(w); w++
        :: else -> break
        od;
        if
        :: (KINDS & (STOPPABLE + BOTH)) != 0 -> run requester()
        :: else
        fi;
        w = 0
    }
    timeout -> /* nobody can move any more */
    d_step {
        do
        :: w < WAITERS ->
            if
            :: (waiting & bit(w)) != 0 ->
                check(1, at[w].asleep && at[w].word == sleeping && at[w].claim == open);
                check(1, (queued & bit(w)) != 0 && (taken & bit(w)) == 0)
            :: else
            fi;
            w++
        :: else -> break
        od;
        check(1, inside == 0 || (event & set_bit) == 0);
        check(2, !AUTO || tokens_in == tokens_out + tokens_wiped + (event & set_bit))
    }
}
