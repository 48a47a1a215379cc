--------------------- MODULE ReplicationFlushStatusWins ---------------------
(* When both fail, the flush's status overwrites the replica's. *)
EXTENDS MCReplication

MutantPutStatus(flush, replica) ==
    CASE flush # "PUT_OK" -> flush
      [] replica # "PUT_OK" -> replica
      [] OTHER -> "SEND_OK"
=============================================================================
