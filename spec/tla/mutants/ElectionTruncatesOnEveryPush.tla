-------------------- MODULE ElectionTruncatesOnEveryPush --------------------
(* A push that was overtaken removes the entries after it (as DLedger's TRUNCATE; out of order: DLedger 87
   and 251). *)
EXTENDS MCElection

MutantHandlePush(m) ==
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
==============================================================================
