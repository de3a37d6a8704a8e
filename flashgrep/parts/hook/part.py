"""The searches that an agent types in a shell, answered with the index's help."""

from flashgrep.api.part import Part, StdioProtocol
from flashgrep.parts.hook.answers import answer_call

PART = Part(
    name="hook",
    summary="`flashgrep hook`: the searches that an agent types in a shell, answered with the index's help.",
    requires=("symbols", "ripgrep"),
    protocols={
        "hook": StdioProtocol(
            module="flashgrep.parts.hook.client",
            summary="Run by an agent's host before a shell command: recursive grep and rg are answered with the index.",
        )
    },
    client_calls={"hook": answer_call},
)
