----------------------- MODULE TransactionsCopyNotRead -----------------------
(* After a restart the broker looks only at half messages, not at their copies. *)
EXTENDS MCTransactions

MutantMayCheck(t) == ready /\ Open(t) /\ t \notin young /\ Times(t) = 0
==============================================================================
