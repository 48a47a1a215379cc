----------------------- MODULE BroadcastCachedDropped ------------------------
(* A message that was pulled never reaches the listener. *)
EXTENDS MCBroadcast

MutantPull(m, q) ==
    /\ next[m][q] # 0
    /\ next[m][q] <= stored[q]
    /\ next' = [next EXCEPT ![m][q] = @ + 1]
    /\ UNCHANGED <<topic, alive, old, held, file, first, got>>
==============================================================================
