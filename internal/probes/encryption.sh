# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Says what is in the configuration FILE of encryption, with its keys, and changes nothing.
ROOT=${ROOT:-}
LC_ALL=C
export LC_ALL

printf 'user=%s\n' "$(id -u)"
if [ -f "$ROOT$FILE" ] && [ "$(wc -c <"$ROOT$FILE")" -le 65536 ]; then
  printf 'encryption=%s\n' "$(base64 <"$ROOT$FILE" | tr -d '\n')"
fi
printf 'end=1\n'
