"""Regular expressions that find definitions in languages without a grammar, or whose grammar fails on part of a file.

A pattern's group ``name`` is what is defined; if dots or colons join several parts, the last one. Patterns run over
untrusted files: every repetition is bounded or stops at the end of its line, so a file takes linear time.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from flashgrep.base.lazy import LazyAttribute
from flashgrep.parts.symbols.parse.model import KIND_ID


class Introduction(NamedTuple):
    """One way to define something."""

    kind: int
    pattern: re.Pattern[bytes]
    within: re.Pattern[bytes] | None = None
    """If given, only the groups ``body`` of its matches are searched."""


_MOST: Final = 20_000
"""Bytes of a body that are searched: generated enumerations are long."""


class Rules:
    """A language's patterns, compiled for its first file: all of them take 20 ms, and most processes need none."""

    def __init__(
        self, *rules: tuple[str, ...], flags: re.RegexFlag = re.NOFLAG
    ) -> None:
        """``rules``: each a kind, a pattern and, perhaps, a pattern of the bodies to search."""
        self._rules = rules
        self._flags = re.MULTILINE | re.VERBOSE | flags

    @LazyAttribute
    def introductions(self) -> tuple[Introduction, ...]:
        """Compile the patterns; the most certain come first."""
        return tuple(
            Introduction(
                KIND_ID[kind],
                re.compile(pattern.encode(), self._flags),
                re.compile(body[0].encode(), self._flags) if body else None,
            )
            for kind, pattern, *body in self._rules
        )


_TCL_NAME: Final = r"\{?(?P<name>[^\s{}\"$\[\];]+)"
_TCL: Final = Rules(
    ("function", rf"^[ \t]*(?:::)?(?:tcl::|itcl::)?proc[ \t]+{_TCL_NAME}"),
    ("function", rf"^[ \t]*(?:::)?(?:itcl::)?body[ \t]+{_TCL_NAME}[ \t]*\{{"),
    ("namespace", rf"^[ \t]*namespace[ \t]+eval[ \t]+{_TCL_NAME}"),
    (
        "method",
        rf"^[ \t]*(?:(?:public|private|protected)[ \t]+)?(?:method|typemethod|classmethod)[ \t]+{_TCL_NAME}",
    ),
    (
        "class",
        (
            r"^[ \t]*(?:::)?(?:oo::class[ \t]+create|(?:itcl::)?class|snit::(?:type|widget|widgetadaptor)"
            rf"|nx::Class[ \t]+create)[ \t]+{_TCL_NAME}"
        ),
    ),
    ("macro", rf"^[ \t]*snit::macro[ \t]+{_TCL_NAME}"),
)

_VERILOG_NAME: Final = r"(?P<name>[A-Za-z_][\w$]*)"
_VERILOG_LEAD: Final = r"^[ \t]*(?:(?:extern|virtual|static|local|protected|pure|default|rand|const)[ \t]+){0,5}"
_VERILOG: Final = Rules(
    (
        "module",
        (
            rf"{_VERILOG_LEAD}(?:module|macromodule|program|primitive|checker|config)[ \t]+"
            rf"(?:(?:automatic|static)[ \t]+)?{_VERILOG_NAME}"
        ),
    ),
    ("package", rf"^[ \t]*package[ \t]+(?:(?:automatic|static)[ \t]+)?{_VERILOG_NAME}"),
    (
        "interface",
        (
            rf"{_VERILOG_LEAD}interface[ \t]+(?:(?:automatic|static|class)[ \t]+)?{_VERILOG_NAME}[ \t]*(?:$|"
            r"[;(\#/]|import\b)"
        ),
    ),
    (
        "class",
        rf"^[ \t]*(?:virtual[ \t]+)?class[ \t]+(?:(?:automatic|static)[ \t]+)?{_VERILOG_NAME}",
    ),
    (
        "function",
        rf"{_VERILOG_LEAD}(?:function|task)\b[^;(\n]*?\b{_VERILOG_NAME}[ \t]*(?:[;(]|$)",
    ),
    (
        "type",
        (
            r"^[ \t]*typedef[ \t][^;{]{0,300}"
            rf"(?:\{{[^{{}}]{{0,{_MOST}}}\}}[^;{{}}]{{0,100}}?)?\b{_VERILOG_NAME}"
            r"[ \t]*(?:\[[^\]\n]*\][ \t]*)?;"
        ),
    ),
    (
        "enumerator",
        rf"(?:^|[{{,])[ \t]*{_VERILOG_NAME}[ \t]*(?=[=,\n/]|\Z)",
        rf"\b(?:enum)\b[^;{{}}]{{0,200}}(?P<body>\{{[^{{}}]{{0,{_MOST}}})\}}",
    ),
    (
        "field",
        rf"\b{_VERILOG_NAME}[ \t]*(?:\[[^\]\n]*\][ \t]*)?;",
        rf"\b(?:struct|union)\b[^;{{}}]{{0,200}}(?P<body>\{{[^{{}}]{{0,{_MOST}}})\}}",
    ),
    (
        "constant",
        (
            rf"(?:^|[(,\#])[ \t]*(?:parameter|localparam)\b[^=;,\n()]*?\b{_VERILOG_NAME}[ \t]*(?:\["
            r"[^\]\n]*\][ \t]*)?="
        ),
    ),
    (
        "constant",
        rf"^[ \t]*{_VERILOG_NAME}[ \t]*(?:\[[^\]\n]*\][ \t]*)?=(?!=)",
        r"^[ \t]*(?:parameter|localparam)\b(?P<body>[^;]{0,4000});",
    ),
    ("macro", rf"^[ \t]*`define[ \t]+{_VERILOG_NAME}"),
    (
        "property",
        rf"{_VERILOG_LEAD}(?:constraint|covergroup|property|sequence)[ \t]+{_VERILOG_NAME}",
    ),
)

