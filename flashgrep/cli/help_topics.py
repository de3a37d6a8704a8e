"""What ``fgrep help TOPIC`` says: a page for each subject that concerns several commands."""

TOPICS = {
    "patterns": """\
What a pattern means to fgrep query:

  fgrep query TEXT            the text itself. If no line has it and it is a
                              regular expression, that; stderr says so.
  fgrep query -e A -e B       regular expressions in ripgrep's syntax; a line
                              with any of them (-E: the same for one)
  fgrep query -F TEXT         the text itself, always
  fgrep query -P 'a(?=b)'     with look-around and back-references
  fgrep query -G 'a\\|b'       grep's basic expressions
  -i -s -S                    letter case: ignored, matters (the default),
                              matters if the pattern has a capital
  -w -x -v                    whole words, whole lines, lines without a match

Status: 0 found, 1 not found, 2 error.
""",
    "ranking": """\
In which order answers come:

  Into a pipe     fgrep query prints every line, by path and line.
  On a terminal   it prints one page: definitions and sources first, then
                  tests, documents, generated files. --all prints everything.
  symbol          definitions, types before methods; then declarations,
                  implementations, imports, calls, other uses.
  search-code     by meaning and by words, best first; until a new project
                  has vectors by words alone, and stderr says so.
""",
    "settings": """\
Where settings come from; the later wins:

  ~/.config/flashgrep/config.toml     yours
  PROJECT/.flashgrep/config.toml      the project's, which may only be stricter
  FLASHGREP_SECTION_NAME=…            the environment

  fgrep config show                   all of them, and where each is from
  FLASHGREP_PAGER, PAGER              the pager; empty: none
  NO_COLOR                            no colours
""",
    "wires": """\
How programs ask, all with the same answers:

  fgrep mcp             the Model Context Protocol over stdin and stdout
  fgrep rpc [PATH]      JSON-RPC 2.0 over stdin and stdout, one message a line
  127.0.0.1:7777        the same over TCP; the port: fgrep daemon status
  fgrep serve           HTTP: MCP at /mcp, JSON-RPC at /rpc, the page at /
  fgrep lsp             the Language Server Protocol, for editors
  COMMAND --json        the raw answer, for jq
""",
    "coming-from-rg": """\
What you type in rg, ag, git grep, ctags and fzf, and here:

  rg PATTERN                 fgrep query -e PATTERN (without -e: the text)
  rg -n -i -w -F -l -c -o    the same letters; files without a match are -L
  rg -t py -g 'src/**' -C2   the same
  rg PATTERN DIR             fgrep query -e PATTERN DIR
  rg -r NEW                  fgrep query --replace NEW (-r is grep's)
  rg --files                 fgrep files
  rg | fzf                   fgrep pick; file names: fgrep pick -k files
  ctags, then a jump         fgrep symbol NAME, fgrep definition NAME
  git grep PATTERN v1.2      fgrep query PATTERN --rev v1.2
  any other flag of rg       fgrep rg …, which is ripgrep itself

Without a PATH the whole project is searched, from any of its folders. Lines are
numbered, -N leaves the numbers out.
""",
}
