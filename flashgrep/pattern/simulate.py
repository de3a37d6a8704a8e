r"""An exact matcher for what RE2 cannot say: Unicode `\b` beside non-ASCII text, half boundaries, CRLF anchors.

A Pike machine (Russ Cox, "Regular Expression Matching: the Virtual Machine Approach") whose steps are cached as in a
lazy DFA: a state is the ordered list of live threads, and beside it travel the threads' start offsets.
Time is linear in the text; about 0.4 µs a byte, so it only confirms lines that RE2 has picked.
"""

from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from flashgrep.pattern.looks import holds
from flashgrep.pattern.nodes import Chars, Concat, Either, Group, Look, Node, Octet, Repeat
from flashgrep.pattern.utf8 import octets

MAX_STATES = 4000  # Then the cache starts over: a bound on memory, not on the pattern.
_END = 256  # Stands for the byte after the last one.
_MATCH = 0


class _Byte(NamedTuple):
    wanted: frozenset[int]
    then: int


class _Split(NamedTuple):
    first: int
    second: int


class _Check(NamedTuple):
    look: int
    then: int


class _Move(NamedTuple):
    state: "_State"
    sources: tuple[int, ...]
    matched: int | None


@dataclass(slots=True, eq=False)
class _State:
    threads: tuple[int, ...]
    moves: dict[int, _Move] = field(default_factory=dict)


class Simulation:
    """A compiled tree; `find` returns the leftmost-first match as Rust's engine does."""

    def __init__(self, node: Node) -> None:
        self._looks: list[Look] = []
        self._program: list[_Byte | _Split | _Check | None] = [None]
        self._start = self._compile(node, _MATCH)
        self._states: dict[tuple[int, ...], _State] = {}

    def find(self, data: bytes, pos: int, end: int) -> tuple[int, int]:
        """Return the span of the leftmost match between two offsets, or (-1, -1)."""
        best = (-1, -1)
        state = self._state((self._start,))
        starts = [pos]
        for at in range(pos, end + 1):
            byte = data[at] if at < end else _END
            key = self._flags(data, at) << 9 | byte
            move = state.moves.get(key)
            if move is None:
                move = state.moves[key] = self._step(state, key)
            if move.matched is not None:
                best = (starts[move.matched], at)
            starts = [starts[source] for source in move.sources]
            state = move.state
            if best[0] < 0:
                starts.append(at + 1)
                state = self._state((*state.threads, self._start))
            elif not starts:
                break
        return best

    def _state(self, threads: tuple[int, ...]) -> _State:
        state = self._states.get(threads)
        if state is None:
            if len(self._states) > MAX_STATES:
                self._states.clear()
            state = self._states[threads] = _State(threads)
        return state

    def _flags(self, text: bytes, at: int) -> int:
        return sum(holds(look, text, at) << bit for bit, look in enumerate(self._looks))

    def _step(self, state: _State, key: int) -> _Move:
        """Follow every thread to its byte instructions, in order of priority, and over `key`'s byte."""
        byte, flags = key & 0x1FF, key >> 9
        seen: set[int] = set()
        threads: dict[int, int] = {}
        for source, thread in enumerate(state.threads):
            stack = [thread]
            while stack:
                at = stack.pop()
                if at in seen:
                    continue
                seen.add(at)
                if at == _MATCH:
                    return _Move(self._state(tuple(threads)), tuple(threads.values()), source)
                match self._program[at]:
                    case _Byte(wanted, then):
                        if byte in wanted:
                            threads.setdefault(then, source)
                    case _Split(first, second):
                        stack += (second, first)
                    case _Check(look, then) if flags >> look & 1:
                        stack.append(then)
        return _Move(self._state(tuple(threads)), tuple(threads.values()), None)

    def _add(self, instruction: _Byte | _Split | _Check | None) -> int:
        self._program.append(instruction)
        return len(self._program) - 1

    def _compile(self, node: Node, then: int) -> int:  # noqa: PLR0911 # one case for each kind of node
        """Write `node` so that it goes on at `then`; return where it begins."""
        match node:
            case Chars(found):
                return self._compile(octets(found), then)
            case Octet(found):
                return self._add(_Byte(frozenset(found), then))
            case Look():
                return self._add(_Check(self._look(node), then))
            case Concat(parts):
                return reduce(lambda after, part: self._compile(part, after), reversed(parts), then)
            case Either(parts):
                begins = [self._compile(part, then) for part in reversed(parts)]
                return reduce(lambda later, begin: self._add(_Split(begin, later)), begins)
            case Group(inner):
                return self._compile(inner, then)
            case Repeat():
                return self._repeat(node, then)

    def _look(self, look: Look) -> int:
        if look not in self._looks:
            self._looks.append(look)
        return self._looks.index(look)

    def _repeat(self, node: Repeat, then: int) -> int:
        if node.high is None:
            begin = self._loop(node, then)
        else:
            begin = then
            for _ in range(node.high - node.low):
                begin = self._choice(node, self._compile(node.node, begin), then)
        for _ in range(node.low - (node.high is None and node.low > 0)):
            begin = self._compile(node.node, begin)
        return begin

    def _loop(self, node: Repeat, then: int) -> int:
        """Write `x+`, or `(x+)?` where none need be: that keeps the priorities right when x may be empty."""
        again = self._add(None)
        body = self._compile(node.node, again)
        self._program[again] = _Split(body, then) if node.greedy else _Split(then, body)
        return body if node.low else self._choice(node, body, then)

    def _choice(self, node: Repeat, more: int, then: int) -> int:
        return self._add(_Split(more, then) if node.greedy else _Split(then, more))