_VHDL_NAME: Final = (
    r"(?:\"(?=[^\"\n]+\"))?(?P<name>[A-Za-z]\w*|(?<=\")[^\"\n]+|\\[^\\\n]+\\)"
)
_VHDL: Final = Rules(
    (
        "module",
        rf"^[ \t]*(?:entity|architecture|configuration|context)[ \t]+{_VHDL_NAME}[ \t\r\n]+(?:is|of)\b",
    ),
    ("interface", rf"^[ \t]*component[ \t]+{_VHDL_NAME}"),
    ("package", rf"^[ \t]*package[ \t]+(?:body[ \t]+)?{_VHDL_NAME}[ \t\r\n]+is\b"),
    (
        "function",
        rf"^[ \t]*(?:(?:pure|impure)[ \t]+)?(?:function|procedure)[ \t]+{_VHDL_NAME}",
    ),
    ("function", rf"^[ \t]*{_VHDL_NAME}[ \t]*:[ \t]*(?:postponed[ \t]+)?process\b"),
    ("type", rf"^[ \t]*(?:type|subtype)[ \t]+{_VHDL_NAME}"),
    ("constant", rf"^[ \t]*(?:constant|alias)[ \t\r\n]+{_VHDL_NAME}"),
    ("variable", rf"^[ \t]*shared[ \t]+variable[ \t]+{_VHDL_NAME}"),
    (
        "field",
        rf"(?:^|,)[ \t]*{_VHDL_NAME}[ \t]*(?=[:,])",
        r"\bis[ \t\r\n]+record\b(?P<body>(?:(?![ \t\r\n]*end\b)[^;]{0,400};){0,300})",
    ),
    flags=re.IGNORECASE,
)

_D_LEAD: Final = (
    r"^[ \t]*(?:(?:@?\w+(?:\([^()\n]*\))?|extern[ \t]*\([^()\n]*\))[ \t]+){0,8}?"
)
_D: Final = Rules(
    ("module", r"^[ \t]*(?:@\w+[ \t]+)*module[ \t]+(?:\w+\.)*(?P<name>\w+)"),
    ("struct", rf"{_D_LEAD}struct[ \t]+(?P<name>\w+)"),
    ("class", rf"{_D_LEAD}class[ \t]+(?P<name>\w+)"),
    ("union", rf"{_D_LEAD}union[ \t]+(?P<name>\w+)"),
    ("interface", rf"{_D_LEAD}interface[ \t]+(?P<name>\w+)"),
    (
        "enum",
        r"^[ \t]*(?:\w+[ \t]+)?enum[ \t]+(?P<name>\w+)[ \t]*(?::[^{\n;]*)?(?=[{\n])",
    ),
    (
        "constant",
        r"^[ \t]*(?:\w+[ \t]+)?enum[ \t]+(?:[\w.!\[\]]+[ \t]+)?(?P<name>\w+)[ \t]*(?:\([^()\n]*\))?[ \t]*=",
    ),
    (
        "enumerator",
        r"(?:^|[{,])[ \t]*(?P<name>\w+)[ \t]*(?=[=,}\n/]|\Z)",
        rf"\benum\b[^;{{}}()]{{0,200}}(?P<body>\{{[^{{}}]{{0,{_MOST}}})\}}",
    ),
    ("macro", rf"{_D_LEAD}template[ \t]+(?P<name>\w+)"),
    (
        "type",
        r"^[ \t]*(?:\w+[ \t]+)?alias[ \t]+(?P<name>\w+)[ \t]*+(?:\([^()\n]*\))?[ \t]*=",
    ),
    ("type", r"^[ \t]*alias[ \t]+[\w.!()\[\]*]+[ \t]+(?P<name>\w+)[ \t]*;"),
    (
        "constructor",
        rf"{_D_LEAD}(?P<name>this)[ \t]*\([^;{{}}]{{0,500}}?\)[^;{{}}=]{{0,200}}\{{",
    ),
    (
        "function",
        (
            r"^[ \t]*(?!(?:return|else|throw|new|delete|case|import|mixin|if|while|for|foreach|switch"
            r"|assert|version|debug"
            r"|static[ \t]+(?:if|foreach|assert)|goto|do|catch|scope|with|unittest)\b)"
            r"(?:(?:@?\w+(?:\([^()\n]*\))?)[ \t]+){0,7}?[A-Za-z_@][\w.!*\[\]()]*[ \t]+\*?"
            r"(?P<name>(?!(?:if|while|foreach|for|switch|assert|catch|in|is)\b)[A-Za-z_]\w*)[ \t]*\("
            r"[^;{}]{0,800}?\)[^;{}=()\"]{0,200}"
            r"(?:if[ \t]*\([^\n]*\)\s*)?(?:\{|=>)"
        ),
    ),
)

