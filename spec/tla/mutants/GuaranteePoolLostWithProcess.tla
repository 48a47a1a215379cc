-------------------- MODULE GuaranteePoolLostWithProcess ---------------------
(* Records are in the off-heap pool, in the memory of the process, until they are committed. *)
EXTENDS MCGuarantee

MutantProcessCrash(n) ==
    /\ Running(n)
    /\ Strike("process", n, "down", flushed[n])
    /\ UNCHANGED flushed
==============================================================================
