------------------------------- MODULE Greedy -------------------------------
(* Breaks WithinMax: adding forgets the bound. *)
EXTENDS Counter

GreedyAdd(n, by) ==
    /\ owner = n /\ count[n] <= Max
    /\ count' = [count EXCEPT ![n] = @ + by]
    /\ log' = <<[node |-> n, by |-> by]>>
    /\ UNCHANGED owner
=============================================================================
