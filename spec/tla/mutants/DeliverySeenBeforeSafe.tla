----------------------- MODULE DeliverySeenBeforeSafe ------------------------
(* What is not yet safe is handed out (issue 8239): a queue loses an end that the group has seen. *)
EXTENDS MCDelivery

MutantKeeps(queues) ==
    \A m \in Messages : answer[m] = "acked" => Stored(m, queues)
==============================================================================
