"""Who calls what from the markup of a component: an answer without it would say that nobody does."""

import textwrap
from pathlib import Path

import pytest

from tests.search.resolution.test_local_names import users_of

FORMAT = {"format.ts": "export function format(x: number) { return x }\n"}
VUE = {
    "Shop.vue": """
        <template><p @click="add(1)">{{ format(total) }}</p></template>
        <script setup lang="ts">
        import { format } from './format'
        const total = 1
        function add(by: number) {}
        </script>
    """,
}
SVELTE = {
    "Shop.svelte": """
        <script lang="ts">
        import { format } from './format';
        let total = 1;
        function add(by: number) {}
        </script>
        {#if total}<p on:click={() => add(1)}>{format(total)}</p>{/if}
    """,
}
ASTRO = {
    "Shop.astro": """
        ---
        import { format } from './format';
        const add = (by: number) => by;
        ---
        <p a={add(1)}>{[1].map((x) => <b>{format(x)}</b>)}</p>
    """,
}


@pytest.mark.parametrize("files", [VUE, SVELTE, ASTRO])
@pytest.mark.parametrize("name", ["format", "add"])
def test_what_markup_calls_is_called_for_sure(
    tmp_path: Path, files: dict[str, str], name: str
) -> None:
    files = {file: textwrap.dedent(text).lstrip() for file, text in files.items()}
    assert users_of(
        tmp_path, FORMAT | files, f"callers of {name}", by_file=True
    ) == set(files)
