"""Which searches of a shell line are run by flashgrep, and how a host is told."""

import json
import random
import subprocess
import time
from pathlib import Path

import pytest

from flashgrep.parts.hook.payloads import format_answer, read_payload
from flashgrep.parts.hook.rewriting import rewrite
from flashgrep.parts.hook.shell import read_line
from flashgrep.parts.hosts.hooks import make_guard

REWRITTEN = [
    ("grep -rn foo .", "F hook grep -rn foo ."),
    ("grep -Rn foo .", "F hook grep -Rn foo ."),
    ("cd a && grep -rn foo . | head -3", "cd a && F hook grep -rn foo . | head -3"),
    ("grep -r --include=*.{c,h} 'a b' x", "F hook grep -r --include=*.{c,h} 'a b' x"),
    ("x=$(grep -rl foo .); echo $x", "x=$(F hook grep -rl foo .); echo $x"),
    ("LC_ALL=C grep -rn foo", "LC_ALL=C F hook grep -rn foo"),
    ("timeout 9 grep -rn foo .", "timeout 9 F hook grep -rn foo ."),
    ("timeout -k 1 --signal=INT 9s rg x", "timeout -k 1 --signal=INT 9s F hook rg x"),
    ("env rg foo", "env F hook rg foo"),
    (
        "env LC_ALL=C X='a b' grep -rn foo .",
        "env LC_ALL=C X='a b' F hook grep -rn foo .",
    ),
    ("X=1 Y= rg foo", "X=1 Y= F hook rg foo"),
    ("RIPGREP_CONFIG_PATH=rc rg foo", "RIPGREP_CONFIG_PATH=rc F hook rg foo"),
    ("time -p git grep foo", "time -p F hook git grep foo"),
    ("nice -n 5 grep -rn foo .", "nice -n 5 F hook grep -rn foo ."),
    ("nice -19 nohup rg foo", "nice -19 nohup F hook rg foo"),
    ("ionice -c3 nice -n19 rg foo", "ionice -c3 nice -n19 F hook rg foo"),
    ("stdbuf -oL grep -r x . | head", "stdbuf -oL F hook grep -r x . | head"),
    ("command grep -rn foo .", "command F hook grep -rn foo ."),
    ("(exec grep -rn foo .)", "(exec F hook grep -rn foo .)"),
    (r"\grep -rn foo . | \head", r"F hook \grep -rn foo . | \head"),
    (r"ls | xargs \grep -n foo", r"ls | xargs F hook \grep -n foo"),
    ("/usr/bin/grep -rn foo .", "F hook /usr/bin/grep -rn foo ."),
    ("time /bin/find -type f -name x", "time F hook /bin/find -type f -name x"),
    ("! grep -rq é . || rg é", "! F hook grep -rq é . || F hook rg é"),
    ("rg -n foo src", "F hook rg -n foo src"),
    ("rg foo 2>/dev/null", "F rg foo 2>/dev/null"),
    ("rg foo 2>&1 | wc -l", "F rg foo 2>&1 | wc -l"),
    ("grep -rn foo . 2>&-", "F hook grep -rn foo . 2>&-"),
    ("grep -rn foo . >&-", "F hook grep -rn foo . >&-"),
    ("if grep -rq a .; then ls; fi", "if F hook grep -rq a .; then ls; fi"),
    ('grep -rn "$NAME" .', 'F hook grep -rn "$NAME" .'),
    ("find . -type f -name '*.py'", "F hook find . -type f -name '*.py'"),
    ("git ls-files | xargs grep -n foo", "git ls-files | xargs F hook grep -n foo"),
    ("ls | xargs -0 grep -l 'a b'", "ls | xargs -0 F hook grep -l 'a b'"),
    (
        "find . -name x -exec grep -l foo {} +",
        "find . -name x -exec F hook grep -l foo {} +",
    ),
    (
        r"find . -type f \( -name '*.a' -o -name b\ c \) \! -empty",
        r"F hook find . -type f \( -name '*.a' -o -name b\ c \) \! -empty",
    ),
    ("git grep -n foo | head", "F hook git grep -n foo | head"),
    ("git --no-pager grep foo -- '*.c'", "F hook git --no-pager grep foo -- '*.c'"),
    ("ls | grep -cE '(a{1,999}){99}'", "ls | F hook grep -cE '(a{1,999}){99}'"),
    ("(cd sub; grep -rn foo)", "(cd sub; F hook grep -rn foo)"),
    (
        "while read x; do cat $x; done < <(rg -l a)",
        "while read x; do cat $x; done < <(F hook rg -l a)",
    ),
    ("wc -l <<< $(grep -rl foo .)", "wc -l <<< $(F hook grep -rl foo .)"),
]
UNCHANGED = [
    "grep foo a.txt",
    "cat a | grep -r foo",
    "grep -r foo < a",
    "ls | rg foo",
    "ls | while read x; do cat $x; done < <(rg foo)",
    "{ rg foo; } < a",
    "rg foo <&-",
    "grep -rv foo .",
    "grep -rc foo .",
    "grep -rL foo .",
    "ag foo",
    "ack foo src",
    "fd -e py",
    "cat a.txt b.txt c.txt",
    "echo 'grep -rn foo .'",
    "cat <<'E'\ngrep -rn foo .\nE",
    "grep() { :; }; grep -rn foo .",
    "grep -rn 'foo .",
    "bash -c 'grep -rn foo .'",
    "find . -name x | xargs -n 1 grep foo",
    "find . -name x | xargs grep -L foo",
    "find . -delete -exec grep foo {} +",
    r"find . -name x -exec grep foo {} \;",
    "find . -name x | xargs rm",
    "rg --pre cat foo",
    "git grep -nv foo",
    "git log --grep foo",
    "git -C sub grep foo",
    "find . -name '*.py'",
    "find . -type f -name x -delete",
    r"find . -type f -exec rm {} \;",
    "$GREP -rn foo .",
    "env -i rg foo",
    "env -C sub rg foo",
    "env X=$X rg foo",
    "env $X rg foo",
    "env",
    "command -v rg",
    "command -p grep -rn foo .",
    "timeout --unknown 3 rg foo",
    "nice $N rg foo",
    "sudo rg foo",
    "PATH=/opt/bin:$PATH grep -rn foo .",
    "env PYTHONPATH=src rg foo",
    "export HOME=/elsewhere; rg foo",
    "XDG_CONFIG_HOME=x rg foo",
    "LD_PRELOAD=./x.so grep -rn foo .",
    "unset HOME && rg foo",
    "/usr/bin/rg foo",
    "./grep -rn foo .",
    "",
]
READING = [
    "grep -rn foo .",
    "cd a && grep -rn foo . | sort | head",
    "rg foo 2>&1",
    "grep -rn foo . 2>&-",
    "LC_ALL=C grep -rn foo .",
    "env LC_ALL=C nice grep -rn foo .",
    r"\grep -rn foo .",
    "grep -rn foo . > /dev/null",
    "ls | xargs grep -n foo",
    "find . -name x -exec grep foo {} +",
    r'rg -n "\bfoo\(" src/*.py a{b,c}',
]
ELSEWHERE = [
    "cat ~/.ssh/id_rsa; grep -r x .",
    "cat /etc/passwd; grep -r x .",
    "cat '/etc/passwd'; grep -r x .",
    r"cat \/etc/passwd; grep -r x .",
    "cat {/etc/passwd,x}; grep -r x .",
    "cd .. && grep -r x .",
    "cd && grep -r x .",
    "cd - && grep -r x .",
    "cd a b; grep -r x .",
    "grep -r x ../other",
    "grep -Rn x .",
    "grep --dereference-recursive x .",
    "grep -rf/etc/passwd .",
    "grep -r --file=/etc/passwd .",
    "grep -r x . < /etc/passwd",
    r"rg foo\(bar ~/src",
    "rg x /workshop",
]
WRITING = [
    "grep -rn foo . >&log1",
    "grep -rn foo . > out.txt",
    "grep -rn foo .; rm -rf build",
    r"grep -rn foo .; \rm -rf build",
    "grep -rn foo . | sort -o a.txt",
    "grep -rn foo . | tee a.txt",
    "grep -rn $(rm x) .",
    "grep -rn foo . &> all",
    "grep -rn foo . | uniq - a.txt",
    "LD_PRELOAD=x.so grep -rn foo .",
    "export X=1; grep -rn foo .",
    "export LC_ALL; grep -rn foo .",
    "LC_ALL=$(rm x) grep -rn foo .",
    "env X=1 rg foo",
    "RIPGREP_CONFIG_PATH=x rg foo",
    "env GIT_PAGER=./x git grep foo",
    "nice rm x; grep -rn foo .",
    r"env \rm x; grep -rn foo .",
    "grep -rn foo . && $RUN",
    "grep -rn foo . <(rm x)",
    "timeout 5 rm x; grep -r foo .",
    "grep -rl foo . | xargs rm",
    "find . -delete -exec grep foo {} +",
    "find . -type f -name x -delete",
    r"grep -r x .; find . -type f -exec rm {} \;",
    "rg foo; rg --pre ./x foo",
    "find . -name x -exec grep -q foo {} + -exec rm {} +",
    r"find . -name x -exec grep -q foo {} \; -exec rm {} +",
    r"find . -name x -exec grep -q foo \; -exec rm {} +",
    "find . -name x -exec grep -q foo ';' -exec rm {} +",
    "find . -name x -exec grep -q foo {} + -ok rm '{}' +",
    "find $'-delete' -type f",
    "find {-delete,-print} -type f",
    "find * -type f",
    r"rg foo \--pre=./x",
    "rg foo $'--pre=./x'",
    "rg foo {--pre=./x,.}",
    "rg foo ''{--pre=./x,.}",
    "rg foo --pre=./x*",
    "rg foo *",
    r'rg foo "--pre=./\x"',
    'rg foo "\\\n--pre=./x"',
    "git grep -e foo $'-Ox'",
    "grep -rn foo . > sub/dev/null",
    "grep -rn foo . 2> ./dev/null",
]


