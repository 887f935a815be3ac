#!/usr/bin/env bash
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
NAME=java-jctools GROUP=JctoolsQueues
source "$here/../program.sh"
