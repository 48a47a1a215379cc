------------------- MODULE OrderLockLeaseShorterThanTrust --------------------
(* The broker grants a lock to another member while its holder still trusts it: lease and trust have the
   same length. *)
EXTENDS MCOrderLock

MutantFree(m) ==
    holder \in {m, NoMember} \/ held >= RenewEvery
==============================================================================