@pytest.mark.parametrize(("line", "expected"), REWRITTEN)
def test_a_recursive_search_is_run_by_flashgrep(line: str, expected: str) -> None:
    assert rewrite(line, "F").text == expected


@pytest.mark.parametrize("line", UNCHANGED)
def test_whatever_is_not_fully_understood_stays_as_it_is(line: str) -> None:
    assert rewrite(line, "F").text == line


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("PATH=x rg foo", "with PATH another program might run"),
        ("rg -n foo --pre cat", "nothing is planned with --pre"),
        ("rg foo -nU .", "nothing is planned with -U"),
        ("rg -Un --pre=x foo .", "nothing is planned with some of its flags"),
        ("grep -rnv foo .", "nothing is planned with -v"),
        ("find . | xargs grep -L foo", "nothing is planned with -L"),
        ("git -C sub grep foo", "nothing is planned with -C"),
        ("git status -s", "it is no git grep"),
        ("find . -type f -name x -maxdepth 2", "nothing is planned with -maxdepth"),
        ("find .", "a test or an action that is not planned"),
        ("env -i rg foo", "a flag that is not known comes before what it runs"),
        ("timeout 9 ag foo", "what it searches is decided by rules of its own"),
        ("fdfind -e py", "it lists a tree sooner than a plan is made"),
        ("grep foo a.txt", "it is not recursive"),
        ("ls | rg foo", "it reads its standard input"),
    ],
)
def test_the_reason_is_told_in_plain_words(line: str, reason: str) -> None:
    verdicts = rewrite(line, "F").verdicts
    assert verdicts[-1].reason.startswith(reason)