_CYTHON_TYPED: Final = r"[ \t]++(?:(?:[\w.*&, \t:]|\[[^\]\n]*\])+?[ \t*&])??"
_CYTHON: Final = Rules(
    (
        "class",
        (
            r"^[ \t]*(?:c?p?def[ \t]+|ctypedef[ \t]+)?(?:(?:public|api|extern)[ \t]+){0,3}(?:class"
            r"|cppclass)[ \t]+(?:\w+\.)*(?P<name>\w+)"
        ),
    ),
    ("function", r"^[ \t]*(?:async[ \t]+)?def[ \t]+(?P<name>\w+)"),
    (
        "function",
        rf"^[ \t]*cp?def{_CYTHON_TYPED}(?P<name>\w+)[ \t]*(?:\[[^\]\n]*\])?\(",
    ),
    (
        "function",
        r"^[ \t]+(?:[\w.*&,<>]+[ \t*&]+){1,6}(?P<name>\w+)[ \t]*(?:\"[^\"\n]*\"[ \t]*)?\([^=\n]*$",
        r"^[ \t]*cdef[ \t]+extern[ \t]+from[^\n]*\n(?P<body>(?:[ \t]++[^\n]*\n|[ \t]*\n)*)",
    ),
    (
        "struct",
        (
            r"^[ \t]*(?:c?p?def|ctypedef)[ \t]+(?:(?:public|api|extern|packed)[ \t]+){0,3}struct[ \t]+"
            r"(?P<name>\w+)"
        ),
    ),
    (
        "union",
        r"^[ \t]*(?:cdef|ctypedef)[ \t]+(?:(?:public|api|extern)[ \t]+){0,3}union[ \t]+(?P<name>\w+)",
    ),
    (
        "enum",
        (
            r"^[ \t]*(?:c?p?def|ctypedef)[ \t]+(?:(?:public|api|extern)[ \t]+){0,3}enum[ \t]+(?:class"
            r"[ \t]+)?(?P<name>\w+)"
        ),
    ),
    (
        "enumerator",
        r"^[ \t]+(?P<name>[A-Za-z_]\w*)[ \t]*(?==[^=]|,|\r?$|\#)",
        (
            r"^([ \t]*+)(?:(?:c?p?def|ctypedef)[ \t]+)?(?:(?:public|api|extern)[ \t]+){0,3}enum\b[^\n:]{0,200}:"
            r"[^\n]*\n(?P<body>(?:\1[ \t]++[^\n]*\n|[ \t]*+\r?\n)*+)"
        ),
    ),
    ("type", r"^[ \t]*ctypedef[ \t]+fused[ \t]+(?P<name>\w+)"),
    ("type", r"^[ \t]*ctypedef[ \t]++[^\n(:]+?[ \t*](?P<name>\w+)[ \t]*$"),
    ("type", r"^[ \t]*ctypedef[ \t]++[^\n(:]+?\([ \t]*\*[ \t]*(?P<name>\w+)[ \t]*\)"),
    (
        "field",
        r"^[ \t]+cdef[ \t]+(?:public|readonly)[ \t]++[^\n(=:]*?\b(?P<name>\w+)[ \t]*(?:\#[^\n]*)?$",
    ),
    ("variable", r"^(?P<name>[A-Za-z_]\w*)[ \t]*(?::[^=\n]*)?=(?!=)"),
    ("variable", r"^cdef[ \t]++[^\n(=:]*?\b(?P<name>\w+)[ \t]*(?==[^=])"),
)

