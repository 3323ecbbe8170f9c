#!/bin/sh
# Report to Ingot that this machine is up.
url='http://10.0.0.1:10000/r/abcdefghijklmnopqrstuvwxyz/bootstate'
body='{"systemUUID":"38373000-3534-584d-5130-333030434a59","booted":true}'
report() {
	if command -v curl >/dev/null 2>&1; then
		printf 'url = %s\n' "$url" | curl --config - --fail --silent --max-time 30 \
			--header 'Content-Type: application/json' --data "$body"
		return
	fi
	INGOT_URL="$url" INGOT_BODY="$body" python3 -c '
import os, urllib.request as r
r.urlopen(r.Request(os.environ["INGOT_URL"], os.environ["INGOT_BODY"].encode(), {"Content-Type": "application/json"}), timeout=30)'
}
send() {
	tries=60
	until report; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return
		sleep 20
	done
}
(
	send
	left=86400
	until [ -e /run/cloud-init/result.json ]; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || exit
		sleep 1
	done
	body="${body%\}},\"cloudInit\":$(head -c 65536 /run/cloud-init/status.json)}"
	send
) </dev/null >/dev/null 2>&1 &
