-------------------- MODULE FlushCheckpointAheadOfQueues --------------------
(* The checkpoint is written before the queues it speaks of are durable (issue 678). *)
EXTENDS MCFlush

MutantDurablePosition ==
    Min(flushed, dispatched)
==============================================================================
