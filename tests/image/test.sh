#!/bin/bash
# The last stage of deploy/Dockerfile without Docker: its instructions, read from the file, are carried out in a fresh
# Debian in a folder, and what the image starts by itself (the doctor) must find all but a GPU and its driver.
# Not covered: the first stage, a build from a clean checkout, and NVIDIA's driver.
# Usage: test.sh PROGRAM, which must run on the Debian that the file names. Needs root and a Debian mirror; installs
# debootstrap on Debian and Ubuntu where it is missing.
set -euo pipefail
program=$(realpath "$1")
file=$(cd "$(dirname "$0")/../../deploy" && pwd)/Dockerfile
fail() { echo "test.sh: $*" >&2 && exit 1; }

[ "$(id -u)" = 0 ] || fail "a Debian in a folder can be made by root only"
if ! command -v debootstrap >/dev/null; then
  command -v apt-get >/dev/null || fail "please install debootstrap"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap
fi

work=$(mktemp -d)
# Not into /proc and /sys, which a killed debootstrap leaves mounted.
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
# Without comments, one line an instruction, the last stage alone.
sed '/^#/d' "$file" | sed -e ':join' -e '/\\$/{N;s/\\\n//;b join}' | tac | sed '/^FROM /q' | tac >"$work/stage"

environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
user=0:0
in_image() { chroot --userspec="$user" "$root" /usr/bin/env -i "${environment[@]}" "$@"; }
# ["a", "b"], one word a line.
words() { sed -e 's/^\["//' -e 's/"\]$//' -e 's/", *"/\n/g' <<<"$1"; }
while read -r instruction rest; do
  echo "test.sh: $instruction $rest"
  case $instruction in
    FROM)
      [[ $rest =~ ^debian:([a-z]+)-slim$ ]] || fail "no slim Debian"
      debootstrap --variant=minbase "${BASH_REMATCH[1]}" "$root" http://deb.debian.org/debian >"$work/log" 2>&1 \
        || fail "debootstrap: $(tail -n 5 "$work/log")"
      ;;
    RUN) in_image /bin/sh -c "$rest" >"$work/log" 2>&1 </dev/null || fail "$(tail -n 5 "$work/log")" ;;
    ENV) read -ra pairs <<<"$rest" && environment+=("${pairs[@]}") ;;
    COPY)
      [[ $rest =~ ^--from=build\ /src/target/release/leakybins\ (/[^ ]+)$ ]] || fail "what is copied is not the program"
      cp "$program" "$root${BASH_REMATCH[1]}"
      ;;
    USER) user=$rest ;;
    STOPSIGNAL) [ "$rest" = SIGTERM ] || fail "the program listens to SIGTERM" ;;
    ENTRYPOINT) mapfile -t entry < <(words "$rest") ;;
    CMD) mapfile -t arguments < <(words "$rest") ;;
    '') ;;
    *) fail "an instruction that this test does not know" ;;
  esac
done <"$work/stage"

libraries=$(in_image /sbin/ldconfig -p)
for library in libvulkan.so.1 libEGL.so.1 libXext.so.6; do
  grep -q "$library" <<<"$libraries" || fail "the image has no $library"
done
code=0
in_image "${entry[@]}" "${arguments[@]}" >"$work/doctor" || code=$?
cat "$work/doctor"
[ "$code" = 4 ] || fail "without a GPU the doctor ends with exit code $code, not 4"
for line in 'ok    Vulkan loader ' 'ok    NVIDIA container ' 'FAIL  device nodes ' 'ok    CPU self-check '; do
  grep -q "^$line" "$work/doctor" || fail "the doctor does not say '$line'"
done
echo "test.sh: the image holds what the program needs; only a GPU and its driver are missing"
