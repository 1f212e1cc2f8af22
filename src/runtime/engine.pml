/* The engine's hand-over as a model: engine.cc, engine_background.cc, waiter.cc, and how io's EpollLoop falls asleep.
 *
 * What is asked: can the baton lie on the ground, or an operation be done, while everybody who should know is asleep? There is no time here,
 * so every lost wake-up is a state without a successor, which spin reports as an invalid end state. Besides: one thread drives at a time,
 * and a follower is not gone while it is being woken.
 *
 * A section under the engine's mutex is an atomic block, a thread that sleeps on a word blocks on its flag. Left out, because it could only
 * add wake-ups: spinning, the deadline of a leader, pollers and sockets. Operations end by what their thread posts, or by what a
 * peer sends later. A follower may give up, as at a deadline, and comes again. Where the background thread decides by time (whether to sleep deeply, whether nobody has driven for long) it decides freely here;
 * its doze ends by itself only after a vain summons, as the engine relies on, and otherwise IDLE_TIMEOUTS times.
 *
 *   spin -a engine.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan
 *
 * FAULT puts a mistake in, to show that the search finds such: 1 a leaver calls nobody, 2 a follower that gives up does not pass on,
 * 3 complete() does not wake its follower, 4 a deep sleeper is not summoned, 5 a waiter goes while complete() is on its way to it,
 * 6 the loop does not look at its flags again before it blocks.
 */
#ifndef WAITERS
#define WAITERS 3               /* threads that post and wait */
#endif
#ifndef WATCHERS
#define WATCHERS 1              /* threads that need the background thread, post, and only watch */
#endif
#ifndef ROUNDS
#define ROUNDS 1                /* operations of each */
#endif
#ifndef IDLE_TIMEOUTS
#define IDLE_TIMEOUTS 1
#endif
#ifndef DEADLINES
#define DEADLINES 1             /* how often each gives up at most */
#endif
#ifndef FAULT
#define FAULT 0
#endif
#define THREADS (WAITERS + WATCHERS)
#define NONE 255

mtype = { nobody, waiter, background };  /* Driver */
mtype = { awake, doze, deep };           /* Sleep, of the background thread */
mtype = { pending, enlisted, done };     /* a Completion; enlisted: it holds the address of its waiter */

/* The engine, under its mutex. */
mtype driver = nobody;
byte candidate = NONE;
bool follows[THREADS];                   /* is among the followers */
bool called[THREADS];
bool completed[THREADS];
byte needed = 0;
mtype bg_sleep = awake;
bool summoned = false;
bool quiet = false;
bool stopping = false;

/* Its atomics. */
mtype completion[THREADS];
bool leave = false;

/* The loop. */
bool posted[THREADS];
byte posts = 0;
bool asleep = false;
bool woken = false;
bool bell = false;

/* For the assertions, and for the end. */
byte drivers = 0;
byte at_work = THREADS;
bool waits[THREADS];
bool asked_of_peer[THREADS];

#define is_driven (driver != nobody || candidate != NONE)

inline ring() {
  if
  :: atomic { asleep -> asleep = false; bell = true }
  :: else
  fi
}

inline post(me) {
  atomic { posted[me] = true; posts++ };
  ring()
}

inline wake() {
  woken = true;
  ring()
}

/* Under the mutex. */
inline summon() {
  if
  :: bg_sleep == awake || summoned || quiet || (bg_sleep == doze && needed == 0) || (bg_sleep == deep && FAULT == 4)
  :: else -> summoned = true
  fi
}

/* Under the mutex. Which follower is called does not matter. */
inline call_next(i) {
  if
  :: candidate != NONE
  :: else ->
     i = 0;
     do
     :: i < THREADS && follows[i] && !completed[i] -> candidate = i; called[i] = true; break
     :: i < THREADS && !(follows[i] && !completed[i]) -> i++
     :: i == THREADS -> summon(); break
     od
  fi;
  i = 0
}

/* complete() of one thing that was posted: the exchange, and then, under the mutex, the wake-up. */
inline run_posted(i) {
  atomic {
    i = 0;
    do
    :: posted[i] -> break
    :: else -> i++
    od;
    posted[i] = false;
    posts--;
    assert(completion[i] != done);
    if
    :: completion[i] == enlisted -> completion[i] = done
    :: else -> completion[i] = done; i = NONE
    fi
  };
  atomic {
    if
    :: i != NONE -> assert(waits[i]); completed[i] = true; called[i] = FAULT != 3
    :: else
    fi;
    i = 0
  }
}

/* A turn that may block. Both sides write their flag before they read the other's. */
inline turn(i) {
  if
  :: posts > 0 -> run_posted(i)
  :: else ->
     asleep = true;
     if
     :: (woken || posts > 0) && FAULT != 6
     :: else -> bell
     fi;
     bell = false;
     asleep = false;
     woken = false
  fi
}

