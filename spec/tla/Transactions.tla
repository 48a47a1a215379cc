----------------------------- MODULE Transactions -----------------------------
(***************************************************************************)
(* A producer sends a half message, runs its local transaction, and then   *)
(* tells the broker to commit the message or to roll it back. A message    *)
(* whose end the broker does not receive is checked: the broker appends a  *)
(* copy of the half message, with a counter, and asks a producer of the    *)
(* group. After a number of checks it discards the message.                *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - The log: Flush and Replication say which prefix is safe; here a      *)
(*    crash, or a slave that takes over, keeps at least this prefix.       *)
(*  - Consumers: a message is visible when its final record is in the log. *)
(*  - Sends: a producer does not repeat a send whose result it does not    *)
(*    know, so a transaction has one half message and its copies.          *)
(*  - Requests: one that was sent stays in the network, so it may be late, *)
(*    repeated and overtaken; a lost one is never received.                *)
(*  - Check requests: a producer that decided may report its decision for  *)
(*    any copy, so a check that is lost or unanswered needs no state.      *)
(*  - Time: the immunity time of a message is over at some moment; the     *)
(*    interval between checks is not modelled.                             *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Txs,          \* the transactions, strings; each has one message
    Inconsistent, \* those whose producers do not agree: a check may be answered with either end
    ChecksMax     \* the broker discards a message after this many checks: 15

ASSUME Txs # {} /\ Inconsistent \subseteq Txs /\ ChecksMax \in Nat

Ends == {"commit", "rollback"}

-----------------------------------------------------------------------------
(* State *)

VARIABLE log      \* the broker's log: half messages and copies, final messages, discarded messages, operations
Records == [kind : {"half", "final", "discarded", "op"}, of : SUBSET Txs, times : 0..ChecksMax]
LogOK == log \in Seq(Records)

VARIABLE safe     \* the length of the prefix of the log that no crash and no takeover removes
SafeOK == safe \in 0..Len(log)

VARIABLE ready    \* whether the broker has read its log since it started
ReadyOK == ready \in BOOLEAN

VARIABLE pending  \* the transactions that ended, and whose operation record is not written yet; in memory only
PendingOK == pending \subseteq Txs

VARIABLE progress \* the number of half messages that the broker does not look at any more; stored
ProgressOK == progress \in Nat

VARIABLE young    \* the transactions whose immunity time is not over
YoungOK == young \subseteq Txs

VARIABLE phase    \* by transaction: the state of its producer and of the local transaction
PhaseOK == phase \in [Txs -> {"new", "sent", "running"} \cup Ends]

VARIABLE requests \* END_TRANSACTION requests in the network: the transaction, the half message that it names, the end
RequestsOK == requests \subseteq [tx : Txs, half : Nat, end : Ends]

broker == <<log, safe, ready, pending, progress>>
vars == <<broker, young, phase, requests>>

TypeOK ==
    LogOK /\ SafeOK /\ ReadyOK /\ PendingOK /\ ProgressOK /\ YoungOK /\ PhaseOK /\ RequestsOK

Init ==
    /\ log = <<>>
    /\ safe = 0
    /\ ready = TRUE
    /\ pending = {}
    /\ progress = 0
    /\ young = Txs
    /\ phase = [t \in Txs |-> "new"]
    /\ requests = {}

-----------------------------------------------------------------------------
(* What a log says *)

Record(kind, txs, times) == [kind |-> kind, of |-> txs, times |-> times]

Has(records, kind, t) == \E i \in 1..Len(records) : records[i].kind = kind /\ t \in records[i].of

IsHalf(record) == record.kind = "half"

\* The half queue: half messages and their copies.
Halves(records) == SelectSeq(records, IsHalf)

\* The number of the latest copy of a transaction in the half queue; 0 if there is none.
Latest(records, t) ==
    LET at == {i \in 1..Len(Halves(records)) : t \in Halves(records)[i].of}
    IN IF at = {} THEN 0 ELSE CHOOSE i \in at : \A j \in at : j <= i

Times(t) == Halves(log)[Latest(log, t)].times

\* The log shows the end of a transaction: by the final message itself, not only by its operation record.
Evidence(records, t) == Has(records, "final", t) \/ Has(records, "discarded", t) \/ Has(records, "op", t)

Ended(t) == t \in pending \/ Evidence(log, t)

\* The transactions that the broker has to end.
Open(t) == Latest(log, t) > progress /\ ~Ended(t)

-----------------------------------------------------------------------------
(* The producer *)

Send(t) ==
    /\ ready
    /\ phase[t] = "new"
    /\ phase' = [phase EXCEPT ![t] = "sent"]
    /\ log' = Append(log, Record("half", {t}, 0))
    /\ UNCHANGED <<safe, ready, pending, progress, young, requests>>

\* SEND_OK is received: only now does the local transaction run.
Acknowledge(t) ==
    /\ phase[t] = "sent"
    /\ Latest(SubSeq(log, 1, safe), t) > 0
    /\ phase' = [phase EXCEPT ![t] = "running"]
    /\ UNCHANGED <<broker, young, requests>>

Commit(t) ==
    /\ phase[t] = "running"
    /\ phase' = [phase EXCEPT ![t] = "commit"]
    /\ UNCHANGED <<broker, young, requests>>

\* The local transaction fails, or never runs: the send was not acknowledged, or the producer crashed.
Abort(t) ==
    /\ phase[t] \in {"sent", "running"}
    /\ phase' = [phase EXCEPT ![t] = "rollback"]
    /\ UNCHANGED <<broker, young, requests>>

Request(t, half, end) == [tx |-> t, half |-> half, end |-> end]

\* A producer reports the end: after its local transaction, or because it was checked. It names a half message or
\* a copy that is in the log. An answer "unknown" has no effect.
Report(t, half, end) ==
    /\ phase[t] \in Ends
    /\ end = phase[t] \/ t \in Inconsistent
    /\ half <= Len(Halves(log))
    /\ t \in Halves(log)[half].of
    /\ Request(t, half, end) \notin requests
    /\ requests' = requests \cup {Request(t, half, end)}
    /\ UNCHANGED <<broker, young, phase>>

-----------------------------------------------------------------------------
(* The broker *)

\* The half message that a request names is the request's: group, offsets and message key agree.
Named(t, half) == half <= Len(Halves(log)) /\ t \in Halves(log)[half].of

\* The broker processes a request. One for a transaction that has ended changes nothing.
End(t, half, end) ==
    /\ ready
    /\ Request(t, half, end) \in requests
    /\ Named(t, half)
    /\ \E named \in Halves(log)[half].of :
        /\ Open(named)
        /\ log' = IF end = "commit" THEN Append(log, Record("final", {named}, 0)) ELSE log
        /\ pending' = pending \cup {named}
    /\ UNCHANGED <<safe, ready, progress, young, phase, requests>>

\* One record for all ends since the last one.
WriteOperations ==
    /\ pending # {}
    /\ log' = Append(log, Record("op", pending, 0))
    /\ pending' = {}
    /\ UNCHANGED <<safe, ready, progress, young, phase, requests>>

MayCheck(t) == ready /\ Open(t) /\ t \notin young

\* A copy, with the number of checks, and then the question to a producer.
Check(t) ==
    /\ MayCheck(t)
    /\ Times(t) < ChecksMax
    /\ log' = Append(log, Record("half", {t}, Times(t) + 1))
    /\ UNCHANGED <<safe, ready, pending, progress, young, phase, requests>>

Discard(t) ==
    /\ MayCheck(t)
    /\ Times(t) = ChecksMax
    /\ log' = Append(log, Record("discarded", {t}, 0))
    /\ pending' = pending \cup {t}
    /\ UNCHANGED <<safe, ready, progress, young, phase, requests>>

\* The half message at this place needs no further look: the safe log has its end, or a later copy.
Done(i) ==
    LET records == SubSeq(log, 1, safe)
    IN \A t \in Halves(log)[i].of : Evidence(records, t) \/ Latest(records, t) > i

Advance ==
    /\ ready
    /\ progress < Len(Halves(log))
    /\ Done(progress + 1)
    /\ progress' = progress + 1
    /\ UNCHANGED <<log, safe, ready, pending, young, phase, requests>>

\* The log is flushed and replicated.
Secure ==
    /\ safe < Len(log)
    /\ safe' = Len(log)
    /\ UNCHANGED <<log, ready, pending, progress, young, phase, requests>>

\* The immunity time of a message is over.
Ripen(t) ==
    /\ t \in young
    /\ phase[t] # "new"
    /\ young' = young \ {t}
    /\ UNCHANGED <<broker, phase, requests>>

\* The broker crashes, and restarts with what is left of its log. Or the slave takes over, whose stored progress is
\* older.
Crash(length, stored) ==
    /\ length \in safe..Len(log)
    /\ stored \in 0..progress
    /\ log' = SubSeq(log, 1, length)
    /\ ready' = FALSE
    /\ pending' = {}
    /\ progress' = stored
    /\ UNCHANGED <<safe, young, phase, requests>>

\* The broker reads its log before it answers.
Read ==
    /\ ~ready
    /\ ready' = TRUE
    /\ UNCHANGED <<log, safe, pending, progress, young, phase, requests>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Transaction(t) ==
    \/ Send(t) \/ Acknowledge(t) \/ Commit(t) \/ Abort(t) \/ Check(t) \/ Discard(t) \/ Ripen(t)
    \/ \E half \in 1..Len(Halves(log)), end \in Ends : Report(t, half, end) \/ End(t, half, end)

Next ==
    \/ \E t \in Txs : Transaction(t)
    \/ WriteOperations \/ Advance \/ Secure \/ Read
    \/ \E length \in safe..Len(log), stored \in 0..progress : Crash(length, stored)

\* The broker reads its log when it starts, flushes it, checks and discards. No request needs to arrive.
\* Each subscript is what the action changes in every step; TLC compares `vars` slower.
Reads == WF_ready(Read)
Ripens == \A t \in Txs : WF_young(Ripen(t))
Checks == \A t \in Txs : SF_log(Check(t))
Discards == \A t \in Txs : SF_log(Discard(t))
Secures == SF_safe(Secure)
Advances == SF_progress(Advance)
Writes == SF_pending(WriteOperations)

Fairness == Reads /\ Ripens /\ Checks /\ Discards /\ Secures /\ Advances /\ Writes

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

Consistent == Txs \ Inconsistent

\* DELIV-9: a message is visible if and only if its transaction was committed
TransactionAtomic ==
    \A t \in Consistent :
        /\ Has(log, "final", t) => phase[t] = "commit"
        /\ phase[t] = "commit" /\ Ended(t) /\ ~Has(log, "discarded", t) => Has(log, "final", t)

Count(kind, t) == Cardinality({i \in 1..Len(log) : log[i].kind = kind /\ t \in log[i].of})

\* TXN-1: a message becomes visible at most once
CommittedOnce == \A t \in Txs : Count("final", t) <= 1

\* TXN-2: a transaction that ended does not end in another way, and is not checked again
EndsOnce ==
    \A t \in Txs, i \in 1..Len(log) :
        log[i].kind # "half" /\ t \in log[i].of =>
            \A j \in i + 1..Len(log) : t \in log[j].of => log[j].kind = "op"

\* TXN-3: a half message whose send was acknowledged has ended, or the broker still has to end it
HalfKept == \A t \in Txs : phase[t] \in {"running", "commit"} => Latest(log, t) > progress \/ Evidence(log, t)

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ progress <= Len(Halves(SubSeq(log, 1, safe)))
    /\ \A i \in 1..progress : Done(i)
    /\ \A t \in Txs :
        /\ phase[t] = "new" => Latest(log, t) = 0 /\ t \in young
        /\ Evidence(log, t) => Latest(log, t) > 0
        /\ Count("half", t) <= ChecksMax + 1
        /\ Count("op", t) <= 1
        /\ t \in pending => ready /\ Latest(log, t) > 0 /\ ~Has(log, "op", t)
    /\ \A r \in requests : phase[r.tx] \in Ends /\ (r.end = phase[r.tx] \/ r.tx \in Inconsistent)

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

Added == log'[Len(log')]

