#!/bin/sh
# Makes the encrypted files here, with sops 3.13.3 and the keys in gitsource/sops/testdata.
set -eu
cd "$(dirname "$0")"
keys=../../../gitsource/sops/testdata
seal() { # file, then the recipient
	sops --config /dev/null encrypt --age "$2" --encrypted-regex '^(data|stringData)$' --filename-override x.yaml >"$1" <<END
apiVersion: metal.ironcore.dev/v1alpha1
kind: BMCSecret
metadata:
  name: bmc1
stringData:
  username: admin
  password: correct-horse-battery
END
}
seal bmc1.yaml "$(age-keygen -y $keys/keys.txt)"
seal bmc1-stranger.yaml "$(age-keygen -y $keys/other.txt)"
