----------------------------- MODULE FlushShipped -----------------------------
(* What released brokers do otherwise than Flush; docs/explanation/as-shipped.md tells the stories. *)
EXTENDS MCFlush

\* 4.9.8 and 5.3.3 (issues 2706, 3129, 3349, 5235): an fsync fails, which is only logged. The position of what is flushed
\* moves on, so that all who waited for it are answered; on the disk nothing is new.
FsyncFails(n) ==
    /\ phase = "running" /\ mode = "SYNC_FLUSH"
    /\ n \in (flushed + 1)..Len(log)
    /\ answer' = [m \in Messages |-> IF answer[m] = "waiting" /\ Position(m) <= n THEN "SEND_OK" ELSE answer[m]]
    /\ answer' # answer
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, seen, history>>

ShippedNext == MCNext \/ \E n \in 1..Cardinality(Messages) : FsyncFails(n)

ShippedSpec == MCInit /\ [][ShippedNext]_vars

\* Before 5.3 (issue 8239): under SYNC_FLUSH, too, records are dispatched and delivered that are not yet durable.
ShippedDispatchLimit == Len(log)

\* With transientStorePoolEnable: records that are not flushed wait in the process, and are gone with it.
ShippedProcessCrash ==
    /\ phase # "down"
    /\ LoseMemory
    /\ log' = Prefix(log, flushed)
    /\ crashes' = [crashes EXCEPT !.process = @ + 1]
    /\ UNCHANGED <<flushed, queueFiles>>

=============================================================================
