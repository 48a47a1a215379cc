------------------------------- MODULE MCFlush -------------------------------
(* Flush, bounded: only so many crashes. Everything else is bounded by Messages. *)
EXTENDS Flush

CONSTANT MaxCrashes

MayCrash == crashes.process + crashes.system < MaxCrashes

MCProcessCrash == MayCrash /\ ProcessCrash
MCOsCrash(n, torn, kept) == MayCrash /\ OsCrash(n, torn, kept)
MCPowerLoss == MayCrash /\ PowerLoss

MCNext ==
    \/ Serve \/ Consume \/ Shutdown \/ Recover
    \/ MCProcessCrash
    \/ \E n \in 0..Len(log), torn \in BOOLEAN, kept \in [Queues -> 0..Len(log)] : MCOsCrash(n, torn, kept)
    \/ MCPowerLoss

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness
=============================================================================
