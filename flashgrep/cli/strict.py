"""Commands that refuse an option given twice, where parsers of command lines let the last one win in silence."""

from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption


class StrictCommand(TyperCommand):
    """A command whose options with one value can be given once: ``-p a -p b`` is no question about b alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            typer.BadParameter: an option that takes one value is given more than once.

        """
        if args:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option, times in Counter(given).items():
                if times > 1 and isinstance(option, TyperOption) and not (option.multiple or option.is_flag):
                    raise typer.BadParameter(f"given {times} times, takes one value", ctx=ctx, param=option)
        return super().parse_args(ctx, args)
