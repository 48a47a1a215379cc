-------------------- MODULE RebalanceUnlistedTakesFirst ----------------------
(* A member that the broker does not list takes the first place. *)
EXTENDS MCRebalance

MutantShare(b, m) ==
    IF known[b] = <<>> THEN {} ELSE Average(IF Knows(b, m) THEN Position(b, m) ELSE 0, Len(known[b]), route[m])
==============================================================================
