--------------------- MODULE TimersPointAheadOfDelivery ---------------------
(* A point says that all messages are done whose time is over, although one still waits. *)
EXTENDS MCTimers

MutantUpto == now
==============================================================================
