-------------------- MODULE FlushOffsetsFromDurableQueues --------------------
(* The table of next offsets is rebuilt without the newest entries: two records share an offset (as in issue 7689). *)
EXTENDS MCFlush

MutantRebuiltOffset(q) ==
    queueFlushed[q]
==============================================================================
