"""Modules without a test module of their name: folder, or module, to the tests that cover them.

tests/test_layout.py checks that the tests exist, that together they reach every such module, and that every
entry is needed.
"""

from typing import Final

_SUITES: Final = "tests/conformance/suites/{0}/test_suite.py"
_DRAWN: Final = "tests/conformance/adapters/brokers/test_factories.py"

TESTED_TOGETHER: Final[dict[str, tuple[str, ...]]] = {
    # The modules of a suite are tested together: on the reference, on our code, and by the mutants.
    **{
        f"conformance/suites/{name}": (_SUITES.format(name), _DRAWN)
        for name in ("delivery", "offsets", "ordering", "retry", "transactions")
    },
    "conformance/suites/admin": (_SUITES.format("admin"), "tests/conformance/adapters/test_remoting.py"),
    "conformance/suites/producers": (_SUITES.format("producers"),),
    "conformance/suites/routing": (_SUITES.format("routing"),),
    "conformance/suites/flush": ("tests/conformance/adapters/test_remoting.py",),
    "conformance/engine": ("tests/conformance/adapters/test_remoting.py",),
    "conformance/registry": ("tests/conformance/commands/test_conform.py",),
    # Adapters, drivers and hosts have no behaviour of their own: suites and behaviours test them.
    "conformance/adapters": ("tests/conformance/adapters/test_checklist.py",),
    "conformance/adapters/apache": (
        "tests/conformance/adapters/apache/test_tap.py",
        "tests/interop/test_replication.py",
        _DRAWN,
    ),
    "conformance/adapters/brokers": (_DRAWN,),
    "conformance/adapters/producers": (_SUITES.format("producers"),),
    "conformance/adapters/routing": ("tests/conformance/adapters/test_remoting.py",),
    "conformance/adapters/workload": ("tests/conformance/history/test_workload.py",),
    "conformance/subjects": (
        "tests/conformance/suites/replication/test_checkers.py",
        "tests/conformance/guarantee/test_on_processes.py",
    ),
    "conformance/crash_images": (
        "tests/conformance/behaviours/test_election.py",
        "tests/conformance/behaviours/test_replication.py",
    ),
    "conformance/faults": ("tests/conformance/adapters/test_remoting.py",),
    "conformance/hosts": (
        "tests/conformance/hosts/test_broker_memory.py",
        "tests/impl/broker/test_group_processes.py",
        "tests/conformance/bench/test_replicated_brokers.py",
    ),
    "conformance/bench": (
        "tests/conformance/bench/test_broker.py",
        "tests/conformance/commands/test_histories.py",
    ),
    "conformance/behaviours": (
        "tests/conformance/behaviours/test_outcomes.py",
        "tests/conformance/behaviours/test_replay.py",
        "tests/conformance/traces/test_round_trip.py",
    ),
    "conformance/traces": ("tests/conformance/traces/test_group.py",),
    "conformance/guarantee": ("tests/conformance/guarantee/test_live.py",),
    # Every mutant must be caught; one test judges all of them.
    "conformance/mutants": ("tests/conformance/history/test_workload.py",),
    "fuzz/defects": ("tests/fuzz/test_mutants.py",),
    "reference/mutants": ("tests/reference/explorer/test_on_spark.py", "tests/reference/test_mutants.py"),
    "reference/proofs/mutants": ("tests/reference/proofs/test_proof.py",),
    # Rules, and the injected anomalies that each must find, are tables: one test goes through all rows.
    "conformance/history": ("tests/conformance/history/test_exchange.py",),
    "conformance/history/injected": ("tests/conformance/history/test_rules.py",),
    "conformance/history/rules": ("tests/conformance/history/test_rules.py",),
    "conformance/wire": ("tests/conformance/wire/test_ours.py",),
    "conformance/wire/operations": ("tests/conformance/wire/test_catalogue.py",),
    "conformance/wire/semantics": ("tests/conformance/wire/test_catalogue.py",),
    "conformance/pages": (
        "tests/conformance/wire/test_ours.py",
        "tests/conformance/registry/test_mutant_judge.py",
    ),
    "spark_audit/checks": ("tests/spark_audit/checks/test_checks.py",),
    # Command lines are tested through the command.
    "conformance/commands": (
        "tests/conformance/commands/test_conform.py",
        "tests/conformance/commands/test_model_behaviours.py",
        "tests/package/test_extras.py",
    ),
    "impl/admin": ("tests/impl/admin/test_cli.py",),
    "impl/admin/commands": ("tests/impl/admin/test_commands.py",),
    "impl/command": ("tests/impl/command/test_cli.py",),
    "impl/terminal": ("tests/impl/admin/test_cli.py",),
    "spark_audit/command": ("tests/spark_audit/command/test_watch_command.py",),
    # Simulations: the programs, the simulated system and the judge are one unit in three modules.
    "fuzz/cluster": ("tests/fuzz/targets/test_cluster.py",),
    "fuzz/raft": ("tests/fuzz/targets/test_dledger_group.py",),
    "fuzz/store": ("tests/fuzz/targets/test_store_recovery.py",),
    "fuzz/engine": ("tests/fuzz/engine/test_campaign.py",),
    "fuzz/targets": ("tests/fuzz/engine/test_coverage.py",),
    "fuzz": (
        "tests/fuzz/engine/test_execution.py",
        "tests/fuzz/test_regressions.py",
        "tests/package/test_extras.py",
    ),
    # A broker, a client, a store or a member is tested as a whole if its modules do little by themselves.
    "impl/broker": ("tests/impl/broker/processors/test_broker_admin.py",),
    "impl/broker/processors": ("tests/impl/broker/processors/test_broker_admin.py",),
    "impl/broker/state": ("tests/impl/broker/processors/test_groups.py",),
    "impl/client": ("tests/impl/client/connection/test_inbound_requests.py",),
    "impl/client/connection": (
        "tests/impl/client/connection/test_name_server_choice.py",
        "tests/impl/admin/test_cli.py",
    ),
    "impl/client/consuming": ("tests/impl/client/consuming/test_orderly.py",),
    "impl/client/messages": ("tests/impl/admin/test_cli.py",),
    "impl/dledger": ("tests/impl/dledger/test_ledger_store.py",),
    "impl/examine": ("tests/impl/examine/test_ledger_walk.py",),
    "impl/namesrv": ("tests/impl/namesrv/test_administration.py",),
    "impl/remoting": ("tests/impl/remoting/test_channel.py", "tests/impl/remoting/test_java_json.py"),
    "impl/replication": ("tests/impl/replication/test_follow.py",),
    "impl/runtime": (
        "tests/impl/runtime/test_tls.py",
        "tests/impl/runtime/test_simulated_loop.py",
        "tests/impl/broker/test_elected_role.py",
    ),
    "impl/store": ("tests/impl/store/test_rules.py",),
    "impl/store/files": ("tests/impl/store/test_rules.py",),
    # Models are compared with TLC's state graph, and their properties are proved: one test each.
    "reference": ("tests/reference/equivalence/test_equiv.py", "tests/package/test_extras.py"),
    "reference/commands": ("tests/package/test_extras.py",),
    "reference/explorer": (
        "tests/reference/explorer/test_fingerprint.py",
        "tests/reference/explorer/test_parallel.py",
    ),
    "reference/proofs": ("tests/reference/proofs/test_proof.py",),
    "report": ("tests/report/test_sequence.py",),
    "spec": ("tests/spec/test_drawing.py", "tests/spec/test_vacuity.py", "tests/package/test_extras.py"),
    "spec/guarantee": ("tests/spec/guarantee/test_matrix.py",),
    "spec/tlc": ("tests/spec/tlc/test_run.py",),
    # The stages of the audit are tested by whole runs over logs with known content.
    "spark_audit": ("tests/spark_audit/incremental/test_checkpoint.py",),
    "spark_audit/evidence": (
        "tests/spark_audit/passes/test_bucket_sums.py",
        "tests/spark_audit/command/test_watch_command.py",
    ),
    "spark_audit/generator": (
        "tests/spark_audit/generator/test_generate.py",
        "tests/spark_audit/quality/test_mutants.py",
        "tests/spark_audit/reporting/test_explain.py",
        "tests/spark_audit/sources/test_traces.py",
    ),
    "spark_audit/incremental": ("tests/spark_audit/incremental/test_checkpoint.py",),
    "spark_audit/judging": ("tests/spark_audit/command/test_watch_command.py",),
    "spark_audit/passes": ("tests/spark_audit/passes/test_bucket_sums.py",),
    "spark_audit/quality": (
        "tests/spark_audit/quality/test_bench.py",
        "tests/spark_audit/quality/test_mutants.py",
    ),
    "spark_audit/reporting": ("tests/spark_audit/reporting/test_plot_data.py",),
    "spark_audit/sources": ("tests/spark_audit/sources/test_store_tables.py",),
}

UNTESTED: Final[dict[str, str]] = {
    "fuzz/cluster/speed.py": "prints how fast a group is simulated; nothing depends on it",
}
"""Modules that no test covers, and why."""
