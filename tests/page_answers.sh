#!/usr/bin/env bash
# Runs the script of serve's page without a browser: what is shown of a classifier's answer. Exits with 77 if there is no
# node.
# usage: tests/page_answers.sh
set -euo pipefail
cd "$(dirname "$0")/../serving"
command -v node >/dev/null || { echo "SKIPPED: there is no node; hint: apt-get install nodejs"; exit 77; }
{
  cat <<'END'
const element = () => ({style: {}, children: [], setAttribute() {}, addEventListener() {}, append(...all) { this.children.push(...all); }});
const document = {getElementById: element, createElement: element}, fetch = () => new Promise(() => {});
END
  sed '1,/^<script>$/d; /^<\/script>$/,$d' page.html
  cat <<'END'
const texts = one => typeof one === "string" ? [one] : one.children.flatMap(texts);
for (const [answer, expected] of [
  [{label: "a", scores: {a: 0.25}, labels: []}, "none|a|25.0 %"],
  [{label: "a", scores: {a: 0.75}, labels: ["a"]}, "a|a|75.0 %"],
  [{label: "a", scores: {a: 2.5}}, "2.500"],
  [{label: "b", scores: {a: 0.25, b: 0.75}}, "b|a|25.0 %|b|75.0 %"],
]) {
  const shown = show.classify(answer).flatMap(texts).join("|");
  if (shown === expected) continue;
  console.error(`page_answers.sh: ${JSON.stringify(answer)}: expected ${expected}, got ${shown}`);
  process.exitCode = 1;
}
END
} | timeout 20 node -