def test_a_long_call_is_explained_at_once() -> None:
    started = time.process_time()
    flags = " -abcdefgv" * 5000
    assert rewrite(f"grep{flags} foo", "F").text == f"grep{flags} foo"
    assert time.process_time() - started < 1


@pytest.mark.parametrize("line", READING)
def test_a_line_that_only_reads_needs_no_permission(line: str) -> None:
    assert rewrite(line, "F").only_reads


@pytest.mark.parametrize("line", WRITING)
def test_a_line_that_may_write_is_never_allowed_unasked(line: str) -> None:
    assert not rewrite(line, "F").only_reads


@pytest.mark.parametrize("line", ELSEWHERE)
def test_a_line_that_reads_elsewhere_is_never_allowed_unasked(line: str) -> None:
    assert not rewrite(line, "F", "/work").only_reads


def test_a_path_below_the_folder_is_the_folders() -> None:
    assert rewrite("grep -r x /work/src", "F", "/work").only_reads
    assert rewrite("cd /work/src && grep -r x .", "F", "/work/").only_reads
    assert not rewrite("grep -r x /work/src", "F").only_reads


def test_each_host_is_told_in_its_own_form() -> None:
    arguments = {"command": "grep -r x .", "timeout": 5}
    changed = {**arguments, "command": "new"}
    payload = {"tool_name": "Bash", "tool_input": arguments}
    told = {}
    for host in ("claude-code", "codex", "cursor", "gemini", "qwen", "vibe"):
        call = read_payload(json.dumps(payload), host)
        assert call is not None
        told[host] = json.loads(format_answer(call, "new", only_reads=True))
    output = told["claude-code"]["hookSpecificOutput"]
    assert output["hookEventName"] == "PreToolUse"
    assert output["permissionDecision"] == "allow"
    assert output["updatedInput"] == changed
    assert told["claude-code"] == told["codex"] == told["qwen"]
    assert told["cursor"] == {"permission": "allow", "updated_input": changed}
    assert told["gemini"] == {"hookSpecificOutput": {"tool_input": {"command": "new"}}}
    assert told["vibe"] == {"hook_specific_output": {"tool_input": changed}}
    grok = {"toolName": "run_terminal_cmd", "toolInput": arguments}
    call = read_payload(json.dumps(grok), "")
    assert call is not None
    assert call.host == "grok"
    output = json.loads(format_answer(call, "new", only_reads=True))[
        "hookSpecificOutput"
    ]
    assert output["updatedInput"]["description"]
    assert "permissionDecision" not in output
    assert format_answer(call, "new", only_reads=False) == ""
    copilot = {"toolName": "bash", "toolArgs": json.dumps(arguments)}
    call = read_payload(json.dumps(copilot), "")
    assert call is not None
    answer = json.loads(format_answer(call, "new", only_reads=True))
    assert answer["modifiedArgs"] == changed
    assert answer["permissionDecision"] == "allow"


