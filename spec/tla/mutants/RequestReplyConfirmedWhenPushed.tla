------------------- MODULE RequestReplyConfirmedWhenPushed -------------------
(* The broker answers SUCCESS when it has pushed the reply, without the confirmation of the client. *)
EXTENDS MCRequestReply

MutantReply(r) ==
    /\ r \in stored
    /\ caller[r] \in registered
    /\ Push(r, caller[r]) \notin pushes
    /\ pushes' = pushes \cup {Push(r, caller[r])}
    /\ confirmed' = confirmed \cup {r}
    /\ UNCHANGED <<registered, stored, client>>
==============================================================================
