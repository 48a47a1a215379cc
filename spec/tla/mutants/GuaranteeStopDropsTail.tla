----------------------- MODULE GuaranteeStopDropsTail ------------------------
(* A stop does not wait for the last flush, and the tail of the log is lost with the process. *)
EXTENDS MCGuarantee

MutantCleanStop(n) ==
    /\ Running(n)
    /\ n = "master" => \A m \in Messages : answer[m] # "waiting"
    /\ Strike("clean", n, "down", flushed[n])
    /\ UNCHANGED flushed
==============================================================================
