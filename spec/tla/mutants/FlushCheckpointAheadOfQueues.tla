-------------------- MODULE FlushCheckpointAheadOfQueues --------------------
(* The checkpoint is written before the queues that it covers are durable (issue 678). *)
EXTENDS MCFlush

MutantDurablePosition ==
    Min(flushed, dispatched)
==============================================================================