def test_a_line_that_writes_is_changed_without_a_permission_or_not_at_all() -> None:
    payload = json.dumps({"tool_name": "Bash", "tool_input": {"command": "x"}})
    for host, is_changed in (
        ("claude-code", True),
        ("codex", False),
        ("qwen", False),
        ("vibe", True),
    ):
        call = read_payload(payload, host)
        assert call is not None
        answer = format_answer(call, "new", only_reads=False)
        assert ("new" in answer) is is_changed
        assert "allow" not in answer
    call = read_payload(payload, "cursor")
    assert call is not None
    assert format_answer(call, "new", only_reads=False) == "{}"


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"tool_name": "Read", "tool_input": {"command": "grep -r x"}}',
        '{"tool_name": "Bash", "tool_input": {"command": 3}}',
        '{"tool_name": "Bash", "tool_input": "grep -r x"}',
        '{"toolName": "bash", "toolArgs": "{"}',
    ],
)
def test_payloads_of_another_form_are_left_alone(payload: str) -> None:
    assert read_payload(payload, "") is None


@pytest.mark.parametrize("payload", ['{"tool_name": "Bash"}', "", "not JSON\nat all"])
def test_the_guard_starts_nothing_for_other_commands(
    tmp_path: Path, payload: str
) -> None:
    program = tmp_path / "flashgrep"
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    for host, expected in (("claude-code", ""), ("cursor", "{}\n")):
        done = subprocess.run(
            ["/bin/sh", "-c", make_guard(host)],
            input=payload,
            text=True,
            capture_output=True,
            check=True,
            cwd=tmp_path,
            env={"PATH": str(tmp_path)},
            timeout=20,
        )
        assert (done.stdout, done.stderr) == (expected, "")
    assert not (tmp_path / "started").exists()


def test_the_guard_passes_a_search_on_as_it_came(tmp_path: Path) -> None:
    program = tmp_path / "flashgrep"
    program.write_text('#!/bin/sh\necho "$@"\n/bin/cat\n')
    program.chmod(0o755)
    payload = '{"command": "grep -rn \\"a\\\\nb\\" \\t%s . "}'
    done = subprocess.run(
        ["/bin/sh", "-c", make_guard("codex")],
        input=payload + "\n",
        text=True,
        capture_output=True,
        check=True,
        env={"PATH": str(tmp_path)},
        timeout=20,
    )
    assert done.stdout == f"hook codex\n{payload}"


PARTS = r"a b - / . = ! + \\ \( \$ \| \. é \é \* {}"
QUOTED = ["{}", "{}", '"{}"', "'{}'", 'x"{}"', "-'{}'a"]


def draw_word(rng: random.Random) -> str:
    """Return a random word with escapes and quotes."""
    parts = [*PARTS.split(), r"\ ", "\\\n"]
    text = "".join(rng.choices(parts, k=rng.randrange(1, 5)))
    return rng.choice(QUOTED).replace("{}", text, 1)


def test_words_that_are_known_are_what_a_shell_reads() -> None:
    rng = random.Random(36)
    known = 0
    for _ in range(400):
        words = " ".join(draw_word(rng) for _ in range(3))
        read = read_line(f"echo {words}".encode())
        if read is None or len(read.commands) != 1:
            continue
        script = rf"printf '%s\0' {words}"
        said = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
        expected = said.stdout.decode().split("\0")[:-1]
        ours = read.commands[0].words[1:]
        assert len(ours) == len(expected), words
        for word, typed in zip(ours, expected, strict=True):
            known += word is not None
            assert word in {None, typed}, words
    assert known > 400
