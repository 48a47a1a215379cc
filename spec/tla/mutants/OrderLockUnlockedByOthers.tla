---------------------- MODULE OrderLockUnlockedByOthers ----------------------
(* The broker accepts an unlock from any member, not only from the holder. *)
EXTENDS MCOrderLock

MutantUnlockQueue(m) ==
    /\ MayUnlock(m)
    /\ holder' = NoMember
    /\ held' = 0
    /\ Left(m)
==============================================================================
