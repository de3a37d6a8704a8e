"""What a name at a position refers to: found through scopes, imports and the types of receivers.

For Python, JavaScript, TypeScript and Go. Names are followed through scopes, imports, re-exports and aliases to their
definitions. The type of an expression is inferred from annotations, constructors, return statements, fields and bases,
as a type checker would do, except for generics and control flow.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from typing import Final

from flashgrep.base.lazy import LazyAttribute
from flashgrep.parts.navigation.resolution.ecma_library import GLOBALS
from flashgrep.parts.navigation.resolution.exports import (
    NOTHING,
    OUTSIDE,
    RETURNED,
    Value,
    Values,
    decorators,
    without_overloads,
)
from flashgrep.parts.navigation.resolution.expressions import (
    MEMBER_OF,
    PLAIN,
    TEXTS,
    distinct,
    either,
    find_classes,
    nth,
    parts_of,
)
from flashgrep.parts.navigation.resolution.keys import Keys
from flashgrep.parts.navigation.resolution.linkage import Includes
from flashgrep.parts.navigation.resolution.plain_text import (
    find_methods,
    find_own_class,
    find_part,
    find_part_of_members,
    find_self,
    find_this,
    is_followed_by_point,
    is_getter,
    is_in_static,
    is_label,
    is_on_super,
    is_static,
    read_base,
    read_chain,
)
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.imports import DEFAULT, ECMA
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME,
    START,
    TYPE_KINDS,
)
from flashgrep.parts.symbols.parse.scoping import MODULE, Binding, FileScopes
from flashgrep.parts.symbols.symbol_source import scopes_of, scopes_of_part

_VALUE_KINDS: Final = frozenset({"constant", "variable", "field", "property"})

_WITH_CLASSES: Final = frozenset({"javascript", "typescript", "tsx"})
_MAY_CALL: Final = frozenset({"call_expression", "type_conversion_expression"})
_PARTS_PAY: Final = 2
"""A file is parsed as a whole once its parts would exceed its size divided by this."""


class Names(Keys):
    """Resolves names in one state of a project and caches the results."""

    @LazyAttribute
    def includes(self) -> Includes:
        """Return the resolver of C includes."""
        return Includes(self._modules.source, self.open_file)

    @LazyAttribute
    def _scopes(self) -> dict[bytes, FileScopes | None]:
        return {}

    @LazyAttribute
    def _bound(self) -> dict[tuple[bytes, str, int, bool], list[int]]:
        """Up to two offsets that may bind a name, by file, name and outermost enclosing definition."""
        return {}

    def scopes_of(self, path: bytes) -> FileScopes | None:
        """Return a file's scopes; parses the file if necessary."""
        if path not in self._scopes:
            symbols = self.open_file(path)
            self._scopes[path] = (
                scopes_of(path, symbols) if symbols is not None else None
            )
        return self._scopes[path]

    @LazyAttribute
    def _parts(
        self,
    ) -> dict[tuple[bytes, tuple[tuple[int, int], ...]], FileScopes | None]:
        return {}

    @LazyAttribute
    def _parsed(self) -> Counter[bytes]:
        """How many bytes of each file were parsed in parts."""
        return Counter()

    def scopes_around(self, path: bytes, offset: int) -> FileScopes | None:
        """Return the scopes around a position; if a part of the file suffices, without the file's own scope."""
        symbols = self.open_file(path)
        if symbols is not None:
            return self._find_scopes(path, symbols, symbols.enclosing(offset))
        return None

    def scopes_within(self, definition: Definition) -> FileScopes | None:
        """Return the scopes of a definition, like ``scopes_around`` for a position in it."""
        return self._find_scopes(definition.path, definition.symbols, definition.index)

    def _scopes_of_members(self, owner: Definition, name: str) -> FileScopes | None:
        """Return the scopes of a type, parsed only as far as they bind a name."""
        symbols = owner.symbols
        if owner.path not in self._scopes:
            part = find_part_of_members(symbols, owner.index, name)
        else:
            part = ()
        return self._find_scopes(owner.path, symbols, owner.index, part)

    def _find_scopes(
        self,
        path: bytes,
        symbols: FileSymbols,
        index: int,
        part: tuple[tuple[int, int], ...] = (),
    ) -> FileScopes | None:
        if (
            symbols.kept is not None
            or path in self._scopes
            or not (part := part or find_part(symbols, index))
        ):
            return self.scopes_of(path)
        if (path, part) not in self._parts:
            self._parsed[path] += sum(end - start for start, end in part)
            if self._parsed[path] * _PARTS_PAY > len(symbols.data):
                return self.scopes_of(path)
            self._parts[path, part] = scopes_of_part(path, symbols, part)
        return self._parts[path, part]

    # Names

    def find_name(self, path: bytes, name: str, offset: int) -> Values | None:
        """Return what a bare name at a position refers to; None if no known binding exists."""
        symbols = self.open_file(path)
        if symbols is None:
            return None
        around = outermost = symbols.enclosing(offset)
        while around >= 0:
            outermost = around
            around = symbols.parent(around)
        if outermost >= 0 and _is_in_callback(symbols, outermost):
            outermost = -1
        is_asked = is_followed_by_point(
            symbols, name, offset
        )  # an object in a member access binds nothing itself
        key = (path, name, outermost, is_asked)
        if key not in self._bound:
            self._bound[key] = list(
                islice(_find_bound(symbols, name, outermost, is_asked=is_asked), 2)
            )
        # If bindings were not recorded, two candidates suffice: one may be the use
        # itself, which does not bind.
        is_told = symbols.parsed.bound is not None
        is_bound = any(is_told or at != offset for at in self._bound[key])
        if is_bound:
            file = self.scopes_around(path, offset)
        else:
            file = None
        bound: Values = ()
        for scope in file.around(offset) if file is not None else ():
            if file is None or scope == MODULE:
                break
            imported = [
                import_
                for import_ in self.imports_of(path).names.get(name, [])
                if file.scope_at(import_.offset) == scope
            ]
            if imported:
                return self.import_value(path, imported[-1])
            bindings = [
                binding
                for binding in file.scopes[scope].names.get(name, [])
                if binding.is_seen_at(offset)
            ]
            if symbols.language == "go" and not file.scopes[scope].is_class:
                bindings = [binding for binding in bindings if binding.reaches(offset)]
            if bindings and all(binding.is_set_only for binding in bindings):
                bound = bound or self._find_meaning(file, bindings)
                continue  # it is declared further out
            if bindings and (
                symbols.language == "python" or not file.scopes[scope].is_class
            ):
                is_own = len(bindings) > 1 and file.scope_at(offset) == scope
                meaning = self._find_meaning(
                    file, file.reaching(bindings, offset) if is_own else bindings
                )
                return distinct([*meaning, *bound])
        if meaning := distinct([*self.find_in_module(path, name), *bound]):
            return meaning
        if symbols.language == "go":
            return self.export(self.package_of(path, symbols) + b"/", name) or None
        return None

    def is_global(self, path: bytes, name: str) -> bool:
        """Whether a name that nothing binds in a file is an object of JavaScript's hosts."""
        if self.language_of(path) not in ECMA:
            return False
        # A script's own name may be bound in another script.
        return name in GLOBALS or (name[:1].isupper() and not self.definitions(name))

    def _find_meaning(self, file: FileScopes, bindings: list[Binding]) -> Values:
        """Return what the bindings of a name in one scope refer to; definitions stand for themselves."""
        bound_values: list[Values] = []
        defined: list[Definition] = []
        symbols = self.open_file(file.path)
        # Overloads of a class's method count only if none of them has a body.
        words = (
            [(binding, file.node_at(binding.offset)) for binding in bindings]
            if len(bindings) > 1
            else ()
        )
        written = [
            binding
            for binding, word in words
            if getattr(word and word.parent, "type", "") != "method_signature"
        ]
        for current_binding in written or bindings:
            is_private = symbols is not None and symbols.data.startswith(
                b"#", current_binding.offset
            )  # not a part of its name
            index = (
                symbols.index_at(current_binding.offset + is_private)
                if symbols is not None
                else -1
            )
            if symbols is not None and index >= 0:
                defined.append(Definition(file.path, symbols, index))
            else:
                bound_values.append(self._evaluate(file, current_binding))
        variables = (replace(value, is_variable=True) for value in either(bound_values))
        return distinct(
            [
                *(
                    Value(without_overload)
                    for without_overload in without_overloads(defined)
                ),
                *variables,
            ]
        )

    def _evaluate(self, file: FileScopes, binding: Binding) -> Values:
        """Return the values that a binding's type or initial value implies."""
        source = binding.type or binding.value
        key = (
            "binding",
            file.path,
            binding.offset,
            source.id if source is not None else 0,
        )
        return self.remember(key, lambda: self._find_value(file, binding)) or ()

    def _find_value(self, file: FileScopes, binding: Binding) -> Values:
        if binding.type is not None:
            values = self.type_of(file, binding.type)
            if binding.way == "many":
                return (Value(elements=values),)
        elif binding.value is None:
            finders = (
                (
                    self._find_self,
                    self._find_fixture,
                    self._find_constraint,
                    self.infer_parameter,
                )
                if binding.kind == "parameter"
                else ()
            )
            return next(filter(None, (find(file, binding) for find in finders)), ())
        elif binding.value.type == "expression_list":
            return self._find_item(file, binding)
        elif binding.value.type in PLAIN or (
            binding.value.type in TEXTS and self._is_open(file, binding)
        ):
            return (NOTHING,)
        else:
            values = self.infer(file, binding.value)
        if binding.way == "element":
            return self.find_elements(values)
        if binding.member:
            return self.read_member(values, binding.member)
        return () if binding.way == "unpacked" else values

    def _is_open(self, file: FileScopes, binding: Binding) -> bool:
        """Whether other code may give a name another value: a parameter, a field."""
        if binding.kind in {"parameter", "field"}:
            return True
        scope = file.scope_at(binding.offset)
        return scope != MODULE and file.scopes[scope].is_class

    def _find_self(self, file: FileScopes, binding: Binding) -> Values:
        """Return the receiver of a method if a parameter stands for it."""
        scope = file.scope_at(binding.offset)
        word = file.node_at(binding.offset)
        if scope != MODULE:
            around = file.scopes[scope].parent
        else:
            around = MODULE
        if word is not None:
            text = file.text(word)
        else:
            text = ""
        if (
            around == MODULE
            or not file.scopes[around].is_class
            or text not in {"self", "cls", "mcs"}
        ):
            return ()
        own = self.class_of(file, around)
        if own is not None:
            return (Value(own, is_instance=text == "self", is_self=True),)
        return ()

    def _find_fixture(self, file: FileScopes, binding: Binding) -> Values:
        """Return what pytest passes for a parameter: the result of the nearest fixture of that name."""
        symbols = self.open_file(file.path)
        word = file.node_at(binding.offset)
        if symbols is not None:
            index = symbols.enclosing(binding.offset)
        else:
            index = -1
        if symbols is None or word is None or index < 0 or symbols.language != "python":
            return ()
        user = Definition(file.path, symbols, index)
        if not user.name.startswith("test") and not _is_fixture(user):
            return ()
        folder = file.path.rpartition(b"/")[0]
        name = file.text(word)
        places = [file.path]
        while folder:
            places.append(folder + b"/conftest.py")
            folder = folder.rpartition(b"/")[0]
        for path in (*places, b"conftest.py"):
            symbols = self.open_file(path)
            for at in (
                symbols.words(name.encode(), fold=False) if symbols is not None else ()
            ):
                if symbols is not None:
                    own = symbols.index_at(at)
                else:
                    own = -1
                if symbols is not None and own >= 0:
                    fixture = Definition(path, symbols, own)
                else:
                    fixture = None
                if (
                    fixture is not None
                    and fixture.key != user.key
                    and _is_fixture(fixture)
                ):
                    values = self.find_result(fixture, 0)
                    return distinct(
                        inner
                        for value in values
                        for inner in value.elements or (value,)
                    )
        return ()

    def _find_constraint(self, file: FileScopes, binding: Binding) -> Values:
        """Return what a type parameter of a receiver must be, in Go: its type says that where it is declared."""
        word = file.node_at(binding.offset)
        element = word.parent if word is not None else None
        arguments = element.parent if element is not None else None
        applied = arguments.parent if arguments is not None else None
        if element is None or arguments is None or applied is None:
            return ()
        if applied.type != "generic_type":
            return ()
        place = parts_of(arguments).index(element)
        for value in self.infer(file, applied.child_by_field_name("type")):
            if value.definition is None:
                continue
            inside, node = self.node_of(value.definition)
            declared = node.child_by_field_name("type_parameters") if node else None
            if inside is None or declared is None:
                continue
            constraints = [
                declaration.child_by_field_name("type")
                for declaration in parts_of(declared)
                for _ in declaration.children_by_field_name("name")
            ]
            # Of a constraint of several types no method can be called.
            for constraint in constraints[place : place + 1]:
                return self.type_of(inside, nth(constraint, 0))
        return ()

    def _find_item(self, file: FileScopes, binding: Binding) -> Values:
        """Return the value of one name in ``a, b := f(), g()`` or ``a, b := f()``."""
        word = file.node_at(binding.offset)
        listed = binding.value
        if word is None or word.parent is None or listed is None:
            return ()
        places = [
            word_node.start_byte
            for word_node in word.parent.named_children
            if word_node.type == "identifier"
        ]
        if binding.offset in places:
            at = places.index(binding.offset)
        else:
            at = 0
        first = nth(listed, 0)
        is_one_of_several = at > 0 and listed.named_child_count == 1
        if first is not None and is_one_of_several and first.type in _MAY_CALL:
            return self.call(self.find_callees(file, first), at)
        return self.infer(file, nth(listed, at))

    def dereference(self, values: Values) -> Values:
        """Return values with variables replaced by their values."""
        results: list[Values] = []
        for candidate in values:
            definition = candidate.definition
            if (
                definition is None
                or candidate.is_instance
                or definition.kind not in _VALUE_KINDS
            ):
                results.append((candidate,))
                continue
            offset = definition.key[1]
            owner = self.owner_of(definition)
            if owner is not None and owner.path == definition.path:
                file = self._scopes_of_members(owner, definition.name)
            else:
                file = self.scopes_around(definition.path, offset)
            if file is not None:
                hash_sign = "#" * definition.symbols.data.startswith(
                    b"#", offset - 1
                )  # a private name of JavaScript
                offset -= len(hash_sign)
                for binding in file.names_of(file.scope_at(offset)).get(
                    hash_sign + definition.name, []
                ):
                    # Other assignments to the name also count: the first is often
                    # ``None``.
                    is_own = binding.offset == offset
                    if is_own or binding.kind in {"name", "field"}:
                        results.append(self._evaluate(file, binding))
        return either(results)

    # Members

    def read_member(self, values: Values, name: str) -> Values:
        """Return the value of a member: of a property what it returns, even if that is unknown."""
        if name == "__class__":
            return find_classes(values)
        read: list[Value] = []
        for value in self.members(values, name):
            definition = value.definition
            # Its result stands beside it; as an object of its own it would have no
            # member of ours.
            if definition is None or value.is_instance or not _is_property(definition):
                read.append(value)
        if not read:
            return self._make_up(values)
        return self.dereference(tuple(read))

    def _make_up(self, values: Values) -> Values:
        """Return what ``__getattr__`` of a Python class gives for a member that the class does not have."""
        results: list[Value] = []
        for value in values:
            definition = value.definition
            if definition is None or definition.language != "python":
                return ()
            if not value.is_instance:
                return ()
            maker = self.member(definition, "__getattr__")
            results += self.call(maker, 0) if _has_definitions(maker) else ()
        return distinct(results)

    def members(self, values: Values, name: str) -> Values:
        """Return the member of a module, a class or an object; empty if unknown."""
        results: list[Value] = []
        for value in values:
            if value.is_nothing:
                continue
            if value.definition is not None:
                results += _choose_static(
                    self.member(value.definition, name), is_static=not value.is_instance
                )
            elif value.literal is not None:
                path, offset = value.literal
                file = self.scopes_around(path, offset)
                if file is not None and (at := file.scope_at(offset)) != MODULE:
                    bindings = file.scopes[at].names.get(name)
                    results += (
                        self._find_meaning(file, bindings)
                        if bindings
                        else self.find_index_type(file, offset)
                    )
            elif value.module is None:
                results.append(RETURNED if value.is_returned else OUTSIDE)
            elif exported := self.export(value.module, name):
                results += exported
        return distinct(results)

    def member(self, owner: Definition, name: str) -> Values:
        """Return a type's member by name; its bases are searched after the type itself."""
        return (
            self.remember(
                ("member", owner.key, name), lambda: self._find_member(owner, name)
            )
            or ()
        )

    def _find_member(self, owner: Definition, name: str) -> Values:
        if owner.kind in CALLABLE_KINDS:
            # JavaScript adds members to functions and their instances from outside:
            # ``Reply.prototype.send = ...``
            if owner.language in ECMA:
                named = self.definitions(name)
            else:
                named = ()
            # Only in the same file: elsewhere another function may have the name.
            set_on = (
                definition
                for definition in named
                if definition.owner == owner.name and definition.path == owner.path
            )
            return (
                tuple(Value(definition) for definition in set_on)
                or self.members(self._decorate(owner), name)
                or (OUTSIDE,)
            )
        if owner.language == "go":
            folder = owner.path.rpartition(b"/")[0]
            package = self.package_of(owner.path, owner.symbols)
            methods: Sequence[Definition] = self.methods_of(name).get(
                (package, owner.name), ()
            )
            if owner.path.startswith(b"/"):
                methods = self.find_in_package(folder, name, owner.name)
            if methods:
                return tuple(map(Value, methods))
        # TypeScript merges interfaces, classes and namespaces of one name.
        if owner.language in ECMA:
            parts = self.top_level(owner.path, owner.name)
        else:
            parts = []
        for part in [
            owner,
            *(current_part for current_part in parts if current_part.key != owner.key),
        ]:
            if (own := self._find_own(part, name)) is not None:
                return self._follow_properties(own)
        bases, is_whole = self.bases(owner)
        for base in bases:
            if (
                owner.language == "go" and base.name == name
            ):  # an embedded type is also a field
                return (Value(base, is_instance=True),)
            found_members = self.member(base, name)
            if any(
                value.definition is not None or value.literal for value in found_members
            ):
                return found_members
            is_whole = (
                is_whole and not found_members
            )  # an external base may have it, if no other base does
        if is_whole:
            return ()
        return (OUTSIDE,)

    def _decorate(self, function: Definition) -> Values:
        """Return what a decorated Python function becomes, if a decorator turns it into something in the project."""
        if function.language == "python":
            file = self.scopes_of(function.path)
        else:
            file = None
        if file is not None:
            word = file.node_at(function.key[1])
        else:
            word = None
        around = (
            word.parent.parent if word is not None and word.parent is not None else None
        )
        if file is None or around is None or around.type != "decorated_definition":
            return ()
        written = (
            nth(child, 0)
            for child in around.named_children
            if child.type == "decorator"
        )
        results = (self.call(self.infer(file, decorator), 0) for decorator in written)
        definitions_only = (
            tuple(value for value in values if value.definition is not None)
            for values in results
        )
        return next(filter(None, definitions_only), ())

    def _find_own(self, owner: Definition, name: str) -> Values | None:
        """Return the type's own member by name; None if nothing in the type binds the name."""
        is_plain = owner.language == "python" or (
            owner.language in _WITH_CLASSES and owner.kind in {"class", "interface"}
        )
        if is_plain:
            methods = find_methods(owner.symbols, owner.index, name)
        else:
            methods = None
        if methods is not None:
            defined = without_overloads(
                [Definition(owner.path, owner.symbols, index) for index in methods]
            )
            return tuple(map(Value, defined)) or None
        file = self._scopes_of_members(owner, name)
        if file is not None:
            scope = file.scope_of(owner.key[1])
        else:
            scope = None
        if scope is not None:
            bindings = scope.names.get(name)
        else:
            bindings = None
        if file is not None and bindings:
            return self._find_meaning(file, bindings)
        return None

    def _follow_properties(self, values: Values) -> Values:
        """Add the results of methods that are read like fields."""
        results: list[Value] = []
        for value in values:
            results.append(value)
            definition = value.definition
            if definition is not None and _is_property(definition):
                # A class that a getter returns has another name there.
                results += (
                    replace(result, is_variable=True)
                    for result in self.find_result(definition, 0)
                )
        return distinct(results)

    def bases(self, owner: Definition) -> tuple[list[Definition], bool]:
        """Return the bases of a type, and whether all of them are in the project."""
        found = (
            self.remember(("bases", owner.key), lambda: self._find_bases(owner)) or ()
        )
        return [base.definition for base in found if base.definition is not None], all(
            base.definition for base in found
        )

    def _find_bases(self, owner: Definition) -> Values:
        symbols = owner.symbols
        found_bases: list[Value] = []
        for offset in symbols.bases(owner.index):
            if (chain := read_base(symbols, offset)) is not None:
                values = self._infer_chain(owner.path, symbols, *chain)
                # An unknown base may have any member, so callers must know about it.
                found_bases += [Value(value.definition) for value in values] or [
                    OUTSIDE
                ]
                continue
            file = self.scopes_around(owner.path, offset)
            if file is not None:
                node = file.node_at(offset)
            else:
                node = None
            if file is None or node is None:
                continue
            while node.parent is not None and node.parent.type in MEMBER_OF:
                node = node.parent
            found_bases += [
                Value(value.definition) for value in self.infer(file, node)
            ] or [OUTSIDE]
        # A class that names itself as its base, through an import of its own name,
        # would never end.
        return tuple(
            definition
            for definition in found_bases
            if definition.definition is None or definition.definition.key != owner.key
        )

    def owner_of(self, member: Definition) -> Definition | None:
        """Return the type a method or field belongs to."""
        above = member.symbols.parent(member.index)
        if above >= 0:
            is_type = member.symbols.kind(above) in TYPE_KINDS
            if is_type:
                return Definition(member.path, member.symbols, above)
            return None
        if member.language != "go" or not member.owner:
            return None
        symbols = member.symbols
        package = self.package_of(member.path, symbols)
        kinds = TYPE_KINDS | {"type"}
        # Usually it is in the same file; otherwise it is looked up by name.
        for index in symbols.defining(member.owner):
            if symbols.parent(index) < 0 and symbols.kind(index) in kinds:
                return Definition(member.path, symbols, index)
        beside = (
            definition
            for definition in self.definitions(member.owner)
            if definition.language == "go"
            and self.package_of(definition.path, definition.symbols) == package
        )
        return next(
            (definition for definition in beside if definition.kind in kinds), None
        )

    @LazyAttribute
    def _above(self) -> dict[tuple[bytes, int], AbstractSet[tuple[bytes, int]]]:
        return {}

    def ancestors(self, owner: Definition) -> AbstractSet[tuple[bytes, int]]:
        """Return the keys of all direct and indirect bases of a type."""
        if owner.key in self._above:
            return self._above[owner.key]
        # Stored before it is filled: in code being edited, types may derive from each
        # other.
        ancestors_found = self._above[owner.key] = set[tuple[bytes, int]]()
        waiting = [owner]
        while waiting:
            for base in self.bases(waiting.pop())[0]:
                if base.key not in ancestors_found:
                    ancestors_found.add(base.key)
                    waiting.append(base)
        return ancestors_found

    def find_default_names(
        self, module: bytes, paths: Iterable[bytes]
    ) -> Iterator[tuple[bytes, str, bool]]:
        """Yield the files that import a file's default export, each with its local name and whether it is re-exported.

        The local name is arbitrary, but the import names the file; ``paths``: the files to examine.
        """
        for path in paths:
            if (language := self.language_of(path)) not in ECMA:
                continue
            imports = self.imports_of(path)
            for import_ in (
                *(
                    current_import_
                    for several in imports.names.values()
                    for current_import_ in several
                ),
                *imports.exports.values(),
            ):
                if (
                    import_.name == DEFAULT
                    and import_.module
                    and self.find_module(path, language, import_.module) == module
                ):
                    yield path, import_.local, import_.local in imports.exports
                    for exported in imports.list_exports(import_.local):
                        if exported != DEFAULT:
                            yield path, exported, True

    # Uses

    def resolve(self, path: bytes, name: str, offset: int) -> Values | None:
        """Return what a use of a name refers to; variables stand for themselves; None: unknown."""
        return self.remember(
            ("use", path, offset), lambda: self._resolve(path, name, offset)
        )

    def _resolve(self, path: bytes, name: str, offset: int) -> Values | None:
        key = self.find_key(path, name, offset)
        # An object may be passed where no type is written: then its key is unknown.
        if key is not None and self.language_of(path) in ECMA:
            return key.members or None
        if key is not None:
            return key.members or (OUTSIDE,)
        symbols = self.open_file(path)
        if symbols is None:
            return None
        # Labels have names of their own, also those of constants and functions.
        if symbols.language == "go" and is_label(symbols, name, offset):
            return (OUTSIDE,)
        # The dot may be on the line before.
        start = max(0, offset - 80)
        before = symbols.data[start:offset].rstrip()
        if before.endswith(b".#"):  # a private member
            name = f"#{name}"
            before = before[:-1]
        is_member = before.endswith(b".") and not before.endswith(b"...")
        # A comment before a statement may end with a full stop.
        if not is_member or symbols.is_text(start + len(before) - 1):
            found_name = self.find_name(path, name, offset)
            # In Python a name that nothing binds is a builtin.
            if found_name is None and symbols.language == "python":
                return (OUTSIDE,)
            return found_name
        if symbols.role(offset) != "import":
            values = self._infer_receiver(path, symbols, offset)
            if values is not None:
                return self.members(values, name) or None
        file = self.scopes_around(path, offset)
        if file is not None:
            node = file.node_at(offset)
        else:
            node = None
        around = node.parent if node is not None else None
        if file is None or around is None or around.type not in MEMBER_OF:
            return None
        return (
            self.members(
                self.infer(file, around.child_by_field_name(MEMBER_OF[around.type][0])),
                name,
            )
            or None
        )

    def _infer_receiver(
        self, path: bytes, symbols: FileSymbols, offset: int
    ) -> Values | None:
        """Return the values of a member's receiver if the text alone shows them; None: the tree is needed."""
        if symbols.language == "python" and is_on_super(symbols, offset):
            own = find_own_class(symbols, offset)
            if own >= 0:
                bases = self.bases(Definition(path, symbols, own))[0]
            else:
                bases = []
            return tuple(Value(base, is_instance=True) for base in bases) or (
                (OUTSIDE,) if own >= 0 else ()
            )
        if symbols.data[offset - 1 : offset] == b".":
            chain = read_chain(symbols, offset - 1)
        else:
            chain = None
        if (
            chain is not None
            and chain[0][0] == "this"
            and find_this(symbols, chain[1]) is None
        ):
            return None
        if chain is not None:
            return self._infer_chain(path, symbols, *chain)
        return None

    def _infer_chain(
        self, path: bytes, symbols: FileSymbols, names: list[str], start: int
    ) -> Values:
        """Return the values of ``a.b.c`` at a position, as ``infer`` does for its nodes."""
        own = None
        if symbols.language == "python" and names[0] in {"self", "cls"}:
            own = find_self(symbols, names[0], start)
        elif names[0] == "this":
            own = find_this(symbols, start)
        if own is not None:
            # In a static method of JavaScript ``this`` is the class itself.
            is_class = names[0] == "cls" or (
                names[0] == "this" and is_in_static(symbols, own, start)
            )
            values: Values = (
                Value(Definition(path, symbols, own), is_instance=not is_class),
            )
        else:
            bound = self.find_name(path, names[0], start)
            if bound is None and self.is_global(path, names[0]):
                return (OUTSIDE,)
            values = self.dereference(bound or ())
        for name in names[1:]:
            values = self.bind_self(self.read_member(values, name), values)
        return values


