------------------------------ MODULE Counter ------------------------------
(* A lock and a counter per node: few enough states to count by hand, enough syntax to test a parser. *)
EXTENDS Naturals, Sequences

CONSTANTS Nodes, NoNode, Max

VARIABLES count, owner, log
vars == <<count, owner, log>>

Init ==
    /\ count = [n \in Nodes |-> 0]
    /\ owner = NoNode
    /\ log = << >>

Take(n) == owner = NoNode /\ owner' = n /\ UNCHANGED <<count, log>>

Add(n, by) ==
    /\ owner = n
    /\ count[n] + by <= Max
    /\ count' = [count EXCEPT ![n] = @ + by]
    /\ log' = <<[node |-> n, by |-> by]>>
    /\ UNCHANGED owner

Drop == owner # NoNode /\ owner' = NoNode /\ UNCHANGED <<count, log>>

Next ==
    \/ \E n \in Nodes : Take(n)
    \/ \E n \in Nodes, by \in 1..2 : Add(n, by)
    \/ Drop

Spec == Init /\ [][Next]_vars
AddAny == \E n \in Nodes, by \in 1..2 : Add(n, by)
TakeAny == \E n \in Nodes : Take(n)
FairSpec == Spec /\ WF_vars(TakeAny) /\ WF_vars(Drop) /\ \A n \in Nodes : SF_vars(Add(n, 1))
UnfairSpec == Spec /\ WF_vars(TakeAny)

TypeOK == count \in [Nodes -> 0..Max] /\ owner \in Nodes \cup {NoNode}
WithinMax == \A n \in Nodes : count[n] <= Max
NeverFull == \A n \in Nodes : count[n] < Max
NeverTwo == count # [n \in Nodes |-> 2]
NeverDown == [][\A n \in Nodes : count'[n] >= count[n]]_vars
NeverDropped == [][owner' # NoNode]_vars
Settles == <>[](owner = NoNode)
Takes == <>(owner # NoNode)
=============================================================================
