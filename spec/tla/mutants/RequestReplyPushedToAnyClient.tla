-------------------- MODULE RequestReplyPushedToAnyClient --------------------
(* The broker pushes the reply to any client of the producer group. *)
EXTENDS MCRequestReply

MutantReply(r) ==
    /\ r \in stored
    /\ \E c \in registered :
        /\ Push(r, c) \notin pushes
        /\ pushes' = pushes \cup {Push(r, c)}
    /\ UNCHANGED <<registered, stored, confirmed, client>>
==============================================================================
