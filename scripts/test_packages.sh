#!/usr/bin/env bash
# Makes the Debian packages, asks lintian, and installs them in a fresh Debian 12 of a folder: every program, a training run, a
# server, both kinds of projects that use the library, and a purge that leaves nothing. Then it runs what the Dockerfile runs.
# It needs root, a mirror, and some 20 minutes. usage: scripts/test_packages.sh [BUILD [FOLDER]]
#   BUILD   where the packages are built (build-packages)        FOLDER  for the fresh systems (a temporary one)
# Environment: CUDAARCHS, MIRROR (as of apt's sources), DOCKERFILE=0 leaves the Dockerfile out.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-packages} folder=${2:-$(mktemp -d)}
mirror=${MIRROR:-$(grep -shoP '^(deb |URIs: *)\Khttp\S*/debian/?(?=\s|$)' /etc/apt/sources.list /etc/apt/sources.list.d/* | head -n 1 || true)}
scripts/install-packages.sh
scripts/install-packages.sh lintian debootstrap
say() { echo "== $*"; }

say "packages"
cmake -C packaging/hardened.cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DBERTRAND_TESTS=OFF -DBERTRAND_EXAMPLES=OFF >/dev/null
cmake --build "$build" >/dev/null
(cd "$build" && rm -rf packages && cpack >/dev/null)
(cd "$build/packages" && du -h -- *.deb)
# shellcheck disable=SC2046
scripts/check_hardening.sh $(find "$build/bin" -type f -perm -u+x)
lintian --fail-on error,warning "$build"/packages/*.deb

system=$folder/system
unmount() { for each in "$folder"/*/proc; do ! mountpoint -q "$each" || umount "$each"; done; }
trap unmount EXIT
fresh() {  # FOLDER: a Debian 12 with nothing but apt
  [ -d "$folder/pristine" ] || debootstrap --variant=minbase bookworm "$folder/pristine" "$mirror" >/dev/null
  rm -rf "$1"
  cp -a "$folder/pristine" "$1"
  mount -t proc proc "$1/proc"
  cp /etc/resolv.conf "$1/etc/"
  chroot "$1" apt-get update -qq
}
clean=(env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes)
inside() { chroot "$system" "${clean[@]}" "$@"; }
install() { inside apt-get install -o Dpkg::Use-Pty=0 -y -qq --no-install-recommends "$@" >/dev/null; }
files() { inside find / -xdev -not -path '/proc/*' -not -path '/var/cache/*' -not -path '/var/log/*' -not -path '/var/lib/apt/*' -not -path '/var/lib/dpkg/*' -not -path '/tmp/*' -not -path '/etc/ld.so.cache' | LC_ALL=C sort; }

say "a fresh Debian 12"
fresh "$system"
mkdir "$system/packages"
for package in "$build"/packages/*.deb; do
  name=${package##*/}
  cp "$package" "$system/packages/${name%%_*}.deb"
done
install /packages/bertrand.deb  # and what it depends on, by itself
for program in "$system"/usr/bin/bertrand-*; do inside "/usr/bin/$(basename "$program")" --help >/dev/null; done
inside bertrand --help
inside bertrand-pretrain --version

say "a run and a server"
awk 'BEGIN { split("red fish swims|a bird sings|rain falls from clouds|the sun rises in the east|snow turns to water", s, "|")
  for (i = 1; i <= 400; ++i) { print s[i % 5 + 1] "."; if (i % 8 == 0) print "" } }' >"$system/packages/text"
awk 'BEGIN { print "text\tlabel"; for (i = 0; i < 64; ++i) print (i % 2 ? "red fish swims" : "a bird sings") "\t" (i % 2 ? "fish" : "bird") }' >"$system/packages/rows.tsv"
inside sh -ec 'cd /packages
  bertrand prepare vocab --input text --output vocab.txt --size 100
  bertrand pretrain --input text --vocab-file vocab.txt --config tiny --steps 20 --output base
  bertrand finetune --task custom --train rows.tsv --eval rows.tsv --text-column text --label-column label --model base --epochs 4 --output tuned
  bertrand serve --model tuned --port 8599 >/packages/served 2>&1 &
  server=$!
  for i in $(seq 100); do bertrand serve --check http://127.0.0.1:8599 2>/dev/null && break; sleep 0.1; done
  bertrand serve --check http://127.0.0.1:8599
  kill -TERM $server; wait $server' 2>&1 | tail -n 4

