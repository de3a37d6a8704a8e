"""What a grammar cannot read is blanked out, and what stands beside it found: macros of C, and heads of Groovy."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.macros import (
    blank_groovy,
    blank_in_c,
    blank_macros,
)
from tests.support.pace import paced


def defined(language: str, text: str) -> list[str]:
    parsed = parse_symbols(language, text.encode())
    assert isinstance(parsed, ParsedFile)
    symbols = FileSymbols(parsed, text.encode())
    return [
        f"{symbols.kind(one)} {symbols.qualified(one)}"
        for one in range(len(symbols.rows))
    ]


C = {
    "struct handle_s {\n  HANDLE_FIELDS\n  STREAM_FIELDS\n};\nint init(struct handle_s *h);\n": [
        "struct handle_s",
        "function init",
    ],
    "MODULE_API int (*Module_Alloc)(size_t n) MODULE_ATTR;\nMODULE_API char * (*Module_Name)(void) MODULE_ATTR;\n": [
        "variable Module_Alloc",
        "variable Module_Name",
    ],
    "LIB_API stmt *lib_next(db *d, stmt *s);\nextern DECLSPEC win * LIBCALL lib_make(const char *t);\n": [
        "function lib_next",
        "function lib_make",
    ],
    "typedef GLint (APIENTRYP PFNGET) (GLuint a);\ntypedef int (VKAPI_PTR *PFN_make)(void);\n": [
        "type PFNGET",
        "type PFN_make",
    ],
    "void say(FORMAT_STRING const char *fmt, ...) VARARG_FUNC(1);\nint after(void);\n": [
        "function say",
        "function after",
    ],
    "#include <a.h>\nEXTERN_C_BEGIN\n\ntypedef enum {\n  One = 1,\n  Two\n} Number;\n": [
        "type Number",
        "enumerator One",
        "enumerator Two",
    ],
    "#define GET_ONE(x) \\\n\tFIELD_GET(ONE_BITS, x)\n"
    "#define SECOND GENMASK(4, 1)\nstruct after;\nint last(struct after *a);\n": [
        "macro GET_ONE",
        "macro SECOND",
        "function last",
    ],
    # Macros that hold cases or bodies are no functions.
    "int run(VM* vm) {\n  LOOP\n  {\n    CASE_CODE(ONE):\n    CASE_CODE(TWO):\n      PUSH(1);\n      DISPATCH();\n"
    "    CASE_CODE(POP): {\n      int a = 1;\n      DROP();\n    }\n  }\n  FOREACH(item, list) {\n    use(item);\n  }\n"
    "  return 0;\n}\nint after(void) { return 1; }\n": [
        "function run",
        "function after",
    ],
    # Others are the head of a function.
    "DEF_PRIMITIVE(list_add)\n{\n  int max = 3;\n}\n\nTEST_IMPL(tcp_open) {\n  int r = 1;\n}\n"
    'static CORE_FN(array_new,\n    "(array/new (n))",\n    "doc; { \\"") {\n  int n = 1;\n}\n': [
        "function list_add",
        "function tcp_open",
        "function array_new",
    ],
    # Attributes in small letters.
    "static void printflike(3, 4)\ninput_reply(int add, const char *fmt, ...)\n{\n  int x;\n}\n"
    "__dead void\nusage(void)\n{\n  exit(1);\n}\nstatic int __init setup(void) { return 0; }\n"
    "static inline always_inline int quick(int a) { return a; }\n__u32 plain(void) { return 1; }\n"
    "static __u32 other(void) { return 1; }\n": [
        "function input_reply",
        "function usage",
        "function setup",
        "function quick",
        "function plain",
        "function other",
    ],
    "typedef HHOOK (WINAPI *sSetHook)\n    (UINT a,\n     UINT b);\nint after(void);\n": [
        "type sSetHook",
        "function after",
    ],
    "static int\nquorem\n#ifdef KR_headers\n\t(b, S) Bigint *b, *S;\n#else\n\t(Bigint *b, Bigint *S)\n#endif\n{\n"
    "\tint n;\n\treturn n;\n}\nint old(a, b)\n  int a;\n  char *b;\n{\n  return a;\n}\n": [
        "function quorem",
        "function old",
    ],
    "RB_HEAD(lists, list);\nTAILQ_HEAD(items, item);\nstatic RB_HEAD(boxes, box) all = RB_INITIALIZER(&all);\n"
    "int after(void);\n": [
        "struct lists",
        "struct items",
        "variable all",
        "struct boxes",
        "function after",
    ],
    # Branches that each open a brace.
    "int wide(int a)\n{\n#ifdef ONE\n  switch (one(a)) {\n#elif TWO\n  switch (two(a)) {\n#else\n  switch (a) {\n#endif\n"
    "  case 1:\n    return 2;\n  }\n}\nint after(void) { return 1; }\n": [
        "function wide",
        "function after",
    ],
    # Branches within an expression, a condition and a list.
    "int reset(int a)\n{\n  int s;\n  s =\n#ifdef ZIP\n    a == 2 ? ONE :\n#endif\n    TWO;\n"
    "  s = /* why */\n#if ZIP\n    one(a)\n#else\n    two(a)\n#endif\n    ;\n"
    "  if (a == 1 ||\n#ifdef ZIP\n      a == 2 ||\n#endif\n      a == 3) return 1;\n  return s;\n}\n"
    "enum colour { RED,\n#ifdef ZIP\n  BLUE,\n#endif\n  GREEN };\nint after(void) { return 1; }\n": [
        "function reset",
        "enum colour",
        "enumerator colour.RED",
        "enumerator colour.BLUE",
        "enumerator colour.GREEN",
        "function after",
    ],
    # Prototypes that no macro of the name replaces.
    "LIB_API int (top) (int *a);\nextern char *(text)(int a);\nint use(int *a) { return top(a); }\n": [
        "function top",
        "function text",
        "function use",
    ],
    # A comment ends nothing, and what is behind it is not inside it.
    "// one =\n#ifdef ONE\nint one(void) { return 1; }\n#else\nint two(void) { return 1; }\n#endif\n": [
        "function one",
        "function two",
    ],
    # Types, functions and enumerators in capitals are none of these.
    "BOOL\nfoo(void)\n{\n  return x;\n}\nHANDLE bar(void) { return 0; }\nstatic DWORD count;\n": [
        "function foo",
        "function bar",
        "variable count",
    ],
    "int set(int a) {\n  GET_TYPE(a)\n  if (a) return 1;\n  else if (b) return 2;\n  return 0;\n}\n": [
        "function set"
    ],
    "enum e {\n  FIRST,\n  /* the last */\n  LAST\n};\nstruct TABLE make(void) { DWORD X1A, Y1A; }\n": [
        "enum e",
        "enumerator e.FIRST",
        "enumerator e.LAST",
        "function make",
    ],
}
CPP = {
    "class MY_API Plain {\n  int x;\n};\nclass A_DEPRECATED MY_EXPORT Two : public Plain {\n  void run();\n};\n": [
        "class Plain",
        "field Plain.x",
        "class Two",
        "method Two.run",
    ],
    "BEGIN_NAMESPACE\nclass Q_EXPORT View : public Object\n{\n    Q_OBJECT\n    Q_PROPERTY(int size READ size)\n"
    "public:\n    explicit View(Object *parent = nullptr);\npublic Q_SLOTS:\n    void open();\nQ_SIGNALS:\n"
    "    void opened(bool how);\n};\nEND_NAMESPACE\n": [
        "class View",
        "method View.View",
        "method View.open",
        "method View.opened",
    ],
    "struct Array {\n  LIB_CONSTEXPR Array(int n) LIB_NOEXCEPT : n(n) {}\n  int at() const LIB_NOEXCEPT { return n; }\n"
    "  Array & operator=(Array const & o) LIB_NOEXCEPT;\n  int n;\n};\n": [
        "struct Array",
        "method Array.Array",
        "method Array.at",
        "method Array.operator=",
        "field Array.n",
    ],
    "LIB_INLINE void Buffer::run( int value ) const LIB_NOEXCEPT\n{\n  if (a) RETRY;\n}\nint last() { return 1; }\n": [
        "function Buffer.run",
        "function last",
    ],
}


@pytest.mark.parametrize(("text", "names"), C.items(), ids=range(len(C)))
def test_c_beside_macros_is_found(text: str, names: list[str]) -> None:
    assert defined("c", text) == names


@pytest.mark.parametrize(("text", "names"), CPP.items(), ids=range(len(CPP)))
def test_cpp_beside_macros_is_found(text: str, names: list[str]) -> None:
    assert defined("cpp", text) == names


@given(
    st.lists(
        st.sampled_from(
            [*C, *CPP, "MACRO", "(", ")", "\n", '"A B"', "/* x */", "{", ";", " ", "é"]
        )
    )
)
def test_what_is_blanked_has_the_length_and_the_lines_of_the_text(
    parts: list[str],
) -> None:
    data = "".join(parts).encode()
    blanked = blank_macros(data)
    assert len(blanked) == len(data)
    kept = [at for at in range(len(data)) if data[at] in b"\n\"'/{};" or data[at] > 127]
    assert all(blanked[at] == data[at] for at in kept)


GROOVY = [
    "/** one line */", "/**/", 'def "adds two"() {', "void 'is é'(int a) {", "trait A<T extends B<C>> extends D<T> {",
    "class A implements B, C {", "private A(int x) throws E {", "static main(args)", "def <T> T f(T a) {",
    "static private x", "def (a, b) = c", "private x",
]  # fmt: skip


@given(st.lists(st.sampled_from([*GROOVY, *"{}();\"'<>\n/* "])))
def test_what_groovys_grammar_cannot_read_is_blanked_in_place(parts: list[str]) -> None:
    data = "".join(parts).encode()
    blanked = blank_groovy(data)
    assert len(blanked) == len(data)
    assert [at for at, byte in enumerate(blanked) if byte == ord("\n")] == [
        at for at, byte in enumerate(data) if byte == ord("\n")
    ]


@pytest.mark.parametrize(
    "beginning",
    ["class a", "class a<", "static ", '"', "def ", "def (", ") throws a", "<a<"],
)
def test_groovy_is_blanked_in_the_time_of_its_length(beginning: str) -> None:
    for text in (
        beginning * (40_000 // len(beginning)),
        beginning + " " * 40_000,
        beginning + "a" * 40_000,
    ):
        begun = time.process_time()
        blank_groovy(text.encode())
        assert time.process_time() - begun < paced(1), text[:20]


@pytest.mark.parametrize("line", [b"ABC(x,\n", b"ABC(x,\n//\n"])
def test_heads_whose_parentheses_never_end_take_no_endless_time(line: bytes) -> None:
    data = line * (1_000_000 // len(line))
    started = time.monotonic()
    assert len(blank_in_c(data)) == len(data)
    assert time.monotonic() - started < 15  # for each head 5 KB were read: a minute


def test_a_pragma_inside_an_expression_ends_no_class_of_csharp() -> None:
    text = """
class Mapper {
    object Get(object given) {
#pragma warning disable IDE0038 // Use pattern matching
        return (given is Rows
#pragma warning restore IDE0038
                && !(given is string)) ? given : null;
    }
    int Next() { return 1; }
}
"""
    names = ["class Mapper", "method Mapper.Get", "method Mapper.Next"]
    assert defined("csharp", text) == names
