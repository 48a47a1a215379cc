--------------------- MODULE GuaranteeReportBeforeAppend ---------------------
(* The master counts the records that it has sent to the slave, not those that the slave reports (issue
   1155). *)
EXTENDS MCGuarantee

MutantReport ==
    /\ Running("master") /\ Running("slave")
    /\ Len(log["master"]) > reported
    /\ reported' = Len(log["master"])
    /\ UNCHANGED <<modes, up, files, answer, struck>>
==============================================================================
