---------------------- MODULE FlushDispatchBeforeFlush ----------------------
(* Consumers see what is not durable under SYNC_FLUSH, as released before 5.3 (issue 8239): the offset of a lost
   record is used again, and the consumer is past it. *)
EXTENDS MCFlush

MutantDispatchLimit ==
    Len(log)
==============================================================================
