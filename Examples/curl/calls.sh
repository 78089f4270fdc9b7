#!/bin/sh
# Acts on calls of a gateway by its admin API (docs/reference/admin-api.yaml), with curl.
#
#   calls.sh list
#   calls.sh call alice +4930123456        alice's phones ring; when she answers, the number is called
#   calls.sh call alice +4930123456 number the number is called at once; who answers hears alice's phones ring
#   calls.sh hold CALL true|false
#   calls.sh mute CALL true|false
#   calls.sh digits CALL '12#'
#   calls.sh play CALL notice.wav          of admin.play_folder; play CALL off stops it
#   calls.sh transfer CALL +4930123457
#   calls.sh hangup CALL [busy|declined|…]
#
# ADMIN: where it is, http://127.0.0.1:7060. TOKEN_FILE: the file with a token of the scopes read and calls, if it wants one.
# Prints the JSON of the answer; ends with 22 if that is a refusal.
set -eu
: "${ADMIN:=http://127.0.0.1:7060}" "${TOKEN_FILE:=}"

# method, path, body. A key for each request: curl may repeat it, and nothing is done twice.
ask() {
  key=$(cat /proc/sys/kernel/random/uuid)
  {
    echo 'silent'
    echo 'show-error'
    echo 'fail-with-body'
    echo 'max-time = 10'
    echo 'retry = 3'
    echo "header = \"Idempotency-Key: $key\""
    # in a file of curl's, not among its arguments, where other users of the machine see it
    if [ -n "$TOKEN_FILE" ]; then echo "header = \"Authorization: Bearer $(head -n 1 "$TOKEN_FILE")\""; fi
  } | curl --config - --request "$1" ${3:+--data "$3"} "$ADMIN$2"
}

# What stands in JSON and paths as it is.
plain() {
  case $1 in
    '' | *[!A-Za-z0-9+*#._@-]*) echo "calls.sh: '$1' is no name, number or id" >&2; exit 2 ;;
  esac
}

for word in "$@"; do plain "$word"; done
case ${1-}/$# in
  list/1) ask GET /v1/calls ;;
  call/3) ask POST /v1/calls "{\"user\":\"$2\",\"to\":\"$3\"}" ;;
  call/4) ask POST /v1/calls "{\"user\":\"$2\",\"to\":\"$3\",\"first\":\"$4\"}" ;;
  hold/3 | mute/3) ask POST "/v1/calls/$2/$1" "{\"on\":$3}" ;;
  digits/3) ask POST "/v1/calls/$2/digits" "{\"digits\":\"$3\"}" ;;
  play/3) if [ "$3" = off ]; then ask POST "/v1/calls/$2/play" '{"on":false}'; exit; fi
    ask POST "/v1/calls/$2/play" "{\"file\":\"$3\"}" ;;
  transfer/3) ask POST "/v1/calls/$2/transfer" "{\"to\":\"$3\"}" ;;
  hangup/2) ask POST "/v1/calls/$2/hangup" ;;
  hangup/3) ask POST "/v1/calls/$2/hangup" "{\"reason\":\"$3\"}" ;;
  *) sed -n '4,12s/^#//p' "$0" >&2; exit 2 ;;
esac
