#!/bin/sh
# Run by an agent's host before each shell command: guard.sh HOST, with the host's payload on standard input.
# Only a payload that has the name of a search program in it is worth the start of an interpreter. Whatever goes wrong,
# nothing is printed and the command runs as it was typed.
read_all() {
    payload=
    while IFS= read -r line; do payload=$payload$line; done
    payload=$payload$line
}
read_all
case $payload in
    *grep*|*rg\ *|*find\ *)
        if command -v flashgrep >/dev/null 2>&1; then
            printf '%s' "$payload" | flashgrep hook "$@" 2>/dev/null
            exit 0
        fi
        ;;
esac
if [ "$1" = cursor ]; then echo '{}'; fi
exit 0
