"""One table with everything known about each language.

Filters by type (``-t py``) follow ripgrep's own table instead, which gives a file several types
(``files/globs.py``).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Final, Literal

WORDS: Final = "words"
"""Symbols by keywords that introduce a name (``parts/symbols/parse/generic.py``), for languages without a grammar."""

SCRIPTS: Final = "scripts"
"""Symbols of embedded scripts (``parts/symbols/parse/embedded.py``)."""

_SLASHES: Final = (b"//", b"/*", b"*")
_HASH: Final = (b"#",)
_DASHES: Final = (b"--", b"{-", b"/*", b"*")
_LISP: Final = (b";",)
_ML: Final = (b"(*", b"*")
_XML: Final = (b"<!--",)


@dataclass(frozen=True, slots=True)
class Language:
    """One language; a file has at most one."""

    name: str
    files: str
    """Endings without the first dot, whole names after "=", globs with a "*", separated by spaces. No two languages
    share one."""
    symbols: str = ""
    """Where its symbols come from: a grammar with a query in ``parse/queries``, ``SCRIPTS``, ``WORDS``, or ""."""
    type: str = ""
    """ripgrep's type for it, if named differently."""
    aliases: str = ""
    """Other names people give it."""
    commands: str = ""
    """Interpreters in a first line that begins with "#!"."""
    nature: Literal["code", "prose", "data"] = "code"
    comments: tuple[bytes, ...] = _SLASHES
    """How a comment line begins, after leading blanks."""
    word: bytes = b""
    """Bytes that a name may contain besides letters, digits, underscore and non-ASCII."""
    exported: str = ""
    """A pattern matched by definitions visible to other files."""
    hidden: str = ""
    """A pattern matched by definitions invisible to other files."""

    def globs(self) -> tuple[str, ...]:
        """Return globs for the names of its files."""
        entries = self.files.split()
        return tuple(
            entry.removeprefix("=") if "=" in entry or "*" in entry else f"*.{entry}"
            for entry in entries
        )

    def exports(self, name: str, text: str) -> bool:
        """Return whether other files can use a definition: by a keyword in its text, else by the form of its name."""
        if self.exported:
            return re.search(self.exported, text, re.MULTILINE) is not None
        if self.hidden:
            return re.search(self.hidden, text, re.MULTILINE) is None
        if self.name == "go":
            return name[:1].isupper()
        return not name.startswith("_") or name.endswith("__")


_EXPORT: Final = r"^\s*export\b|\bmodule\.exports\b|^\s*exports\."

