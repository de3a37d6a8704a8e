#!/bin/sh
# Installs flashgrep into an environment of its own. VERSION is the feature's option.
set -eu
command -v python3 >/dev/null || {
    echo 'flashgrep needs python3, 3.11 or later: add ghcr.io/devcontainers/features/python' >&2
    exit 1
}
python3 -m venv /opt/flashgrep
/opt/flashgrep/bin/pip install --no-cache-dir "flashgrep==${VERSION:-1.0.0rc1}"
ln -sf /opt/flashgrep/bin/flashgrep /usr/local/bin/flashgrep
