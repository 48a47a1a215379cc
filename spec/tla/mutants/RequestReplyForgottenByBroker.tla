-------------------- MODULE RequestReplyForgottenByBroker --------------------
(* A client that has lost its connection is not known to the broker any more, because it sends no other heartbeat. *)
EXTENDS MCRequestReply

MutantConnect(c) ==
    /\ c \notin registered
    /\ \A r \in Calls : caller[r] # c
    /\ registered' = registered \cup {c}
    /\ UNCHANGED <<stored, pushes, confirmed, client>>
==============================================================================
