"""Finds a model's modules and actions, and adds notes to actions that record when they are taken."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mqproof.spec.model_file import Question
from mqproof.spec.syntax import Definition, Module, Node, SyntaxProblemError, parse, speaks_of_next_state


def load(name: str, libraries: Sequence[Path]) -> dict[str, Module]:
    """Return the module and those it extends, directly or indirectly, from the libraries.

    The first library that has a module is used. Modules in no library, such as the standard ones, are left
    out.
    """
    found: dict[str, Module] = {}
    todo = [name]
    while todo:
        each = todo.pop(0)
        file = next((f for folder in libraries if (f := folder / f"{each}.tla").is_file()), None)
        if each in found or file is None:
            continue
        found[each] = parse(file.read_text(encoding="utf-8"))
        todo += found[each].extends
    return found


def below(modules: Mapping[str, Module], name: str) -> list[str]:
    """Return the names of the module and of all modules that it extends."""
    found = [name]
    for each in found:
        found += [other for other in modules[each].extends if other in modules and other not in found]
    return found


def leaves(modules: Mapping[str, Module], next_name: str) -> list[str]:
    """Return the actions of a next-state relation: the operators in its disjunctions, in order, each once."""
    known = changing(modules)
    found: dict[str, None] = {}

    def descend(name: str) -> bool:
        """Add the actions below `name`; return False if its body is not a choice among named actions.

        In that case `name` is an action itself.
        """
        definition = _definition(modules, name)
        below = None if definition is None else _choices(definition.body, known)
        if below is None:
            return False
        for each in below:
            if not descend(each):
                found.setdefault(each)
        return True

    if not descend(next_name):
        found.setdefault(next_name)
    return list(found)


def _choices(node: Node, changing: frozenset[str], *, alone: bool = False) -> list[str] | None:
    """Return the named actions that a disjunction chooses from; None for another node."""
    if node.kind in ("junction", "infix") and node.op == "\\/":
        parts = [_choices(part, changing, alone=True) for part in node.parts]
        return None if None in parts else [name for part in parts for name in part or ()]
    if node.kind == "paren" or (node.kind == "quantifier" and node.op == "\\E"):
        return _choices(node.parts[-1], changing, alone=True)
    if alone and node.kind in ("name", "apply") and node.op in changing:
        return [node.op]
    if alone and node.kind in ("junction", "infix") and node.op == "/\\":
        named = [part for part in node.parts if speaks_of_next_state(part, changing)]
        return _choices(named[0], changing, alone=True) if len(named) == 1 else None
    return None


def changing(modules: Mapping[str, Module]) -> frozenset[str]:
    """Return the operators of all modules that refer to the next state, directly or through others."""
    definitions = [definition for module in modules.values() for definition in module.definitions.values()]
    found: frozenset[str] = frozenset()
    while True:
        more = {d.name for d in definitions if speaks_of_next_state(d.body, found)}
        if more == found:
            return found
        found = frozenset(more)


def _definition(modules: Mapping[str, Module], name: str) -> Definition | None:
    return next((m.definitions[name] for m in modules.values() if name in m.definitions), None)


def next_of(question: Question, modules: Mapping[str, Module]) -> str:
    """Return the name of the next-state relation of the question: N in `Init /\\ [][N]_vars`."""
    if found := question.config.names("NEXT"):
        return found[0]
    return _specification(question, modules)[1]


def init_of(question: Question, modules: Mapping[str, Module]) -> str:
    """Return the name of the initial predicate of the question: I in `I /\\ [][Next]_vars`."""
    if found := question.config.names("INIT"):
        return found[0]
    definition, next_name = _specification(question, modules)
    names = (node.op for node in definition.body.walk() if node.kind == "name" and node.op != next_name)
    return next(name for name in names if _definition(modules, name) is not None)


def _specification(question: Question, modules: Mapping[str, Module]) -> tuple[Definition, str]:
    """Return the definition that contains `[][Next]_vars`, and the name of its next-state relation.

    Raises:
        SyntaxProblemError: there is no such definition.
    """
    name = next(iter(question.config.names("SPECIFICATION")), "")
    while (definition := _definition(modules, name)) is not None:
        for node in definition.body.walk():
            if node.kind == "box" and node.parts[0].kind == "name":
                return definition, node.parts[0].op
        below = (node.op for node in definition.body.walk() if node.kind == "name")
        name = next((op for op in below if (d := _definition(modules, op)) and _has_box(d, modules)), "")
    raise SyntaxProblemError(f"{question.module} {question.name}: no [][Next]_vars under SPECIFICATION")


def _has_box(definition: Definition, modules: Mapping[str, Module]) -> bool:
    for node in definition.body.walk():
        if node.kind == "box":
            return True
        if node.kind == "name" and (below := _definition(modules, node.op)) and _has_box(below, modules):
            return True
    return False


def plain(action: str, modules: Mapping[str, Module]) -> str:
    """Return an action's name without the prefix MC, if that is defined too.

    For example, MCFlush's MCProcessCrash is Flush's ProcessCrash with a bound.
    """
    bare = action.removeprefix("MC")
    return bare if _definition(modules, bare) is not None else action


def noting(
    modules: Mapping[str, Module],
    actions: Sequence[str],
    notes: str,
    note: Callable[[int, str], str],
) -> dict[str, str]:
    """Return the modules that define an action, changed so that each action notes when it is taken.

    `note` makes the note from an action's number, from 1, and the name of its module. `notes` is the module
    that defines the note's operators.
    """
    changed: dict[str, str] = {}
    for name, module in modules.items():
        mine = {each: note(actions.index(each) + 1, name) for each in actions if each in module.definitions}
        if mine:
            changed[name] = extending(_noting(module, mine), module, notes)
    return changed


def _noting(module: Module, notes: Mapping[str, str]) -> str:
    """Return the module's text with noted actions.

    Their bodies move to new operators, so that their layout is kept.
    """
    text = module.text
    for name, definition in reversed(module.definitions.items()):
        if name not in notes:
            continue
        parameters = f"({', '.join(definition.parameters)})" if definition.parameters else ""
        body = text[definition.body.start : definition.body.end]
        column = definition.body.start - (text.rfind("\n", 0, definition.body.start) + 1)
        moved = f"{name}Body{parameters} ==\n{' ' * column}{body}\n"
        noted = f"{name}{parameters} == {name}Body{parameters} /\\ {notes[name]}\n"
        text = text[: definition.start] + moved + noted + text[definition.body.end :]
    return text


def extending(text: str, module: Module, notes: str) -> str:
    """Return the module's text, original or edited, with the module `notes` added to its EXTENDS clause."""
    if module.extends:
        return text.replace("EXTENDS ", f"EXTENDS {notes}, ", 1)
    head = text.index("\n") + 1
    return f"{text[:head]}EXTENDS {notes}\n{text[head:]}"
