----------------------- MODULE DeliverySeenBeforeSafe ------------------------
(* Messages are delivered before they are safe (issue 8239): a queue loses an end that the group has seen. *)
EXTENDS MCDelivery

MutantKeeps(queues) ==
    \A m \in Messages : answer[m] = "acked" => Stored(m, queues)
==============================================================================
