------------------------ MODULE OrderLockGrantedToAll ------------------------
(* The broker grants the lock to every member that asks. *)
EXTENDS MCOrderLock

MutantFree(m) ==
    TRUE
==============================================================================
