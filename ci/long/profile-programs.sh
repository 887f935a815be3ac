# Sourced by the checks of profiles: builds the command and the programs that it is tried on.
# THREADTOLL=FILE names an existing command.
if [[ -z ${THREADTOLL:-} ]]; then
    cargo build --release --quiet
    THREADTOLL=$(realpath "${CARGO_TARGET_DIR:-target}/release/threadtoll")
fi
export THREADTOLL
(cd crates/profile/programs && cargo test --quiet --lib)
crates/profile/programs/build.sh
programs=crates/profile/programs/target/programs
