------------------------ MODULE RetryTimesNotCounted -------------------------
(* The copy has the number of retries of its original, so the message never becomes a dead letter. *)
EXTENDS MCRetry

MutantCopy(i) ==
    LET retry == log[i].times
        dead == log[i].times >= RetriesMax
    IN [kind |-> IF dead THEN "dead" ELSE "delay", of |-> log[i].of, times |-> retry, from |-> i,
        at |-> IF dead THEN 0 ELSE now, due |-> IF dead THEN 0 ELSE now + Delay(retry + 1)]
==============================================================================
