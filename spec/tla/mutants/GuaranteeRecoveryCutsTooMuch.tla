-------------------- MODULE GuaranteeRecoveryCutsTooMuch ---------------------
(* Recovery cuts the log to its last position that is known to be durable (issues 6703, 6609). *)
EXTENDS MCGuarantee

MutantRestart(n) ==
    /\ up[n] = "down"
    /\ up' = [up EXCEPT ![n] = "running"]
    /\ log' = [log EXCEPT ![n] = Prefix(@, flushed[n])]
    /\ UNCHANGED <<modes, flushed, reported, answer, struck>>
==============================================================================
