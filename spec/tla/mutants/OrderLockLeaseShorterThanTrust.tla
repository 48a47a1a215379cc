------------------- MODULE OrderLockLeaseShorterThanTrust --------------------
(* The broker gives a lock away that its holder still trusts: both count the same time. *)
EXTENDS MCOrderLock

MutantFree(m) ==
    holder \in {m, Nobody} \/ held >= RenewEvery
==============================================================================