_ADA_NAME: Final = r"(?:\"(?=[^\"\n]+\"))?(?P<name>[A-Za-z][\w.]*|(?<=\")[^\"\n]+)"
_ADA: Final = Rules(
    ("package", rf"^[ \t]*(?:private[ \t]+)?package[ \t]+(?:body[ \t]+)?{_ADA_NAME}"),
    (
        "function",
        rf"^[ \t]*(?:(?:not[ \t]+)?overriding[ \t]+)?(?:function|procedure|entry)[ \t]+{_ADA_NAME}",
    ),
    ("type", rf"^[ \t]*(?:type|subtype)[ \t]+{_ADA_NAME}"),
    ("class", rf"^[ \t]*(?:task|protected)[ \t]+(?:(?:body|type)[ \t]+)?{_ADA_NAME}"),
    ("constant", rf"^[ \t]*{_ADA_NAME}[ \t]*:[ \t]*(?:aliased[ \t]+)?constant\b"),
    ("variable", rf"^[ \t]*{_ADA_NAME}[ \t]*:[ \t]*exception\b"),
    (
        "field",
        r"^[ \t]*(?P<name>[A-Za-z]\w*)[ \t]*(?=:[^=])",
        (
            r"(?<!null)(?<!end)[ \t\r\n]record\b(?P<body>(?:(?![ \t\r\n]*end[ \t]+record\b)"
            r"[^;]{0,600};){0,300})"
        ),
    ),
    (
        "enumerator",
        r"(?:^|[(,])[ \t]*(?P<name>[A-Za-z]\w*)[ \t]*(?=[,)\n-]|\Z)",
        rf"^[ \t]*type[ \t]+\w+[ \t\r\n]+is[ \t\r\n]*(?P<body>\([^();]{{0,{_MOST}}}\))",
    ),
    flags=re.IGNORECASE,
)

_PASCAL: Final = Rules(
    (
        "module",
        r"^[ \t]*(?:unit|program|library|package)[ \t]+(?P<name>[\w.]+)[ \t]*[;(]",
    ),
    (
        "function",
        (
            r"^[ \t]*(?:class[ \t]+)?(?:procedure|function|constructor|destructor|operator)[ \t]+"
            r"(?P<name>(?:\w+(?:<[^<>\n]*>)?\.){0,6}&?\w+)"
        ),
    ),
    (
        "interface",
        r"^[ \t]*(?P<name>\w+)(?:<[^<>\n]*>)?[ \t]*=[ \t]*(?:disp)?interface\b",
    ),
    ("class", r"^[ \t]*(?P<name>\w+)(?:<[^<>\n]*>)?[ \t]*=[ \t]*(?:class|object)\b"),
    (
        "struct",
        r"^[ \t]*(?P<name>\w+)(?:<[^<>\n]*>)?[ \t]*=[ \t]*(?:packed[ \t]+)?record\b",
    ),
    ("enum", r"^[ \t]*(?P<name>\w+)[ \t]*=[ \t]*\((?=[ \t\r\n]*\w+[ \t\r\n]*[,)=])"),
    (
        "type",
        (
            r"^[ \t]*(?P<name>\w+)(?:<[^<>\n]*>)?[ \t]*=[ \t]*(?:set[ \t]+of|array|\^|type|reference"
            r"[ \t]+to|procedure|function)"
        ),
    ),
    ("constant", r"^[ \t]*(?P<name>\w+)[ \t]*(?::[^=;\n]*)?=[ \t]*(?=[-+'$\d(])"),
    ("property", r"^[ \t]*(?:class[ \t]+)?property[ \t]+(?P<name>\w+)"),
    flags=re.IGNORECASE,
)

