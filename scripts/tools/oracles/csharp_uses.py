"""Prints what each name in a folder of C# refers to, by Roslyn, as JSON lines like those of typescript/uses.cjs.

ROSLYN=FOLDER DOTNET_ROOT=FOLDER PYTHON_WITH_PYTHONNET csharp_uses.py ROOT

ROSLYN: a folder with Microsoft.CodeAnalysis.CSharp.dll and what it needs. DOTNET_ROOT: .NET Core 3.1 or later; no other
libraries are known. A line with a name that Roslyn cannot resolve, and code that an ``#if`` leaves out, is reported as
{"unseen": [file, first line, last line]}.
"""

import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

KINDS: Final = {
    "Class": "class", "Struct": "class", "Structure": "class", "Interface": "class", "Enum": "class", "Delegate": "type",
}  # fmt: skip
"""Kinds of definitions by what Roslyn calls the types."""
METHODS: Final = frozenset({"Ordinary", "ReducedExtension"})
"""Methods that are called by their names."""
BUILT: Final = frozenset({"bin", "obj"})
LIBRARIES: Final = ("System.", "Microsoft.", "mscorlib", "netstandard")
HEADS: Final = frozenset({"UsingDirectiveSyntax", "NamespaceDeclarationSyntax"})
"""The nodes whose names are no uses."""
PARTS: Final = {
    "QualifiedNameSyntax": "Right", "AliasQualifiedNameSyntax": "Name",
    "MemberAccessExpressionSyntax": "Name", "MemberBindingExpressionSyntax": "Name",
}  # fmt: skip
"""The nodes that a qualified name is made of, and the part that is the last name."""
QUALIFIED: Final = frozenset({"QualifiedNameSyntax", "AliasQualifiedNameSyntax"})
CALLS: Final = {
    "InvocationExpressionSyntax": "Expression", "ObjectCreationExpressionSyntax": "Type", "AttributeSyntax": "Name",
}  # fmt: skip
"""The nodes that call, and which part of them is what they call."""


