-------------------- MODULE TransactionsCheckedInImmunity --------------------
(* A message is checked although its immunity time is not over. *)
EXTENDS MCTransactions

MutantMayCheck(t) == ready /\ Open(t)
==============================================================================
