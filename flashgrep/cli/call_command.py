"""``fgrep call``: one request to the daemon by the name of its method, for scripts."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from flashgrep.cli.daemon_client import call as send
from flashgrep.cli.daemon_client import fail, failing_cleanly, find_user_paths
from flashgrep.rpc.connect import connect_folder, connect_or_alone


def call(
    method: Annotated[str, typer.Argument(help="A method, as in skills/reference.md.")],
    params: Annotated[
        str, typer.Argument(help="Its parameters, a JSON object; -: from stdin.")
    ] = "{}",
) -> None:
    """Call a method by its name with JSON, in the current folder's project, and print the result as JSON."""
    text = params
    if params == "-":  # as other programs do
        text = sys.stdin.read()
    with failing_cleanly():
        try:
            fields: Any = json.loads(text)
        except RecursionError:
            fail("the parameters are nested too deep")
        except ValueError as error:
            fail(f"the parameters are not JSON: {error}")
        if not isinstance(fields, dict):
            fail('the parameters are a JSON object, such as \'{"query": "main"}\'')
        paths = find_user_paths()
        control = connect_or_alone(paths, os.environ)
        # A folder that is no project stays none: a script is not asked to adopt it.
        bound = connect_folder(control, paths, os.environ, str(Path.cwd()), adopt=False)
        with bound as connection:
            result = send(connection, method, fields)
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
