//! `docs/sentences.md` lists every sentence that can be printed.

use std::path::PathBuf;

fn document() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/sentences.md")
}

#[test]
fn the_document_is_up_to_date() {
    let generated = threadtoll_report::sentences();
    if std::env::var_os("UPDATE_SENTENCES").is_some() {
        std::fs::write(document(), &generated).unwrap();
    }
    let committed = std::fs::read_to_string(document()).unwrap();
    assert!(
        committed == generated,
        "update it with UPDATE_SENTENCES=1 cargo test -p threadtoll-report"
    );
}
