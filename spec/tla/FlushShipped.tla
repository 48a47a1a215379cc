----------------------------- MODULE FlushShipped -----------------------------
(* Deviations of released brokers from Flush. See docs/explanation/as-shipped.md for the details. *)
EXTENDS MCFlush

\* 4.9.8 and 5.3.3 (issues 2706, 3129, 3349, 5235): an fsync fails, and the broker only logs the error. The
\* flushed position advances, so all waiting requests up to it are answered. The disk contains no new data.
FsyncFails(n) ==
    /\ phase = "running" /\ mode = "SYNC_FLUSH"
    /\ n \in (flushed + 1)..Len(log)
    /\ answer' = [m \in Messages |-> IF answer[m] = "waiting" /\ Position(m) <= n THEN "SEND_OK" ELSE answer[m]]
    /\ answer' # answer
    /\ UNCHANGED <<mode, phase, logFiles, queueFiles, checkpoint, abort, persisted, memory, seen, history>>

ShippedNext == MCNext \/ \E n \in 1..Cardinality(Messages) : FsyncFails(n)

ShippedSpec == MCInit /\ [][ShippedNext]_vars

\* Before 5.3 (issue 8239): under SYNC_FLUSH too, records are dispatched and delivered before they are
\* durable.
ShippedDispatchLimit == Len(log)

\* With transientStorePoolEnable, records that are not flushed are in the memory of the process and are lost
\* with it.
ShippedProcessCrash ==
    /\ phase # "down"
    /\ LoseMemory
    /\ log' = Prefix(log, flushed)
    /\ crashes' = [crashes EXCEPT !.process = @ + 1]
    /\ UNCHANGED <<flushed, queueFiles>>

=============================================================================
