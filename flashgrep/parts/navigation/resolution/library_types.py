"""What the libraries of Java, Kotlin and C# hold: ``List<Crane>``, ``Map<String, Crane>``, ``Task<Crane>``.

One table for all: which argument of a type is what it holds, and of its members which return what is held, which another
container of it, and which pass it to a lambda. A name means the same in each of the libraries, or is not listed.
"""

from typing import Final

from flashgrep.parts.navigation.resolution.sites import (
    UNKNOWN,
    Container,
    Pair,
    Type,
)

INDEX: Final = "[]"
"""The member that an index reads."""
AWAIT: Final = "await"
"""The member that stands for waiting for a value."""
ARRAY: Final = "[]"


def _list_names(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_HOLDERS: Final = _list_names(
    "List ArrayList LinkedList Collection Set HashSet LinkedHashSet TreeSet SortedSet Queue",
    "NavigableSet Deque ArrayDeque PriorityQueue BlockingQueue ConcurrentLinkedQueue Stack Vector",
    "CopyOnWriteArrayList LinkedBlockingQueue Iterable Iterator ListIterator Stream Optional Future",
    "CompletableFuture CompletionStage AtomicReference WeakReference SoftReference ThreadLocal",
    # Of Kotlin, and what holds one value.
    "Supplier Callable Provider Lazy MutableList MutableSet MutableCollection Sequence Array",
    "Flow StateFlow MutableStateFlow SharedFlow Deferred MutableIterator Result",
    # Of C#.
    "IEnumerable IList IReadOnlyList ICollection IReadOnlyCollection ISet IEnumerator",
    "IOrderedEnumerable IQueryable IAsyncEnumerable ConcurrentBag ConcurrentQueue ConcurrentStack",
    "ImmutableArray ImmutableList ImmutableHashSet ObservableCollection ReadOnlyCollection Task",
    "ValueTask Nullable Span ReadOnlySpan Memory ReadOnlyMemory ArraySegment IReadOnlySet",
)
"""Types that hold what their only argument says."""
_MAPS: Final = _list_names(
    "Map HashMap LinkedHashMap TreeMap SortedMap NavigableMap ConcurrentMap ConcurrentHashMap",
    # Of Kotlin and C#, whose names for the same differ.
    "EnumMap WeakHashMap IdentityHashMap MutableMap Dictionary IDictionary IReadOnlyDictionary",
    "ConcurrentDictionary SortedDictionary SortedList ImmutableDictionary ReadOnlyDictionary",
)
_PAIRS: Final = frozenset({"Entry", "Pair", "KeyValuePair", "MutableEntry"})
_GROUP: Final = "IGrouping"
"""A sequence of what its second argument says."""
_AWAITED: Final = frozenset({"Task", "ValueTask"})
_TAKES_OUT: Final = _list_names(
    "[] get getFirst getLast removeFirst removeLast next previous poll pop element",
    "pollFirst pollLast peekFirst peekLast orElse orElseGet orElseThrow join take getNow",
    # Of what holds one value, and of Kotlin's lists.
    "call getPlain getAndSet firstOrNull last lastOrNull single singleOrNull getOrNull",
    "getOrElse elementAt elementAtOrNull random findLast maxByOrNull minByOrNull maxBy minBy",
    "removeAt await getOrThrow value reduce elementAtOrElse getOrDefault randomOrNull",
    # Of C#'s queries, queues and tasks.
    "First FirstOrDefault Last LastOrDefault Single SingleOrDefault ElementAt ElementAtOrDefault",
    "Dequeue Pop Peek Result Value Current GetValueOrDefault GetResult MaxBy MinBy Find",
    "FirstAsync FirstOrDefaultAsync SingleAsync SingleOrDefaultAsync set component1",
)
"""Members that are what a container holds."""
_OF_STREAMS: Final = frozenset({"Stream", "Flow", "Sequence"})
_STREAMED: Final = frozenset({"peek", "take"})
"""Members that keep a stream, and take something out of a queue."""
_KEEPS: Final = _list_names(
    "stream parallelStream iterator listIterator filter sorted distinct limit skip subList",
    "findFirst findAny min max toList or reversed descendingIterator takeWhile dropWhile",
    "collect sequential parallel unordered boxed whenComplete exceptionally toCompletableFuture",
    # Of Kotlin's lists and sequences.
    "filterNot filterNotNull sortedBy sortedWith sortedByDescending sortedDescending drop takeLast",
    "dropLast distinctBy toMutableList toSet toMutableSet asSequence asIterable asReversed onEach",
    "plus minus orEmpty slice shuffled toTypedArray requireNoNulls ifEmpty union intersect",
    "subtract constrainOnce asStream filterIndexed toHashSet toArray spliterator copyOf",
    # Of C#'s queries.
    "Where OrderBy OrderByDescending ThenBy ThenByDescending Reverse Skip Take SkipWhile",
    "TakeWhile Distinct DistinctBy ToList ToArray ToHashSet AsEnumerable AsQueryable AsParallel",
    "Concat Union Except Intersect Append Prepend DefaultIfEmpty ConfigureAwait AsReadOnly",
    "GetEnumerator AsSpan ToImmutableList ToImmutableArray GetRange FindAll SkipLast TakeLast",
    "GetAwaiter Slice AsTask Order ToListAsync ToArrayAsync AsMemory",
)
"""Members that are another container of the same."""
_COLLECTED: Final = ("toList", "toSet", "toUnmodifiableList", "toUnmodifiableSet")
"""What Java's streams are collected to without another type."""
_OF_MAPS: Final = _list_names(
    "[] get getOrDefault put remove computeIfAbsent computeIfPresent compute merge putIfAbsent",
    "getValue getOrPut getOrElse replace GetValueOrDefault GetOrAdd AddOrUpdate",
)
"""Members of maps that are a value."""
_VALUES: Final = frozenset({"values", "Values"})
_KEYS: Final = frozenset({"keySet", "keys", "Keys", "navigableKeySet"})
_ENTRIES: Final = _list_names(
    "entrySet entries asSequence toList ToList iterator",
)
_MAPPED: Final = _list_names(
    "map mapNotNull mapToObj thenApply Select mapIndexed ConvertAll",
)
"""Members that are a container of what their lambda returns."""
_FLATTENED: Final = frozenset({"flatMap", "SelectMany", "thenCompose"})
ZIPS: Final = frozenset({"zip", "Zip"})
"""Members that are a container of pairs, with what another container holds."""
_OF_TYPE: Final = frozenset({"OfType", "Cast", "filterIsInstance"})
"""Members that are a container of their type argument."""
_INDEXED: Final = _list_names(
    "forEachIndexed mapIndexed filterIndexed onEachIndexed mapIndexedNotNull fold",
    "flatMapIndexed",
)
"""Methods whose lambda gets what is held second."""
_ACCUMULATES: Final = frozenset({"Aggregate", "foldIndexed", "runningFold", "scan"})
_ON_ITSELF: Final = _list_names(
    "let also takeIf takeUnless ContinueWith collectingAndThen",
)
"""Methods whose lambda gets what they are called on."""
SCOPED: Final = frozenset({"let", "also", "takeIf", "takeUnless"})
"""Those of Kotlin that can be called on anything."""
_OF_KEYS: Final = frozenset({"computeIfAbsent", "GetOrAdd", "filterKeys"})
_OF_PLAIN_VALUES: Final = frozenset({"filterValues"})
_TRIES: Final = _list_names(
    "TryGetValue TryDequeue TryPop TryPeek TryTake TryRemove",
)
"""Methods of C# that set what is passed behind ``out`` to what is held."""
_FIRSTS: Final = frozenset({"getKey", "key", "Key", "first", "component1", "Item1"})
_SECONDS: Final = _list_names(
    "getValue value Value second component2 Item2",
)
_MADE: Final = {
    **dict.fromkeys(("listOf", "mutableListOf", "arrayListOf", "emptyList", "listOfNotNull", "buildList"), "List"),
    **dict.fromkeys(("setOf", "mutableSetOf", "hashSetOf", "linkedSetOf", "emptySet", "sequenceOf"), "Set"),
    **dict.fromkeys(("arrayOf", "arrayOfNulls", "flowOf", "emptyArray"), "Array"),
    **dict.fromkeys(("mapOf", "mutableMapOf", "hashMapOf", "linkedMapOf", "emptyMap"), "Map"),
}  # fmt: skip
"""What the functions of Kotlin's library make of their type arguments."""
_ONE_MORE: Final = 2


def find_library_type(
    name: str,
    arguments: tuple[Type, ...],
) -> Container | Pair | None:
    """Return a library's type with its arguments; None: it is not known what it holds."""
    count = len(arguments)
    if name in _PAIRS and count == _ONE_MORE:
        return Pair(arguments[0], arguments[1])
    if name in _MAPS and count == _ONE_MORE:
        return Container(arguments[1], arguments[0], name)
    if name == _GROUP and count == _ONE_MORE:
        return Container(arguments[1], None, name)
    if name in _HOLDERS and count == 1:
        return Container(arguments[0], None, name)
    return None


def may_hold(name: str) -> bool:
    """Whether a library's type of a name may hold what its arguments say."""
    return name in _HOLDERS or name in _MAPS or name in _PAIRS or name == _GROUP


def find_factory_type(name: str) -> str:
    """Return the type that a function of Kotlin's library makes of its type arguments; empty: none."""
    return _MADE.get(name, "")


def find_content(container: Container) -> Type:
    """Return what a loop over a container gets."""
    if container.key is None:
        return container.held
    return Pair(container.key, container.held)


def find_member(
    container: Container,
    name: str,
    text: bytes,
) -> Type | None:
    """Return the type of a member of a container; ``text``: of its arguments. None: that is not listed."""
    if name == AWAIT:
        return container.held if container.name in _AWAITED else None
    if container.key is not None:
        return _find_member_of_map(container, name)
    # Java's streams are collected to anything.
    if name == "collect" and not any(word.encode() in text for word in _COLLECTED):
        return None
    if name in _STREAMED and container.name in _OF_STREAMS:
        return container
    # Of a queue the first is looked at; of an index, ``first`` is a function.
    if name in _TAKES_OUT or name in {"peek", "first", "find", "remove"}:
        return container.held
    if name in _KEEPS:
        return container
    return None


def _find_member_of_map(
    container: Container,
    name: str,
) -> Type | None:
    if name in _OF_MAPS:
        return container.held
    if name in _VALUES:
        return Container(container.held, None, "Collection")
    if name in _KEYS:
        return Container(container.key or UNKNOWN, None, "Set")
    if name in _ENTRIES:
        return Container(find_content(container), None, "Set")
    # The library's queries see a map as a sequence of pairs.
    sequence = Container(find_content(container), None, "IEnumerable")
    if name in _TAKES_OUT:
        return sequence.held
    if name in _KEEPS and name[:1].isupper():
        return sequence
    if name in {"filter", "filterKeys", "filterValues", "toMutableMap", "toMap"}:
        return container
    return None


def find_part(
    pair: Pair,
    name: str,
) -> Type | None:
    """Return the type of a member of a pair; None: it has no such one."""
    if name in _FIRSTS:
        return pair.first
    if name in _SECONDS:
        return pair.second
    return None


def is_mapping(name: str) -> bool:
    """Whether a member is a container of what its lambda returns."""
    return name in _MAPPED or name in _FLATTENED


def map_content(
    name: str,
    result: Type,
) -> Type:
    """Return the type of a member that is a container of what its lambda returns."""
    if name not in _FLATTENED:
        return Container(result, None, "Stream")
    return result if isinstance(result, Container) else UNKNOWN


def chooses_type(name: str) -> bool:
    """Whether a member is a container of its type argument."""
    return name in _OF_TYPE


def sets_result(name: str) -> bool:
    """Whether a method sets what is passed behind ``out`` to what its object holds."""
    return name in _TRIES


def find_lambda_parameter(
    container: Container,
    name: str,
    place: int,
    count: int,
) -> Type:
    """Return what a member passes to its lambda; ``place``: of the parameter, ``count``: of all parameters."""
    if name in _ON_ITSELF:
        return container
    if container.key is not None:
        return _find_parameter_of_map(container, name, place, count)
    # What is accumulated comes first, and its type is not known.
    if name in _ACCUMULATES:
        return container.held if place == 1 else UNKNOWN
    if name in _INDEXED:
        return container.held if place == count - 1 else UNKNOWN
    # What is numbered comes before its number in C#, and a comparison gets two.
    is_number = place > 0 and name[:1].isupper() and name != "Sort"
    return UNKNOWN if is_number else container.held


def _find_parameter_of_map(
    container: Container,
    name: str,
    place: int,
    count: int,
) -> Type:
    if name in _OF_KEYS:
        return container.key or UNKNOWN
    if name in _OF_PLAIN_VALUES:
        return container.held
    # One parameter is an entry, two are its halves.
    if count == 1:
        return find_content(container)
    if place == 0:
        return container.key or UNKNOWN
    return container.held


FUNCTIONS: Final = {
    **dict.fromkeys(("Function", "Predicate", "Consumer", "ToIntFunction", "ToLongFunction"), (0,)),
    **dict.fromkeys(("Converter", "UnaryOperator", "ToDoubleFunction"), (0,)),
    **dict.fromkeys(("BiFunction", "BiConsumer", "BiPredicate", "ToIntBiFunction"), (0, 1)),
    **dict.fromkeys(("BinaryOperator", "Comparator", "Comparison"), (0, 0)),
}  # fmt: skip
"""Which of their arguments the library's types of functions take."""
ACTION: Final = "Action"
"""Takes all of its arguments."""
FUNCTION: Final = "Func"
"""Takes all of its arguments but the last, which it returns."""
QUOTED: Final = "Expression"
"""Holds a function as data."""