def _choose_static(members: Values, *, is_static: bool) -> Values:
    """Return of a class's members of one name those of its instances, or those of the class itself, if it has both."""
    # Of one alone the other may be meant by code that is wrong, or not understood here.
    chosen = tuple(
        value
        for value in members
        if value.definition is not None
        and value.definition.language in ECMA
        and _is_static(value.definition) == is_static
    )
    return chosen if len(members) > 1 and chosen else members


def _is_static(member: Definition) -> bool:
    return is_static(member.symbols, member.index)


def _has_definitions(values: Values) -> bool:
    """Whether values are definitions of the project, at least one."""
    return bool(values) and all(value.definition is not None for value in values)


def _is_property(definition: Definition) -> bool:
    """Whether a definition is a method that is read like a field."""
    if definition.kind != "method":
        return False
    if definition.language == "python":
        return any(b"property" in line for line in decorators(definition))
    symbols = definition.symbols
    return definition.language in ECMA and is_getter(symbols, definition.key[1])


def _is_fixture(function: Definition) -> bool:
    return any(b"fixture" in line for line in decorators(function))


def _is_in_callback(symbols: FileSymbols, outermost: int) -> bool:
    """Whether an outermost definition may be in an anonymous function, which is no definition: its line is indented."""
    line = symbols.data.rfind(b"\n", 0, symbols.row(outermost)[NAME]) + 1
    return symbols.language in ECMA and symbols.data[line : line + 1].isspace()