_ROWS: Final = (
    Language("python", "py pyi pyw", "python", commands="python", comments=_HASH),
    Language("c", "c h cats c.in h.in", "c", hidden=r"^\s*static\b"),
    Language("cpp", "cc cpp cxx c++ hh hpp hxx h++ inl ipp C H cc.in cpp.in cxx.in hh.in hpp.in hxx.in C.in H.in",
             "cpp", aliases="c++", hidden=r"^\s*static\b"),
    Language("cuda", "cu cuh", "cpp", hidden=r"^\s*static\b"),
    Language("go", "go", "go", aliases="golang"),
    Language("rust", "rs", "rust", aliases="rs", exported=r"^\s*pub\b"),
    Language("java", "java jsp jspx", "java", word=b"$", exported=r"^\s*(?:@\w+\s+)*(?:public|protected)\b"),
    Language("javascript", "js mjs cjs jsx", "javascript", type="js", commands="node", word=b"$", exported=_EXPORT),
    Language("typescript", "ts mts cts", "typescript", word=b"$", exported=_EXPORT),
    Language("tsx", "tsx", "tsx", word=b"$", exported=_EXPORT),
    Language("csharp", "cs", "csharp", aliases="c#", exported=r"^\s*(?:public|protected|internal)\b"),
    Language("ruby", "rb rake gemspec rbw ru =Rakefile =Gemfile =.irbrc", "ruby", aliases="rb", commands="ruby",
             comments=_HASH, word=b"?!"),
    Language("php", "php php3 php4 php5 php7 php8 pht phtml", "php", commands="php", comments=(*_SLASHES, b"#"),
             hidden=r"^\s*(?:private|protected)\b"),
    Language("swift", "swift", "swift", exported=r"^\s*(?:public|open)\b"),
    Language("kotlin", "kt kts", "kotlin", aliases="kt", hidden=r"^\s*(?:private|internal)\b"),
    Language("scala", "scala sc sbt", "scala", hidden=r"^\s*private\b"),
    Language("lua", "lua", "lua", commands="lua", comments=_DASHES),
    Language("bash", "sh bash zsh ksh bats bashrc csh cshrc env kshrc tcsh =.bash_login =.bash_logout =.bash_profile "
             "=.bashrc =.cshrc =.env =.kshrc =.login =.logout =.profile =.tcshrc =.zlogin =.zlogout =.zprofile "
             "=.zshenv =.zshrc =bash_login =bash_logout =bash_profile =bashrc =profile =zlogin =zlogout =zprofile "
             "=zshenv =zshrc =PKGBUILD", "bash", type="sh", aliases="shell", commands="sh bash dash zsh ksh",
             comments=_HASH),
    Language("elixir", "ex exs eex heex leex livemd", "elixir", comments=_HASH, word=b"?!"),
    Language("haskell", "hs hsc lhs c2hs cpphs", "haskell", comments=_DASHES, word=b"'"),
    Language("ocaml", "ml mll mly", "ocaml", comments=_ML, word=b"'"),
    Language("ocaml_interface", "mli", "ocaml_interface", comments=_ML, word=b"'"),
    Language("zig", "zig", "zig"),
    Language("wat", "wat wast", "wat", comments=(b";;", b"(;"), word=b"$.-"),
    Language("solidity", "sol", "solidity"),
    Language("sql", "sql psql", "sql", comments=_DASHES),
    Language("markdown", "md markdown mdown mdwn mdx mkd mkdn", "markdown", nature="prose", comments=()),
    Language("clojure", "clj cljs cljc cljx", "clojure", comments=_LISP, word=b"-?!*+<>='."),
    Language("dart", "dart", "dart", word=b"$"),
    Language("erlang", "erl hrl", "erlang", comments=(b"%",)),
    Language("fortran", "f F f77 F77 f90 F90 f95 F95 pfo f03 F03 f08 F08", "fortran", comments=(b"!",)),
    Language("julia", "jl", "julia", comments=_HASH, word=b"!"),
    Language("objc", "m", "objc", aliases="objective-c"),
    Language("objcpp", "mm", "objc", aliases="objective-c++"),
    Language("perl", "pl pm perl plh plx PL t", "perl", commands="perl", comments=_HASH),
    Language("powershell", "ps1 psm1 psd1 ps1xml cdxml", "powershell", type="ps", commands="pwsh",
             comments=(b"#", b"<#"), word=b"-"),
    Language("proto", "proto", "proto"),
    Language("r", "r R Rmd rmd Rnw rnw", "r", commands="Rscript", comments=_HASH, word=b"."),
    Language("cmake", "cmake =CMakeLists.txt", "cmake", comments=_HASH, word=b"-"),
    Language("css", "css", "css", word=b"-"),
    Language("graphql", "graphql graphqls", "graphql", comments=_HASH),
    Language("make", "mak mk Makefile.* =Makefile =makefile =GNUmakefile =GNUMakefile =makefile.am =makefile.in "
             "=GNUmakefile.am =GNUmakefile.in", "make", aliases="makefile", comments=_HASH, word=b"-."),
    Language("nix", "nix", "nix", comments=(b"#", b"/*"), word=b"-'"),
    Language("terraform", "terraform.lock.hcl terraformrc tf tf.json tfrc tfvars tfvars.json =terraform.rc", "hcl",
             type="tf", comments=(b"#", b"//", b"/*"), word=b"-"),
    Language("bazel", "BUILD bazel bazelrc bzl =BUILD =MODULE.bazel =WORKSPACE =WORKSPACE.bazel =WORKSPACE.bzlmod",
             "starlark", comments=_HASH),
    Language("batch", "bat cmd", "batch", comments=(b"rem", b"REM", b"::")),
    Language("docker", "*Dockerfile*", "dockerfile", aliases="dockerfile", comments=_HASH),
    Language("groovy", "groovy gradle", "groovy", word=b"$"),
    Language("jsonnet", "jsonnet libsonnet", "jsonnet", comments=(*_SLASHES, b"#")),
    Language("just", "just =justfile =Justfile =.justfile", "just", comments=_HASH, word=b"-"),
    Language("lisp", "lisp lsp scm", "scheme", comments=_LISP, word=b"-?!*+<>=/%"),
    Language("racket", "rkt", "racket", comments=_LISP, word=b"-?!*+<>=/%"),
    Language("vim", "vim =.gvimrc =.vimrc =_gvimrc =_vimrc =gvimrc =vimrc", "vim", comments=(b'"',), word=b"#"),
    # Symbols of the scripts inside.
    Language("astro", "astro", SCRIPTS, word=b"$"),
    Language("ejs", "ejs", SCRIPTS, comments=_XML, word=b"$"),
    Language("erb", "erb", SCRIPTS, comments=_XML, word=b"?!"),
    Language("jupyter", "ipynb jpynb", SCRIPTS, nature="data", comments=()),
    Language("svelte", "svelte", SCRIPTS, word=b"$"),
    Language("vue", "vue", SCRIPTS, word=b"$"),
    # Symbols by words or patterns.
    Language("ada", "adb ads", WORDS, comments=_DASHES),
    Language("awk", "awk", WORDS, comments=_HASH),
    Language("cython", "pxd pxi pyx", WORDS, comments=_HASH),
    Language("d", "d", WORDS),
    Language("systemverilog", "sv svh vg", WORDS, type="sv", word=b"$"),
    Language("tcl", "tcl", WORDS, comments=_HASH, word=b"-?!*"),
    Language("thrift", "thrift", WORDS, comments=(*_SLASHES, b"#")),
    Language("verilog", "v vh", WORDS, word=b"$"),
    Language("vhdl", "vhd vhdl", WORDS, comments=_DASHES),
    Language("assembly", "s S asm", WORDS, type="asm"),
    Language("elisp", "el", "scheme", comments=_LISP, word=b"-?!*+<>=/%"),
    Language("fsharp", "fs fsi fsx", WORDS),
    Language("nim", "nim nimble nimf nims", WORDS, comments=_HASH),
    Language("pascal", "pas pp dpr inc lpr", WORDS),
    Language("vb", "vb", WORDS),
    # Code without symbols.
    Language("crystal", "cr ecr =Projectfile =shard.yml", comments=_HASH),
    Language("devicetree", "dts dtsi dtso"),
    Language("elm", "elm", comments=_DASHES),
    Language("fish", "fish", comments=_HASH),
    Language("flatbuffers", "fbs"),
    Language("gleam", "gleam"),
    Language("gradle", "gradle-wrapper.* =gradle.properties =gradlew =gradlew.bat"),
    Language("haml", "haml", comments=(b"-#", b"/")),
    Language("hare", "ha"),
    Language("jinja", "j2 jinja jinja2", WORDS, comments=(b"{#",)),
    Language("kconfig", "=Kconfig Kconfig.*", comments=_HASH),
    Language("lean", "lean", comments=(b"--", b"/-")),
    Language("less", "less"),
    Language("llvm", "ll", comments=_LISP),
    Language("m4", "ac m4", comments=(b"dnl", b"#")),
    Language("meson", "=meson.build =meson.options =meson_options.txt", comments=_HASH),
    Language("mojo", "mojo", comments=_HASH),
    Language("purescript", "purs", type="purs", comments=_DASHES),
    Language("raku", "p6 pl6 pm6 raku rakudoc rakumod rakutest", comments=_HASH),
    Language("reasonml", "re rei"),
    Language("rescript", "res resi"),
    Language("sass", "sass"),
    Language("scss", "scss", "scss", type="sass", word=b"-"),
    Language("sml", "sig sml", comments=_ML),
    Language("swig", "def i"),
    Language("v", "vsh"),
    Language("vala", "vala"),
    Language("webidl", "idl webidl widl"),
    Language("wgsl", "wgsl"),
    Language("yacc", "y"),
    # Prose.
    Language("asciidoc", "adoc asc asciidoc", "asciidoc", nature="prose"),
    Language("html", "html htm", "html", nature="prose", comments=_XML),
    Language("man", "*.[0-9][cEFMmpSx] *.[0-9lnpx]", nature="prose", comments=(b'.\\"',)),
    Language("org", "org org_archive", "org", nature="prose", comments=_HASH),
    Language("readme", "*README README*", nature="prose", comments=()),
    Language("rst", "rst", "rst", nature="prose", comments=(b"..",)),
    Language("tex", "cls dtx ins ltx sty tex", "latex", nature="prose", comments=(b"%",)),
    Language("bibtex", "bib", WORDS, nature="prose", comments=(b"%",), word=b"-:./+"),
    Language("texinfo", "texi", nature="prose", comments=(b"@c",)),
    Language("txt", "txt", nature="prose", comments=()),
    Language("typst", "typ", "typst", nature="prose"),
    # Data.
    Language("config", "cfg config ini", "ini", nature="data", comments=(b"#", b";")),
    Language("csv", "csv", nature="data", comments=()),
    Language("diff", "diff patch", nature="data", comments=()),
    Language("json", "json sarif =composer.lock", "json", nature="data"),
    Language("jsonl", "jsonl", nature="data", comments=()),
    Language("license", "*[.-]LICEN[CS]E* AGPL-*[0-9]* APACHE-*[0-9]* BSD-*[0-9]* CC-BY-* =COPYING COPYING[.-]* "
             "=COPYRIGHT COPYRIGHT[.-]* =EULA EULA[.-]* GFDL-*[0-9]* GNU-*[0-9]* GPL-*[0-9]* LGPL-*[0-9]* =LICENSE "
             "=LICENCE LICEN[CS]E[.-]* MIT-*[0-9]* MPL-*[0-9]* =NOTICE NOTICE[.-]* OFL-*[0-9]* =PATENTS PATENTS[.-]* "
             "=UNLICENSE UNLICEN[CS]E[.-]* =license =licence licen[cs]e.*", nature="data", comments=()),
    Language("lock", "lock =package-lock.json", nature="data", comments=_HASH),
    Language("log", "log", nature="data", comments=()),
    Language("po", "po", nature="data", comments=_HASH),
    Language("properties", "properties", "properties", type="java", nature="data", comments=_HASH),
    Language("svg", "svg", nature="data", comments=_XML),
    Language("systemd", "automount conf device link mount path scope service slice socket swap target timer",
             nature="data", comments=(b"#", b";")),
    Language("toml", "toml =Cargo.lock", "toml", nature="data", comments=_HASH, word=b"-"),
    Language("xml", "dtd rng sch xhtml xjb xml xml.dist xsd xsl xslt", "xml", nature="data", comments=_XML),
    Language("yaml", "yaml yml", "yaml", nature="data", aliases="yml", comments=_HASH, word=b"-"),
)  # fmt: skip

