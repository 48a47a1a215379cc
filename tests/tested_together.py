"""Modules without a test module of their name: for each reason, the folders and the tests that cover them.

tests/test_layout.py checks that the tests exist, that together they reach every such module, and that every
entry is needed. A test is named without `tests/` and `.py`.
"""

from typing import Final

_DRAWN: Final = "conformance/adapters/brokers/test_factories"
_REMOTING: Final = "conformance/adapters/test_remoting"
_WATCH: Final = "spark_audit/command/test_watch_command"

WHY_TOGETHER: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "What brokers inside a test have in common is seen by their tests.": {
        "impl/embedded": (
            "impl/embedded/test_embedded_broker",
            "impl/embedded/test_embedded_cluster",
            "impl/embedded/test_control_server",
        ),
    },
    "What the integrations share is seen by the tests of each, and the smallest by its example.": {
        "impl/integrations": (
            *("impl/integrations/test_kombu_transport", "impl/integrations/test_faststream_broker"),
            "examples/test_integrations",
        ),
    },
    "A suite runs as a whole, on the reference and on our code, and its mutants must be caught.": {
        **{
            f"conformance/suites/{name}": (f"conformance/suites/{name}/test_suite", _DRAWN)
            for name in (
                "delivery",
                "offsets",
                "ordering",
                "request_reply",
                "retry",
                "timers",
                "transactions",
            )
        },
        **{
            f"conformance/suites/{name}": (f"conformance/suites/{name}/test_suite",)
            for name in (
                "consumers",
                "convergence",
                "dledger",
                "producers",
                "replication",
                "routing",
                "workload",
            )
        },
        "conformance/suites/admin": ("conformance/suites/admin/test_suite", _REMOTING),
        "conformance/answers": ("conformance/answers/test_watch",),
        "conformance/suites/flush": (_REMOTING,),
        "conformance/engine": (_REMOTING, "conformance/suites/replication/test_suite"),
    },
    "Adapters, faults and hosts only pass calls on; the suites that drive them show their defects.": {
        "conformance/adapters": ("conformance/adapters/test_checklist",),
        "conformance/adapters/apache": (
            *("conformance/adapters/apache/test_tap", "interop/test_replication", "interop/test_filters"),
            *(_DRAWN, "interop/test_client_scenarios", "interop/test_dledger_group"),
        ),
        "conformance/adapters/clients": ("conformance/client_scenarios/test_matrix",),
        "conformance/client_scenarios": ("conformance/client_scenarios/test_matrix",),
        "conformance/adapters/brokers": (_DRAWN,),
        "conformance/adapters/client_calls": (
            "conformance/adapters/client_calls/test_every_call",
            "conformance/adapters/inspections/test_every",
        ),
        "conformance/adapters/inspections": ("conformance/adapters/inspections/test_every",),
        "conformance/adapters/store_copies": (
            "conformance/adapters/store_copies/test_drawn_stores",
            "conformance/adapters/store_copies/test_recovered_copies",
        ),
        "conformance/adapters/scripted_members": (
            "conformance/adapters/scripted_members/test_lives",
            "conformance/adapters/scripted_members/test_drawn_ledgers",
        ),
        "conformance/adapters/producers": ("conformance/suites/producers/test_suite",),
        "conformance/adapters/routing": (_REMOTING,),
        "conformance/adapters/workload": ("conformance/history/test_workload",),
        "conformance/faults": (_REMOTING, "conformance/faults/test_chaos_history"),
        "conformance/hosts": (
            *("conformance/hosts/test_broker_memory", "impl/broker/test_group_processes"),
            "conformance/bench/test_replicated_brokers",
            "conformance/hostile/test_suite",
        ),
    },
    "A driver of our code is right if it follows the model, which replays, traces and the matrix show.": {
        "conformance/subjects": (
            *("conformance/suites/replication/test_checkers", "conformance/guarantee/test_on_processes"),
        ),
        "conformance/subjects/stepped": ("conformance/behaviours/test_outcomes",),
        "conformance/crash_images": (
            *("conformance/behaviours/test_election", "conformance/behaviours/test_replication"),
        ),
        "conformance/behaviours": (
            *("conformance/behaviours/test_outcomes", "conformance/behaviours/test_replay"),
            "conformance/traces/test_round_trip",
        ),
        "conformance/traces": ("conformance/traces/test_group",),
        "conformance/guarantee": ("conformance/guarantee/test_on_simulated_brokers",),
    },
    "A broken variant has one claim: a check notices it. One test judges all of them.": {
        "conformance/mutants": ("conformance/history/test_workload",),
        "fuzz/defects": ("fuzz/test_mutants",),
        "reference/mutants": ("reference/explorer/test_on_spark", "reference/test_mutants"),
        "reference/proofs/mutants": ("reference/proofs/test_proof",),
        "spark_audit/quality": ("spark_audit/quality/test_bench", "spark_audit/quality/test_mutants"),
    },
    "The modules are tables of rules, cases, anomalies or checks; one test goes through all rows.": {
        "conformance/history": (
            *("conformance/history/test_certificates", "conformance/history/test_columns_verifier"),
            "conformance/history/test_exchange",
        ),
        "conformance/history/injected": ("conformance/history/test_rules",),
        "conformance/history/rules": ("conformance/history/test_rules",),
        "conformance/damage": ("conformance/damage/test_suite",),
        "conformance/hostile": ("conformance/hostile/test_suite",),
        "conformance/wire": ("conformance/wire/test_ours",),
        "conformance/wire/operations": ("conformance/wire/test_catalogue",),
        "conformance/wire/semantics": ("conformance/wire/test_catalogue",),
        "conformance/pages": ("conformance/wire/test_ours", "conformance/registry/test_mutant_judge"),
        "spark_audit/checks": ("spark_audit/checks/test_checks",),
    },
    "Columns are what the conversion writes and the rules read: the verdicts are those of the lines.": {
        "conformance/history/columns": ("conformance/history/columns/test_judged_columns",),
    },
    "A part of a history has no verdict of its own; the verdicts of all parts are those of the whole.": {
        "conformance/history/split": ("conformance/history/test_split",),
    },
    "Options, output and exit codes are seen only through the command.": {
        "conformance/commands": (
            *("conformance/commands/test_conform", "conformance/commands/test_model_behaviours"),
            "package/test_extras",
        ),
        "conformance/bench": ("conformance/bench/test_broker", "conformance/commands/test_histories"),
        "impl/admin": ("impl/admin/test_cli",),
        "impl/admin/commands": ("impl/admin/test_commands",),
        "impl/command": ("impl/command/test_cli",),
        "impl/terminal": ("impl/admin/test_cli",),
        "reference/commands": ("package/test_extras",),
        "spark_audit/command": (_WATCH,),
    },
    "A simulation is one unit: its programs, the simulated system, the judge, and the search of inputs.": {
        "fuzz": ("fuzz/engine/test_execution", "fuzz/test_regressions", "package/test_extras"),
        "fuzz/cluster": ("fuzz/targets/test_cluster",),
        "fuzz/deferred": ("fuzz/targets/test_deferred_messages",),
        "fuzz/filters": ("fuzz/targets/test_filter_server",),
        "fuzz/groups": ("fuzz/targets/test_consumer_groups",),
        "fuzz/routes": ("fuzz/targets/test_routes_and_replies",),
        "fuzz/hostile": ("fuzz/targets/test_hostile_peers",),
        "fuzz/raft": ("fuzz/targets/test_dledger_group",),
        "fuzz/store": ("fuzz/targets/test_store_recovery",),
        "fuzz/engine": ("fuzz/engine/test_campaign",),
    },
    "A server, a client, a store or a member is tested as a whole by what it answers and keeps.": {
        "impl/access": ("impl/access/test_acl",),
        "impl/broker": ("impl/broker/processors/test_broker_admin",),
        "impl/console": ("impl/console/test_application",),
        "impl/console/pages": ("impl/console/test_application",),
        "impl/broker/processors": ("impl/broker/processors/test_broker_admin",),
        "impl/broker/requests": ("impl/broker/processors/test_groups",),
        "impl/chaos": ("impl/chaos/test_fault_table",),
        "impl/client/connection": (
            *("impl/client/connection/test_name_server_choice", "impl/admin/test_cli"),
        ),
        "impl/dledger": ("impl/dledger/test_ledger_store",),
        "impl/diagnosis": ("impl/diagnosis/test_incidents",),
        "impl/examine": ("impl/examine/test_ledger_walk",),
        "impl/namesrv": ("impl/namesrv/test_administration",),
        "impl/remoting": ("impl/remoting/test_channel", "impl/remoting/test_java_json"),
        "impl/replication": ("impl/replication/test_follow",),
        "impl/runtime": (
            *(
                "impl/runtime/test_simulated_loop",
                "impl/runtime/test_supervision",
                "impl/broker/test_elected_role",
            ),
        ),
        "impl/runtime/security": ("impl/runtime/security/test_tls",),
        "impl/store": ("impl/store/test_rules",),
        "impl/store/files": ("impl/store/test_rules",),
    },
    "A model is compared with TLC's state graph, and a proof proves it; both use these modules whole.": {
        "reference": ("reference/equivalence/test_equiv", "package/test_extras"),
        "reference/explorer": ("reference/explorer/test_fingerprint", "reference/explorer/test_parallel"),
        "reference/explorer/spilling": ("reference/explorer/spilling/test_explorer",),
        "reference/proofs": ("reference/proofs/test_proof",),
        "spec": ("spec/test_drawing", "spec/test_vacuity", "package/test_extras"),
        "spec/guarantee": ("spec/guarantee/test_matrix",),
        "spec/tlc": ("spec/tlc/test_run",),
    },
    "A stage of the audit has no result of its own; audits of logs with known content test it.": {
        "spark_audit/engine": ("spark_audit/engine/test_active",),
        "spark_audit/engine/embedded": ("spark_audit/engine/embedded/test_queries",),
        "spark_audit/evidence": ("spark_audit/passes/test_bucket_sums", _WATCH),
        "spark_audit/generator": (
            *("spark_audit/generator/test_generate", "spark_audit/quality/test_mutants"),
            *("spark_audit/reporting/test_explain", "spark_audit/sources/trace/test_traces"),
        ),
        "spark_audit/incremental": ("spark_audit/incremental/test_checkpoint",),
        "spark_audit/judging": (_WATCH,),
        "spark_audit/passes": ("spark_audit/passes/test_bucket_sums",),
        "spark_audit/reporting": ("spark_audit/reporting/test_plot_data",),
        "spark_audit/scan": ("spark_audit/passes/test_bucket_sums",),
        "spark_audit/sources": ("spark_audit/sources/store/test_store_tables",),
        "spark_audit/sources/store": (
            "spark_audit/sources/store/test_store_tables",
            "spark_audit/engine/test_same_results",
        ),
        "spark_audit/sources/trace": ("spark_audit/sources/trace/test_traces",),
    },
}
"""A reason, to the folders whose modules are tested together for it, and the tests that cover each."""

UNTESTED: Final[dict[str, str]] = {
    "fuzz/cluster/speed.py": "prints how fast a group is simulated; nothing depends on it",
}
"""Modules that no test covers, and why."""
