----------------------- MODULE DeliveryAckBeforeStore ------------------------
(* The broker answers when the message is in its memory, before it is stored anywhere: what is answered may be gone. *)
EXTENDS MCDelivery

MutantAcknowledge(m) ==
    /\ serving
    /\ answer[m] = "waiting"
    /\ answer' = [answer EXCEPT ![m] = "acked"]
    /\ UNCHANGED <<sends, queue, seen, committed, promise, serving>>
==============================================================================
