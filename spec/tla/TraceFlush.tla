----------------------------- MODULE TraceFlush -----------------------------
(***************************************************************************)
(* Is what a broker wrote into its event log a behaviour of Flush?         *)
(*                                                                         *)
(* conformance/traces/store.py turns an event log into traces: messages are named *)
(* in the order of their appends, byte offsets become positions, and a     *)
(* settled front of the log (durable, dispatched, answered) is left out.   *)
(* The consumer is not part of these traces.                               *)
(***************************************************************************)
EXTENDS Flush, Integers, TraceData

VARIABLES t, l \* which trace, and which event of it is next

TraceView == <<vars, t, l>>

Event == Traces[t][l]

Is(name) == l <= Len(Traces[t]) /\ Event.event = name /\ l' = l + 1 /\ UNCHANGED t

Hidden(name) == l <= Len(Traces[t]) /\ Event.event = name /\ UNCHANGED <<t, l>>

TraceInit == Init /\ t \in DOMAIN Traces /\ l = 1

(* The first event says which mode the broker ran in. *)
Opened == Is("open") /\ mode = Event.mode /\ UNCHANGED vars

Appended ==
    /\ Is("append")
    /\ nextOffset[Event.queue] = Event.offset
    /\ AppendRecord(Event.message, Event.queue)

(* An fsync that found nothing new changes nothing. *)
Flushed ==
    /\ Is("flush")
    /\ FlushLog(Event.length) \/ (Event.length = flushed /\ UNCHANGED vars)

Replied ==
    /\ Is("answer")
    /\ \/ Event.status = "SEND_OK" /\ AnswerOk(Event.message)
       \/ Event.status = "FLUSH_DISK_TIMEOUT" /\ AnswerTimeout(Event.message)

Dispatched ==
    /\ Is("dispatch")
    /\ Event.position = dispatched + 1
    /\ Dispatch
    /\ log[Event.position].queue = Event.queue /\ log[Event.position].offset = Event.offset

QueuesFlushed ==
    /\ Is("flush_queues")
    /\ \/ FlushQueues(Event.length)
       \/ (\A q \in Queues : queueFlushed[q] >= EntriesUpTo(q, Event.length)) /\ UNCHANGED vars

(* The checkpoint file holds times, not positions, so that its writing is not in the log. *)
ShutDown == (Is("shutdown") /\ Shutdown) \/ (Hidden("shutdown") /\ WriteCheckpoint)

(* Of all images that would be recovered to this length one is enough: without the torn record, with all queues. *)
Crashed ==
    /\ Is("crash")
    /\ IF Event.length = Len(log)
       THEN ProcessCrash
       ELSE OsCrash(Event.length, FALSE, [q \in Queues |-> Len(queue[q])])

Recovered ==
    \/ Hidden("recover") /\ (RecoverLog \/ TruncateQueues \/ Redispatch)
    \/ Is("recover") /\ Start /\ Event.length = Len(log)

TraceNext ==
    \/ Opened \/ Appended \/ Flushed \/ Replied \/ Dispatched \/ QueuesFlushed
    \/ ShutDown \/ Crashed \/ Recovered

=============================================================================
