"""What a question is understood to ask."""

import pytest

from flashgrep.parts.navigation.research.research_questions import parse_question


@pytest.mark.parametrize(
    ("query", "kind", "names"),
    [
        ("what calls authenticate()", "callers", ("authenticate",)),
        ("who calls `Store.read`?", "callers", ("Store.read",)),
        ("callers of the function parse_args", "callers", ("parse_args",)),
        ("where is foo::bar called", "callers", ("foo::bar",)),
        ("call graph of run", "callers", ("run",)),
        ("what does main() call", "callees", ("main",)),
        ("functions called by main", "callees", ("main",)),
        (
            "all implementations of Authenticatable",
            "implementations",
            ("Authenticatable",),
        ),
        ("which types conform to Codable", "implementations", ("Codable",)),
        ("subclasses of the class Base", "implementations", ("Base",)),
        ("what implements the Reader interface", "implementations", ("Reader",)),
        ("what does Store inherit from", "supertypes", ("Store",)),
        ("base classes of Store", "supertypes", ("Store",)),
        ("where is LIMIT used", "usages", ("LIMIT",)),
        ("references to LIMIT", "usages", ("LIMIT",)),
        ("who uses Config", "usages", ("Config",)),
        ("path from main to flush", "path", ("main", "flush")),
        ("path between main and Loom.flush", "path", ("main", "Loom.flush")),
        ("call hierarchy of flush", "callers", ("flush",)),
        ("tests of Loom.flush", "impact", ("Loom.flush",)),
        ("how does main reach flush", "path", ("main", "flush")),
        ("what imports utils", "imports", ("utils",)),
        ("where is Store defined", "definition", ("Store",)),
        ("Store", "usages", ("Store",)),
        ("what overrides Base.area", "overrides", ("Base.area",)),
        ("type hierarchy of Store", "hierarchy", ("Store",)),
        ("impact of changing parse_config", "impact", ("parse_config",)),
        ("impact of src/app.py:10-20", "impact", ("src/app.py:10-20",)),
        ("what breaks if I change Store.read?", "impact", ("Store.read",)),
        ("which tests reach Store.read", "impact", ("Store.read",)),
        ("unused functions in src/app", "unused", ("src/app",)),
        ("dead code", "unused", ()),
        ("tell me about `Store.read` please", "usages", ("Store.read",)),
        ("how is authentication of a user handled", "unknown", ()),
        ("How does RunTask decide to skip a task?", "unknown", ()),
        ("What does RunTask do", "unknown", ()),
        ("trace RunTask", "usages", ("RunTask",)),
        ("who calls (*Executor).RunTask", "callers", ("(*Executor).RunTask",)),
        (
            "who calls task.(*Stack[T]).Push(x, y)?",
            "callers",
            ("task.(*Stack[T]).Push",),
        ),
        ("callers of Vec<T>::push", "callers", ("Vec<T>::push",)),
        ("who calls my-app/src/run.go:run", "callers", ("my-app/src/run.go:run",)),
        ("who calls run: the question", "callers", ("run",)),
        ("imports of src/lib/a.ts", "imports", ("src/lib/a.ts",)),
        ("who uses src/lib/a.ts", "imports", ("src/lib/a.ts",)),
        ("src/lib/a.ts", "imports", ("src/lib/a.ts",)),
        ("who uses internal/conns.Allowed", "usages", ("internal/conns.Allowed",)),
        ("tests for rate limit", "unknown", ()),
        ("tests for the ldap connector", "unknown", ()),
        ("who calls flush in src", "callers", ("flush",)),
        ("tests for rate_limit please", "impact", ("rate_limit",)),
    ],
)
def test_a_question_is_understood(
    query: str, kind: str, names: tuple[str, ...]
) -> None:
    question = parse_question(query)
    assert (question.kind, question.names) == (kind, names)


def test_a_kind_is_asked_of_names() -> None:
    assert parse_question("Store.read", "callers").names == ("Store.read",)
    assert parse_question("main -> flush", "path").names == ("main", "flush")
