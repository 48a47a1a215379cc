-------------------------- MODULE RetryDeadTooLate ---------------------------
(* The message is a dead letter one retry too late. *)
EXTENDS MCRetry

MutantCopy(i) ==
    LET retry == log[i].times + 1
        dead == log[i].times > RetriesMax
    IN [kind |-> IF dead THEN "dead" ELSE "delay", of |-> log[i].of, times |-> retry, from |-> i,
        at |-> IF dead THEN 0 ELSE now, due |-> IF dead THEN 0 ELSE now + Delay(retry)]
==============================================================================
