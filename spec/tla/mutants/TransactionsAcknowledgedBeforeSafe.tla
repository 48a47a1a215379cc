----------------- MODULE TransactionsAcknowledgedBeforeSafe ------------------
(* A half message is acknowledged before it is safe. *)
EXTENDS MCTransactions

MutantAcknowledge(t) ==
    /\ phase[t] = "sent"
    /\ phase' = [phase EXCEPT ![t] = "running"]
    /\ UNCHANGED <<broker, young, requests>>
==============================================================================
