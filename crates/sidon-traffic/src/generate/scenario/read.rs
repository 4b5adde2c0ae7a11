//! Reads a scenario from TOML text, and the files that it includes.

use super::{
    Expected, Must, Scenario,
    fields::{Fields, Value, Wrong, flag, number, seconds, text_of, wrong},
    flows::{MOST, flows},
};
use crate::{Prefix, excerpt::word, files::input, text};
use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
};
use toml::de::DeTable;

/// The longest chain of files that include each other.
const DEEPEST: usize = 4;
/// The most files of a scenario, and the most bytes of each.
const FILES_MAX: usize = 64;
const FILE_MAX: u64 = 1 << 20;

/// Why a file is not a scenario.
#[derive(Debug)]
pub struct ScenarioError {
    path: PathBuf,
    /// The line, if the content is wrong.
    line: Option<usize>,
    what: String,
}

impl ScenarioError {
    pub(super) fn new(path: &Path, line: Option<usize>, what: String) -> Self {
        ScenarioError { path: path.to_owned(), line, what }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", text::path(&self.path))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ScenarioError {}

impl Scenario {
    /// Reads a file, and the files that it includes.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let (path, mut scenario) = (path.as_ref(), EMPTY);
        add(&mut scenario, path, 0)?;
        scenario.complete(path)
    }

    /// Reads a text that includes no files. Errors call it `scenario`.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let (path, mut scenario) = (Path::new("scenario"), EMPTY);
        let included = content(&mut scenario, text, true).map_err(|wrong| wrong.at(path, text))?;
        if !included.is_empty() {
            let what = "a text cannot include files; read a file instead".to_owned();
            return Err(ScenarioError::new(path, None, what));
        }
        scenario.complete(path)
    }

    /// Refuses names of flows that do not exist.
    fn complete(self, path: &Path) -> Result<Self, ScenarioError> {
        let mut names = self.must.iter().map(|must| &must.flows).chain(&self.stay);
        match names.find(|name| self.flows(name).next().is_none()) {
            Some(name) => {
                let what = format!("there are no flows with the name {:?}", word(name));
                Err(ScenarioError::new(path, None, what))
            }
            None => Ok(self),
        }
    }
}

const EMPTY: Scenario = Scenario {
    name: String::new(),
    flows: Vec::new(),
    must: Vec::new(),
    may: Vec::new(),
    stay: Vec::new(),
    one_way_capture: None,
    files: Vec::new(),
};

/// Adds the content of a file to the scenario. The outermost file gives the name.
fn add(scenario: &mut Scenario, path: &Path, depth: usize) -> Result<(), ScenarioError> {
    let error = |what| ScenarioError::new(path, None, what);
    scenario.files.push(path.to_owned());
    if scenario.files.len() > FILES_MAX {
        return Err(error(format!("more than {FILES_MAX} files are included; use fewer")));
    }
    let file = File::open(path).map_err(|why| error(why.to_string()))?;
    let text = input::text(file, FILE_MAX).map_err(|why| error(why.to_string()))?;
    let included = content(scenario, &text, depth == 0).map_err(|wrong| wrong.at(path, &text))?;
    if depth == DEEPEST && !included.is_empty() {
        return Err(error(format!("more than {DEEPEST} files include each other")));
    }
    for name in included {
        // A file from elsewhere must not choose which files are read.
        if Path::new(&name).file_name() != Some(name.as_ref()) {
            let name = word(&name);
            let what =
                format!("cannot include {name:?}: type the name of a file in the same folder");
            return Err(error(what));
        }
        add(scenario, &path.with_file_name(name), depth + 1)?;
    }
    Ok(())
}

/// Adds the content of a text to the scenario. Returns the names of the included files.
fn content(scenario: &mut Scenario, text: &str, outermost: bool) -> Result<Vec<String>, Wrong> {
    let table = DeTable::parse(text)
        .map_err(|why| Wrong(why.message().to_owned(), why.span().unwrap_or(0..0)))?;
    let whole = Fields { table: table.get_ref(), span: table.span() };
    whole.only(&["name", "include", "one_way_capture", "flows", "must", "may", "stay"])?;
    if outermost {
        scenario.name = whole.required("name", text_of)?;
        scenario.one_way_capture =
            whole.optional("one_way_capture", None, |value| flag(value).map(Some))?;
    }
    for fields in whole.tables("flows")? {
        scenario.flows.push(flows(&fields)?);
    }
    for fields in whole.tables("must")? {
        fields
            .only(&["kind", "subject", "flows", "followed", "within", "most", "says", "figures"])?;
        scenario.must.push(Must {
            expected: expected(&fields)?,
            flows: fields.required("flows", text_of)?,
            followed: fields.optional("followed", 0, |value| number(value, MOST))?,
            within_ns: fields.optional("within", None, |value| seconds(value).map(Some))?,
            most: fields.optional("most", 1, |value| number(value, MOST))?,
            says: fields.optional("says", vec![], |value| one_or_more(value, text_of))?,
            figures: fields.optional("figures", vec![], figures)?,
        });
    }
    for fields in whole.tables("may")? {
        fields.only(&["kind", "subject"])?;
        scenario.may.push(expected(&fields)?);
    }
    for fields in whole.tables("stay")? {
        fields.only(&["flows"])?;
        scenario.stay.push(fields.required("flows", text_of)?);
    }
    whole.optional("include", Vec::new(), |value| match value.get_ref().as_array() {
        Some(list) => list.iter().map(text_of).collect(),
        None => wrong("expected a list of file names", value.span()),
    })
}

fn expected(fields: &Fields<'_>) -> Result<Expected, Wrong> {
    let prefix = |value: &Value<'_>| match text_of(value)?.parse::<Prefix>() {
        Ok(prefix) => Ok(prefix),
        Err(_) => wrong("expected an address, or a prefix such as 10.0.0.0/8", value.span()),
    };
    Ok(Expected {
        kinds: fields.required("kind", |value| one_or_more(value, text_of))?,
        subjects: fields.required("subject", |value| one_or_more(value, prefix))?,
    })
}

/// A value, or each value of a list.
fn one_or_more<T>(
    value: &Value<'_>,
    read: impl Fn(&Value<'_>) -> Result<T, Wrong>,
) -> Result<Vec<T>, Wrong> {
    match value.get_ref().as_array() {
        Some(list) => list.iter().map(read).collect(),
        None => Ok(vec![read(value)?]),
    }
}

/// Names of figures, each with its least and greatest value.
fn figures(value: &Value<'_>) -> Result<Vec<(String, [u64; 2])>, Wrong> {
    let Some(table) = value.get_ref().as_table() else {
        return wrong("expected a table of figures", value.span());
    };
    let limits = |limits: &Value<'_>| {
        let list = limits.get_ref().as_array().map(|list| list.iter().collect::<Vec<_>>());
        match list.as_deref() {
            Some([least, most]) => Ok([number(least, 1 << 53)?, number(most, 1 << 53)?]),
            _ => wrong(
                "expected the least and the greatest value, such as [900, 1100]",
                limits.span(),
            ),
        }
    };
    table.iter().map(|(name, value)| Ok((name.get_ref().to_string(), limits(value)?))).collect()
}
