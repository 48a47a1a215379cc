------------------- MODULE TransactionsProgressAheadOfLog --------------------
(* The progress passes a half message whose end is not safe yet: a crash then loses the end. *)
EXTENDS MCTransactions

MutantDone(i) == \A t \in Halves(log)[i].of : Evidence(log, t) \/ Latest(log, t) > i
==============================================================================
