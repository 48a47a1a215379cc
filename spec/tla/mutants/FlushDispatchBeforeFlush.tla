---------------------- MODULE FlushDispatchBeforeFlush ----------------------
(* Under SYNC_FLUSH, consumers see records that are not durable, as released before 5.3 (issue 8239). The
   offset of a lost record is used again, and the consumer is already past it. *)
EXTENDS MCFlush

MutantDispatchLimit ==
    Len(log)
==============================================================================
