"""Sixty tasks of a person at a terminal, typed as a person types them; what the screen then shows is asserted."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand, daemon_in, short_folder
from tests.support.terminal import HEIGHT, Shown, Terminal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell"),
]
CART = '''\
"""The cart of a customer."""

from shop.prices import add_tax

LIMIT = 3


class Cart:
    """Items that a customer wants to buy."""

    def __init__(self):
        self.items = []

    def add_item(self, item, count=1):
        """Add an item, unless the cart is full."""
        if len(self.items) >= LIMIT:
            raise ValueError("the cart is full")
        self.items.extend([item] * count)

    def total(self):
        """Return what all items cost, with tax."""
        return add_tax(sum(item.price for item in self.items))
'''
PRICES = '''\
"""Prices and taxes."""


def add_tax(net, rate=0.2):
    """Return a net price with its tax."""
    return net * (1 + rate)


def format_price(price):
    """Return a price as a text with its currency."""
    return f"{price:.2f} EUR"
'''
CHECKOUT = '''\
from shop.cart import Cart
from shop.prices import format_price


def pay(cart: Cart):
    """Charge the customer's card."""
    # TODO: retry when the bank is busy
    return format_price(cart.total())


def refund(cart: Cart):
    # TODO: notify the customer
    return format_price(-cart.total())
