-------------------- MODULE ReplicationConnectedIsUsable --------------------
(* A slave that is connected counts as usable, however far behind it is. *)
EXTENDS MCReplication

MutantSlaveUsable(isConnected, end, position) ==
    isConnected
=============================================================================