_NIM_NAME: Final = r"(?P<name>[A-Za-z_\x80-\xff][\w\x80-\xff]*|`[^`\n]+`)"
_NIM: Final = Rules(
    ("function", rf"^[ \t]*(?:proc|func|method|iterator|converter)[ \t]+{_NIM_NAME}"),
    ("macro", rf"^[ \t]*(?:template|macro)[ \t]+{_NIM_NAME}"),
    ("type", rf"^[ \t]*type[ \t]+{_NIM_NAME}"),
    (
        "type",
        rf"^[ ]{{2,4}}{_NIM_NAME}\*?[ \t]*(?:\[[^\]\n]*\])?[ \t]*(?:\{{\.[^\n]*?\.\}})?[ \t]*=",
        r"^type[ \t]*(?:\#[^\n]*)?\r?\n(?P<body>(?:[ \t]++[^\n]*\n|[ \t]*\r?\n)*)",
    ),
    (
        "field",
        rf"^[ ]{{4,8}}{_NIM_NAME}\*?[ \t]*(?:\{{\.[^\n]*?\.\}})?(?:,[^\n:=]*)?:",
        r"^type[ \t]*(?:\#[^\n]*)?\r?\n(?P<body>(?:[ \t]++[^\n]*\n|[ \t]*\r?\n)*)",
    ),
    ("constant", rf"^(?:const|let)[ \t]+{_NIM_NAME}"),
    ("variable", rf"^var[ \t]+{_NIM_NAME}"),
    (
        "constant",
        rf"^[ ]{{2}}{_NIM_NAME}\*?[ \t]*(?::[^=\n]*)?=",
        r"^(?:const|let|var)[ \t]*(?:\#[^\n]*)?\r?\n(?P<body>(?:[ \t]++[^\n]*\n|[ \t]*\r?\n)*)",
    ),
)

_FSHARP_NAME: Final = r"(?P<name>[A-Za-z_][\w']*|``[^`\n]+``|\([^()\n]{1,12}\))"
_FSHARP_LEAD: Final = (
    r"(?:(?:inline|private|internal|public|mutable|rec|extern)[ \t]+){0,4}+"
)
_FSHARP: Final = Rules(
    (
        "function",
        (
            rf"^[ \t]*(?:let|and)[ \t]+{_FSHARP_LEAD}(?:\(\|)?{_FSHARP_NAME}(?=[ \t]+[\w(_\[{{'`~\"]|"
            r"[ \t]*\|\)|<)"
        ),
    ),
    ("constant", rf"^(?:[ ]{{4}})?let[ \t]+{_FSHARP_LEAD}{_FSHARP_NAME}[ \t]*(?=[:=])"),
    (
        "method",
        (
            r"^[ \t]*(?:static[ \t]+)?(?:member|override|default|abstract)[ \t]+(?:member"
            rf"[ \t]+)?{_FSHARP_LEAD}"
            rf"(?:val[ \t]+)?(?:\w+\.)?{_FSHARP_NAME}"
        ),
    ),
    ("field", rf"^[ \t]*(?:static[ \t]+)?val[ \t]+{_FSHARP_LEAD}{_FSHARP_NAME}"),
    (
        "type",
        rf"^[ \t]*(?:type|and)[ \t]+(?:\[<[^\n]*>\][ \t]*)?{_FSHARP_LEAD}(?P<name>[A-Z]\w*|``[^`\n]+``)",
    ),
    ("module", rf"^[ \t]*module[ \t]+{_FSHARP_LEAD}(?P<name>[\w.]+|``[^`\n]+``)"),
    ("namespace", r"^namespace[ \t]+(?:rec[ \t]+)?(?P<name>[\w.]+)"),
    (
        "enumerator",
        r"^[ \t]*\|[ \t]*(?P<name>[A-Z]\w*)[ \t]*(?:of\b[^\n]*|=[ \t]*-?\d\w*[ \t]*|//[^\n]*|\r)?$",
    ),
    ("class", r"^[ \t]*exception[ \t]+(?P<name>\w+)"),
)

_THRIFT: Final = Rules(
    ("struct", r"^[ \t]*(?:struct|exception)[ \t]+(?P<name>\w+)"),
    ("union", r"^[ \t]*union[ \t]+(?P<name>\w+)"),
    ("enum", r"^[ \t]*(?:enum|senum)[ \t]+(?P<name>\w+)"),
    ("interface", r"^[ \t]*service[ \t]+(?P<name>\w+)"),
    (
        "type",
        r"^[ \t]*typedef[ \t]++[^\n]*?[ \t](?P<name>\w+)[ \t]*[;,]?[ \t]*(?:(?://|\#)[^\n]*)?$",
    ),
    ("constant", r"^[ \t]*const[ \t]+[^\n=]*?\b(?P<name>\w+)[ \t]*="),
    (
        "field",
        (
            r"^[ \t]*\d+[ \t]*:[ \t]*(?:required|optional)?[ \t]*(?=\w)[^\n=(]*?[ \t>](?P<name>\w+)[ \t]*"
            r"(?=[=;,)(\r]|$)"
        ),
    ),
    (
        "enumerator",
        r"(?:^|,)[ \t]*(?P<name>\w+)[ \t]*(?=[=,;}\n/]|\Z)",
        rf"\benum[ \t]+\w+[ \t\r\n]*(?P<body>\{{[^{{}}]{{0,{_MOST}}})\}}",
    ),
    (
        "method",
        r"^[ \t]*(?:oneway[ \t]+)?(?=\w)[\w.<>, \t]+?[ \t](?P<name>\w+)[ \t]*\(",
        rf"\bservice[ \t]+\w+[^{{}}]{{0,200}}(?P<body>\{{[^{{}}]{{0,{_MOST}}})\}}",
    ),
)

