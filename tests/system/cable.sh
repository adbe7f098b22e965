#!/bin/bash
# SPDX-License-Identifier: MIT
# cable.sh - a client in a network of its own, whose cable to the server is cut (tests/cable), on
# servers of its own, as they are restarted. Runs beside others. Starts first.
. "$(dirname "$0")/../cli/lib/cli.sh"
. "$here/tests/cli/lib/servers.sh"
start_servers pgsql mariadb
# shellcheck disable=SC1091 # written by ci/services
. "$folder/services/env"
"$DBLOCK_BUILD/tests/cable/cable_test"
status=$?
clean_up_servers
trap - EXIT
exit "$status"
