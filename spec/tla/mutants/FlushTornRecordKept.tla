------------------------- MODULE FlushTornRecordKept -------------------------
(* Recovery does not check the last record. *)
EXTENDS MCFlush

MutantRecoveredLog ==
    log
==============================================================================