_PROTO: Final = Rules(
    ("package", r"^[ \t]*package[ \t]+(?P<name>[\w.]+)[ \t]*;"),
    (
        "struct",
        r"^[ \t]*(?:export[ \t]+|local[ \t]+)?message[ \t]+(?P<name>\w+)[ \t]*(?=\{|$|/)",
    ),
    (
        "enum",
        r"^[ \t]*(?:export[ \t]+|local[ \t]+)?enum[ \t]+(?P<name>\w+)[ \t]*(?=\{|$|/)",
    ),
    ("interface", r"^[ \t]*service[ \t]+(?P<name>\w+)[ \t]*(?=\{|$|/)"),
    ("method", r"^[ \t]*rpc[ \t]+(?P<name>\w+)[ \t]*(?=\(|$)"),
    ("union", r"^[ \t]*oneof[ \t]+(?P<name>\w+)[ \t]*(?=\{|$)"),
    (
        "struct",
        r"^[ \t]*(?:(?:optional|required|repeated)[ \t]+)?group[ \t]+(?P<name>\w+)[ \t]*=",
    ),
    (
        "field",
        (
            r"^[ \t]*(?!option\b|reserved\b|extensions\b|syntax\b|return\b)(?:(?:optional|required|repeated)[ \t]+)?"
            r"(?:map[ \t]*<[^<>\n]*>|[\w.]+)[ \t]+(?P<name>\w+)[ \t]*=[ \t\r\n]*\d"
        ),
    ),
    ("enumerator", r"^[ \t]*(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*-?(?:0x)?\d"),
)

_SQL_NAME: Final = (
    r"(?:IF[ \t]+NOT[ \t]+EXISTS[ \t]+)?(?:(?:\w+|\"[^\"\n]+\"|\[[^\]\n]+\]|`[^`\n]+`)[ \t]*\.[ \t]*){0,3}"
    r"[\"`\[]?(?P<name>(?:(?<=[\"`\[])[^\"`\]\n]+)|[A-Za-z_][\w$\#]*)"
)
_SQL_LEAD: Final = (
    r"^[ \t]*CREATE[ \t\r\n]+"
    r"(?:(?:OR[ \t]+(?:REPLACE|ALTER)|TEMP|TEMPORARY|GLOBAL|LOCAL|UNLOGGED|FOREIGN|UNIQUE"
    r"|CLUSTERED|NONCLUSTERED|MATERIALIZED|RECURSIVE|FORCE|EDITIONABLE"
    r"|DEFINER=\S{1,60}|CONSTRAINT|EXTERNAL|BITMAP)[ \t]+){0,5}"
)
_SQL: Final = Rules(
    ("class", rf"{_SQL_LEAD}(?:TABLE|VIEW)[ \t\r\n]+{_SQL_NAME}"),
    (
        "function",
        rf"{_SQL_LEAD}(?:FUNCTION|PROCEDURE|PROC|TRIGGER|AGGREGATE)[ \t\r\n]+{_SQL_NAME}",
    ),
    (
        "type",
        rf"{_SQL_LEAD}(?:TYPE|DOMAIN|INDEX(?:[ \t]+CONCURRENTLY)?)[ \t\r\n]+(?!ON\b){_SQL_NAME}",
    ),
    (
        "namespace",
        rf"{_SQL_LEAD}(?:SCHEMA|DATABASE|PACKAGE(?:[ \t]+BODY)?)[ \t\r\n]+{_SQL_NAME}",
    ),
    ("variable", rf"{_SQL_LEAD}SEQUENCE[ \t\r\n]+{_SQL_NAME}"),
    (
        "field",
        (
            r"(?:^|[(,])[ \t]*(?!(?:PRIMARY|FOREIGN|UNIQUE|CONSTRAINT|KEY|INDEX|CHECK|LIKE|EXCLUDE|FULLTEXT|REFERENCES"
            r"|ON|NOT|NULL|DEFAULT|PARTITION)\b)[\"`\[]?(?P<name>[A-Za-z_]\w*)[\"`\]]?[ \t]+[\[\"]?[A-Za-z_]"
        ),
        r"^[ \t]*CREATE[ \t]+(?:\w+[ \t]+){0,3}TABLE\b[^;()]{1,200}(?P<body>\([^;]{0,20000})",
    ),
    flags=re.IGNORECASE,
)

