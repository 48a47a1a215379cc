---------------------- MODULE OrderLockUnlockedByOthers ----------------------
(* The broker unlocks for whoever says so, not for the holder alone. *)
EXTENDS MCOrderLock

MutantUnlockQueue(m) ==
    /\ MayUnlock(m)
    /\ holder' = Nobody
    /\ held' = 0
    /\ Left(m)
==============================================================================