class Uses:
    """The uses of a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        runtime = import_module("pythonnet")
        runtime.load("coreclr", dotnet_root=os.environ["DOTNET_ROOT"])
        sys.path.append(os.environ["ROSLYN"])
        clr = import_module("clr")
        clr.AddReference("Microsoft.CodeAnalysis")
        clr.AddReference("Microsoft.CodeAnalysis.CSharp")
        self.system = import_module("System")
        self.roslyn = import_module("Microsoft.CodeAnalysis")
        self.csharp = import_module("Microsoft.CodeAnalysis.CSharp")

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each use, and for the lines that are not judged."""
        trees = list(self.parse())
        references = self.system.Collections.Generic.List[
            self.roslyn.MetadataReference
        ]()
        core = Path(self.system.Object().GetType().Assembly.Location).parent
        for library in sorted(core.glob("*.dll")):
            if library.name.startswith(LIBRARIES):
                references.Add(
                    self.roslyn.MetadataReference.CreateFromFile(str(library))
                )
        options = self.csharp.CSharpCompilationOptions(
            self.roslyn.OutputKind.DynamicallyLinkedLibrary
        )
        options = options.WithAllowUnsafe(True)
        compilation = self.csharp.CSharpCompilation.Create(
            "uses", None, references, options
        ).AddSyntaxTrees(trees)
        for tree in trees:
            model = compilation.GetSemanticModel(tree, False)
            yield from self.list_left_out(tree)
            for node in tree.GetRoot().DescendantNodes(None, False):
                if isinstance(node, self.csharp.Syntax.SimpleNameSyntax):
                    yield from self.read_name(node, model)

    def parse(self) -> Iterator[Any]:
        """Yield the syntax trees of the folder's files."""
        options = self.csharp.CSharpParseOptions(self.csharp.LanguageVersion.Preview)
        for path in sorted(self.root.rglob("*.cs")):
            shown = path.relative_to(self.root)
            if BUILT.isdisjoint(shown.parts):
                text = path.read_text("utf-8-sig", "replace")
                yield self.csharp.CSharpSyntaxTree.ParseText(
                    text, options, shown.as_posix()
                )

    def list_left_out(self, tree: Any) -> Iterator[dict[str, Any]]:
        """Yield the lines that the directives of a file leave out."""
        for trivia in tree.GetRoot().DescendantTrivia(None, True):
            if str(self.csharp.CSharpExtensions.Kind(trivia)) == "DisabledTextTrivia":
                span = trivia.GetLocation().GetLineSpan()
                yield {
                    "unseen": [
                        tree.FilePath,
                        span.StartLinePosition.Line + 1,
                        span.EndLinePosition.Line + 1,
                    ]
                }

    def read_name(self, node: Any, model: Any) -> Iterator[dict[str, Any]]:
        """Yield what a name refers to, if that is in the folder, or that it is not known."""
        whole = find_whole(node)
        if any(type(around).__name__ in HEADS for around in list_qualified(whole)):
            return
        name = node.Identifier.ValueText
        place = find_place(node.GetLocation())
        symbol = self.csharp.CSharpExtensions.GetSymbolInfo(model, node).Symbol
        if symbol is None:
            yield {"unseen": [place[0], place[1], place[1]]}
            return
        symbol = symbol.OriginalDefinition
        kind = str(symbol.Kind)
        if kind == "Method":
            method = self.roslyn.IMethodSymbol(symbol)
            if method.ReducedFrom is not None:
                symbol = method.ReducedFrom
            elif str(method.MethodKind) == "Constructor":
                symbol = symbol.ContainingType
        kind = self.find_kind(symbol)
        targets = list_sources(symbol)
        if kind == "method" and targets:
            # Overloads count as the first in their file.
            alike = symbol.ContainingType.GetMembers(name)
            files = {file for file, _ in targets}
            overloads = [target for other in alike for target in list_sources(other)]
            targets = [min(target for target in overloads if target[0] in files)]
        # An attribute is written without the end of its name, an alias has another.
        if kind and targets and symbol.Name != name:
            yield {"unseen": [place[0], place[1], place[1]]}
            return
        # A type may have several parts.
        for target in targets if kind else ():
            yield {
                "kind": kind,
                "target": target,
                "name": name,
                "container": find_container(symbol),
                "use": place,
                "call": is_called(whole),
            }

    def find_kind(self, symbol: Any) -> str:
        """Return the kind of a definition; empty: none that is judged."""
        kind = str(symbol.Kind)
        if kind == "NamedType":
            return KINDS.get(str(self.roslyn.INamedTypeSymbol(symbol).TypeKind), "")
        if kind == "Method":
            return (
                "method"
                if str(self.roslyn.IMethodSymbol(symbol).MethodKind) in METHODS
                else ""
            )
        if kind != "Field":
            return ""
        field = self.roslyn.IFieldSymbol(symbol)
        return (
            "constant" if field.IsConst or (field.IsStatic and field.IsReadOnly) else ""
        )


def list_sources(symbol: Any) -> list[tuple[str, int]]:
    """Return where the folder defines something."""
    return [find_place(place) for place in symbol.Locations if place.IsInSource]


def list_qualified(node: Any) -> Iterator[Any]:
    """Yield the nodes around a name up to the first that is no name."""
    around = node.Parent
    while type(around).__name__ in QUALIFIED:
        yield around
        around = around.Parent
    yield around


def find_place(location: Any) -> tuple[str, int]:
    """Return a location's file and line."""
    span = location.GetLineSpan()
    return span.Path, span.StartLinePosition.Line + 1


def find_container(symbol: Any) -> str:
    """Return the names of the types around a definition."""
    names = list[str]()
    around = symbol.ContainingType
    while around is not None:
        names.insert(0, around.Name)
        around = around.ContainingType
    return ".".join(names)


def find_whole(node: Any) -> Any:
    """Return the name with what qualifies it: ``A.B.C`` of C."""
    while True:
        parent = node.Parent
        part = PARTS.get(type(parent).__name__)
        if part is None or not getattr(parent, part).Equals(node):
            return node
        node = parent


def is_called(whole: Any) -> bool:
    """Whether a name is what a call, a construction or an attribute names."""
    parent = whole.Parent
    part = CALLS.get(type(parent).__name__)
    return part is not None and getattr(parent, part).Equals(whole)


def main() -> None:
    """Print the rows of the folder that the command line names."""
    for row in Uses(Path(sys.argv[1]).resolve()).read():
        print(json.dumps(row))


if __name__ == "__main__":
    main()
