-------------------- MODULE TransactionsFinalIsNoEvidence --------------------
(* Only the operation record shows that a transaction ended: a crash before it commits the message again. *)
EXTENDS MCTransactions

MutantEvidence(records, t) == Has(records, "discarded", t) \/ Has(records, "op", t)
==============================================================================
