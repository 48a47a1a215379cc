--------------------- MODULE GuaranteeReportBeforeAppend ---------------------
(* The master counts what it has sent to the slave, not what the slave says that it has (issue 1155). *)
EXTENDS MCGuarantee

MutantReport ==
    /\ Running("master") /\ Running("slave")
    /\ Len(log["master"]) > reported
    /\ reported' = Len(log["master"])
    /\ UNCHANGED <<modes, up, files, answer, struck>>
==============================================================================
