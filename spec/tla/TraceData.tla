----------------------------- MODULE TraceData -----------------------------
(* What a recorded trace looks like; `mqproof trace-check` puts the recorded ones in its place. *)

Traces == <<
    <<[event |-> "open", mode |-> "SYNC_FLUSH"],
      [event |-> "append", message |-> "m1", queue |-> "q0", offset |-> 0],
      [event |-> "flush", length |-> 1],
      [event |-> "answer", message |-> "m1", status |-> "SEND_OK"]>>
>>
=============================================================================