cp -r "$system/packages/tuned" "$folder/"

say "projects that use the library"
install /packages/libbertrand-dev.deb
install g++ cmake make pkg-config  # of these it depends on none
mkdir "$system/packages/consumer"
cp -r tests/consumer/. examples/tiny_bert.cpp examples/page_of_text.h "$system/packages/consumer"
inside sh -ec 'cd /packages/consumer
  cmake -S . -B build -DCOMPONENTS="bert;optim" -DEXAMPLE=tiny_bert.cpp -DHEADERS= >/dev/null
  cmake --build build >/dev/null
  build/consumer
  g++ $(pkg-config --cflags bertrand) tiny_bert.cpp -o by_hand $(pkg-config --libs bertrand)
  ./by_hand' | tail -n 1
if [ -e "$system/packages/bertrand-cuda.deb" ]; then
  install /packages/bertrand-cuda.deb
  inside bertrand-pretrain --version | grep 'modules built'
fi

say "purged"
purge() { inside apt-get purge -o Dpkg::Use-Pty=0 -y -qq 'bertrand*' 'libbertrand*' >/dev/null; }
inside sh -c 'dpkg-query -L bertrand libbertrand-dev' | LC_ALL=C sort -u >"$folder/owned"
files >"$folder/before"
purge
files >"$folder/after"
# Folders that others own too, as /usr/bin, stay.
comm -12 "$folder/owned" "$folder/after" | while IFS= read -r path; do
  inside sh -c 'test -d "$1" && dpkg-query -S "$1" >/dev/null 2>&1' sh "$path" || echo "left: $path"
done >"$folder/left"
comm -13 "$folder/before" "$folder/after" | sed 's/^/new: /' >>"$folder/left"
grep -iE 'bertrand' "$folder/after" | grep -v '^/packages' | sed 's/^/named so: /' >>"$folder/left" || true
cat "$folder/left"
[ ! -s "$folder/left" ] || exit 1
echo "nothing is left"
rm -rf "${system:?}/packages"

if [ "${DOCKERFILE:-1}" != 0 ]; then
  say "what the Dockerfile runs"
  unmount
  fresh "$folder/image1"
  fresh "$folder/image2"
  mkdir "$folder/image1/source"
  git archive HEAD | tar -x -C "$folder/image1/source"
  stage=0
  while IFS= read -r line; do
    case $line in
      FROM*) stage=$((stage + 1)) ;;
      "RUN "*)
        where=/
        [ $stage -ne 1 ] || where=/source
        echo "stage $stage: ${line#RUN }"
        chroot "$folder/image$stage" "${clean[@]}" sh -ec "cd $where; ${line#RUN }" >/dev/null
        ;;
      "COPY --from=build /installed /") cp -a "$folder/image1/installed/." "$folder/image2/" ;;
    esac
  done <Dockerfile
  chroot --userspec 10001 "$folder/image2" bertrand-serve --version
  code=0
  chroot --userspec 10001 "$folder/image2" bertrand-serve --check http://127.0.0.1:1 2>/dev/null || code=$?
  [ $code -eq 5 ] || { echo "the health check of no server: expected 5, got $code" >&2; exit 1; }
  echo "the health check of no server exits with 5"
  cp -r "$folder/tuned" "$folder/image2/model"
  chroot --userspec 10001 "$folder/image2" bertrand-serve --model /model --port 8598 >/dev/null 2>&1 &
  server=$!
  for _ in $(seq 100); do ! chroot --userspec 10001 "$folder/image2" bertrand-serve --check http://127.0.0.1:8598 2>/dev/null || break; sleep 0.1; done
  chroot --userspec 10001 "$folder/image2" bertrand-serve --check http://127.0.0.1:8598
  echo "that of a server with 0"
  kill -TERM $server
  wait $server
fi
echo "all packages passed"
