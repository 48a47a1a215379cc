--------------------- MODULE RequestReplyLateReplyGiven ----------------------
(* The client gives a late or a second reply to a request that has ended. *)
EXTENDS MCRequestReply

MutantWaits(c, r) == outcome[r] \in {"waiting"} \cup Ends /\ caller[r] = c /\ results[r] < 2
==============================================================================
