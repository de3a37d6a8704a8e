r"""An exact matcher for what RE2 cannot say: Unicode `\b` beside non-ASCII text, half boundaries, CRLF anchors.

A Pike machine (Russ Cox, "Regular Expression Matching: the Virtual Machine Approach") whose steps are cached as in a
lazy DFA: a state is the ordered list of live threads, and beside it travel the threads' start offsets.
Time is linear in the text; about 0.4 µs a byte, so it only confirms lines that RE2 has picked.
"""

from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
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
    fresh: "_State"
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
        self._flag_cache: dict[int, int] = {}

    def find(self, data: bytes, pos: int, end: int) -> tuple[int, int]:
        """Return the span of the leftmost match between two offsets, or (-1, -1)."""
        best = (-1, -1)
        state = self._state((self._start,))
        starts = [pos]
        before = data[pos - 1] if pos else _END
        for at, byte in enumerate(chain(data[pos:end], (_END,)), pos):
            key = (self._flags(data, at, before) if self._looks else 0) | byte
            move = state.moves.get(key) or self._step(state, key)
            if move.matched is not None:
                best = (starts[move.matched], at)
            starts = [starts[source] for source in move.sources]
            if best[0] < 0:
                starts.append(at + 1)
                state = move.fresh
            elif starts:
                state = move.state
            else:
                break
            before = byte
        return best

    def _state(self, threads: tuple[int, ...]) -> _State:
        state = self._states.get(threads)
        if state is None:
            if len(self._states) > MAX_STATES:
                self._states.clear()
            state = self._states[threads] = _State(threads)
        return state

    def _flags(self, data: bytes, at: int, before: int) -> int:
        """Return which conditions hold at `at`, as bits above the byte's; ASCII neighbours decide them alone."""
        after = data[at] if at < len(data) else _END
        key = before << 9 | after
        flags = self._flag_cache.get(key)
        if flags is None:
            flags = sum(holds(look, data, at) << bit for bit, look in enumerate(self._looks, 9))
            if not (before | after) & 0x80:
                self._flag_cache[key] = flags
        return flags

    def _step(self, state: _State, key: int) -> _Move:
        """Work out and keep the move under `key`: conditions that hold, and the byte."""
        threads, matched = self._followed(state.threads, key & 0x1FF, key >> 9)
        live = tuple(threads)
        move = _Move(self._state(live), self._state((*live, self._start)), tuple(threads.values()), matched)
        state.moves[key] = move
        return move

    def _followed(self, heads: tuple[int, ...], byte: int, flags: int) -> tuple[dict[int, int], int | None]:
        """Return each thread behind the byte with its source, and the source that matched before the byte."""
        seen: set[int] = set()
        threads: dict[int, int] = {}
        for source, thread in enumerate(heads):
            stack = [thread]
            while stack:
                at = stack.pop()
                if at in seen:
                    continue
                seen.add(at)
                if at == _MATCH:
                    return threads, source
                match self._program[at]:
                    case _Byte(wanted, then):
                        if byte in wanted:
                            threads.setdefault(then, source)
                    case _Split(first, second):
                        stack += (second, first)
                    case _Check(look, then) if flags >> look & 1:
                        stack.append(then)
        return threads, None

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
