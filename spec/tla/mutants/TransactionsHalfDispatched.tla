--------------------- MODULE TransactionsHalfDispatched ----------------------
(* The half message is dispatched to its real queue. *)
EXTENDS MCTransactions

MutantSend(t) ==
    /\ ready
    /\ phase[t] = "new"
    /\ phase' = [phase EXCEPT ![t] = "sent"]
    /\ log' = log \o <<Record("half", {t}, 0), Record("final", {t}, 0)>>
    /\ UNCHANGED <<safe, ready, pending, progress, young, requests>>
==============================================================================
