---------------------- MODULE RebalanceDeadMemberStays -----------------------
(* A broker keeps a member whose heartbeats are missing. *)
EXTENDS MCRebalance

MutantForget(b, m) ==
    FALSE
==============================================================================
