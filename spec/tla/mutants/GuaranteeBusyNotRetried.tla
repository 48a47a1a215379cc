----------------------- MODULE GuaranteeBusyNotRetried -----------------------
(* A synchronous send gives up: clients of 4.x do not retry the answer SYSTEM_BUSY. *)
EXTENDS MCGuarantee

MutantGiveUp(m) ==
    /\ answer[m] = "broken"
    /\ answer' = [answer EXCEPT ![m] = "error"]
    /\ UNCHANGED <<modes, up, files, reported, struck>>
==============================================================================