active [WAITERS] proctype Waiting() {
  byte me = _pid;
  byte i = 0;
  byte rounds = ROUNDS;
  byte deadlines = DEADLINES;
  bool gave_up = false;
  bool asks = false;
  bool owed = false;

begin:
  completion[me] = pending;
  if
  :: post(me)
  :: leave = leave || driver == background; post(me)  /* post_and_stay() */
  :: asked_of_peer[me] = true
  fi;

decide:
  atomic {
    waits[me] = true;
    if
    :: completion[me] == done || gave_up ->
       if
       :: driver == nobody && FAULT != 1 && !(FAULT == 2 && gave_up) -> call_next(i)
       :: else
       fi;
       waits[me] = false;
       goto over
    :: else ->
       if
       :: driver == nobody -> driver = waiter; drivers++; assert(drivers == 1); goto lead
       :: else ->
          completion[me] = enlisted;
          follows[me] = true;
          asks = driver == background;
          leave = leave || asks
       fi
    fi
  };
  if
  :: asks -> asks = false; wake()
  :: else
  fi;
  if
  :: called[me]
  :: deadlines > 0 -> deadlines--; gave_up = true
  fi;
  atomic {
    follows[me] = false;
    if
    :: candidate == me -> candidate = NONE
    :: else
    fi;
    if
    :: completion[me] == enlisted -> completion[me] = pending
    :: else -> owed = true                         /* complete() has found us: it will come to the mutex */
    fi
  };
  atomic {
    !owed || completed[me] || FAULT == 5;
    owed = false;
    completed[me] = false;
    called[me] = false
  };
  goto decide;

lead:
  do
  :: completion[me] == done -> break
  :: else -> turn(i)
  od;
  atomic { drivers--; driver = nobody };
  goto decide;

over:
  if
  :: completion[me] != done -> gave_up = false; goto decide
  :: else -> rounds--
  fi;
  if
  :: rounds > 0 -> gave_up = false; goto begin
  :: else -> at_work--
  fi
}

active [WATCHERS] proctype Watching() {
  byte me = _pid;
  byte rounds = ROUNDS;

  do
  :: rounds == 0 -> break
  :: else ->
     rounds--;
     completion[me] = pending;
     atomic {
       needed++;
       if
       :: !is_driven -> summon()
       :: else
       fi
     };
     post(me);
     completion[me] == done;
     atomic { needed-- }
  od;
  at_work--
}

active proctype Background() {
  byte i = 0;
  byte timeouts = IDLE_TIMEOUTS;
  byte puts_off = IDLE_TIMEOUTS;
  bool vain = false;

look:
  atomic {
    if
    :: stopping -> goto stopped
    :: !stopping && !is_driven ->                  /* needed, or nobody has driven for long */
       summoned = false;
       leave = false;
       driver = background;
       drivers++;
       assert(drivers == 1);
       goto drive
    :: !stopping && !is_driven && needed > 0 && puts_off > 0 ->  /* somebody has driven a moment ago */
       puts_off--;
       summoned = false;
       bg_sleep = doze;
       quiet = true
    :: !stopping && (is_driven || needed == 0) ->
       vain = summoned && needed > 0;
       summoned = false;
       if
       :: is_driven -> bg_sleep = deep
       :: bg_sleep = doze; quiet = vain
       fi
    fi
  };
  atomic {
    if
    :: summoned || stopping || quiet
    :: bg_sleep == doze && timeouts > 0 -> timeouts--
    fi;
    bg_sleep = awake;
    quiet = false
  };
  goto look;

drive:
  do
  :: leave -> break
  :: else -> turn(i)
  od;
  atomic {
    drivers--;
    driver = nobody;
    call_next(i);
    if
    :: bg_sleep = doze; quiet = true               /* keeps away for a while */
    :: goto look
    fi
  };
  atomic { bg_sleep = awake; quiet = false };
  goto look;

stopped:
  skip
}

/* A socket becomes ready in one step, also for a thread that is asleep. */
inline answer(i) {
  atomic {
    asked_of_peer[i] -> asked_of_peer[i] = false;
    posted[i] = true;
    posts++;
    if
    :: asleep -> bell = true
    :: else
    fi
  }
}

active proctype Peer() {
  do
  :: answer(0)
#if WAITERS > 1
  :: answer(1)
#endif
#if WAITERS > 2
  :: answer(2)
#endif
  :: at_work == 0 -> break
  od
}

active proctype Stopping() {
  at_work == 0;
  atomic { assert(driver != waiter && candidate == NONE); stopping = true; leave = true };
  wake()
}
