# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154 # variables are for the scripts that read this
# servers.sh - servers of a script's own, for what others must not see: fail-over, certificates,
# what stands between. Read after cli.sh. They end with the script.

services()
{
    DBLOCK_TEST_STATE=$folder/services OWNER=$$ IN_MEMORY=1 "$here/ci/services" "$@" \
        > "$folder/services.said" 2>&1 || {
        sed 's/^/# /' "$folder/services.said"
        return 1
    }
}

# start_servers NAME...; 77 where they are not installed
start_servers()
{
    services start "$@" || exit 1
}

stop_servers()
{
    services stop
}

servers_folder()
{
    cat "$folder/services/folder"
}

# url_of VARIABLE: of those that `ci/services env` says
url_of()
{
    (
        # shellcheck disable=SC1091 # written by ci/services
        . "$folder/services/env"
        echo "${!1}"
    )
}

password=never-print-me
clean_up_servers()
{
    [ ! -e "$folder/services/folder" ] || stop_servers
    clean_up
}
trap clean_up_servers EXIT
