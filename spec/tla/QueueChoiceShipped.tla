------------------------- MODULE QueueChoiceShipped -------------------------
(* What releases do otherwise than QueueChoice; docs/explanation/as-shipped.md tells the stories. *)
EXTENDS MCQueueChoice

\* 4.9, with the latency fault strategy on: the last broker is not avoided. When nobody is available, the half that
\* answered fastest is gone round, and nothing is faster than a connection that is refused.
ShippedWanted ==
    IF ~strategy THEN IF tried = <<>> \/ route = {Last} THEN route ELSE route \ {Last}
    ELSE IF Available # {} THEN Available
    ELSE IF tried # <<>> THEN {Last}
    ELSE route
=============================================================================
