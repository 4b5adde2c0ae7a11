//! Runs every command that README.md, docs/ and the help texts show, and compares the output.
//!
//! In a fenced block of any label, a line `$ COMMAND` is a command. The lines up to the next command are
//! its output: standard output and standard error together, as on a terminal. `...` stands for any
//! number of lines, `[..]` for any text within a line. Without output lines, the test compares only
//! the exit status: 0, or N if the command ends with `# status N`.
//!
//! All commands of a document run in one shell in one empty directory, so that a capture made by an
//! early command serves the later ones. The test replaces `127.0.0.1:7700` by a free port. A block
//! labelled `console,norun` does not run; a comment in it says why.
//!
//! `SIDON_BLESS=1 cargo test -p sidon-cli documents` writes the present outputs into the documents.

use assert_cmd::cargo::cargo_bin;
use std::{
    fs,
    net::TcpListener,
    os::unix::{fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Blocks labelled `console,norun` in all documents together.
const NORUN_AT_MAX: usize = 10;

/// Examples of help texts that do not run here, by a part of the command.
const NOT_RUN: [(&str, &str); 5] = [
    ("sidon serve", "runs until it is stopped"),
    (" -i eth0", "needs an interface and CAP_NET_RAW"),
    (" --netflow ", "waits for records until it is stopped"),
    ("tcpdump ", "is not installed everywhere"),
    ("curl ", "needs a running server"),
];

/// One command of a document.
struct Shown {
    command: String,
    status: i32,
    output: Vec<String>,
    /// Index of the first output line in the document.
    line: usize,
}

/// The commands of a document in order, and the number of its blocks that do not run.
fn shown(name: &str, text: &str) -> (Vec<Shown>, usize) {
    let (mut commands, mut norun) = (Vec::<Shown>::new(), 0);
    let mut lines = text.lines().enumerate();
    while let Some((start, fence)) = lines.next() {
        let Some(label) = fence.trim_start().strip_prefix("```") else { continue };
        let block: Vec<_> =
            lines.by_ref().take_while(|(_, line)| !line.trim_start().starts_with("```")).collect();
        if label.contains("norun") {
            let reason = block.iter().any(|(_, line)| line.contains("# "));
            assert!(reason, "{name}:{}: a comment must say why the block does not run", start + 1);
            norun += 1;
            continue;
        }
        let before = commands.len();
        let mut block = block.into_iter();
        while let Some((at, line)) = block.next() {
            if let Some(command) = line.strip_prefix("$ ") {
                let mut shown = Shown {
                    command: command.to_owned(),
                    status: 0,
                    output: Vec::new(),
                    line: at + 1,
                };
                while shown.command.ends_with('\\') {
                    shown.command += "\n";
                    shown.command += block.next().expect("a line after the backslash").1;
                    shown.line += 1;
                }
                if let Some((_, status)) = shown.command.rsplit_once("# status ") {
                    shown.status = status.parse().unwrap();
                }
                commands.push(shown);
            } else if commands.len() > before {
                commands.last_mut().unwrap().output.push(line.to_owned());
            } else {
                let hidden =
                    ["sidon ", "cargo ", "curl "].iter().any(|word| line.starts_with(word));
                assert!(!hidden, "{name}:{}: write a command as `$ {line}`", at + 1);
            }
        }
    }
    (commands, norun)
}

/// Runs the commands in one shell in a new directory: the exit status and the output of each.
fn session(name: &str, commands: &[String]) -> Vec<(i32, String)> {
    let folder =
        std::env::temp_dir().join(format!("sidon-documents-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let work = folder.join("work");
    fs::create_dir_all(&work).unwrap();
    for part in ["examples", "scenarios"] {
        symlink(root().join(part), work.join(part)).unwrap();
    }
    // Below the ports that the system gives to tests that listen at port 0.
    let first = 20_000 + std::process::id() % 10_000;
    let mut addresses = (first..).map(|port| format!("127.0.0.1:{port}"));
    let address = addresses.find(|address| TcpListener::bind(address).is_ok()).unwrap();
    let mut script = String::new();
    for (n, command) in commands.iter().enumerate() {
        fs::write(folder.join(format!("{n}.command")), command.replace("127.0.0.1:7700", &address))
            .unwrap();
        script += &format!(
            "eval \"$(cat ../{n}.command)\" >../{n}.output 2>&1; echo $? >../{n}.status\n"
        );
    }
    let mut path = cargo_bin("sidon").parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell = Command::new("sh")
        .args(["-c", &script])
        .current_dir(&work)
        .env("PATH", path)
        .env("HOME", &work)
        .env("COLUMNS", "80")
        .env("LC_ALL", "C")
        .env("SIDON_SANDBOX", "quiet")
        .env_remove("SIDON_TOKEN")
        .env_remove("SIDON_SEED")
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let start = Instant::now();
    while shell.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(10));
    }
    // Ends whatever is left of the shell's process group: commands in the background, or all after two minutes.
    let _ = Command::new("kill")
        .args(["-9", "--", &format!("-{}", shell.id())])
        .stderr(Stdio::null())
        .status();
    shell.wait().unwrap();
    let read = |file: String| {
        fs::read(folder.join(file)).map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let result = (0..commands.len()).map(|n| {
        let status = read(format!("{n}.status"))
            .unwrap_or_else(|_| panic!("{name}: no end of `{}`", commands[n]));
        (
            status.trim().parse().unwrap(),
            read(format!("{n}.output")).unwrap().replace(&address, "127.0.0.1:7700"),
        )
    });
    let result = result.collect();
    fs::remove_dir_all(&folder).unwrap();
    result
}

/// Whether the output is as shown, where `...` stands for any lines.
fn agree(shown: &[String], output: &[&str]) -> bool {
    match shown.split_first() {
        None => output.is_empty(),
        Some((dots, rest)) if dots == "..." => {
            (0..=output.len()).any(|n| agree(rest, &output[n..]))
        }
        Some((line, rest)) => {
            output.split_first().is_some_and(|(first, more)| same(line, first) && agree(rest, more))
        }
    }
}

/// Whether the line is as shown, where `[..]` stands for any text.
fn same(shown: &str, line: &str) -> bool {
    let Some((head, tail)) = shown.split_once("[..]") else {
        return shown.trim_end() == line.trim_end();
    };
    let Some(rest) = line.strip_prefix(head) else { return false };
    (0..=rest.len()).any(|n| rest.get(n..).is_some_and(|rest| same(tail, rest)))
}

/// The lines to show for this output. The lines between two `...` are searched by the start of their first line.
fn blessed(shown: &[String], output: &[&str]) -> Vec<String> {
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let parts: Vec<_> = shown.split(|line| line == "...").collect();
    if parts.len() == 1 {
        return output.iter().map(|&line| line.to_owned()).collect();
    }
    let (mut lines, mut at) = (Vec::new(), 0);
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            lines.push("...".to_owned());
        }
        let Some(first) = part.first() else { continue };
        if number + 1 == parts.len() {
            at = at.max(output.len().saturating_sub(part.len()));
        } else if number > 0 {
            at = (at..output.len()).rev().max_by_key(|&n| common(first, output[n])).unwrap_or(at);
        }
        for (line, pattern) in output[at..].iter().zip(*part) {
            lines.push(if same(pattern, line) { pattern.clone() } else { (*line).to_owned() });
        }
        at = (at + part.len()).min(output.len());
    }
    lines
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn documents_show_what_their_commands_print() {
    let mut documents = vec![root().join("README.md")];
    for folder in ["docs", "docs/papers"] {
        let files = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        documents.extend(files.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    let curl = Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_ok();
    let (mut wrong, mut norun, mut monitor) = (String::new(), 0, 0);
    for document in documents {
        let name = document.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&document).unwrap();
        let (all, skipped) = shown(name, &text);
        norun += skipped;
        if name == "WATCH.md" || name == "SERVE.md" {
            monitor += all.len();
        }
        if !curl && all.iter().any(|shown| shown.command.contains("curl ")) {
            eprintln!("SKIPPED: curl is not installed; the commands in {name} did not run");
            continue;
        }
        let commands: Vec<_> = all.iter().map(|shown| shown.command.clone()).collect();
        let results = session(name, &commands);
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        for (shown, (status, output)) in all.iter().zip(&results).rev() {
            let output: Vec<_> = output.trim_end().lines().map(str::trim_end).collect();
            let agrees = shown.output.is_empty() || agree(&shown.output, &output);
            if *status != shown.status || (!agrees && std::env::var_os("SIDON_BLESS").is_none()) {
                let [expected, output] = [shown.output.join("\n"), output.join("\n")];
                wrong += &format!(
                    "\n{name}:{}: $ {}\nexpected status {}:\n{expected}\ngot status {status}:\n{output}\n",
                    shown.line, shown.command, shown.status
                );
            } else if !agrees {
                let old = shown.line..shown.line + shown.output.len();
                lines.splice(old, blessed(&shown.output, &output));
            }
        }
        let new = lines.join("\n") + "\n";
        if new != text {
            fs::write(&document, new).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(norun <= NORUN_AT_MAX, "{norun} blocks do not run");
    assert!(monitor >= 20, "{monitor} commands in WATCH.md and SERVE.md");
}

/// The tests of the library compile the README of its package. They cannot read the one of the
/// project, which no package contains.
#[test]
fn the_readme_shows_the_library_by_an_example_that_is_compiled() {
    let [project, package] = ["README.md", "crates/sidon/README.md"]
        .map(|path| fs::read_to_string(root().join(path)).unwrap());
    let examples: Vec<_> = project.split("```rust\n").skip(1).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let code = example.split("```").next().unwrap();
        assert!(package.contains(code), "crates/sidon/README.md lacks this example:\n{code}");
    }
}

/// The examples in the help of this command and of the commands below it.
fn examples(command: &[&str]) -> Vec<String> {
    let help = Command::new(cargo_bin("sidon"))
        .args(command)
        .arg("--help")
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (mut examples, mut heading) = (Vec::new(), "");
    for line in help.lines() {
        let indented = line.strip_prefix("  ").filter(|text| !text.trim().is_empty());
        match indented {
            Some(example) if heading.eq_ignore_ascii_case("examples") => {
                examples.push(example.to_owned());
            }
            Some(below) if heading == "Commands" && !below.starts_with([' ', 'h']) => {
                let name = below.split(' ').next().unwrap();
                examples.extend(self::examples(&[command, &[name]].concat()));
            }
            Some(_) => {}
            None => heading = line.trim_end_matches(':'),
        }
        examples.extend(line.strip_prefix("Example: ").map(str::to_owned));
    }
    examples
}

#[test]
fn examples_of_help_texts_run() {
    let (skipped, commands): (Vec<_>, Vec<_>) = examples(&[])
        .into_iter()
        .partition(|command| NOT_RUN.iter().any(|(part, _)| command.contains(part)));
    for (part, reason) in NOT_RUN {
        assert!(
            skipped.iter().any(|command| command.contains(part)),
            "no example has `{part}`, which {reason}"
        );
    }
    assert!(commands.len() >= 15, "{commands:?}");
    // The captures that the examples read, 20 seconds each, and directories that they write to.
    let mut all = vec![
        "mkdir -p captures .local/share/bash-completion/completions .config/fish/completions"
            .to_owned(),
    ];
    for name in [
        "trace.pcap",
        "trace.pcapng",
        "trace.pcap.gz",
        "today.pcap",
        "week.pcap",
        "a.pcap",
        "b.pcap",
        "captures/a.pcap",
    ] {
        all.push(format!("sidon generate --seed 1 -c 2000 --rate 100 -w {name}"));
    }
    all.push("sidon watch -r week.pcap --rotate 10s --save-dir day --seed 4711".to_owned());
    all.extend(commands);
    let failed = all.iter().zip(session("help", &all)).filter(|(_, (status, _))| *status != 0);
    let failed: Vec<_> = failed
        .map(|(command, (status, output))| format!("$ {command}\nstatus {status}: {output}"))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn three_dots_stand_for_lines_and_two_in_brackets_for_text() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(agree(&shown("a\n...\nd [..] f"), &["a", "b", "c", "d e f"]));
    assert!(agree(&shown("a\n..."), &["a"]));
    assert!(!agree(&shown("a\n...\nd [..] f"), &["a", "b", "c", "d e g"]));
    assert!(!agree(&shown("a"), &["a", "b"]));
    assert!(!agree(&shown("a\nb"), &["a"]));
    let new = blessed(
        &shown("a 1\n...\nc 3\n...\nf [..]\ne 5"),
        &["a 2", "b 2", "c 4", "d 4", "f x", "e 6"],
    );
    assert_eq!(new, ["a 2", "...", "c 4", "...", "f [..]", "e 6"]);
}

/// The targets of the links of a document, without addresses of the web and places in the document.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains(':'))
}

#[test]
fn every_file_that_a_document_links_to_exists() {
    let root = root();
    let mut folders = vec![root.clone(), root.join("docs")];
    folders.extend(fs::read_dir(root.join("crates")).unwrap().map(|crate_| crate_.unwrap().path()));
    let mut links_seen = 0;
    for folder in folders {
        for file in fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()) {
            if file.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            for target in links(&fs::read_to_string(&file).unwrap()) {
                assert!(folder.join(target).exists(), "{}: {target}", file.display());
                links_seen += 1;
            }
        }
    }
    assert!(links_seen > 100, "{links_seen}");
}
