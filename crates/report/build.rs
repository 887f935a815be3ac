//! Packs the charting library, which is part of every page, because pages work offline.
//!
//! Done at build time, so that the binary holds 1.9 MB instead of 6.8 MB, and pages are quick to
//! make.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/html/page.js");
    let out = std::env::var("OUT_DIR")?;
    let out = Path::new(&out);

    let sources = plotly::Plot::offline_js_sources();
    let script = charting_script(&sources)
        .ok_or("the plotly crate no longer hands out its script as it did")?;
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packed.write_all(script.as_bytes())?;
    std::fs::write(out.join("plotly.js.gz.base64"), BASE64.encode(packed.finish()?))?;

    // The page's Content-Security-Policy allows only these two scripts.
    std::fs::write(out.join("plotly.js.hash"), hash(script))?;
    std::fs::write(out.join("page.js.hash"), hash(&std::fs::read_to_string("src/html/page.js")?))?;
    Ok(())
}

/// Finds plotly among the plotly crate's scripts, which include a formula renderer that no chart
/// needs.
fn charting_script(sources: &str) -> Option<&str> {
    let scripts = sources.split("<script").skip(1).filter_map(|rest| {
        let (_, script) = rest.split_once('>')?;
        script.split_once("</script>").map(|(script, _)| script)
    });
    let mut plotly = scripts.filter(|script| {
        script.trim_start().get(..40).is_some_and(|head| head.contains("plotly.js"))
            && script.len() > 1 << 20
    });
    let found = plotly.next()?;
    plotly.next().is_none().then_some(found)
}

/// The hash of a script in a Content-Security-Policy.
fn hash(script: &str) -> String {
    format!("sha256-{}", BASE64.encode(Sha256::digest(script.as_bytes())))
}
