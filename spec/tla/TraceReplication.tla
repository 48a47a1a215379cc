-------------------------- MODULE TraceReplication --------------------------
(***************************************************************************)
(* Is what a master and its slave wrote into their event logs a behaviour  *)
(* of Replication?                                                         *)
(*                                                                         *)
(* conformance/traces/pair.py turns one log of both, in the order in which  *)
(* things happened, into traces: byte offsets become positions, messages   *)
(* are named in the order of the master's appends. A log tells nothing of  *)
(* connections: they open and close here when an event asks for it, and    *)
(* where an old one explains as much as a new one, it is the old one. Of a *)
(* master alone the slave's steps are hidden, too. The consumer is not     *)
(* part of these traces.                                                   *)
(*  - An fsync may have begun before the newest records came.              *)
(*  - A clean exit is the end of a process that has flushed all it has.    *)
(***************************************************************************)
EXTENDS Replication, TraceData

VARIABLES t, l \* which trace, and which event of it is next

TraceView == <<vars, t, l>>

Event == Traces[t][l]

Is(name) == l <= Len(Traces[t]) /\ Event.event = name /\ l' = l + 1 /\ UNCHANGED t

Hidden(name) == l <= Len(Traces[t]) /\ Event.event = name /\ UNCHANGED <<t, l>>

\* The first event says how the master runs, if that is known, and whether the slave's steps are in the log.
SlaveTells == Traces[t][1].slave

TraceInit ==
    /\ t \in DOMAIN Traces /\ l = 1
    /\ Init
    /\ flushMode = Event.mode /\ Event.role \in {role, "unknown"}

Opened == Is("open") /\ UNCHANGED vars

-----------------------------------------------------------------------------
(* Connections, as far as an event asks for one *)

\* The next event is one that only another connection than this one explains.
AsksForAnother ==
    \/ Hidden("transfer") /\ (~intact \/ sent = Unasked \/ Event.index < sent)
    \/ Hidden("append") /\ Event.node = "master" /\ Event.usable = "yes" /\ ~connected["master"]

\* The next event is one that only a master explains that knows of no slave.
AsksForNone == Hidden("append") /\ Event.node = "master" /\ Event.usable = "no" /\ connected["master"]

\* Once for an event: what is asked again is asked from where the slave's log ends.
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

\* Of what the slave compares it writes nothing down.
ComparedRecord == (Hidden("append") \/ Hidden("ack")) /\ ~verified /\ \E frame \in network : ReceiveTransfer(frame)

Received ==
    /\ Is("append") /\ Event.node = "slave"
    /\ Len(log["slave"]) + 1 = Event.index
    /\ verified /\ ReceiveTransfer(Transfer(Event.index - 1, Event.message))

ReceivedUntold ==
    /\ Hidden("ack") /\ ~SlaveTells
    /\ Len(log["slave"]) < Event.index
    /\ verified /\ \E frame \in network : ReceiveTransfer(frame)

\* A report that is repeated, or that came over an older connection, is no news.
Acknowledged ==
    /\ Is("ack")
    /\ \/ Event.index > acked /\ ReceiveAck(Ack(Event.index))
       \/ Event.index <= acked /\ UNCHANGED vars

-----------------------------------------------------------------------------
(* What is durable, and what producers are told *)

Flushed ==
    /\ Is("flush")
    /\ LET n == Event.node
       IN  \/ Event.index = Len(log[n]) /\ FlushLog(n)
           \/ Event.index <= flushed[n] /\ UNCHANGED vars
           \/ /\ Event.index \in (flushed[n] + 1)..(Len(log[n]) - 1)
              /\ flushed' = [flushed EXCEPT ![n] = Event.index]
              /\ UNCHANGED <<modes, phase, log, committed, connection, masterMemory, slaveMemory, clients, history>>

\* What is reached now was given up before, and the answer tells so later.
TellsOfTimeout(m) ==
    \E k \in l..Len(Traces[t]) :
        Traces[t][k].event = "answer" /\ Traces[t][k].message = m /\ Traces[t][k].status # "SEND_OK"

GivenUp ==
    /\ Hidden("answer") \/ Hidden("ack") \/ Hidden("flush")
    /\ \E m \in Messages :
        /\ answer[m] = "waiting" /\ TellsOfTimeout(m)
        /\ FlushTimeout(m) \/ SlaveTimeout(m)

Replied == Is("answer") /\ AnswerSend(Event.message) /\ answer'[Event.message] = Event.status

-----------------------------------------------------------------------------
(* Ends and beginnings of processes *)

Crashed ==
    /\ Is("crash")
    /\ IF Event.length = Len(log[Event.node]) THEN ProcessCrash(Event.node) ELSE SystemCrash(Event.node, Event.length)

Stopped == Is("stop") /\ flushed[Event.node] = Len(log[Event.node]) /\ ProcessCrash(Event.node)

Recovered == Is("recover") /\ Start(Event.node) /\ Len(log[Event.node]) = Event.length

TraceNext ==
    \/ Opened \/ Gone \/ SlaveHangsUp \/ MasterHangsUp \/ Connected \/ Asked
    \/ Appended \/ SentOne \/ Transferred \/ ComparedRecord \/ Received \/ ReceivedUntold \/ Acknowledged
    \/ Flushed \/ GivenUp \/ Replied \/ Crashed \/ Stopped \/ Recovered

=============================================================================
