# Runs named steps and prints a table of their seconds at the end. Sourced by .ci/run and
# scripts/full.
#
#   step NAME COMMAND [ARGUMENT..]

rows=()

step() {
    local name=$1 begun=$SECONDS
    shift
    printf '\n== %s: %.120s\n' "$name" "$*"
    if "$@"; then
        rows+=("$(printf '| %s | %d | ok |' "$name" $((SECONDS - begun)))")
    else
        local code=$?
        rows+=("$(printf '| %s | %d | FAILED (%d) |' "$name" $((SECONDS - begun)) "$code")")
        return "$code"
    fi
}

table() {
    printf '\n| step | seconds | result |\n|---|---|---|\n'
    printf '%s\n' "${rows[@]}"
    printf '| all | %d | |\n' "$SECONDS"
}
trap table EXIT
