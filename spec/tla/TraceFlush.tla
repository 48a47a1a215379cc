----------------------------- MODULE TraceFlush -----------------------------
(***************************************************************************)
(* Checks that a broker's event log is a behaviour of Flush.               *)
(*                                                                         *)
(* conformance/traces/store.py converts an event log into traces: messages *)
(* are named in the order of their appends, byte offsets become positions, *)
(* and a settled front of the log (durable, dispatched, answered) is left  *)
(* out. The consumer is not part of these traces.                          *)
(***************************************************************************)
EXTENDS Flush, Integers, TraceData

VARIABLES t, l \* the index of the trace, and the index of its next event

TraceView == <<vars, t, l>>

Event == Traces[t][l]

Is(name) == l <= Len(Traces[t]) /\ Event.event = name /\ l' = l + 1 /\ UNCHANGED t

Hidden(name) == l <= Len(Traces[t]) /\ Event.event = name /\ UNCHANGED <<t, l>>

TraceInit == Init /\ t \in DOMAIN Traces /\ l = 1

(* The first event contains the broker's flush mode. *)
Opened == Is("open") /\ mode = Event.mode /\ UNCHANGED vars

Appended ==
    /\ Is("append")
    /\ nextOffset[Event.queue] = Event.offset
    /\ AppendRecord(Event.message, Event.queue)

(* An fsync that found no new record changes nothing. *)
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

(* The checkpoint file contains times, not positions, so writing it is not in the log. *)
ShutDown == (Is("shutdown") /\ Shutdown) \/ (Hidden("shutdown") /\ WriteCheckpoint)

(* One disk image is enough for all that recover to this length: the one without a torn record and with all
   queue entries. *)
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
