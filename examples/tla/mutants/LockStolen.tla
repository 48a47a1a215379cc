----------------------------- MODULE LockStolen -----------------------------
(* A broken variant: the server grants the lock although it has a holder. NotTaken must notice. *)
EXTENDS Lock

Steal(c) == c \in waiting /\ holder' = c /\ waiting' = waiting \ {c}

MutantNext == Next \/ \E c \in Clients : Steal(c)
MutantSpec == Init /\ [][MutantNext]_vars
=============================================================================
