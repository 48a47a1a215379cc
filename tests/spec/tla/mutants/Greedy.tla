------------------------------- MODULE Greedy -------------------------------
(* Violates WithinMax: GreedyAdd does not limit the new count. *)
EXTENDS Counter

GreedyAdd(n, by) ==
    /\ owner = n /\ count[n] <= Max
    /\ count' = [count EXCEPT ![n] = @ + by]
    /\ log' = <<[node |-> n, by |-> by]>>
    /\ UNCHANGED owner
=============================================================================