'''
PLENTY = 300
FILES: dict[str, str | bytes] = {
    "shop/cart.py": CART,
    "shop/gift.py": "from shop.cart import Cart\n\n\nclass GiftCart(Cart):\n    pass\n",
    "shop/tool.py": "import sys\nfrom shop.prices import format_price\n\nprint(format_price(7), file=sys.stdout)\n",
    "mixed/latin-1.txt": "un café filtré\n".encode("latin-1"),
    "mixed/utf-16.txt": "un café filtré\n".encode("utf-16"),
    "mixed/utf-8.txt": "un café filtré\n",
    "shop/prices.py": PRICES,
    "shop/checkout.py": CHECKOUT,
    "docs/guide.md": "# Guide\n\nThe Cart holds items.\n\n```python\ncart = Cart()\n```\n",
    "src/main.c": "int main(void)\n{\n\tif (a || b)\n\t\treturn table[0];\n\treturn 0;\n}\n",
    "notes/crlf.txt": "first TODO\r\nsecond\r\n",
    "notes/long.txt": f"{'x' * 3000} needle {'y' * 3000}\n",
    "notes/escape.txt": "before \x1b[31mred TODO\x1b[0m after\n",
    "notes/many.txt": "".join(f"line {n} of plenty\n" for n in range(PLENTY)),
    "notes/bytes.bin": "TODO\0\1\2",
    ".hidden/secret.py": "TODO = 'hidden'\n",
    ".gitignore": "build/\n",
    "build/out.py": "TODO = 'ignored'\n",
    ".github/CODEOWNERS": "/shop/ @shop-team\n",
}
needs_less = pytest.mark.skipif(not shutil.which("less"), reason="less is the pager")
WIDTHS = (60, 80, 120)
PAGER_WAITS = "\n:"
"""The last row, once less has shown a screen."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    root = short_folder()
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def shop(folder: Path) -> Path:
    """Return a work tree with one commit."""
    root = folder / "shop"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode() if isinstance(text, str) else text)
    git = ["git", "-C", str(root), "-c", "user.name=Ann", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    return root


@pytest.fixture(scope="module")
def at_work(folder: Path) -> Iterator[DaemonAtHand]:
    """Return the daemon that the first command starts."""
    daemon = daemon_in(folder)
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def terminals(shop: Path, at_work: DaemonAtHand) -> Iterator[dict[int, Terminal]]:
    """Return a terminal of each width, after the first command of a new user: the project is indexed."""
    opened = {}
    with ExitStack() as closing:
        for width in WIDTHS:
            opened[width] = Terminal(shop, at_work.environ_of_shell, width)
            closing.callback(opened[width].close)
        first = opened[80].type("fgrep index")
        assert (first.status, first.lines[-1][:8]) == (0, "indexed:"), first
        yield opened


@pytest.fixture
def terminal(terminals: dict[int, Terminal]) -> Terminal:
    """Return the usual terminal."""
    return terminals[80]


def check(shown: Shown, status: int, wanted: list[str], unwanted: list[str]) -> None:
    """Check that the lines are wanted; each is a whole line, or after ``~`` a part of the text."""
    assert shown.status == status, shown.text
    for line in wanted:
        if line.startswith("~"):
            assert line[1:] in shown.text, shown.text
        else:
            assert line in shown.lines, shown.text
    for part in unwanted:
        assert part not in shown.text, shown.text


TODO_IN_SHOP = [
    "shop/checkout.py",
    "7:    # TODO: retry when the bank is busy",
    "12:    # TODO: notify the customer",
]
NOTHING = ["~fgrep: nothing found in "]
# What is typed, the status, what is seen, and what is not.
SEARCHES: list[tuple[str, int, list[str], list[str]]] = [
    (
        "fgrep query TODO",
        0,
        [*TODO_IN_SHOP, "1:before \\x1b[31mred TODO\\x1b[0m after"],
        ["hidden", "ignored", "bytes.bin"],
    ),
    ("fgrep query -i todo -g '*.py'", 0, TODO_IN_SHOP, ["notes"]),
    ("fgrep query todo", 1, NOTHING, []),
    ("fgrep query -S todo shop/", 0, TODO_IN_SHOP, ["notes"]),
    ("fgrep query -w Car", 1, NOTHING, []),
    ("fgrep query -x 'LIMIT = 3'", 0, ["5:LIMIT = 3"], []),
    ("fgrep query -n -C 1 'LIMIT =' shop/", 0, ["4-", "5:LIMIT = 3", "6-"], []),
    ("fgrep query -A1 'def pay'", 0, ['6-    """Charge the customer\'s card."""'], []),
    ("fgrep query -e 'def \\w+_item'", 0, ["~14:    def add_item(self"], []),
    ("fgrep query -e TODO -e LIMIT shop", 0, ["5:LIMIT = 3", *TODO_IN_SHOP], []),
    ("fgrep query -E 'pay|refund' -c", 0, ["shop/checkout.py:2"], []),
    ("fgrep query -G 'a\\|b' -o src", 0, ["~3:a"], []),
    ("fgrep query -P '(?<=def )pay'", 0, ["5:def pay(cart: Cart):"], []),
    ("fgrep query -e '(pay'", 2, ["fgrep: unclosed group: '(' at 0"], []),
    ("fgrep query -U -e 'def pay.*\\n.*Charge'", 0, ["5:def pay(cart: Cart):"], []),
    ("fgrep query -l TODO", 0, ["shop/checkout.py", "notes/crlf.txt"], ["bank"]),
    ("fgrep query -L TODO -g '*.py'", 0, ["shop/cart.py"], ["checkout"]),
    ("fgrep query -c TODO", 0, ["shop/checkout.py:2", "notes/crlf.txt:1"], []),
    ("fgrep query -o 'add_\\w+' shop", 0, ["3:add_tax", "14:add_item"], ["import"]),
    ("fgrep query -m 1 TODO shop", 0, TODO_IN_SHOP[:2], ["notify"]),
    ("fgrep query -v -e . notes/crlf.txt", 1, [], ["TODO"]),
    ("fgrep query -h TODO shop", 0, TODO_IN_SHOP[1:], ["checkout"]),
    ("fgrep query --column TODO shop", 0, ["~7:7:    # TODO"], []),
    ("fgrep query --hidden TODO", 0, [".hidden/secret.py"], ["build/out.py"]),
    ("fgrep query --no-ignore TODO", 0, ["build/out.py"], [".hidden"]),
    ("fgrep query --exclude '*.py' TODO", 0, ["notes/crlf.txt"], ["checkout"]),
    ("fgrep query -t py TODO", 0, TODO_IN_SHOP, ["notes"]),
    ("fgrep query -t pyton TODO", 2, ["~did you mean python"], []),
    ("fgrep query --owner @shop-team TODO", 0, TODO_IN_SHOP, ["notes"]),
    ("fgrep query 'a || b'", 0, ["~if (a || b)"], ["regular"]),
    ("fgrep query 'x || y'", 1, NOTHING, []),
    ("fgrep query 'arr[0]'", 1, NOTHING, []),
    ("fgrep query 'TODO|LIMIT'", 0, ["5:LIMIT = 3", "~regular expression"], []),
    ("fgrep query formatprice", 1, ["fgrep: did you mean format_price?"], []),
    ("fgrep query -g nowhere TODO", 1, ["~no file is asked", "~-g and -t"], []),
    ("fgrep query TODO --rev HEAD", 0, TODO_IN_SHOP, ["build/out.py"]),
    ("fgrep query TODO --rev nope", 2, ["~no such revision: nope; near: main"], []),
    ("fgrep query TODO -p nope", 2, ["fgrep: no such project: nope"], []),
    ("fgrep query TODO --color never shop", 0, TODO_IN_SHOP, []),
    ("fgrep query", 2, ["~Missing argument"], []),
    ("fgrep query ''", 2, ["~--all shows them"], []),
    ("fgrep query --all '' src | wc -l", 0, ["6"], []),
    ("fgrep query -g '!*.txt' TODO", 0, TODO_IN_SHOP, ["notes"]),
    ("fgrep query --path shop TODO", 0, TODO_IN_SHOP, ["notes"]),
    ("fgrep query --any-of LIMIT TODO", 0, ["5:LIMIT = 3", *TODO_IN_SHOP], []),
    ("fgrep query TODO --all-projects -t py", 0, TODO_IN_SHOP, []),
    ("(cd / && fgrep query TODO -p shop)", 0, TODO_IN_SHOP[1:], []),
    ("fgrep query TODO --rev :index", 0, TODO_IN_SHOP, ["build/out.py"]),
    ("fgrep query -a TODO notes/bytes.bin", 0, ["~1:TODO"], []),
    ("fgrep query TODO notes/bytes.bin", 1, ["~skipped: 1 binary"], []),
    ("fgrep query 'first TODO' notes/crlf.txt", 0, ["1:first TODO"], []),
    (
        "fgrep query filtr",
        0,
        [
            "mixed/latin-1.txt",
            "mixed/utf-16.txt",
            "mixed/utf-8.txt",
            "1:un café filtré",
        ],
        [],
    ),
    ("fgrep query café | wc -l", 0, ["2"], []),
    ("fgrep query -e 'caf. f' -c", 0, ["mixed/utf-16.txt:1", "mixed/utf-8.txt:1"], []),
    ("fgrep query --encoding latin1 café mixed/latin-1.txt", 0, ["~1:un café f"], []),
    ("fgrep query -Q x", 2, ["fgrep: No such option: -Q"], []),
    ("(cd shop && fgrep query TODO .)", 0, ["checkout.py"], ["shop/", "notes"]),
    ("(cd shop && fgrep query TODO)", 0, ["checkout.py", "../notes/crlf.txt"], []),
    ("if fgrep query -q zzz; then echo yes; else echo no; fi", 0, ["no"], []),
    ("fgrep query plenty | wc -l", 0, [f"{PLENTY}"], []),
    ("fgrep query TODO | head -n 1", 0, ["notes/crlf.txt:1:first TODO"], ["bank"]),
    ("fgrep query -l -0 TODO shop | xargs -0 wc -l", 0, ["13 shop/checkout.py"], []),
    ("fgrep query -e needle | wc -c", 0, [f"{len('notes/long.txt:1:') + 6009}"], []),
    ("fgrep rg -n TODO shop", 0, TODO_IN_SHOP, []),
    ("fgrep structural 'add_tax($A)'", 0, ["shop/cart.py", "~22:add_tax(sum("], []),
]
CODE: list[tuple[str, int, list[str], list[str]]] = [
    (
        "fgrep symbol Cart",
        0,
        ["shop/cart.py:8:7:definition class: class Cart:"],
        ["The Cart holds"],
    ),
    ("fgrep symbol add_ --match prefix", 0, ["~add_tax(net", "~add_item(self"], []),
    ("fgrep symbol crat --match fuzzy", 0, ["~shop/cart.py:8:7:definition class"], []),
    ("fgrep symbol Cart.total", 0, ["~shop/cart.py:20:9:definition method"], []),
    ("fgrep symbol crat", 1, ["fgrep: did you mean cart?"], []),
    ("fgrep symbol add_tax --role call", 0, ["~shop/cart.py:22:16:call"], ["import"]),
    ("fgrep definition add_tax", 0, ["~shop/prices.py:4:5:function"], []),
    ("fgrep definition shop/cart.py:22:16", 0, ["~shop/prices.py:4:5:function"], []),
    ("fgrep definition shop/cart.py:22", 2, ["~a place is FILE:LINE:COLUMN"], []),
    ("fgrep callers add_tax", 0, ["shop/cart.py:20:9:method def total(self):"], []),
    (
        "fgrep supertypes shop/gift.py:4:7",
        0,
        ["shop/cart.py:8:7:class class Cart:"],
        [],
    ),
    ("fgrep supertypes GiftCart", 0, ["shop/cart.py:8:7:class class Cart:"], []),
    ("fgrep supertypes shop/cart.py:8:7", 1, [], ["Traceback"]),
    ("fgrep implementations Cart", 0, ["~shop/gift.py:4:7:class class GiftCart"], []),
    ("fgrep callers format_price", 0, ["~shop/tool.py:4:7:print(form"], ["sys\n"]),
    ("fgrep calls shop/checkout.py:5:5", 0, ["~shop/prices.py:9:5:function"], []),
    ("fgrep references shop/prices.py:4:5", 0, ["~shop/cart.py:22:16:"], []),
    ("fgrep hover shop/prices.py:4:5", 0, ["Return a net price with its tax."], []),
    ("fgrep outline shop/cart.py", 0, ["  8-22 class Cart:"], []),
    ("fgrep outline", 0, ["shop/cart.py", "  8-22 class Cart:"], []),
    ("fgrep repo-map", 0, ["shop/cart.py", "  8-22 class Cart:"], []),
    ("fgrep code-research 'who calls add_tax'", 0, ["~method: Cart.total"], []),
    (
        "fgrep structural 'add_tax($A)' --rewrite 'with_tax($A)'",
        0,
        ["~+        return with_tax(sum(item.price"],
        [],
    ),
    ("fgrep files shop '!cart'", 0, ["shop/prices.py"], ["cart.py"]),
    ("fgrep files | wc -l", 0, ["15"], []),
    ("fgrep folder shop", 0, ["shop/cart.py", "shop/checkout.py"], ["docs"]),
    ("fgrep files cart", 0, ["shop/cart.py"], ["prices"]),
    ("fgrep glob '**/*.py'", 0, ["shop/prices.py"], ["hidden", "build"]),
    ("fgrep glob --no-respect-ignore '**/*.py'", 0, ["build/out.py"], ["hidden"]),
    ("fgrep read shop/prices.py:4", 0, ["4  def add_tax(net, rate=0.2):"], ["Return"]),
    ("fgrep read shop/prices.py:4:5", 0, ["4  def add_tax(net, rate=0.2):"], []),
    ("fgrep read shop/prices.py:4-6", 0, ["6      return net * (1 + rate)"], []),
    ("fgrep slice shop/prices.py 4 6", 0, ["6      return net * (1 + rate)"], []),
    ("fgrep read shop/price.py", 2, ["~file not found", "~near: shop/prices.py"], []),
    (
        "fgrep read notes/escape.txt",
        0,
        ["1  before \\x1b[31mred TODO\\x1b[0m after"],
        [],
    ),
    ("fgrep read notes/many.txt | wc -l", 0, [f"{PLENTY}"], []),
    (
        "fgrep search-code 'charge the card' --limit 1",
        0,
        [" 5  def pay(cart: Cart):"],
        ["prices.py:"],
    ),
    ("fgrep changes", 1, ["fgrep: no file differs from HEAD"], []),
    ("fgrep changes nope", 2, ["fgrep: no such revision: nope; near: main"], []),
    ("fgrep history shop/prices.py", 0, ["~Ann: first"], []),
    ("fgrep blame shop/prices.py", 0, ["~1-11 "], []),
    ("fgrep blame shop/prices.py:4-6", 0, ["~4-6 "], ["1-"]),
    ("fgrep blame shop/prices.py:4:5", 0, ["~4-4 "], []),
    ("fgrep enclosing shop/prices.py:4:5", 0, ["4:5-4:12 4:1-6:28 1:1-12:1"], []),
]
OTHERS: list[tuple[str, int, list[str], list[str]]] = [
    ("fgrep stats", 0, ["skipped   1 binary", "~lines, "], ["{"]),
    ("fgrep daemon status", 0, ["~running    process"], ["{"]),
    ("fgrep projects list", 0, ["~shop  /"], []),
    ("fgrep store list", 0, ["~shop, 15 files"], []),
    ("fgrep doctor", 0, ["~index sound, stage ready", "~ripgrep "], ["bad "]),
    ("fgrep daemon logs | tail -n 1", 0, ["~started"], ["Traceback"]),
    ("fgrep completion man | head -n 1", 0, ["~.TH FGREP 1"], ["ignored"]),
    ("fgrep help all", 0, ["~  team "], []),
    ("fgrep index nowhere", 2, ["fgrep: no such folder: nowhere"], []),
    ("fgrep qurey x", 2, ["~did you mean: fgrep query"], []),
    ("fgrep serach foo", 2, ["~did you mean: fgrep search-code"], []),
    ("fgrep status", 2, ["~did you mean: fgrep stats"], []),
    ("fgrep TODO shop/checkout.py", 0, ["    # TODO: notify the customer"], []),
    ("printf 'a\\nTODO\\n' | fgrep TODO", 0, ["TODO"], []),
    ("fgrep help patterns", 0, ["What a pattern means to fgrep query:"], []),
    ("fgrep uninstall --dry-run", 0, ["~nothing was removed"], []),
    (
        "fgrep rename shop/prices.py:4:5 with_tax",
        0,
        ["~3 places in 2 files"],
        ["\\x1b"],
    ),
    ("fgrep changes", 0, ["~shop/prices.py modified +1 -1"], []),
    ("git checkout -q shop; fgrep query with_tax", 1, NOTHING, []),
]


@pytest.mark.parametrize("tasks", [SEARCHES, CODE, OTHERS], ids=["text", "code", "all"])
def test_what_is_typed_shows_what_a_person_expects(
    terminal: Terminal, tasks: list[tuple[str, int, list[str], list[str]]]
) -> None:
    for command, status, wanted, unwanted in tasks:
        check(terminal.type(command), status, wanted, unwanted)


def test_matches_are_colored_unless_the_terminal_or_the_person_has_none(
    terminal: Terminal,
) -> None:
    colored = terminal.type("fgrep query TODO shop")
    assert colored.colored == ["shop/checkout.py", "7", "TODO", "12", "TODO"]
    for command in (
        "NO_COLOR=1 fgrep query TODO shop",
        "TERM=dumb fgrep query TODO shop",
        "fgrep query --color never TODO shop",
        "fgrep query TODO shop 2>&1 | cat",
    ):
        plain = terminal.type(command)
        assert (plain.status, plain.colored) == (0, [])
    plain = terminal.type("LC_ALL=C fgrep query TODO shop")
    assert (plain.status, plain.lines) == (0, colored.lines)
    assert terminal.type("fgrep read shop/prices.py:4").colored[0] == "4"
    assert terminal.type("NO_COLOR=1 fgrep read shop/prices.py:4").colored == []


@pytest.mark.parametrize("width", WIDTHS)
def test_help_fits_the_width_and_breaks_no_word(
    terminals: dict[int, Terminal], width: int
) -> None:
    shown = terminals[width].type("fgrep help")
    words = set(terminals[120].type("fgrep help | cat").text.split())
    assert shown.status == 0
    assert "  query           Search text like grep" in shown.text
    assert set(shown.text.split()) <= words


@needs_less
@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_counts_the_rest_and_all_of_it_goes_through_the_pager(
    terminals: dict[int, Terminal], width: int
) -> None:
    terminal = terminals[width]
    page = terminal.type("fgrep query plenty")
    assert page.lines[0] == "notes/many.txt"
    note = f"fgrep: 10 of {PLENTY} shown; --all shows everything"
    assert page.lines[-1] == note
    terminal.start("fgrep query --all plenty")
    screen = terminal.wait_for(PAGER_WAITS)
    assert screen[0] == "notes/many.txt"
    terminal.press("G")
    terminal.wait_for(f"line {PLENTY - 1} of plenty")
    terminal.press("q")
    assert terminal.finish().status == 0


def test_a_long_line_is_cut_around_its_match(terminal: Terminal) -> None:
    shown = terminal.type("fgrep query needle")
    assert shown.colored[-1] == "needle"
    assert len(shown.lines) < HEIGHT / 2


@needs_less
def test_a_file_longer_than_the_screen_goes_through_the_pager(
    terminal: Terminal,
) -> None:
    terminal.start("fgrep read notes/many.txt")
    assert terminal.wait_for(PAGER_WAITS)[0] == "  1  line 0 of plenty"
    terminal.press("q")
    assert terminal.finish().status == 0


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        ("--plain", ["shop/cart.py:8: class Cart:"]),
        ("", ["> shop/cart.py:8:7:class Cart:", "8 class Cart:"]),
    ],
    ids=["plain", "fzf"],
)
def test_picking_finds_while_one_types_and_prints_the_place(
    terminal: Terminal, shop: Path, option: str, wanted: list[str]
) -> None:
    if not option and not shutil.which("fzf"):
        pytest.skip("fzf is not installed")
    terminal.start(f"fgrep pick --print {option} > ../picked")
    terminal.wait_for("text>")
    terminal.press("Cart")
    for text in wanted:
        terminal.wait_for(text)
    terminal.press("\r")
    assert terminal.finish().status == 0
    assert (shop.parent / "picked").read_text() == "shop/cart.py:8:7\n"


# The editor as people name it, the text that the cursor stands on, and the keys that leave it.
EDITORS = (
    ("vi", "class Cart:", ":q!\r"),
    ("vim -u NONE -i NONE", "Cart:", ":q!\r"),
    ("nvim -u NONE -i NONE", "Cart:", ":q!\r"),
    ("emacs -nw -Q", "Cart:", "\x18\x03"),
    ("nano --ignorercfiles", "Cart:", "\x18"),
    ("kak -n", "Cart:", ":q!\r"),
    ("micro", "Cart:", "\x11"),
    ("hx", "Cart:", ":q!\r"),
)


@pytest.mark.parametrize(("editor", "text", "leave"), EDITORS)
def test_what_is_picked_is_opened_in_the_editor_at_its_place(
    terminal: Terminal, editor: str, text: str, leave: str
) -> None:
    if shutil.which(editor.split(maxsplit=1)[0]) is None:
        pytest.skip(f"{editor.split(maxsplit=1)[0]} is not installed")
    terminal.start(f"EDITOR='{editor}' fgrep pick --plain Cart:")
    terminal.wait_for("shop/cart.py:8: class Cart:")
    terminal.press("\r")
    terminal.wait_for_cursor(text)
    terminal.press(leave)
    assert terminal.finish().status == 0


@pytest.mark.parametrize(
    ("setting", "status", "said"),
    [
        ("VISUAL=false EDITOR=true", 1, ""),
        ("VISUAL= EDITOR='sh -c \"exit 7\"'", 7, ""),
        ("EDITOR='\"../my editor\" -n'", 0, "-n +8 ./shop/cart.py"),
        ("EDITOR='../my editor'", 0, "+8 ./shop/cart.py"),
        ("EDITOR=nowhere", 2, "EDITOR names an editor that is not there: nowhere"),
        ('EDITOR="\'vi"', 2, "EDITOR has a quote that is not closed: 'vi"),
        ("EDITOR=", 0, "+8 ./shop/cart.py"),
    ],
)
def test_an_editor_has_arguments_and_blanks_is_missing_or_fails(
    terminal: Terminal, shop: Path, setting: str, status: int, said: str
) -> None:
    fake = shop.parent / "my editor"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$*"\n')
    fake.chmod(0o755)
    usual = shop.parent / "vi"
    if not usual.exists():
        usual.symlink_to(fake.name)
    path = f"PATH={shop.parent}:$PATH"
    terminal.start(f"{setting} {path} fgrep pick --plain Cart:")
    terminal.wait_for("shop/cart.py:8: class Cart:")
    terminal.press("\r")
    check(terminal.finish(), status, [f"~{said}"], ["Traceback", "Errno"])


def test_an_interrupt_while_indexing_says_that_it_goes_on(
    terminal: Terminal, shop: Path
) -> None:
    large = shop.parent / "large"
    large.mkdir()
    for number in range(400):
        functions = [
            f"def function_{number}_{at}():\n    return {at}\n" for at in range(40)
        ]
        (large / f"module_{number}.py").write_text("\n\n".join(functions))
    terminal.start("fgrep index ../large")
    terminal.wait_for("of all")
    terminal.press("\x03")
    check(terminal.finish(), 130, ["~indexing goes on in the background"], [])
    check(terminal.type("fgrep query -c function_7_3 -p large"), 0, [], [])
    check(terminal.type("fgrep projects remove large"), 0, ["~removed"], [])


def test_a_file_whose_name_is_no_text_is_picked_as_it_is_called(
    terminal: Terminal, shop: Path
) -> None:
    (shop / os.fsdecode(b"shop/caf\xe9.py")).write_text("ODDLY = 1\n")
    terminal.start("fgrep pick --plain --print ODDLY > ../picked")
    terminal.wait_for("ODDLY = 1")
    terminal.press("\r")
    assert terminal.finish().status == 0
    assert (shop.parent / "picked").read_bytes() == b"shop/caf\xe9.py:1:1\n"
    (shop / os.fsdecode(b"shop/caf\xe9.py")).unlink()


def test_folders_cannot_write_on_the_terminal(terminal: Terminal, shop: Path) -> None:
    hostile = shop.parent / "e\x1b[31mvil"
    hostile.mkdir()
    subprocess.run(["git", "init", "-q", str(hostile)], check=True)
    terminal.type("cd ../e*vil")
    for command in (
        "fgrep index",
        "fgrep projects list",
        "fgrep daemon status",
        "fgrep store list",
        "fgrep projects remove .",
    ):
        shown = terminal.type(command)
        check(shown, 0, ["~e\\x1b[31mvil"], [])
        assert shown.colored == []
    terminal.type("cd ../shop")


def test_doctor_offers_to_mend_what_it_can(terminal: Terminal, shop: Path) -> None:
    (shop.parent / "gone" / ".git").mkdir(parents=True)
    assert terminal.type("fgrep projects add ../gone").status == 0
    shutil.rmtree(shop.parent / "gone")
    for answer, wanted in (("n", "~project gone"), ("y", "~removed /")):
        terminal.start("fgrep doctor")
        for question in ("clean? [y/N]: ", "gone? [y/N]: "):
            terminal.wait_for(question)
            terminal.press(f"{answer}\n")
        check(terminal.finish(), 0, [wanted], [])
    check(terminal.type("fgrep doctor"), 0, [], ["gone", "Run"])


def test_top_ends_with_an_interrupt_and_leaves_the_line(terminal: Terminal) -> None:
    terminal.start("fgrep top")
    terminal.wait_for("stage")
    terminal.press("\x03")
    assert terminal.finish().status == 0


def test_a_stopped_daemon_is_started_by_the_next_question(terminal: Terminal) -> None:
    assert terminal.type("fgrep daemon stop").status == 0
    check(terminal.type("fgrep daemon status"), 1, ["not running"], [])
    check(terminal.type("fgrep query TODO shop"), 0, TODO_IN_SHOP, [])
