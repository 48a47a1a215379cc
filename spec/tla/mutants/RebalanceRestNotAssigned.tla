---------------------- MODULE RebalanceRestNotAssigned -----------------------
(* The queues that remain after equal blocks have no owner. *)
EXTENDS MCRebalance

MutantAverage(place, size, n) ==
    place * (n \div size) + 1..(place + 1) * (n \div size)
==============================================================================
