"""The report as JUnit XML, for continuous integration: one suite per layer, one test case per result.

JUnit has no "unknown". A violation is a `failure`. A result that is unknown or was not tested is `skipped`,
so that it counts neither as passed nor as failed. The message of an unknown one begins with "unknown: ...".
Every case has its verdict as the property `verdict`.
"""

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from mqproof.report.matrix import counts_text
from mqproof.report.model import Report, Result, Verdict
from mqproof.report.printable import one_line, printable


def render(report: Report) -> str:
    """Return the XML document, UTF-8."""
    root = Element("testsuites", _totals(report.results), name=one_line(report.title))
    for layer in dict.fromkeys(result.layer for result in report.results):
        results = tuple(result for result in report.results if result.layer == layer)
        suite = SubElement(root, "testsuite", _totals(results), name=one_line(layer))
        if report.facts:
            _properties(suite, report.facts)
        for result in results:
            _test_case(suite, result)
    indent(root)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + tostring(root, encoding="unicode") + "\n"


def _totals(results: tuple[Result, ...]) -> dict[str, str]:
    failures = sum(result.verdict is Verdict.VIOLATED for result in results)
    skipped = sum(result.verdict in (Verdict.UNKNOWN, Verdict.NOT_TESTED) for result in results)
    return {
        "tests": str(len(results)),
        "failures": str(failures),
        "errors": "0",
        "skipped": str(skipped),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }


def _test_case(suite: Element, result: Result) -> None:
    case = SubElement(
        suite,
        "testcase",
        classname=one_line(f"mqproof.{result.layer}"),
        name=one_line(f"{result.id} {result.name}"),
        time=f"{result.seconds:.3f}",
    )
    counts = {f"count.{what}": str(count) for what, count in result.counts.items()}
    _properties(case, {"verdict": result.verdict.value, **counts})
    detail = one_line(result.detail)
    match result.verdict:
        case Verdict.VIOLATED:
            message = detail or f"{one_line(result.name)} is violated"
            SubElement(case, "failure", message=message, type=one_line(result.id)).text = _evidence(result)
        case Verdict.UNKNOWN:
            SubElement(case, "skipped", message=f"unknown: {detail}")
        case Verdict.NOT_TESTED:
            SubElement(case, "skipped", message=f"not tested: {detail}")


def _properties(parent: Element, values: dict[str, str]) -> None:
    properties = SubElement(parent, "properties")
    for name, value in values.items():
        SubElement(properties, "property", name=one_line(name), value=one_line(value))


def _evidence(result: Result) -> str:
    lines = [str(line) for witness in result.witnesses for line in (witness.text, *witness.timeline)]
    lines += [more] if (more := result.more_than(len(result.witnesses))) else []
    lines += [f"looked at: {counts_text(result)}"] if result.counts else []
    lines += [f"replay: {result.replay}"] if result.replay else []
    return printable("\n".join(lines))
