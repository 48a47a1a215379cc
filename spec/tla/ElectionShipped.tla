--------------------------- MODULE ElectionShipped ---------------------------
(* What released DLedger does differently, weakness by weakness; each configuration switches one on. docs/explanation/as-shipped.md
   tells what comes of it. Where the way there is long, it starts where a term or two have been led. *)
EXTENDS MCElection

\* Leader and followers count entries that no fsync has made durable.
ShippedKept(n) == Len(log[n])

\* Commit by counting who has an entry, whatever its term (DLedger 4, 278).
ShippedCommitIndex(n) ==
    CHOOSE i \in 0..Len(log[n]) :
        /\ IsQuorum(Holders(n, i))
        /\ \A j \in (i + 1)..Len(log[n]) : ~IsQuorum(Holders(n, j))

\* The currterm file is deleted before its successor is renamed, and is never fsynced: a crash may leave none, and the
\* node comes back in term 0 without a vote.
ShippedRestart(n) ==
    /\ role[n] = "DOWN"
    /\ role' = [role EXCEPT ![n] = "CANDIDATE"]
    /\ term' = [term EXCEPT ![n] = 0]
    /\ votedFor' = [votedFor EXCEPT ![n] = None]
    /\ known' = [known EXCEPT ![n] = 0]
    /\ UNCHANGED <<ledger, leader, answers, watermark, commit, network, answer, calm, history>>

\* TRUNCATE cuts what comes after the compared entry, committed or not (DLedger 316).
ShippedHandlePush(m) ==
    LET n == m.target
    IN  /\ m.kind = "PUSH" /\ Follows(n, m) /\ Arrives(m)
        /\ CASE ~Matches(n, m.index - 1, m.prevTerm) ->
                    /\ Leads(m.source, m.term)
                    /\ Send({Push(m.source, n, log[m.source], m.index - 1)})
                    /\ UNCHANGED <<ledger, watermark>>
             [] Len(log[n]) = m.index /\ Matches(n, m.index, m.entry.term) ->
                    /\ Leads(m.source, m.term)
                    /\ m.index <= Kept(n)
                    /\ watermark' = [watermark EXCEPT ![m.source][n] = Max(@, m.index)]
                    /\ UNCHANGED <<ledger, network>>
             [] OTHER ->
                    /\ log' = [log EXCEPT ![n] = Append(Prefix(@, m.index - 1), m.entry)]
                    /\ durable' = [durable EXCEPT ![n] = Min(@, m.index - 1)]
                    /\ UNCHANGED <<watermark, network>>
        /\ UNCHANGED <<file, role, leader, known, answers, commit, answer, calm, history>>

\* A follower believes a COMMIT of any sender, of its own term or a later one.
ShippedHandleCommit(m) ==
    /\ m.kind = "COMMIT" /\ Up(m.target)
    /\ m.index > commit[m.target]
    /\ commit' = [commit EXCEPT ![m.target] = m.index]
    /\ UNCHANGED <<file, ledger, standing, network, answer, calm, history>>

\* The end's term is taken from the node's own (issue 2178, DLedger 52).
ShippedVotes(n) ==
    {[kind |-> "VOTE", source |-> n, target |-> p, term |-> term[n],
      endIndex |-> Len(log[n]), endTerm |-> term[n]] : p \in Peers(n)}

\* A node that comes back stands in its old term, even one that led it.
ShippedStandsFrom(n) == term[n]

\* A leader with a quorum ignores that a node is in a later term (DLedger 85, 247, 325, 331).
ShippedHandleHeartBeat(m) ==
    LET code == HeartBeatCode(m)
    IN  /\ m.kind = "HEART_BEAT" /\ Up(m.target) /\ Arrives(m)
        /\ CASE code = "SUCCESS" -> leader[m.target] = None /\ BecomeFollower(m.target, m.source)
             [] code = "TERM_NOT_READY" -> BecomeCandidate(m.target, m.term) /\ <<role, known>>' # <<role, known>>
             [] OTHER -> FALSE
        /\ UNCHANGED <<file, ledger, commit, network, answer, calm, history>>

(* n1 led term 1 and n2 term 2, each with an entry of its own; n1 leads term 3 with the vote of n3. *)
Of(t) == [term |-> t, message |-> NoOp]

Each(first, second, third) == [n \in Nodes |-> CASE n = "n1" -> first [] n = "n2" -> second [] OTHER -> third]

InTermThree ==
    /\ role = Each("LEADER", "CANDIDATE", "FOLLOWER")
    /\ term = Each(3, 2, 3)
    /\ votedFor = Each("n1", "n2", "n1")
    /\ log = Each(<<Of(1), Of(3)>>, <<Of(2)>>, <<Of(1)>>)
    /\ durable = Each(2, 1, 1)
    /\ leader = Each("n1", None, "n1")
    /\ known = Each(3, 4, 3)
    /\ answers = [n \in Nodes |-> NoAnswers]
    /\ watermark = [n \in Nodes |-> Zero]
    /\ commit = Zero
    /\ network = {[kind |-> "PUSH", source |-> "n1", target |-> "n3", term |-> 3, index |-> 1, prevTerm |-> 0, entry |-> Of(1)]}
    /\ answer = [m \in Messages |-> "unsent"]
    /\ calm = FALSE
    /\ ballots = Each([term |-> 3, candidates |-> {"n1"}], [term |-> 2, candidates |-> {"n2"}], [term |-> 3, candidates |-> {"n1"}])
    /\ winners = {[term |-> 1, node |-> "n1"], [term |-> 2, node |-> "n2"], [term |-> 3, node |-> "n1"]}
    /\ committed = <<>>
    /\ faults = [crashes |-> 0, losses |-> 0]
===============================================================================