_VIM: Final = Rules(
    (
        "function",
        (
            r"^[ \t:]*(?:fu(?:n|nc|nct|ncti|nctio|nction)?!?|(?:export[ \t]+)?def!?)[ \t]+"
            r"(?:[sgl]:|<SID>)?(?P<name>[\w.\#]+)[ \t]*\("
        ),
    ),
    (
        "macro",
        r"^[ \t:]*com(?:m|ma|man|mand)?!?[ \t]+(?:-\S+[ \t]+){0,9}(?P<name>[A-Z]\w*)",
    ),
    (
        "variable",
        r"^[ \t:]*(?:let|const)[ \t]+[sg]:(?P<name>[\w\#]+)[ \t]*(?=[.+*/-]?=)",
    ),
    ("variable", r"^(?:let|const)[ \t]+(?P<name>\w[\w\#]*)[ \t]*="),
)

_SCSS: Final = Rules(
    ("macro", r"^[ \t]*@mixin[ \t]+(?P<name>[\w-]+)"),
    ("function", r"^[ \t]*@(?:function|(?:-\w+-)?keyframes)[ \t]+(?P<name>[\w-]+)"),
    ("class", r"^[ \t]*%(?P<name>[\w-]+)"),
    ("variable", r"^\$(?P<name>[\w-]+)[ \t]*:"),
    ("variable", r"^[ \t]*(?P<name>--[\w-]+)[ \t]*:"),
    # Names in selectors, which end with a brace or continue after a comma; a name that
    # is called is not a class.
    (
        "class",
        r"(?<![\d)}])\.(?P<name>[A-Za-z_-][\w-]*+)(?![(\#\w-])",
        r"^[ \t]*+(?![@$/*-])(?P<body>[^{};\n\"']*)[{,][ \t]*(?://[^\n]*)?\r?$",
    ),
)

_GROOVY_LEAD: Final = (
    r"^[ \t]*+(?:@[\w.]+(?:\([^()\n]*\))?[ \t]++){0,5}"
    r"(?:(?:public|private|protected|static|final|abstract|synchronized)[ \t]++){0,5}"
)
_GROOVY_TYPE: Final = (
    r"(?!(?:return|new|else|throw|case|assert|in|await|class|interface|trait|enum|import|package)\b)"
    r"[A-Za-z_][\w.]*(?:<[^<>()\n]*(?:<[^<>()\n]*>[^<>()\n]*)?>)?(?:\[\])?[ \t]+"
)
_GROOVY: Final = Rules(
    ("class", rf"{_GROOVY_LEAD}class[ \t]+(?P<name>\w+)"),
    ("interface", rf"{_GROOVY_LEAD}@?interface[ \t]+(?P<name>\w+)"),
    ("trait", rf"{_GROOVY_LEAD}trait[ \t]+(?P<name>\w+)(?=[^\n(=]*\{{)"),
    ("enum", rf"{_GROOVY_LEAD}enum[ \t]+(?P<name>\w+)"),
    (
        "enumerator",
        r"(?:^|[{,])[ \t]*(?P<name>[A-Z]\w*)[ \t]*(?=[,;}(\n/]|\Z)",
        rf"^[ \t]*(?:\w+[ \t]+)?enum[ \t]+\w+[^{{}}();=\n]{{0,200}}(?P<body>\{{[^{{}};]{{0,{_MOST}}})",
    ),
    (
        "function",
        rf"{_GROOVY_LEAD}{_GROOVY_TYPE}(?P<name>\w+)[ \t]*\([^;{{}}()]{{0,500}}\)[^;{{}}()=]{{0,200}}\{{",
    ),
    (
        "function",
        rf"{_GROOVY_LEAD}{_GROOVY_TYPE}[\"'](?P<name>[^\"'\n]{{1,300}})[\"'][ \t]*\(",
    ),
    (
        "field",
        (
            r"^[ \t]++(?:@\w+[ \t]++)?(?=[^\n=;]*\b(?:public|protected|private|static)\b)"
            rf"(?:(?:public|private|protected|static|final|volatile)[ \t]++){{1,5}}{_GROOVY_TYPE}"
            r"(?P<name>\w+)[ \t]*(?=[=\n;])"
        ),
    ),
)

