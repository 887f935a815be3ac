# Sourced by the checks of profiles: builds the command and the programs that it is tried on.
# THREADTOLL=FILE names an existing command.
if [[ -z ${THREADTOLL:-} ]]; then
    cargo build --release --quiet
    THREADTOLL=$(realpath "${CARGO_TARGET_DIR:-target}/release/threadtoll")
fi
export THREADTOLL
(cd validation && cargo test --quiet --lib)
validation/build.sh
programs=validation/target/programs

# A perfect sampler must pass, and a bad one fail.
checks_fake() {
    THREADTOLL=$programs/fake-profile "$programs/profile-check" "$@" --runs 12 --seconds 2s \
        --only "--threads 2 " >/dev/null
}
if ! checks_fake accuracy || FAKE_BIAS=0.05 checks_fake accuracy; then
    echo "profile-programs.sh: the checks do not distinguish a good profile from a bad one" >&2
    exit 1
fi
