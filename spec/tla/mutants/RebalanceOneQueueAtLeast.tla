---------------------- MODULE RebalanceOneQueueAtLeast -----------------------
(* Each member gets at least one queue, also if there are fewer queues than members. *)
EXTENDS MCRebalance

MutantAverage(place, size, n) ==
    IF place >= n THEN {n} ELSE
    LET first == place * (n \div size) + Min(place, n % size)
        last == (place + 1) * (n \div size) + Min(place + 1, n % size)
    IN first + 1..last
==============================================================================
