-------------------- MODULE GuaranteeOverloadDropsOneway ---------------------
(* A busy broker drops oneway requests without any report. *)
EXTENDS MCGuarantee

MutantAppendRecord(m) ==
    /\ Running("master")
    /\ answer[m] = "sent"
    /\ IF producer = "oneway" THEN UNCHANGED log ELSE log' = [log EXCEPT !["master"] = @ \o <<m>>]
    /\ answer' = [answer EXCEPT ![m] = IF producer = "oneway" THEN "silence" ELSE "waiting"]
    /\ UNCHANGED <<modes, up, flushed, reported, struck>>
==============================================================================
