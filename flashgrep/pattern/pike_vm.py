r"""An exact matcher for what RE2 cannot express: Unicode `\b` next to non-ASCII text, half boundaries, CRLF anchors.

A Pike VM (Russ Cox, "Regular Expression Matching: the Virtual Machine Approach") whose steps are cached as in a lazy
DFA: a state is the ordered list of live threads; their start offsets are kept separately. Time is linear in the text,
about 0.4 µs per byte, so it is only used to confirm lines found by RE2.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from typing import NamedTuple

from flashgrep.pattern.regex_tree import (
    ASCII_WORD,
    Alternation,
    Assertion,
    ByteSet,
    Chars,
    Concat,
    Group,
    LookKind,
    Node,
    Repeat,
)
from flashgrep.pattern.unicode import Side, byte_classes, word_after, word_before

MAX_STATES = (
    4000  # The cache is cleared at this size: a limit on memory, not on the pattern.
)
_NONE = 256  # Stands for the missing byte before the first and after the last one.
_LF = 10
_CR = 13
_MATCH = 0
_WORD_BYTES = frozenset(ASCII_WORD)

# The conditions as defined by Rust's regex-automata, by the bytes before and after a
# position ...
_ANCHORS: dict[LookKind, Callable[[int, int], bool]] = {
    "text_start": lambda before, _: before == _NONE,
    "text_end": lambda _, after: after == _NONE,
    "line_start": lambda before, _: before in {_NONE, _LF},
    "line_end": lambda _, after: after in {_NONE, _LF},
    "line_start_crlf": lambda before, after: (
        before in {_NONE, _LF} or (before == _CR and after != _LF)
    ),
    "line_end_crlf": lambda before, after: (
        after in {_NONE, _CR} or (after == _LF and before != _CR)
    ),
}
# ... or by whether its neighbours are word characters.
_WORDS: dict[LookKind, Callable[[Side, Side], bool]] = {
    "word": lambda before, after: bool(before) != bool(after),
    "not_word": lambda before, after: before is not None and before == after,
    "word_start": lambda before, after: not before and bool(after),
    "word_end": lambda before, after: bool(before) and not after,
    "half_start": lambda before, _: before is False,
    "half_end": lambda _, after: after is False,
}


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
    """A cached step: the next state, without and with a new thread, and the thread that each of its threads is from."""

    state: "_State"
    fresh: "_State"
    sources: tuple[int, ...]
    matched: int | None
    """The thread that matched before this byte, if any."""


@dataclass(slots=True, eq=False)
class _State:
    threads: tuple[int, ...]
    moves: dict[int, _Move] = field(default_factory=dict)


class PikeVm:
    """A compiled tree; `find` returns the leftmost-first match, like Rust's engine."""

    def __init__(self, node: Node) -> None:
        self._looks: list[Assertion] = []
        self._program: list[_Byte | _Split | _Check | None] = [None]
        self._start = self._compile(node, _MATCH)
        self._states: dict[tuple[int, ...], _State] = {}
        self._flag_cache: dict[int, int] = {}

    def find(self, data: bytes, pos: int, end: int) -> tuple[int, int]:
        """Return the span of the leftmost match between two offsets, or (-1, -1)."""
        best = (-1, -1)
        state = self._state((self._start,))
        starts = [pos]
        if pos:
            before = data[pos - 1]
        else:
            before = _NONE
        # One step more than there are bytes, since a match is noticed in the step after
        # its end.
        for at, byte in enumerate(chain(data[pos:end], (_NONE,)), pos):
            key = (self._flags(data, at, before) if self._looks else 0) | byte
            move = state.moves.get(key) or self._step(state, key)
            if move.matched is not None:
                best = (starts[move.matched], at)
            # Offsets are not part of a state, or no state would ever recur.
            starts = [starts[source] for source in move.sources]
            # After a match no thread is started: it could not be leftmost.
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
                # States in use stay alive by reference; others are rebuilt when they
                # recur.
                self._states.clear()
            state = self._states[threads] = _State(threads)
        return state

    def _flags(self, data: bytes, at: int, before: int) -> int:
        """Return which conditions hold at `at`, as bits above those of the byte."""
        if at < len(data):
            after = data[at]
        else:
            after = _NONE
        # Nine bits each: the 256 values of a byte, and _NONE.
        key = before << 9 | after
        flags = self._flag_cache.get(key)
        if flags is not None:
            return flags
        flags = 0
        for bit, look in enumerate(self._looks, 9):
            if look.kind in _ANCHORS:
                holds = _ANCHORS[look.kind](before, after)
            elif look.ascii:
                holds = _WORDS[look.kind](before in _WORD_BYTES, after in _WORD_BYTES)
            else:
                holds = _WORDS[look.kind](word_before(data, at), word_after(data, at))
            flags |= holds << bit
        if (
            not (before | after) & 0x80
        ):  # Between ASCII neighbours these two bytes determine every condition.
            self._flag_cache[key] = flags
        return flags

    def _step(self, state: _State, key: int) -> _Move:
        """Compute and cache the move for `key`: the byte, and the conditions that hold before it."""
        byte = key & 0x1FF
        flags = key >> 9
        seen: set[int] = set()
        threads: dict[
            int, int
        ] = {}  # Each thread after the byte, and the one it is from.
        matched: int | None = None
        # A stack, popped in order of priority: the branches of a thread come before the
        # next thread.
        stack = [(thread, source) for source, thread in enumerate(state.threads)][::-1]
        while stack:
            at, source = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            if at == _MATCH:
                matched = source
                break  # The remaining threads have lower priority.
            match self._program[at]:
                case _Byte(wanted, then):
                    if byte in wanted:
                        # The first thread to arrive has the highest priority.
                        threads.setdefault(then, source)
                case _Split(first, second):
                    stack += ((second, source), (first, source))
                case _Check(look, then) if flags >> look & 1:
                    stack.append((then, source))
        live = tuple(threads)
        move = _Move(
            self._state(live),
            self._state((*live, self._start)),
            tuple(threads.values()),
            matched,
        )
        state.moves[key] = move
        return move

    def _add(self, instruction: _Byte | _Split | _Check | None) -> int:
        self._program.append(instruction)
        return len(self._program) - 1

    def _compile(self, node: Node, then: int) -> int:  # one case for each kind of node
        """Compile `node` to continue at `then`; return its first instruction."""
        match node:
            case Chars(found):
                return self._compile(byte_classes(found), then)
            case ByteSet(found):
                return self._add(_Byte(frozenset(found), then))
            case Assertion():
                if node not in self._looks:
                    self._looks.append(node)
                return self._add(_Check(self._looks.index(node), then))
            case Concat(parts):
                # From the end, so that each part knows where to continue.
                return reduce(
                    lambda after, part: self._compile(part, after),
                    reversed(parts),
                    then,
                )
            case Alternation(parts):
                begins = [self._compile(part, then) for part in reversed(parts)]
                return reduce(
                    lambda later, begin: self._add(_Split(begin, later)), begins
                )
            case Group(inner):
                return self._compile(inner, then)
            case Repeat():
                return self._repeat(node, then)

    def _repeat(self, node: Repeat, then: int) -> int:
        def split(more: int) -> _Split:
            if node.greedy:
                return _Split(more, then)
            return _Split(then, more)

        copies = node.low
        if node.high is None:
            # `x+`, or `(x+)?` if zero copies are allowed: that keeps the priorities
            # right if x may be empty.
            again = self._add(None)
            begin = self._compile(node.node, again)
            self._program[again] = split(begin)
            if node.low:
                copies -= 1
            else:
                begin = self._add(split(begin))
        else:
            begin = then
            # Optional copies are nested, (x(x)?)?, not in a row, where every way to
            # omit some would be tried.
            for _ in range(node.high - node.low):
                begin = self._add(split(self._compile(node.node, begin)))
        for _ in range(copies):
            begin = self._compile(node.node, begin)
        return begin