Grows == Len(log') = Len(log) + 1 /\ SubSeq(log', 1, Len(log)) = log

\* TXN-4: only an open transaction is checked or discarded, after its immunity time, and after ChecksMax checks it
\* is discarded
CheckedWhileOpen ==
    [][\A t \in Txs :
        Grows /\ t \in Added.of /\ (Added.kind = "discarded" \/ (Added.kind = "half" /\ Latest(log, t) > 0)) =>
            /\ ready /\ ~Ended(t) /\ t \notin young /\ Latest(log, t) > progress
            /\ IF Added.kind = "half" THEN Added.times = Times(t) + 1 ELSE Times(t) = ChecksMax]_vars

\* The log grows by one record. A crash shortens it, but not the safe prefix.
LogGrows ==
    [][log' # log =>
        \/ Grows /\ UNCHANGED <<safe, ready, progress, young, requests>>
        \/ ~ready' /\ Len(log') >= safe /\ log' = SubSeq(log, 1, Len(log'))]_vars

\* Each record has its cause.
AddedRightly ==
    [][Grows =>
        CASE Added.kind = "half" ->
                \E t \in Txs :
                    /\ Added.of = {t}
                    /\ Latest(log, t) = 0 => phase[t] = "new" /\ phase'[t] = "sent" /\ Added.times = 0
                    /\ \A u \in Txs : phase'[u] # phase[u] => u = t /\ Latest(log, t) = 0
                    /\ pending' = pending
          [] Added.kind = "final" ->
                \E r \in requests :
                    /\ Added.of = {r.tx} /\ r.end = "commit" /\ Added.times = 0
                    /\ r.half <= Len(Halves(log)) /\ r.tx \in Halves(log)[r.half].of
                    /\ pending' = pending \cup {r.tx} /\ phase' = phase
          [] Added.kind = "discarded" ->
                Cardinality(Added.of) = 1 /\ Added.times = 0 /\ pending' = pending \cup Added.of /\ phase' = phase
          [] Added.kind = "op" -> Added.of = pending /\ Added.times = 0 /\ pending' = {} /\ phase' = phase]_vars

