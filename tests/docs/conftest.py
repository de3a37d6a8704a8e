"""One daemon for all pages, and a home folder with the project that their examples are about: ``~/src/linux``."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand, own_daemon
from tests.support.git import commit, git

FILES = {
    "kernel/sched/core.c": "int schedule;\n",
    "src/lock.rs": "fn try_lock(a: u8) {}\n",
    "src/main.py": '''"""Reads, and removes stale sockets."""


class Parser:
    lines = 0

    def feed(self):
        self.lines += 1


# Called below.
def foo(first, second):
    return first + second


def main():
    Parser().feed()
    foo(1, 2)
''',
}
PLACES: dict[str, dict[int, str]] = {
    "mm/page.c": {1: "/* TODO */\nint spin_lock(void)\n{\n\treturn 0;\n}\n"},
    "include/linux/slab.h": {
        466: "void kmem_cache_free_bulk(struct kmem_cache *s, size_t size, void **p);\n",
        473: "static void kfree_bulk(size_t size, void **p)\n{\n\tkmem_cache_free_bulk(NULL, size, p);\n}\n",
    },
    "tools/include/linux/slab.h": {
        44: "void kmem_cache_free_bulk(struct kmem_cache *cachep, size_t size, void **list);\n",
    },
    "include/linux/oom.h": {
        100: "long oom_badness(struct task_struct *p,\n\t\tunsigned long totalpages);\n",
    },
    "mm/oom_kill.c": {
        203: "long oom_badness(struct task_struct *p, unsigned long totalpages)\n{\n\treturn totalpages;\n}\n",
        310: "static int oom_evaluate_task(struct task_struct *task, void *arg)\n{\n\treturn oom_badness(task, 1);\n}\n",
        926: "static void __oom_kill_process(struct task_struct *victim)\n"
        # Long enough to be a chunk of its own.
        "{\n"
        + "\t/* Memory is exhausted: kill the process that was decided on. */\n" * 60
        + "\tdo_send_sig_info(SIGKILL, victim);\n}\n",
    },
    "fs/proc/base.c": {
        581: "static int proc_oom_score(struct seq_file *m, struct pid_namespace *ns,\n"
        "\t\t\t  struct pid *pid, struct task_struct *task)\n"
        "{\n\tunsigned long totalpages = 1;\n\tlong badness;\n\n\tseq_lock(m);\n"
        "\tbadness = oom_badness(task, totalpages);\n\treturn 0;\n}\n",
    },
}
"""Texts that begin at these lines of a file, where the pages name them."""


def fill_file(texts: dict[int, str]) -> str:
    """Return a file with these texts at their lines, and a small definition in each other line."""
    lines: list[str] = []
    numbers = count()
    for first, text in texts.items():
        while len(lines) < first - 1:
            lines.append(f"static int step_{next(numbers)};\n")
        lines += text.splitlines(keepends=True)
    return "".join(lines)


@pytest.fixture(scope="package")
def daemon() -> Iterator[DaemonAtHand]:
    """Return a running daemon, shared by the tests of all pages."""
    with own_daemon() as at_hand:
        at_hand.start()
        yield at_hand


@pytest.fixture(scope="package")
def linux(daemon: DaemonAtHand) -> Path:
    """Return ``~/src/linux``, an indexed clone with a tag, a branch and a change."""
    root = Path(daemon.environ["HOME"], "src", "linux")
    root.mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    files = FILES | {path: fill_file(texts) for path, texts in PLACES.items()}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    commit(root)
    git(root, "tag", "v1.2")
    git(root, "checkout", "-q", "-b", "work")
    (root / "kernel/sched/core.c").write_text("int schedule(void) { return 1; }\n")
    commit(root)
    assert daemon.run("index", cwd=root).returncode == 0
    return root
