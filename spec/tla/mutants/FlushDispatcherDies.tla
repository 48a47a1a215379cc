------------------------- MODULE FlushDispatcherDies -------------------------
(* The dispatch thread ends after its first record, without any report (as in issue 7902). *)
EXTENDS MCFlush

MutantDispatchLimit ==
    Min(1, IF mode = "SYNC_FLUSH" THEN flushed ELSE Len(log))
==============================================================================
