-------------------- MODULE RebalanceLeaverForgottenOnce ---------------------
(* The end of a member is noticed by the first broker only. *)
EXTENDS MCRebalance

MutantForget(b, m) ==
    /\ m \notin alive
    /\ \A c \in Brokers : Knows(c, m)
    /\ known' = [known EXCEPT ![b] = SelectSeq(@, LAMBDA n : n # m)]
    /\ UNCHANGED <<queues, alive, route, share, basis>>
==============================================================================
