------------------------- MODULE RetryDeadTooEarly ---------------------------
(* The message is a dead letter one retry too early. *)
EXTENDS MCRetry

MutantCopy(i) ==
    LET retry == log[i].times + 1
        dead == retry >= RetriesMax
    IN [kind |-> IF dead THEN "dead" ELSE "delay", of |-> log[i].of, times |-> retry, from |-> i,
        at |-> IF dead THEN 0 ELSE now, due |-> IF dead THEN 0 ELSE now + Delay(retry)]
==============================================================================
