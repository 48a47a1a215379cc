r"""Finds vacuous claims: which actions are taken, and which antecedents are ever true.

An action that never fires, or `A => B` with an A that is false in every state, proves nothing. TLC checks
this with a generated module. Each action notes that it was taken. For each `=>`, `~>` and `\A` of each
property there is a formula that is true where the claim applies. The run ends when everything has been seen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from mqproof.spec.actions import below, changing, leaves, load, next_of, noting, plain
from mqproof.spec.model_file import Question
from mqproof.spec.syntax import Module, Node, speaks_of_next_state
from mqproof.spec.tlc.run import Job, Outcome

NOTES: Final = "VacuityNotes"
_PREFIX: Final = '<<"noted", '
_TEMPORAL: Final = ("[]", "<>", "~>", "WF_", "SF_")


@dataclass(frozen=True, slots=True)
class Plan:
    """The watched names: note number n stands for the n-th name; actions come first."""

    actions: tuple[str, ...]
    claims: tuple[str, ...]
    """The antecedents of properties, each as `PROPERTY: the text in the module`."""
    job: Job

    def seen(self, outcome: Outcome) -> frozenset[str]:
        lines = (line for line in outcome.text.splitlines() if line.startswith(_PREFIX))
        numbers = {int(line.removeprefix(_PREFIX).removesuffix(">>")) for line in lines}
        names = (*self.actions, *self.claims)
        return frozenset(names[number - 1] for number in numbers)


def plan(question: Question, libraries: tuple[Path, ...], next_name: str = "") -> Plan:
    """Return the run that watches a question's actions and the antecedents of its properties.

    Raises:
        SyntaxProblemError: a module is not in the TLA+ that the parser knows.
    """
    modules = load(question.module, libraries)
    actions = leaves(modules, next_name or next_of(question, modules))
    sources = noting(modules, actions, NOTES, partial(_note, modules))
    claims = list(dict.fromkeys(c for name in question.config.properties for c in _claims(modules, name)))
    claims += [_Claim(f"~{probe}", f"~{probe}", False) for probe in question.probes]
    numbered = list(enumerate(claims, start=len(actions) + 1))
    root = f"{question.module}Vacuity"
    count = len(actions) + len(claims)
    # What the constants exclude is not waited for: that would visit all states.
    names = [*(plain(action, modules) for action in actions), *(claim.name for claim in claims)]
    waiting = (n for n, name in enumerate(names, start=1) if name.partition(":")[0] not in question.never)
    waited = ", ".join(map(str, waiting))
    states = [_watching(n) for n, claim in numbered if not claim.of_steps]
    steps = [_watching(n) for n, claim in numbered if claim.of_steps]
    lines = [f"---- MODULE {root} ----", f"EXTENDS {question.module}, {NOTES}"]
    lines += [f"Claim_{n} ==\n{claim.formula}" for n, claim in numbered]
    lines += [
        "NotedStates ==",
        *states,
        f"    /\\ AllNoted({{{waited}}})",
        "NotedSteps ==",
        *steps,
        "    /\\ TRUE",
        "====",
    ]
    config = question.config.without("INVARIANT", "PROPERTY").with_section("INVARIANT", "NotedStates")
    if steps:
        config = config.with_section("ACTION_CONSTRAINT", "NotedSteps")
    job = Job(
        root,
        config.text(),
        libraries,
        {**sources, NOTES: _notes(count), root: "\n".join(lines) + "\n"},
        seconds_max=question.seconds_max,
        heap_mib=question.heap_mib,
        brief=True,
    )
    return Plan(
        tuple(plain(action, modules) for action in actions), tuple(claim.name for claim in claims), job
    )


def _note(modules: Mapping[str, Module], number: int, module: str) -> str:
    """Return the note of an action. An action counts as taken only if the step changes a variable."""
    variables = ", ".join(name for each in below(modules, module) for name in modules[each].variables)
    # Not a disjunction: TLC would take both branches.
    unchanged = f"IF <<{variables}>>' = <<{variables}>> THEN TRUE ELSE Noted({number})"
    return f"(IF IsNoted({number}) THEN TRUE ELSE {unchanged})"


def _watching(number: int) -> str:
    """Return the conjunct that notes a claim. TLC evaluates no claim again that was noted."""
    return f"    /\\ IF IsNoted({number}) THEN TRUE ELSE Claim_{number} => Noted({number})"


def _notes(count: int) -> str:
    return f"""---- MODULE {NOTES} ----
