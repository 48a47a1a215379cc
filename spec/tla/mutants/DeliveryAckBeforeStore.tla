----------------------- MODULE DeliveryAckBeforeStore ------------------------
(* The broker answers when the message is only in its memory. An acknowledged message may be lost. *)
EXTENDS MCDelivery

MutantAcknowledge(m) ==
    /\ serving
    /\ answer[m] = "waiting"
    /\ answer' = [answer EXCEPT ![m] = "acked"]
    /\ UNCHANGED <<sends, queue, seen, committed, promise, serving>>
==============================================================================
