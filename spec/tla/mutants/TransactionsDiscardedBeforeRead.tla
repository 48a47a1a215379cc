------------------- MODULE TransactionsDiscardedBeforeRead -------------------
(* The broker discards before it has read the operations in its log. *)
EXTENDS MCTransactions

MutantMayCheck(t) ==
    /\ Latest(log, t) > progress
    /\ ready => ~Ended(t)
    /\ t \notin young
==============================================================================