\* A rollback adds only to the memory of the broker.
PendingRightly ==
    [][pending' # pending /\ log' = log =>
        \/ pending' = {} /\ ~ready'
        \/ \E r \in requests :
            /\ ready /\ r.end = "rollback" /\ ~Ended(r.tx) /\ Latest(log, r.tx) > progress
            /\ pending' = pending \cup {r.tx} /\ UNCHANGED <<safe, ready, progress, young, phase, requests>>]_vars

\* The safe prefix never shrinks. It contains only what was appended.
SafeGrows == [][safe' # safe => safe' = Len(log) /\ safe < Len(log) /\ UNCHANGED <<log, ready, pending, progress, phase>>]_vars

\* The progress grows past what is done, and goes back only with a crash.
ProgressMoves ==
    [][progress' # progress =>
        \/ progress' = progress + 1 /\ ready /\ Done(progress + 1) /\ UNCHANGED <<log, pending, phase, requests>>
        \/ progress' < progress /\ ~ready' /\ pending' = {}]_vars

\* A broker stops being ready with a crash, which loses its memory and no more.
ReadyMoves ==
    [][ready' # ready =>
        /\ UNCHANGED <<safe, young, phase, requests>>
        /\ IF ready' THEN UNCHANGED <<log, pending, progress>> ELSE pending' = {}]_vars

\* The local transaction runs only after SEND_OK, and ends once.
PhasesFollow ==
    [][\A t \in Txs : phase'[t] # phase[t] =>
        /\ <<phase[t], phase'[t]>> \in
            {<<"new", "sent">>, <<"sent", "running">>, <<"running", "commit">>, <<"sent", "rollback">>, <<"running", "rollback">>}
        /\ phase' = [phase EXCEPT ![t] = phase'[t]]
        /\ phase'[t] = "running" => Latest(SubSeq(log, 1, safe), t) > 0
        /\ phase'[t] = "sent" => ready /\ Grows
        /\ phase'[t] # "sent" => UNCHANGED broker
        /\ UNCHANGED <<young, requests>>]_vars

\* Requests are added one by one, for a half message that is in the log.
ReportedRightly ==
    [][requests' # requests =>
        \E t \in Txs, half \in 1..Len(Halves(log)), end \in Ends :
            /\ requests' = requests \cup {Request(t, half, end)}
            /\ phase[t] \in Ends /\ t \in Halves(log)[half].of
            /\ UNCHANGED <<broker, young, phase>>]_vars

\* The immunity time of a message ends once.
YoungShrinks ==
    [][young' # young =>
        \E t \in young : phase[t] # "new" /\ young' = young \ {t} /\ UNCHANGED <<broker, phase, requests>>]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A t \in Txs :
        /\ phase[t] = "new" /\ ready => ENABLED (Next /\ phase'[t] = "sent" /\ Len(log') = Len(log) + 1)
        /\ phase[t] = "sent" => ENABLED (Next /\ phase'[t] = "rollback")
        /\ phase[t] = "sent" /\ Latest(SubSeq(log, 1, safe), t) > 0 => ENABLED (Next /\ phase'[t] = "running")
        /\ phase[t] = "running" => \A end \in Ends : ENABLED (Next /\ phase'[t] = end)
        /\ t \in young /\ phase[t] # "new" => ENABLED (Next /\ young' = young \ {t})
        /\ ready /\ ~Ended(t) /\ Latest(log, t) > progress /\ t \notin young =>
            IF Times(t) < ChecksMax
            THEN ENABLED (Next /\ log' = Append(log, Record("half", {t}, Times(t) + 1)))
            ELSE ENABLED (Next /\ log' = Append(log, Record("discarded", {t}, 0)))
        /\ phase[t] \in Ends =>
            \A half \in {i \in 1..Len(Halves(log)) : t \in Halves(log)[i].of} :
                Request(t, half, phase[t]) \in requests \/ ENABLED (Next /\ requests' = requests \cup {Request(t, half, phase[t])})
    /\ \A r \in requests :
        ready /\ r.half <= Len(Halves(log)) /\ ~Ended(r.tx) /\ Latest(log, r.tx) > progress /\ r.tx \in Halves(log)[r.half].of =>
            IF r.end = "commit"
            THEN ENABLED (Next /\ log' = Append(log, Record("final", {r.tx}, 0)))
            ELSE ENABLED (Next /\ pending' = pending \cup {r.tx} /\ log' = log)
    /\ pending # {} => ENABLED (Next /\ pending' = {} /\ Len(log') = Len(log) + 1)
    /\ safe < Len(log) => ENABLED (Next /\ safe' = Len(log))
    /\ ~ready => ENABLED (Next /\ ready')
    /\ ready => \A length \in safe..Len(log), stored \in 0..progress :
        ENABLED (Next /\ ~ready' /\ Len(log') = length /\ progress' = stored)
    /\ ready /\ progress < Len(Halves(log)) /\ Done(progress + 1) => ENABLED (Next /\ progress' = progress + 1)

-----------------------------------------------------------------------------
(* Liveness *)

\* TXN-5: a half message whose send was acknowledged is eventually committed, rolled back or discarded
TransactionEnds == \A t \in Txs : phase[t] \in {"running", "commit"} ~> Evidence(SubSeq(log, 1, safe), t)

\* If crashes end, the broker gets to the end of the half queue.
HalfQueueAdvances == <>[]ready => []<>(progress = Len(Halves(log)))

=============================================================================
