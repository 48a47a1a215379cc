----------------------- MODULE RequestReplyNoTimeLimit -----------------------
(* A request without a reply waits forever. *)
EXTENDS MCRequestReply

MutantExpire(r) == FALSE /\ UNCHANGED vars
==============================================================================
