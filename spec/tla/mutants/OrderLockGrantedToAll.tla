------------------------ MODULE OrderLockGrantedToAll ------------------------
(* The broker refreshes the lock of whoever asks. *)
EXTENDS MCOrderLock

MutantFree(m) ==
    TRUE
==============================================================================
