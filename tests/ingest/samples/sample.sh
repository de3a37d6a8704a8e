#!/bin/bash
# Builds things.
source ./lib/common.sh
. "$HOME/env"
LIMIT=10
export PATH_X="a:$LIMIT"
readonly VERSION=1.0
declare -a items=(a b)
alias ll='ls -l'

# Prints usage.
usage() {
  local name="$1"
  echo "usage $LIMIT $(basename "$0")"
}

function build_all {
  usage "x"
  make-it all
}

build_all "$@"
