#!/bin/sh
# Makes the encrypted files here from those in plain/, with sops 3.13.3 and age 1.3.2
# (go install github.com/getsops/sops/v3/cmd/sops@v3.13.3 filippo.io/age/cmd/age-keygen@v1.3.2).
# The keys are for these tests alone: age-keygen -o keys.txt, age-keygen -o other.txt, age-keygen -pq -o pq.txt.
set -eu
cd "$(dirname "$0")"
ours=$(age-keygen -y keys.txt) other=$(age-keygen -y other.txt) pq=$(age-keygen -y pq.txt)
seal() { # file, then flags
	out=$1 in=$2
	shift 2
	sops --config /dev/null encrypt "$@" "plain/$in" >"$out"
}
data='^(data|stringData)$'
seal bmcsecret.yaml bmcsecret.yaml --age "$ours" --encrypted-regex "$data"
seal secret.json secret.json --age "$ours" --encrypted-regex "$data"
seal several.yaml several.yaml --age "$ours" --encrypted-regex "$data"
seal whole.yaml claim.yaml --age "$ours"
seal whole.json secret.json --age "$ours"
seal wrong.yaml wrong.yaml --age "$ours" --encrypted-regex '^spec|labels$'
seal kinds.yaml kinds.yaml --age "$ours"
seal kinds-clear.yaml kinds.yaml --age "$ours" --encrypted-regex '^none$'
seal suffix.yaml bmcsecret.yaml --age "$ours" --encrypted-suffix Data
seal unencrypted-suffix.yaml bmcsecret.yaml --age "$ours" --unencrypted-suffix etadata
seal unencrypted-regex.yaml several.yaml --age "$ours" --unencrypted-regex '^(apiVersion|kind|metadata|spec)$'
seal two-recipients.yaml bmcsecret.yaml --age "$other,$ours" --encrypted-regex "$data"
seal post-quantum.yaml bmcsecret.yaml --age "$pq" --encrypted-regex "$data"
seal stranger.yaml bmcsecret.yaml --age "$other" --encrypted-regex "$data"
seal trick.yaml bmcsecret.yaml --age "$ours" --unencrypted-regex '^(apiVersion|kind|metadata|stringData)$'
seal half.yaml bmcsecret.yaml --age "$ours" --encrypted-regex '^password$'
# What the command line has no flags for.
by_rule() { # file, then the rule
	printf 'creation_rules:\n- %s\n' "$2" >rule.conf
	sops --config rule.conf encrypt --filename-override x.yaml plain/bmcsecret.yaml >"$1"
	rm rule.conf
}
by_rule groups.yaml "{shamir_threshold: 2, key_groups: [{age: [$ours]}, {age: [$other]}]}"
by_rule comment-regex.yaml "{age: $ours, encrypted_comment_regex: yearly}"
by_rule mac-only.yaml "{age: $ours, encrypted_regex: '$data', mac_only_encrypted: true}"
