------------------ MODULE TransactionsOperationBeforeFinal -------------------
(* The end of a transaction is recorded before its message is written. *)
EXTENDS MCTransactions

MutantEnd(t, half, end) ==
    /\ ready
    /\ Request(t, half, end) \in requests
    /\ Named(t, half)
    /\ Open(t)
    /\ pending' = pending \cup {t}
    /\ UNCHANGED <<log, safe, ready, progress, young, phase, requests>>
==============================================================================
