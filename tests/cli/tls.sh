#!/bin/bash
# SPDX-License-Identifier: MIT
# tls.sh - connections that are encrypted and whose server is who it says: with a CA made
# here, on servers of its own. Runs beside others.
. "$(dirname "$0")/lib/cli.sh"
if ! command -v openssl > /dev/null; then
    echo 'SKIP: no openssl, which makes the certificates'
    exit 77
fi
. "$(dirname "$0")/lib/servers.sh"

# ca NAME: a certificate authority of its own
ca()
{
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
        -subj "/CN=dblock test $1" -keyout "$folder/$1.key" -out "$folder/$1.crt" 2> /dev/null
}

# certificate NAME CA SUBJECT: NAME.crt and NAME.key, for what is called DNS:... or IP:...
certificate()
{
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=${3#*:}" \
        -keyout "$folder/$1.key" -out "$folder/$1.csr" 2> /dev/null &&
        openssl x509 -req -in "$folder/$1.csr" -CA "$folder/$2.crt" -CAkey "$folder/$2.key" \
            -CAcreateserial -days 30 -extfile <(echo "subjectAltName=$3") \
            -out "$folder/$1.crt" 2> /dev/null
}

# serve SERVER CERTIFICATE OPTION...: starts it again with the certificate, whose files are
# put where only its user reads them
serve()
{
    local place server=$1 certificate=$2
    shift 2
    place=$(servers_folder)/$server/tls
    mkdir -p "$place"
    cp "$folder/$certificate.crt" "$folder/$certificate.key" "$place/"
    chown -R --reference="$(servers_folder)/$server/data" "$place"
    chmod 600 "$place/$certificate.key"
    services restart "$server" "${@/TLS/$place/$certificate}"
}

runs()
{
    local name=$1
    shift
    DBLOCK_URL=$1 exits 0 "$name" "$DBLOCK" run -n "$name_on_server" -- true
}

# refused NAME URL PATTERN: no lock is had, and it is said why; no secret in it
refused()
{
    DBLOCK_URL=$2 exits 77 "$1" "$DBLOCK" run -n "$name_on_server" -- touch "$folder/ran"
    like "$err" "$3" "$1: is said"
    unlike "$err" "$password" "$1: no password"
    check "$1: nothing was run" test ! -e "$folder/ran"
    rm -f "$folder/ran"
}

ca ca
ca stranger
certificate good ca DNS:localhost
certificate address ca IP:127.0.0.1
certificate elsewhere ca DNS:db.example
certificate forged stranger DNS:localhost
certificate forged_address stranger IP:127.0.0.1
name_on_server=$name

# ---------------------------------------------------------------------- PostgreSQL

on_pgsql()
{
    local url option="sslrootcert=$folder/ca.crt"
    start_servers pgsql
    url=$(url_of DBLOCK_TEST_PGSQL_TCP)
    local_url=${url/127.0.0.1/localhost}

    "$DBLOCK" init -q -d "$url"
    refused 'PostgreSQL without TLS' "$url?sslmode=require" 'does not support SSL'
    serve pgsql good -c ssl=on -c ssl_cert_file=TLS.crt -c ssl_key_file=TLS.key
    runs 'PostgreSQL: verify-full' "$local_url?sslmode=verify-full&$option"
    runs 'PostgreSQL: verify-ca, by another name' "$url?sslmode=verify-ca&$option"
    refused 'PostgreSQL: another host name' "$url?sslmode=verify-full&$option" \
        'does not match host name "127.0.0.1"'
    refused 'PostgreSQL: an unknown CA' \
        "$local_url?sslmode=verify-full&sslrootcert=$folder/stranger.crt" 'certificate verify failed'
    refused 'PostgreSQL: no file of a CA' \
        "$local_url?sslmode=verify-full&sslrootcert=$folder/none.crt" 'root certificate file'
    serve pgsql forged -c ssl=on -c ssl_cert_file=TLS.crt -c ssl_key_file=TLS.key
    refused 'PostgreSQL: a forged certificate' "$local_url?sslmode=verify-full&$option" \
        'certificate verify failed'
    runs 'PostgreSQL: only encrypted' "$local_url?sslmode=require"
    stop_servers
}

# ------------------------------------------------------------------------- MariaDB

on_mariadb()
{
    local url option="ssl-ca=$folder/ca.crt"
    start_servers mariadb
    url=$(url_of DBLOCK_TEST_MYSQL)

    "$DBLOCK" init -q -d "$url"
    refused 'MariaDB without TLS' "$url?ssl-mode=REQUIRED" 'requires TLS, and the server has none'
    serve mariadb address --ssl-cert=TLS.crt --ssl-key=TLS.key
    runs 'MariaDB: VERIFY_IDENTITY' "$url?ssl-mode=VERIFY_IDENTITY&$option"
    runs 'MariaDB: VERIFY_CA' "$url?ssl-mode=VERIFY_CA&$option"
    refused 'MariaDB: an unknown CA' \
        "$url?ssl-mode=VERIFY_IDENTITY&ssl-ca=$folder/stranger.crt" 'certificate'
    refused 'MariaDB: no file of a CA' \
        "$url?ssl-mode=VERIFY_IDENTITY&ssl-ca=$folder/none.crt" 'none.crt|certificate|SSL'
    serve mariadb elsewhere --ssl-cert=TLS.crt --ssl-key=TLS.key
    refused 'MariaDB: another host name' "$url?ssl-mode=VERIFY_IDENTITY&$option" \
        'certificate|Certificate'
    serve mariadb forged_address --ssl-cert=TLS.crt --ssl-key=TLS.key
    refused 'MariaDB: a forged certificate' "$url?ssl-mode=VERIFY_IDENTITY&$option" 'certificate'
    runs 'MariaDB: only encrypted' "$url?ssl-mode=REQUIRED"
    stop_servers
}

has_driver postgresql && on_pgsql
has_driver mysql && on_mariadb
finish
