"""The `batch` method: several reads or searches in one call, within one budget."""

import json
import time
from collections.abc import Iterator
from typing import Annotated, Any, cast

import anyio
from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.host import Host
from flashgrep.base.errors import (
    DeadlineExceeded,
    ErrorObject,
    FlashgrepError,
    InvalidParams,
)
from flashgrep.base.habits import read_habits
from flashgrep.base.registry import Call, Handler, NameText, Params, handler
from flashgrep.methods.common import CHARS_PER_TOKEN, MaxTokens
from flashgrep.methods.text import Style, render_error, render_text

NAME = "batch"
MOST_CALLS, LEAST_TOKENS = 20, 100
"""Most calls of one batch, and the tokens that each may take even if those before it have used up the budget."""
SPARE_SECONDS = 1.0
"""Seconds before the call's own deadline at which calls that have not begun are refused."""
SHOWN_ARGUMENTS = 200
"""Characters of a call's arguments in the heading of its answer."""


class CallParams(Params):
    """One read or search."""

    method: NameText = Field(min_length=1, description="A method that only reads.")
    arguments: Annotated[dict[str, Any], Field(max_length=50)] = Field(
        default={}, description="Its arguments."
    )


class BatchParams(Params):
    """The calls, and the size of their answers together."""

    calls: list[CallParams] = Field(
        min_length=1,
        max_length=MOST_CALLS,
        description="Reads or searches, answered in this order.",
    )
    max_tokens: MaxTokens = 4_000


class BatchItem(TypedDict, total=False):
    """What a call answered: its result or its error; in plain text, as it would be answered alone."""

    method: str
    arguments: dict[str, Any]
    result: Any
    error: dict[str, Any]
    text: str


class BatchResult(TypedDict):
    """The answers in the order of the calls."""

    results: list[BatchItem]


def render_batch(result: BatchResult, style: Style) -> Iterator[str]:
    """Yield each answer below a heading with its call."""
    for item in result["results"]:
        arguments = json.dumps(item["arguments"], ensure_ascii=False)
        yield f"== {item['method']} {style.text(arguments[:SHOWN_ARGUMENTS])}"
        if "text" in item:
            yield item["text"]
        elif "error" in item:
            yield style.text(render_error(cast("ErrorObject", item["error"])))
        else:
            yield json.dumps(item["result"], ensure_ascii=False, default=str)


@handler(
    NAME,
    title="Several reads or searches",
    toolset="research",
    render=render_batch,
)
async def batch(call: Call[Host], params: BatchParams) -> BatchResult:
    """Answer up to 20 reads or searches in one call, each as it would be answered alone.

    They share a budget: what one does not need is left to those after it. One that fails does not end the others.
    """
    # One after the other: only then is it known what an answer leaves to the next.
    room = params.max_tokens * CHARS_PER_TOKEN
    results: list[BatchItem] = []
    for at, matching_call in enumerate(params.calls):
        share = room // CHARS_PER_TOKEN // (len(params.calls) - at)
        item: BatchItem = {
            "method": matching_call.method,
            "arguments": matching_call.arguments,
        }
        try:
            item.update(await _answer(call, matching_call, max(share, LEAST_TOKENS)))
        except FlashgrepError as error:
            item["error"] = dict(error.to_object())
        size = len(item.get("text", ""))
        if "result" in item:
            size = len(json.dumps(item["result"], default=str))
        room = max(0, room - size)
        results.append(item)
    return {"results": results}


async def _answer(call: Call[Host], asked: CallParams, tokens: int) -> BatchItem:
    """Return one call's result, and its text if the answer is text.

    Raises:
        InvalidParams: the method is unknown, writes, or its arguments are wrong.
        DeadlineExceeded: the calls before it took all the time.
        FlashgrepError: why it failed.

    """
    registry = call.host.registry
    if asked.method not in registry:
        raise InvalidParams(
            f"batch: no such method: {asked.method}", field="calls.method"
        )
    method = registry.get(asked.method)
    # A write is a call of its own, with its own preconditions and rights.
    if method.safety != "reads" or method.name == NAME:
        raise InvalidParams(
            f"batch: {method.name} does not only read: call it by itself",
            field="calls.method",
        )
    if call.deadline is not None and time.monotonic() > call.deadline - SPARE_SECONDS:
        raise DeadlineExceeded("the calls before it took the time of the batch")
    params = method.validate(read_habits(method.name, asked.arguments))
    # A size that the caller gave, by whatever name, is kept: it asked for that much.
    if "max_tokens" in type(params).model_fields.keys() - params.model_fields_set:
        params = params.model_copy(update={"max_tokens": tokens})
    await anyio.lowlevel.checkpoint()
    result = await method.run(call, params)
    if not call.as_text or method.render is None:
        return {"result": result}
    return {"text": await run_sync(render_text, result, method.render)}


HANDLERS: tuple[Handler, ...] = (batch,)
