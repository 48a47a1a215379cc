--------------------- MODULE BroadcastPulledIsConsumed -----------------------
(* The file contains the next place to pull. What was pulled and not consumed is lost when the member ends. *)
EXTENDS MCBroadcast

MutantOffset(m, q) ==
    next[m][q]
==============================================================================
