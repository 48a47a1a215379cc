------------------------- MODULE RetryCommitsFailed --------------------------
(* The offset passes a message that failed and is not sent back yet. *)
EXTENDS MCRetry

MutantPassed ==
    done \cup failed
==============================================================================
