----------------- MODULE RequestReplyCorrelationNotCompared ------------------
(* The client gives a reply to any of its requests that wait. *)
EXTENDS MCRequestReply

MutantReceive(c, r, arrives) ==
    /\ Push(r, c) \in pushes
    /\ pushes' = pushes \ {Push(r, c)}
    /\ received' = received \cup {r}
    /\ \E s \in Calls : Waits(c, s) /\ Finish(s, "reply") /\ got' = [got EXCEPT ![s] = r]
    /\ confirmed' = IF arrives THEN confirmed \cup {r} ELSE confirmed
    /\ UNCHANGED <<registered, stored, caller>>
==============================================================================
