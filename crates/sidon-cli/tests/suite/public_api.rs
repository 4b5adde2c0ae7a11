//! docs/PUBLIC-API.txt lists every public item of the library. The test compares it with what rustdoc
//! sees, so that no item becomes public, or ceases to be, by accident.
//!
//! `SIDON_BLESS=1 cargo test -p sidon-cli public_api` writes the present list.

use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// The JSON of rustdoc, which is unstable. `None` if this compiler does not write it.
fn rustdoc(root: &Path) -> Option<Value> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("public-api");
    let status = Command::new(env!("CARGO"))
        .args(["rustdoc", "--quiet", "-p", "sidon", "--lib", "--target-dir"])
        .arg(&target)
        .args(["--", "-Zunstable-options", "--output-format", "json"])
        .current_dir(root)
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTDOCFLAGS")
        .status()
        .unwrap();
    let text = status.success().then(|| fs::read(target.join("doc/sidon.json")).unwrap());
    text.map(|text| serde_json::from_slice(&text).unwrap())
}

/// A walk over all items that other crates can name.
struct Walk<'a> {
    index: &'a Value,
    seen: BTreeSet<u64>,
    lines: Vec<String>,
}

impl Walk<'_> {
    /// Adds the item of this number and all in it. Fields, variants and modules are not counted, nor are
    /// the methods of implemented traits.
    fn visit(&mut self, id: &Value, path: &str) {
        let index = self.index;
        let item = &index[id.to_string().as_str()];
        let Some((kind, inner)) = item["inner"].as_object().and_then(|inner| inner.iter().next())
        else {
            return;
        };
        if kind == "use" {
            let target = &inner["id"];
            if inner["is_glob"] == true {
                self.all(&index[target.to_string().as_str()]["inner"]["module"]["items"], path);
            } else {
                self.visit(target, path);
            }
            return;
        }
        if item["crate_id"] != 0 || !self.seen.insert(id.as_u64().unwrap()) {
            return;
        }
        let path = format!("{path}::{}", item["name"].as_str().unwrap_or(""));
        let path = path.trim_start_matches("::");
        match kind.as_str() {
            "module" => self.all(&inner["items"], path),
            "struct_field" | "variant" | "impl" => {}
            _ => self.lines.push(format!("{kind} {path}")),
        }
        if kind == "trait" {
            self.all(&inner["items"], path);
        }
        for id in inner["impls"].as_array().into_iter().flatten() {
            let block = &index[id.to_string().as_str()]["inner"]["impl"];
            if kind != "trait" && block["trait"].is_null() {
                self.all(&block["items"], path);
            }
        }
    }

    fn all(&mut self, ids: &Value, path: &str) {
        for id in ids.as_array().into_iter().flatten() {
            self.visit(id, path);
        }
    }
}

#[test]
fn the_list_of_public_items_is_the_present_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Some(docs) = rustdoc(&root) else {
        println!("SKIPPED: this rustdoc writes no JSON");
        return;
    };
    let mut walk = Walk { index: &docs["index"], seen: BTreeSet::new(), lines: Vec::new() };
    walk.visit(&docs["root"], "");
    walk.lines.sort();
    let present = format!("{} items\n\n{}\n", walk.lines.len(), walk.lines.join("\n"));
    let list = root.join("docs/PUBLIC-API.txt");
    if std::env::var_os("SIDON_BLESS").is_some() {
        fs::write(&list, &present).unwrap();
    }
    let listed = fs::read_to_string(&list).unwrap_or_default();
    let (old, new): (BTreeSet<_>, BTreeSet<_>) =
        (listed.lines().collect(), present.lines().collect());
    let gone: Vec<_> = old.difference(&new).collect();
    let come: Vec<_> = new.difference(&old).collect();
    assert!(gone.is_empty() && come.is_empty(), "no longer public: {gone:#?}\nnew: {come:#?}");
}