LOCAL INSTANCE TLC
LOCAL INSTANCE Naturals
ASSUME \\A n \\in 1..{max(count, 1)} : TLCSet(n, FALSE)
IsNoted(n) == TLCGet(n)
Noted(n) == TLCSet(n, TRUE) /\\ PrintT(<<"noted", n>>)
AllNoted(waited) == IF \\A n \\in waited : IsNoted(n) THEN TLCSet("exit", TRUE) ELSE TRUE
====
"""


@dataclass(frozen=True, slots=True)
class _Claim:
    name: str
    formula: str
    """A formula that is true where the property makes a claim."""
    of_steps: bool


def _claims(modules: Mapping[str, Module], name: str) -> Iterator[_Claim]:
    for module in modules.values():
        if name in module.definitions:
            body = module.definitions[name].body
            for context in _contexts(modules, module, body, ()):
                text = ", ".join(" ".join(part.text.split()).removesuffix(" :") for part in context)
                formula = "".join(part.opening for part in context) + "TRUE" + ")" * len(context)
                yield _Claim(f"{name}: {text}", formula, any(part.of_steps for part in context))
            return


@dataclass(frozen=True, slots=True)
class _Part:
    opening: str
    """Text with one parenthesis open."""
    text: str
    of_steps: bool


def _contexts(
    modules: Mapping[str, Module], module: Module, node: Node, outer: tuple[_Part, ...]
) -> Iterator[tuple[_Part, ...]]:
    """Yield the conditions, outermost first, under which each innermost claim of a formula applies."""
    match node.kind, node.op:
        case (("junction" | "infix"), "/\\"):
            for part in node.parts:
                yield from _contexts(modules, module, part, outer)
        case "infix", "\\/" if node.parts[0].op == "UNCHANGED":
            # A step that changes none of these variables cannot break the claim. TLC compares them quicker.
            yield from _contexts(modules, module, node.parts[1], outer)
        case "infix", "=>" | "~>":
            inner = outer
            if not any(n.op.startswith(_TEMPORAL) for n in node.parts[0].walk() if n.kind != "index"):
                inner = (*outer, _condition(modules, module, node.parts[0]))
            yield from _contexts(modules, module, node.parts[1], inner)
        case "quantifier", "\\A":
            bounds = module.text[node.start + 2 : node.parts[-1].start]
            of_steps = any(speaks_of_next_state(part, changing(modules)) for part in node.parts[:-1])
            bounded = _Part(f"(\\E {bounds}\n", f"\\A {bounds}", of_steps)
            yield from _contexts(modules, module, node.parts[-1], (*outer, bounded))
        case "if", _:
            condition = _condition(modules, module, node.parts[0])
            negated = _Part(f"(~({condition.opening} TRUE)) /\\ ", f"~({condition.text})", condition.of_steps)
            yield from _contexts(modules, module, node.parts[1], (*outer, condition))
            yield from _contexts(modules, module, node.parts[2], (*outer, negated))
        case (("paren" | "box"), _):
            yield from _contexts(modules, module, node.parts[0], outer)
        case "prefix", "[]":
            yield from _contexts(modules, module, node.parts[0], outer)
        case "name", _ if not outer and (home := _home(modules, node.op)) is not None:
            yield from _contexts(modules, home, home.definitions[node.op].body, outer)
        case _:
            if outer:
                yield outer


def _home(modules: Mapping[str, Module], name: str) -> Module | None:
    return next((module for module in modules.values() if name in module.definitions), None)


def _condition(modules: Mapping[str, Module], module: Module, node: Node) -> _Part:
    # The condition is on a line of its own in its own column, so that junction lists keep their layout.
    column = node.start - (module.text.rfind("\n", 0, node.start) + 1)
    source = module.source(node)
    return _Part(f"((\n{' ' * column}{source}\n) /\\ ", source, speaks_of_next_state(node, changing(modules)))
