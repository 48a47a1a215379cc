----------------------- MODULE DeliverySwallowedError ------------------------
(* An error of the append or of the fsync is only logged, and the answer is SEND_OK (issues 2706, 3129,
   5235): a queue loses an end that was acknowledged. *)
EXTENDS MCDelivery

MutantKeeps(queues) ==
    \A q \in Queues : Len(seen[q]) <= Len(queues[q])
==============================================================================