def _find_bound(
    symbols: FileSymbols, name: str, outermost: int, *, is_asked: bool
) -> Iterator[int]:
    """Yield the offsets within the outermost enclosing definition that may bind a name in a scope below the file's.

    Yields nothing if parsing found no binding of the name there: most files then need no tree. ``is_asked``: a member
    is accessed on the name, so other places where that is so are skipped.
    """
    start, end = (
        symbols.row(outermost)[START : END + 1]
        if outermost >= 0
        else (0, len(symbols.data))
    )
    for at in symbols.words(
        name.encode(),
        fold=False,
        start=start,
        end=end,
    ):
        if symbols.data[at - 1 : at] != b".":
            own = symbols.index_at(at)
            # A file's outermost definitions are found by name; a definition inside a
            # callback is not one of them.
            is_outermost = own >= 0 and symbols.parent(own) < 0
            if is_outermost and not _is_in_callback(symbols, own):
                continue
            may_bind = own >= 0 or symbols.parsed.may_bind(at)
            if not may_bind and outermost < 0:
                continue
            role = symbols.role(at)
            if not may_bind and role != "import":
                continue
            if (
                is_asked
                and role == "reference"
                and is_followed_by_point(symbols, name, at)
            ):
                continue
            if own >= 0 or (
                role is not None
                and role != "call"
                and (outermost >= 0 or role != "import")
            ):
                yield at
