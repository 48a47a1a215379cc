---------------------- MODULE FlushPoolLostWithProcess ----------------------
(* Records wait in an off-heap buffer of the process before they reach the page cache (transientStorePoolEnable). *)
EXTENDS MCFlush

MutantProcessCrash ==
    /\ phase # "down"
    /\ LoseMemory
    /\ log' = Prefix(log, flushed)
    /\ crashes' = [crashes EXCEPT !.process = @ + 1]
    /\ UNCHANGED <<flushed, queueFiles>>
==============================================================================
