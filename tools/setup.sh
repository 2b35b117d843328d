#!/bin/bash
# Installs what building and testing need, and nothing that is there already:
#   1. the Debian packages of tools/packages.txt (needs root where one is missing),
#   2. the Python packages of tools/requirements.txt, in the folder .venv of this project.
# Usage: tools/setup.sh [FOLDER REQUIREMENTS]   (default: .venv tools/requirements.txt)
# PYTHON chooses the interpreter, 3.11 or newer (default: python3).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment=${1:-.venv}
requirements=${2:-tools/requirements.txt}

fail() {
  echo "setup: $*" >&2
  exit 1
}

missing_packages() {
  local wanted installed
  wanted=$(grep -v '^#' tools/packages.txt | sort)
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' | sed -n 's/^ii  *//p' | sort -u)
  comm -23 <(echo "$wanted") <(echo "$installed")
}

install_packages() {
  command -v apt-get > /dev/null || fail "expected Debian 12 or a relative of it, but there is no apt-get." \
    "Install the counterparts of tools/packages.txt by hand, then use cmake --preset release."
  local missing
  missing=$(missing_packages | tr '\n' ' ')
  [ -n "${missing// /}" ] || return 0
  [ "$(id -u)" = 0 ] || fail "these packages are missing, and only root can install them. Run as root:" \
    "apt-get install $missing"
  echo "setup: installing $missing"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  # shellcheck disable=SC2086 # a list of words
  apt-get install -qq -y --no-install-recommends $missing > /dev/null
}

# The environment is made again when its interpreter or its list of packages has changed.
install_environment() {
  local python=${PYTHON:-python3} stamp=$environment/installed state
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "expected Python 3.11 or newer, got $("$python" --version 2>&1); PYTHON=... chooses another one"
  state=$("$python" -c 'import sys; print(sys.version, sys.base_prefix)' && cat "$requirements")
  if [ -x "$environment/bin/python" ] && [ "$state" = "$(cat "$stamp" 2> /dev/null)" ]; then return 0; fi
  echo "setup: installing $requirements in $environment"
  "$python" -m venv --clear "$environment"
  "$environment/bin/python" -m pip install -q --disable-pip-version-check -r "$requirements"
  echo "$state" > "$stamp"
}

install_packages
install_environment
