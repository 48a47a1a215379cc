------------------------- MODULE QueueChoiceShipped -------------------------
(* Deviations of released versions from QueueChoice. See docs/explanation/as-shipped.md for the details. *)
EXTENDS MCQueueChoice

\* 4.9, with the latency fault strategy on: the last broker is not avoided. If no broker is available, the
\* round robin uses the faster half of the brokers. A refused connection counts as the fastest result.
ShippedWanted ==
    IF ~strategy THEN IF tried = <<>> \/ route = {Last} THEN route ELSE route \ {Last}
    ELSE IF Available # {} THEN Available
    ELSE IF tried # <<>> THEN {Last}
    ELSE route
=============================================================================
