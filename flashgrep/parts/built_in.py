"""The core and the parts that come with flashgrep, each after those it requires, and the registry of their methods."""

from flashgrep.api.part import Part, make_registry
from flashgrep.methods.core_part import CORE
from flashgrep.parts.collections import part as collections
from flashgrep.parts.edit import part as edit
from flashgrep.parts.gain import part as gain
from flashgrep.parts.git import part as git
from flashgrep.parts.hook import part as hook
from flashgrep.parts.hosts import part as hosts
from flashgrep.parts.http import part as http
from flashgrep.parts.libraries import part as libraries
from flashgrep.parts.lsp import part as lsp
from flashgrep.parts.meaning import part as meaning
from flashgrep.parts.models import part as models
from flashgrep.parts.navigation import part as navigation
from flashgrep.parts.pick import part as pick
from flashgrep.parts.refactoring import part as refactoring
from flashgrep.parts.ripgrep import part as ripgrep
from flashgrep.parts.shells import part as shells
from flashgrep.parts.specs import part as specs
from flashgrep.parts.structural import part as structural
from flashgrep.parts.symbols import part as symbols
from flashgrep.parts.team import part as team

BUILT_IN: tuple[Part, ...] = (
    CORE,
    edit.PART,
    symbols.PART,
    libraries.PART,
    navigation.PART,
    refactoring.PART,
    meaning.PART,
    structural.PART,
    git.PART,
    models.PART,
    collections.PART,
    specs.PART,
    ripgrep.PART,
    hook.PART,
    http.PART,
    hosts.PART,
    gain.PART,
    pick.PART,
    shells.PART,
    team.PART,
    lsp.PART,
)

REGISTRY = make_registry(BUILT_IN)