LANGUAGES: Final[Mapping[str, Language]] = {row.name: row for row in _ROWS}
"""Every language by its name."""

FAMILIES: Final[Mapping[str, str]] = {
    member: members
    for members in ("javascript typescript tsx vue svelte astro ejs", "c cpp cuda objc objcpp",
                    "java kotlin scala groovy", "ocaml ocaml_interface")
    for member in members.split()
}  # fmt: skip
"""Families of languages whose files use each other's names."""

SYNTAX: Final[Mapping[str, str]] = {
    **{name: name for names in ("bash c cpp csharp css dart elixir go haskell html java javascript json kotlin lua",
                                "markdown nix php python ruby rust scala solidity swift tsx typescript yaml")
       for name in names.split()},
    "cuda": "cpp", "scss": "css", "terraform": "hcl",
}  # fmt: skip
"""Languages that can be searched by syntax, each with ast-grep's name for its grammar."""

UNKNOWN: Final = Language(
    "", "", nature="data", comments=(b"//", b"/*", b"#", b"--", b";")
)
"""Assumed for a file in an unknown language."""

_BY_FILE: Final = {
    entry if "=" in entry else "." + entry: row
    for row in _ROWS
    for entry in row.files.split()
    if "*" not in entry
}
_GLOBS: Final = [
    (re.compile(translate(entry)), row)
    for row in _ROWS
    for entry in row.files.split()
    if "*" in entry
]
_BY_COMMAND: Final = {command: row for row in _ROWS for command in row.commands.split()}
_INTERPRETER: Final = re.compile(
    rf"#!\s*\S*?(?:env\s+(?:-\S+\s+)*)?({'|'.join(sorted(_BY_COMMAND, key=len, reverse=True))})[\d.]*\b".encode()
)
_HEADER_BYTES: Final = 1 << 18
"""Bytes of a header searched for C++ syntax: generated ones are megabytes of C."""
_CPP_IN_HEADER: Final = re.compile(
    rb"^\s*(?:class\s+\w|namespace\s+\w|template\s*<|public:|private:|using\s+\w)",
    re.MULTILINE,
)


