----------------------- MODULE OrderLockUnlockedInCall -----------------------
(* A queue that moves is unlocked without waiting for its listener. *)
EXTENDS MCOrderLock

MutantMayUnlock(m) ==
    m \in leaving /\ asking[m] = "no"
==============================================================================
