-------------------------- MODULE TraceReplication --------------------------
(***************************************************************************)
(* Checks that the event logs of a master and its slave are a behaviour of *)
(* Replication.                                                            *)
(*                                                                         *)
(* conformance/traces/pair.py converts one log of both nodes, in the order *)
(* of the events, into traces: byte offsets become positions, messages are *)
(* named in the order of the master's appends. A log does not record       *)
(* connections. They open and close here when an event requires it, and an *)
(* old connection is preferred where it explains as much as a new one. If  *)
(* only the master's log is available, the slave's steps are hidden too.   *)
(* The consumer is not part of these traces.                               *)
(*  - An fsync may have begun before the newest records were written.      *)
(*  - A clean exit is the end of a process that has flushed its whole log. *)
(***************************************************************************)
EXTENDS Replication, TraceData

VARIABLES t, l \* the index of the trace, and the index of its next event

TraceView == <<vars, t, l>>

Event == Traces[t][l]

Is(name) == l <= Len(Traces[t]) /\ Event.event = name /\ l' = l + 1 /\ UNCHANGED t

Hidden(name) == l <= Len(Traces[t]) /\ Event.event = name /\ UNCHANGED <<t, l>>

\* The first event contains the master's modes, if they are known, and whether the log contains the slave's
\* steps.
SlaveLogs == Traces[t][1].slave

TraceInit ==
    /\ t \in DOMAIN Traces /\ l = 1
    /\ Init
    /\ flushMode = Event.mode /\ Event.role \in {role, "unknown"}

Opened == Is("open") /\ UNCHANGED vars

-----------------------------------------------------------------------------
(* Connections, as far as an event requires one *)

\* Only another connection than the current one explains the next event.
AsksForAnother ==
    \/ Hidden("transfer") /\ (~intact \/ sent = NotRequested \/ Event.index < sent)
    \/ Hidden("append") /\ Event.node = "master" /\ Event.usable = "yes" /\ ~connected["master"]

\* Only a master that has no connection to a slave explains the next event.
AsksForNone == Hidden("append") /\ Event.node = "master" /\ Event.usable = "no" /\ connected["master"]

\* The connection is cut because an event requires another one, or none. This happens at most once per event: the
\* next connection starts at the end of the slave's log.
Gone ==
    /\ \/ AsksForNone
       \/ Hidden("transfer") /\ FirstReport(Len(log["slave"])) <= Event.index /\ Event.index < sent
    /\ Cut

SlaveHangsUp == AsksForAnother /\ Housekeeping("slave")

MasterHangsUp == AsksForNone /\ Housekeeping("master")

Connected == AsksForAnother /\ Connect

Asked == Hidden("transfer") /\ \E frame \in network : AcceptReport(frame)

-----------------------------------------------------------------------------
(* Records *)

Appended == Is("append") /\ Event.node = "master" /\ AppendRecord(Event.message)

SentOne == Hidden("transfer") /\ intact /\ sent + 1 < Event.index /\ TransferRecord

Transferred ==
    /\ Is("transfer")
    /\ \/ sent + 1 = Event.index /\ TransferRecord
       \/ intact /\ sent = Event.index /\ UNCHANGED vars

\* The slave's comparison of records is not recorded.
ComparedRecord == (Hidden("append") \/ Hidden("ack")) /\ ~verified /\ \E frame \in network : ReceiveTransfer(frame)

Received ==
    /\ Is("append") /\ Event.node = "slave"
    /\ Len(log["slave"]) + 1 = Event.index
    /\ verified /\ ReceiveTransfer(Transfer(Event.index - 1, Event.message))

ReceivedUnlogged ==
    /\ Hidden("ack") /\ ~SlaveLogs
    /\ Len(log["slave"]) < Event.index
    /\ verified /\ \E frame \in network : ReceiveTransfer(frame)

\* A report that is repeated, or that came over an older connection, changes nothing.
Acknowledged ==
    /\ Is("ack")
    /\ \/ Event.index > acked /\ ReceiveAck(Ack(Event.index))
       \/ Event.index <= acked /\ UNCHANGED vars

-----------------------------------------------------------------------------
(* Durability, and answers to producers *)

Flushed ==
    /\ Is("flush")
    /\ LET n == Event.node
       IN  \/ Event.index = Len(log[n]) /\ FlushLog(n)
           \/ Event.index <= flushed[n] /\ UNCHANGED vars
           \/ /\ Event.index \in (flushed[n] + 1)..(Len(log[n]) - 1)
              /\ flushed' = [flushed EXCEPT ![n] = Event.index]
              /\ UNCHANGED <<modes, phase, log, committed, connection, masterMemory, slaveMemory, clients, history>>

\* A later answer shows that the send's wait for the flush or for the slave had timed out, even if the message is
\* flushed or replicated now.
ShowsTimeout(m) ==
    \E k \in l..Len(Traces[t]) :
        Traces[t][k].event = "answer" /\ Traces[t][k].message = m /\ Traces[t][k].status # "SEND_OK"

GivenUp ==
    /\ Hidden("answer") \/ Hidden("ack") \/ Hidden("flush")
    /\ \E m \in Messages :
        /\ answer[m] = "waiting" /\ ShowsTimeout(m)
        /\ FlushTimeout(m) \/ SlaveTimeout(m)

Replied == Is("answer") /\ AnswerSend(Event.message) /\ answer'[Event.message] = Event.status

-----------------------------------------------------------------------------
(* Crashes, stops and starts of processes *)

Crashed ==
    /\ Is("crash")
    /\ IF Event.length = Len(log[Event.node]) THEN ProcessCrash(Event.node) ELSE SystemCrash(Event.node, Event.length)

Stopped == Is("stop") /\ flushed[Event.node] = Len(log[Event.node]) /\ ProcessCrash(Event.node)

Recovered == Is("recover") /\ Start(Event.node) /\ Len(log[Event.node]) = Event.length

TraceNext ==
    \/ Opened \/ Gone \/ SlaveHangsUp \/ MasterHangsUp \/ Connected \/ Asked
    \/ Appended \/ SentOne \/ Transferred \/ ComparedRecord \/ Received \/ ReceivedUnlogged \/ Acknowledged
    \/ Flushed \/ GivenUp \/ Replied \/ Crashed \/ Stopped \/ Recovered

=============================================================================
