# Copyright The Strata Authors.
# SPDX-License-Identifier: Apache-2.0

# Holds the lock of a host for as long as somebody says that he is there: the first line of
# the input is who that is, and each byte after it that he still is, until an e. The lock
# falls when the input ends, or when nothing comes for 30 seconds; who has not ended it
# stays named.
umask 077
mkdir -p /var/lib/strata || exit 1
exec 9>>/var/lib/strata/lock || exit 1
if ! flock -n 9; then
  printf "held %s\n" "$(head -c 500 /var/lib/strata/holder | tr -cd "[:print:]")"
  exit 75
fi
read -r who || exit 1
# A holder that is still named has not let go by itself: it has ended, or is cut off.
left=$(head -c 500 /var/lib/strata/holder 2>/dev/null | tr -cd "[:print:]")
printf "%s\n" "$who" >/var/lib/strata/holder
printf "locked %s\n" "$left"
while byte=$(timeout 30 head -c 1) && [ -n "$byte" ]; do
  if [ "$byte" = e ]; then
    rm -f /var/lib/strata/holder
    exit 0
  fi
done
