---------------------------- MODULE TimersShipped -----------------------------
(* Deviations of released brokers, each with the number of its issue. A configuration selects one of them. *)
EXTENDS MCTimers

CONSTANT Illegal \* the messages that a client stored in the internal queue without a time

\* Issue 11156: the roll service rolls the same messages again.
RolledAgain(t) ==
    /\ ready
    /\ Count("timer", t) < CopiesMax
    /\ \E i \in Waits(t) : log' = Append(log, Record("timer", t, log[i].due))
    /\ UNCHANGED <<begin, safe, memory, now, producer>>

\* Issue 10872: a delay that overflows means at once.
OverflowingSend(t, delay) ==
    /\ ready
    /\ phase[t] = "new"
    /\ phase' = [phase EXCEPT ![t] = "sent"]
    /\ asked' = [asked EXCEPT ![t] = now + delay]
    /\ log' = Append(log, Record("timer", t, IF delay > DelayMax THEN now ELSE now + delay))
    /\ UNCHANGED <<begin, safe, memory, now>>

\* Issue 10668: the files of the timer are written apart from the log, and refer to a part that a crash removed.
CrashBelowFiles(length) ==
    /\ length \in safe..Len(log)
    /\ log' = SubSeq(log, 1, length)
    /\ ready' = FALSE
    /\ UNCHANGED <<begin, safe, read, waiting, now, producer>>

ReadOfFiles ==
    /\ ~ready
    /\ ready' = TRUE
    /\ waiting' = {i \in waiting : i <= Len(log)}
    /\ UNCHANGED <<log, begin, safe, read, now, producer>>

\* The progress is stored every second, and a restart does not look for what was delivered since.
ProgressBehind(t) == Has("recall", t, begin, Len(log))

\* Observed in 5.5.0: any client may send to the internal queue, and a message without a time ends the reading.
StopsAtIllegal ==
    /\ ready
    /\ read < Len(log)
    /\ log[read + 1].of \cap Illegal = {}
    /\ read' = read + 1
    /\ waiting' = IF log[read + 1].kind = "timer" THEN waiting \cup {read + 1} ELSE waiting
    /\ UNCHANGED <<log, begin, safe, ready, now, producer>>

\* Also after a restart, the broker reads on where it stopped.
ReadStops ==
    /\ ~ready
    /\ ready' = TRUE
    /\ read' = IF \E i \in 1..Len(log) : log[i].of \cap Illegal # {}
               THEN Min({i \in 1..Len(log) : log[i].of \cap Illegal # {}}) - 1 ELSE Len(log)
    /\ waiting' = {i \in Recovered : i <= read'}
    /\ UNCHANGED <<log, begin, safe, now, producer>>

\* A message with a time is delivered.
OthersDelivered ==
    \A t \in Msgs \ Illegal :
        phase[t] = "acked" /\ now >= asked[t] ~> Has("final", t, 0, safe) \/ Has("recall", t, 0, safe)
===============================================================================
