--------------------- MODULE RebalanceEverybodyOwnsAll -----------------------
(* Each member owns all queues, as in broadcast mode. *)
EXTENDS MCRebalance

MutantAverage(place, size, n) ==
    1..n
==============================================================================
