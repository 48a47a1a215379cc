--------------------- MODULE TransactionsKeyNotCompared ----------------------
(* A request for a lost half message ends the message that was stored in its place. *)
EXTENDS MCTransactions

MutantNamed(t, half) == half <= Len(Halves(log))
==============================================================================