_BY_LINE: Final = frozenset(row.name for row in _BY_COMMAND.values())
_C_HEADER: Final = "c header"
_NO_ENDING: Final = "no ending"


def language_of(path: bytes, data: bytes = b"") -> Language:
    """Return a file's language by its name, else by its first line; ``UNKNOWN`` if neither shows it.

    ``data``, as much as is available, also tells C++ headers from C headers.
    """
    named = name_class(path)
    if named == _C_HEADER:
        return LANGUAGES[
            "cpp" if _CPP_IN_HEADER.search(data, 0, _HEADER_BYTES) else "c"
        ]
    if named == _NO_ENDING and (interpreter := _INTERPRETER.match(data)):
        return _BY_COMMAND[interpreter[1].decode()]
    return LANGUAGES.get(named, UNKNOWN)


def name_class(path: bytes) -> str:
    """Return the class of a file's name: files of one class with the same text have the same language."""
    name = path.rpartition(b"/")[2]
    language = _language_of_name(name.decode("utf-8", "replace"))
    if language is UNKNOWN:
        if b"." in name[1:]:
            return ""
        return _NO_ENDING
    # Only its text tells whether a header is C or C++.
    if language.name == "c" and name.endswith(b".h"):
        return _C_HEADER
    return language.name


def classes_of(named: str) -> frozenset[str]:
    """Return the languages that a file of a class of names can be in."""
    if named == _C_HEADER:
        return frozenset(("c", "cpp"))
    if named == _NO_ENDING:
        return _BY_LINE
    return frozenset((named,))


@lru_cache(maxsize=1 << 14)
def _language_of_name(name: str) -> Language:
    """Look up the whole name, then its endings (longest first, each as written, then in lower case), then globs."""
    endings = ["=" + name]
    at = name.find(".", 1)
    while at > 0:
        # As written first: ``.C`` is C++ and ``.c`` is C.
        endings += [name[at:], name[at:].lower()]
        at = name.find(".", at + 1)
    for ending in endings:
        if ending in _BY_FILE:
            return _BY_FILE[ending]
    return next((row for glob, row in _GLOBS if glob.match(name)), UNKNOWN)