_OBJC: Final = Rules(
    ("extension", r"^[ \t]*@(?:interface|implementation)[ \t]+(?P<name>\w+)[ \t]*\("),
    ("class", r"^[ \t]*@(?:interface|implementation)[ \t]+(?P<name>\w+)"),
    ("interface", r"^[ \t]*@protocol[ \t]+(?P<name>\w+)(?![ \t]*[;,])"),
    (
        "property",
        r"^[ \t]*@property\b[^\n;^]*?[ \t*](?P<name>\w+)[ \t]*(?:[A-Z_]{4,}\b[^\n;]*)?;",
    ),
    ("method", r"^[-+][ \t]*\((?:[^()\n]|\([^()\n]*\))*\)[ \t]*(?P<name>\w+)"),
    ("type", r"^[ \t]*typedef\b[^\n;]*?\([*^][ \t]*(?P<name>\w+)\)"),
)

_MAKE: Final = Rules(
    ("macro", r"^[ ]*define[ \t]+(?P<name>[\w-]+)"),
    (
        "variable",
        r"^[ ]*+(?:(?:export|override|private)[ \t]+){0,3}(?P<name>\w[\w-]*)[ \t]*(?::{1,3}|[?+!])?=",
    ),
    ("function", r"^(?P<name>\w[\w-]*)[ \t]*::?(?![:=])"),
)
_AWK: Final = Rules(("function", r"^[ \t]*func(?:tion)?[ \t]+(?P<name>[\w:]+)"))
_TEX: Final = Rules(
    (
        "heading",
        (
            r"\\(?:part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?[ \t]*(?:\[[^\]]{0,300}\])?[ \t%\r\n]*"
            r"\{(?P<name>[^{}\n]*+(?:\{[^{}\n]*+(?:\{[^{}\n]*+\}[^{}\n]*+)*+\}[^{}\n]*+)*+)(?=\}|\n)"
        ),
    ),
    (
        "function",
        (
            r"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand|DeclareMathOperator"
            r"|(?:New|Renew|Provide|Declare)(?:Expandable)?DocumentCommand|[gex]?def|let)\*?[ \t]*\{?[ \t]*"
            r"\\(?P<name>[A-Za-z@:_]+)"
        ),
    ),
    (
        "function",
        r"\\(?:(?:re)?newenvironment|newtheorem)\*?[ \t]*\{(?P<name>[^{}\n]+)\}",
    ),
    ("variable", r"\\newcounter[ \t]*\{(?P<name>[\w@]+)\}"),
    (
        "constant",
        r"\\(?:label|bibitem(?:\[[^\]\n]{0,300}\])?)[ \t]*\{(?P<name>[^{}\n]+)\}",
    ),
)
_BIBTEX: Final = Rules(
    (
        "constant",
        r"^[ \t]*@(?!comment\b|preamble\b|string\b)\w+[ \t]*[{(][ \t]*(?P<name>[^,\s{}]+)[ \t]*,",
    ),
    ("variable", r"^[ \t]*@string[ \t]*[{(][ \t]*(?P<name>[^,\s{}=]+)[ \t]*="),
    flags=re.IGNORECASE,
)
_JINJA: Final = Rules(
    ("macro", r"\{%[-+]?[ \t]*macro[ \t]+(?P<name>\w+)"),
    ("module", r"\{%[-+]?[ \t]*block[ \t]+(?P<name>\w+)"),
    ("variable", r"\{%[-+]?[ \t]*set[ \t]+(?P<name>\w+)[ \t]*(?==|[-+]?%\})"),
)

PATTERNS: Final[Mapping[str, Rules]] = {
    "ada": _ADA, "awk": _AWK, "bibtex": _BIBTEX, "cython": _CYTHON, "d": _D, "fsharp": _FSHARP, "groovy": _GROOVY,
    "jinja": _JINJA, "make": _MAKE, "nim": _NIM, "objc": _OBJC, "objcpp": _OBJC, "pascal": _PASCAL, "proto": _PROTO,
    "scss": _SCSS, "sql": _SQL, "systemverilog": _VERILOG, "tcl": _TCL, "tex": _TEX, "thrift": _THRIFT, "verilog":
    _VERILOG, "vhdl": _VHDL, "vim": _VIM,
}  # fmt: skip
"""By language; the others use the keywords that introduce a name in most languages (``generic.py``)."""
