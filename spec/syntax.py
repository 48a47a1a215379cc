r"""A light parser of the TLA+ of our modules: definitions as trees whose nodes know their place in the text.

It is used by tools that change or examine a module (mutation, antecedents, kinds of steps). TLC decides what
a module means. Proofs, user-defined infix operators and nested modules are not supported.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final


class SyntaxProblemError(ValueError):
    """The text is no TLA+ that this parser knows; the message names module, line and column."""


@dataclass(frozen=True, slots=True)
class Node:
    """An expression. `kind` is one of the words below, `op` its operator or name, `parts` its expressions.

    name, literal, apply, index, field, prime, infix, prefix, junction, quantifier, choose, if, case, let,
    lambda, set, filter, map, tuple, record, records, function, functions, except, update, at, box, paren
    """

    kind: str
    op: str
    start: int
    end: int
    parts: tuple["Node", ...] = ()
    bound: tuple[str, ...] = ()
    """Names that a quantifier, a filter, a function or LET introduces."""
    at: int = 0
    """The position of the operator itself."""

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all nodes below it, outermost first."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    parameters: tuple[str, ...]
    body: Node
    start: int


@dataclass(frozen=True)
class Module:
    """A module's text and its definitions, in order."""

    name: str
    text: str
    definitions: dict[str, Definition]
    variables: tuple[str, ...]
    extends: tuple[str, ...]

    def source(self, node: Node) -> str:
        return self.text[node.start : node.end]

    def line(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    @cached_property
    def changing(self) -> frozenset[str]:
        """The operators that refer to the next state, directly or through others."""
        found: set[str] = set()
        while True:
            more = {
                name
                for name, definition in self.definitions.items()
                if name not in found and speaks_of_next_state(definition.body, frozenset(found))
            }
            if not more:
                return frozenset(found)
            found |= more


def speaks_of_next_state(node: Node, changing: frozenset[str]) -> bool:
    return any(
        n.kind == "prime" or n.op == "UNCHANGED" or (n.kind in ("name", "apply") and n.op in changing)
        for n in node.walk()
    )


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # word, number, string, symbol, end
    text: str
    start: int
    column: int


_COMMENT: Final = re.compile(r"\\\*[^\n]*|\(\*.*?\*\)", re.DOTALL)
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)|(?P<word>[A-Za-z_0-9]*[A-Za-z_][A-Za-z_0-9]*)|(?P<number>\d+)|(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<rule>----+|====+)
    |(?P<symbol>/\\|\\/|<=>|=>|==|=<|<=|>=|<<|>>_|>>|~>|\|->|->|<-|\.\.|:>|@@|\[\]|<>|\\[a-zA-Z]+|\\|!!|[-+*/%<>=#~'.,:;!@()\[\]{}^|&$])""",
    re.VERBOSE,
)
_INFIX: Final = {
    "=>": 1, "<=>": 2, "~>": 2,
    "/\\": 3, "\\/": 3,
    "=": 5, "#": 5, "<": 5, ">": 5, "<=": 5, "=<": 5, ">=": 5,
    "\\in": 5, "\\notin": 5, "\\subseteq": 5, "\\leq": 5, "\\geq": 5,
    "@@": 6, ":>": 7,
    "\\cup": 8, "\\union": 8, "\\cap": 8, "\\intersect": 8, "\\": 8,
    "..": 9, "+": 10, "-": 11, "%": 10, "\\div": 13, "*": 13, "\\o": 13, "\\circ": 13, "\\X": 10,
    "(+)": 10, "^": 14,
}  # fmt: skip
_PREFIX: Final = {
    "~": 4, "\\lnot": 4, "\\neg": 4, "ENABLED": 4, "UNCHANGED": 4, "[]": 4, "<>": 4,
    "SUBSET": 8, "UNION": 8, "DOMAIN": 9, "-": 12,
}  # fmt: skip
_KEYWORDS: Final = frozenset(
    {
        *(
            "EXTENDS",
            "CONSTANT",
            "CONSTANTS",
            "VARIABLE",
            "VARIABLES",
            "ASSUME",
            "ASSUMPTION",
            "AXIOM",
            "THEOREM",
        ),
        *("LOCAL", "INSTANCE", "RECURSIVE"),
    }
)
_ENDS: Final = frozenset(["THEN", "ELSE", "IN", "OTHER", "EXCEPT", "WITH"])


def parse(text: str) -> Module:
    """Return the module with its definitions.

    Raises:
        SyntaxProblemError: a definition is not in the TLA+ that this parser knows.
    """
    return _Parser(text).module()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._name = found[1] if (found := re.search(r"MODULE\s+(\w+)", text)) else "?"
        self._tokens = list(_tokens(text, self._name))
        self._at = 0
        self._fences: list[int] = [0]  # a token at or left of the column ends the expression

    def module(self) -> Module:
        definitions: dict[str, Definition] = {}
        variables: list[str] = []
        extends: list[str] = []
        while (token := self._raw()).kind != "end":
            if token.text == "EXTENDS":
                extends += self._names()
            elif token.text in ("VARIABLE", "VARIABLES"):
                variables += self._names()
            elif token.kind == "word" and token.text not in _KEYWORDS and self._defines():
                definition = self._definition()
                definitions[definition.name] = definition
            else:
                self._at += 1
        return Module(self._name, self._text, definitions, tuple(variables), tuple(extends))

    def _names(self) -> list[str]:
        self._at += 1
        found = [self._raw().text]
        self._at += 1
        while self._raw().text == ",":
            found.append(self._tokens[self._at + 1].text)
            self._at += 2
        return found

    def _defines(self) -> bool:
        """Return whether a definition begins here: `Name ==`, `Name(...) ==`, `Name[...] ==`.

        An INSTANCE is not a definition.
        """
        at = self._at + 1
        if self._tokens[at].text in ("(", "["):
            depth = 0
            while True:
                depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(self._tokens[at].text, 0)
                at += 1
                if depth == 0 or self._tokens[at].kind == "end":
                    break
        if self._tokens[at].text != "==":
            return False
        return self._tokens[at + 1].text != "INSTANCE"

    def _definition(self) -> Definition:
        name = self._next()
        parameters: list[str] = []
        if self._raw().text in ("(", "["):
            closing = {"(": ")", "[": "]"}[self._next().text]
            while self._raw().text != closing:
                token = self._next()
                if (
                    token.kind == "word"
                    and token.text != "_"
                    and self._tokens[self._at - 2].text in ("(", ",", "[")
                ):
                    parameters.append(token.text)
            self._next()
        self._expect("==")
        return Definition(name.text, tuple(parameters), self._expression(0), name.start)

    # Expressions, by precedence.

    def _expression(self, least: int) -> Node:
        left = self._operand()
        while True:
            token = self._peek()
            if token.kind != "symbol":
                return left
            if token.text == "'":
                self._next()
                left = Node("prime", "'", left.start, token.start + 1, (left,), at=token.start)
                continue
            precedence = _INFIX.get(token.text)
            if precedence is None or precedence < least:
                return left
            self._next()
            # Chains of the same operator associate to the left; => is not chained in our modules.
            right = self._expression(precedence + 1)
            left = Node("infix", token.text, left.start, right.end, (left, right), at=token.start)

    def _operand(self) -> Node:
        token = self._peek()
        if token.text in ("/\\", "\\/"):
            return self._junction()
        if token.text in _PREFIX:
            self._next()
            inner = self._expression(_PREFIX[token.text])
            return Node("prefix", token.text, token.start, inner.end, (inner,), at=token.start)
        return self._postfix(self._primary())

    def _junction(self) -> Node:
        first = self._next()
        items: list[Node] = []
        self._fences.append(first.column)
        try:
            while True:
                items.append(self._expression(0))
                following = self._raw()
                if following.text != first.text or following.column != first.column:
                    break
                self._at += 1
        finally:
            self._fences.pop()
        return Node("junction", first.text, first.start, items[-1].end, tuple(items), at=first.start)

    def _postfix(self, node: Node) -> Node:
        while True:
            token = self._peek()
            if token.text == "[" and node.kind != "literal":
                self._next()
                inner = self._list("]")
                node = Node("index", "[]", node.start, self._last_end(), (node, *inner), at=token.start)
            elif token.text == ".":
                self._next()
                name = self._next()
                node = Node("field", name.text, node.start, self._last_end(), (node,), at=token.start)
            elif token.text == "!" and node.kind == "name":
                self._next()
                name = self._next()
                qualified = f"{node.op}!{name.text}"
                arguments: tuple[Node, ...] = ()
                if self._peek().text == "(":
                    self._next()
                    arguments = self._list(")")
                node = Node("apply", qualified, node.start, self._last_end(), arguments, at=node.start)
            elif token.text == "'":
                self._next()
                node = Node("prime", "'", node.start, token.start + 1, (node,), at=token.start)
            else:
                return node

    def _primary(self) -> Node:
        token = self._next()
        match token.text:
            case "(":
                return self._enclosed("paren", token, ")")
            case "{":
                return self._braces(token)
            case "[":
                return self._brackets(token)
            case "<<":
                parts = () if self._peek().text == ">>" and self._next() else self._list(">>", ">>_")
                if self._tokens[self._at - 1].text == ">>_":
                    parts = (*parts, self._postfix(self._primary()))
                return Node("tuple", "", token.start, self._last_end(), parts, at=token.start)
            case "\\A" | "\\E":
                return self._quantifier(token)
            case "CHOOSE":
                return self._quantifier(token, "choose")
            case "LAMBDA":
                bound = [self._next().text]
                while self._peek().text == ",":
                    self._next()
                    bound.append(self._next().text)
                self._expect(":")
                body = self._expression(0)
                return Node("lambda", "", token.start, body.end, (body,), tuple(bound), token.start)
            case "IF":
                return self._if(token)
            case "CASE":
                return self._case(token)
            case "LET":
                return self._let(token)
            case "@":
                return Node("at", "@", token.start, token.start + 1, at=token.start)
        if token.kind == "word" and token.text not in _ENDS | _KEYWORDS:
            if token.text in ("TRUE", "FALSE", "BOOLEAN", "STRING"):
                return Node("literal", token.text, token.start, self._last_end(), at=token.start)
            if token.text.startswith(("WF_", "SF_")):
                self._expect("(")
                inner = self._list(")")
                return Node("apply", token.text, token.start, self._last_end(), inner, at=token.start)
            if self._peek().text == "(":
                self._next()
                arguments = self._list(")")
                return Node("apply", token.text, token.start, self._last_end(), arguments, at=token.start)
            return Node("name", token.text, token.start, self._last_end(), at=token.start)
        if token.kind in ("number", "string"):
            return Node("literal", token.text, token.start, self._last_end(), at=token.start)
        raise self._problem(token, "an expression")

    def _enclosed(self, kind: str, opening: _Token, closing: str) -> Node:
        inner = self._expression(0)
        self._expect(closing)
        return Node(kind, "", opening.start, self._last_end(), (inner,), at=opening.start)

    def _list(self, *closing: str) -> tuple[Node, ...]:
        found = [self._expression(0)]
        while self._peek().text == ",":
            self._next()
            found.append(self._expression(0))
        if self._peek().text not in closing:
            raise self._problem(self._peek(), " or ".join(closing))
        self._next()
        return tuple(found)

    def _braces(self, token: _Token) -> Node:
        if self._peek().text == "}":
            self._next()
            return Node("set", "", token.start, self._last_end(), at=token.start)
        first = self._expression(0)
        if self._peek().text == ":":
            self._next()
            if first.kind == "infix" and first.op == "\\in":
                body = self._expression(0)
                self._expect("}")
                bound = _names_of(first.parts[0])
                end = self._last_end()
                return Node("filter", "", token.start, end, (first.parts[1], body), bound, token.start)
            bound, sets = self._bounds()
            self._expect("}")
            return Node("map", "", token.start, self._last_end(), (*sets, first), bound, token.start)
        parts: tuple[Node, ...] = (first,)
        if self._peek().text == ",":
            self._next()
            parts = (first, *self._list("}"))
        else:
            self._expect("}")
        return Node("set", "", token.start, self._last_end(), parts, at=token.start)

    def _brackets(self, token: _Token) -> Node:
        following = self._tokens[self._at + 1].text
        if following in ("|->", ":") and self._peek().kind == "word":
            return self._record(token, following)
        if (makes := self._try_function(token)) is not None:
            return makes
        first = self._expression(0)
        after = self._next()
        if after.text == "EXCEPT":
            return self._except(token, first)
        if after.text == "->":
            codomain = self._expression(0)
            self._expect("]")
            return Node("functions", "", token.start, self._last_end(), (first, codomain), at=token.start)
        if after.text == "]" and self._tokens[self._at].text.startswith("_"):
            subscript = self._next()  # `]_vars`: the underscore is part of the name
            if subscript.text == "_":
                self._primary()
            return Node("box", subscript.text[1:], token.start, self._last_end(), (first,), at=token.start)
        raise self._problem(after, "|->, ->, EXCEPT or ]_")

    def _try_function(self, token: _Token) -> Node | None:
        """Parse [x \\in S, y \\in T |-> e], or return None and restore the position."""
        before = self._at
        try:
            bound, sets = self._bounds()
        except SyntaxProblemError:
            self._at = before
            return None
        if self._peek().text != "|->":
            self._at = before
            return None
        self._next()
        body = self._expression(0)
        self._expect("]")
        return Node("function", "", token.start, self._last_end(), (*sets, body), bound, token.start)

    def _record(self, token: _Token, arrow: str) -> Node:
        fields: list[str] = []
        parts: list[Node] = []
        while True:
            fields.append(self._next().text)
            self._expect(arrow)
            parts.append(self._expression(0))
            if self._peek().text != ",":
                break
            self._next()
        self._expect("]")
        kind = "record" if arrow == "|->" else "records"
        return Node(kind, " ".join(fields), token.start, self._last_end(), tuple(parts), at=token.start)

    def _except(self, token: _Token, base: Node) -> Node:
        updates: list[Node] = []
        while True:
            mark = self._expect("!")
            places: list[Node] = []
            while self._peek().text in ("[", "."):
                if self._next().text == ".":
                    self._next()
                else:
                    places += self._list("]")
            self._expect("=")
            value = self._expression(0)
            parts = (*places, value)
            updates.append(Node("update", "", mark.start, value.end, parts, at=mark.start))
            if self._peek().text != ",":
                break
            self._next()
        self._expect("]")
        return Node("except", "", token.start, self._last_end(), (base, *updates), at=token.start)

    def _bounds(self) -> tuple[tuple[str, ...], tuple[Node, ...]]:
        """Parse `x, y \\in S, <<a, b>> \\in T`; return the names and the sets."""
        names: list[str] = []
        sets: list[Node] = []
        while True:
            token = self._next()
            if token.text == "<<":
                names += [n for part in self._list(">>") for n in _names_of(part)]
            elif token.kind == "word":
                names.append(token.text)
            else:
                raise self._problem(token, "a bound name")
            if self._peek().text == ",":
                self._next()
                continue
            if self._peek().text == ":":
                return tuple(names), tuple(sets)  # unbounded
            self._expect("\\in")
            sets.append(self._expression(6))
            if self._peek().text != ",":
                return tuple(names), tuple(sets)
            self._next()

    def _quantifier(self, token: _Token, kind: str = "quantifier") -> Node:
        bound, sets = self._bounds()
        self._expect(":")
        body = self._expression(0)
        return Node(kind, token.text, token.start, body.end, (*sets, body), bound, token.start)

    def _if(self, token: _Token) -> Node:
        condition = self._expression(0)
        self._expect("THEN")
        yes = self._expression(0)
        self._expect("ELSE")
        no = self._expression(0)
        return Node("if", "IF", token.start, no.end, (condition, yes, no), at=token.start)

    def _case(self, token: _Token) -> Node:
        parts: list[Node] = []
        while True:
            if self._peek().text == "OTHER":
                self._next()
            else:
                parts.append(self._expression(0))
            self._expect("->")
            parts.append(self._expression(0))
            if self._peek().text != "[]":
                return Node("case", "CASE", token.start, parts[-1].end, tuple(parts), at=token.start)
            self._next()

    def _let(self, token: _Token) -> Node:
        names: list[str] = []
        parts: list[Node] = []
        while self._peek().text != "IN":
            if self._peek().text == "RECURSIVE":
                self._names()
                continue
            definition = self._definition()
            names.append(definition.name)
            parts.append(definition.body)
        self._next()
        body = self._expression(0)
        return Node("let", "LET", token.start, body.end, (*parts, body), tuple(names), token.start)

    # Tokens.

    def _raw(self) -> _Token:
        return self._tokens[self._at]

    def _peek(self) -> _Token:
        """Return the next token, or an end token if the layout of a junction list ends the expression."""
        token = self._tokens[self._at]
        if token.column <= self._fences[-1]:
            return _Token("end", "", token.start, token.column)
        return token

    def _next(self) -> _Token:
        token = self._peek()
        if token.kind == "end":
            raise self._problem(token, "more of an expression")
        self._at += 1
        return token

    def _expect(self, text: str) -> _Token:
        token = self._next()
        if token.text != text:
            raise self._problem(token, text)
        return token

    def _last_end(self) -> int:
        last = self._tokens[self._at - 1]
        return last.start + len(last.text)

    def _problem(self, token: _Token, expected: str) -> SyntaxProblemError:
        line = self._text.count("\n", 0, token.start) + 1
        return SyntaxProblemError(
            f"{self._name}.tla:{line}:{token.column}: {token.text or 'the end'!r} found, {expected} expected"
        )


def _names_of(node: Node) -> tuple[str, ...]:
    return tuple(part.op for part in node.walk() if part.kind == "name")


def _tokens(text: str, name: str) -> Iterator[_Token]:
    bare = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    at = 0
    while at < len(bare):
        found = _TOKEN.match(bare, at)
        if found is None:
            line = bare.count("\n", 0, at) + 1
            raise SyntaxProblemError(f"{name}.tla:{line}: {bare[at]!r} is not known here")
        kind = str(found.lastgroup)
        if kind not in ("space", "rule"):
            column = at - (bare.rfind("\n", 0, at) + 1) + 1
            yield _Token(kind, found[0], at, column)
        at = found.end()
    yield _Token("end", "", len(text), 0)
