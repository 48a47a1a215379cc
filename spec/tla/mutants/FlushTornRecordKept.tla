------------------------- MODULE FlushTornRecordKept -------------------------
(* Recovery forgets to check the last record. *)
EXTENDS MCFlush

MutantRecoveredLog ==
    log
==============================================================================
