----------------------- MODULE ElectionVoteNotDurable -----------------------
(* The vote is answered before it is durable: a crash removes it (as with DLedger's currterm file, which is
   never fsynced). *)
EXTENDS MCElection

MutantCrash(n, kept) ==
    /\ Up(n) /\ ~calm
    /\ kept \in durable[n]..Len(log[n])
    /\ role' = [role EXCEPT ![n] = "DOWN"]
    /\ leader' = [leader EXCEPT ![n] = None]
    /\ known' = [known EXCEPT ![n] = term[n]]
    /\ answers' = [answers EXCEPT ![n] = NoAnswers]
    /\ watermark' = [watermark EXCEPT ![n] = Zero]
    /\ commit' = [commit EXCEPT ![n] = 0]
    /\ log' = [log EXCEPT ![n] = Prefix(@, kept)]
    /\ durable' = [durable EXCEPT ![n] = kept]
    /\ faults' = [faults EXCEPT !.crashes = @ + 1]
    /\ votedFor' = [votedFor EXCEPT ![n] = None]
    /\ UNCHANGED <<term, network, answer, calm, ballots, winners, committed>>
==============================================================================
