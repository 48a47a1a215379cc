------------------- MODULE TransactionsCommitAfterRollback -------------------
(* A commit is accepted after the rollback of the same transaction. *)
EXTENDS MCTransactions

MutantEnd(t, half, end) ==
    /\ ready
    /\ Request(t, half, end) \in requests
    /\ Named(t, half)
    /\ ~Has(log, "final", t) /\ ~Has(log, "discarded", t)
    /\ log' = IF end = "commit" THEN Append(log, Record("final", {t}, 0)) ELSE log
    /\ pending' = pending \cup {t}
    /\ UNCHANGED <<safe, ready, progress, young, phase, requests>>
==============================================================================
