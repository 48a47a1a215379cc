-------------------- MODULE TransactionsLastCheckRepeated --------------------
(* A message that was checked often enough is neither checked nor discarded. *)
EXTENDS MCTransactions

MutantDiscard(t) == FALSE
==============================================================================
