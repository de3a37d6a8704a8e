"""Definitions and references by tree-sitter; outlines, a map of a project, syntax at positions."""

from flashgrep.api.part import Part
from flashgrep.api.searchers import Searchers
from flashgrep.parts.symbols import methods, syntax
from flashgrep.parts.symbols.relevance import search_by_relevance
from flashgrep.parts.symbols.stages import STAGES
from flashgrep.parts.symbols.symbol_search import find_definition, suggest_names
from flashgrep.parts.symbols.symbol_source import (
    PARSED_FILES,
    STORED_SYMBOLS,
    ParsedFiles,
    StoredSymbols,
)
from flashgrep.parts.symbols.syntax_errors import find_syntax_errors

PART = Part(
    name="symbols",
    summary="Definitions and references by tree-sitter; outlines, a map of a project, syntax at positions.",
    handlers=(
        *methods.HANDLERS,
        *syntax.HANDLERS,
    ),
    searchers=Searchers(
        definition=find_definition,
        near_names=suggest_names,
        syntax_errors=find_syntax_errors,
        ranking=search_by_relevance,
    ),
    project_services={STORED_SYMBOLS: lambda _project: StoredSymbols()},
    host_services={PARSED_FILES: lambda _host: ParsedFiles()},
    stages=STAGES,
    indexer_functions={
        "symbols": "flashgrep.parts.symbols.parsing_stage:store_symbols"
    },
)
