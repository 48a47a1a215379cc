-------------------- MODULE RoutingOnlyLiveRecordRemoved ---------------------
(* A broker that has expired loses its live record and keeps its address. *)
EXTENDS MCRouting

MutantForgotten(table, gone) ==
    [table EXCEPT !.live = [b \in Brokers |-> IF b \in gone THEN NoRecord ELSE @[b]]]
==============================================================================
