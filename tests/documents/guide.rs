//! The guide: its CLIF compiles or is refused as it says, and its lists are those of the code.

use super::{files, read, root, shown, text};
use cranelift_thisgpu::compile::Compiler;
use cranelift_thisgpu::settings::{Options, SETTINGS};
use std::collections::BTreeSet;

/// The fenced blocks of a text, each with what stands behind its fence.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(kind), None) => open = Some((kind, String::new())),
            (None, Some((_, block))) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block without an end");
    found
}

#[test]
fn the_clif_of_the_guide_does_what_it_says() {
    let (mut compiled, mut refused) = (0, 0);
    for file in files("docs/guide", &["md"]) {
        let content = read(&file);
        let blocks = blocks(&content);
        for (i, (kind, block)) in blocks.iter().enumerate() {
            let code = Compiler::new(Options::default()).compile_clif(block);
            match (*kind, code) {
                ("clif", Ok(_)) => compiled += 1,
                ("clif", Err(errors)) => panic!("{}: {errors}\n{block}", shown(&file)),
                ("clif refused", Ok(_)) => panic!("{}: compiles:\n{block}", shown(&file)),
                ("clif refused", Err(errors)) => {
                    let (kind, messages) = &blocks[i + 1];
                    assert_eq!(*kind, "text", "{}: no messages", shown(&file));
                    let count = errors.iter().count();
                    let errors = errors.to_string();
                    for message in messages.lines() {
                        assert!(errors.contains(message), "{message}\nis not in\n{errors}");
                    }
                    assert_eq!(count, messages.lines().count(), "{errors}");
                    refused += 1;
                }
                _ => {}
            }
        }
    }
    assert!(compiled >= 4 && refused >= 3, "{compiled}, {refused}");
}

/// The names of an enumeration's members with the message that each displays.
fn members_with_messages(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut message, mut inside) = (String::new(), false);
    for line in source.lines() {
        let code = line.trim();
        if code.starts_with("#[error(") {
            message.clear();
            inside = true;
        }
        if inside {
            message.push_str(code.trim_end_matches('\\'));
            message.push(' ');
            inside = !code.ends_with(")]");
        } else if line.starts_with("    ")
            && line[4..].starts_with(|c: char| c.is_ascii_uppercase())
        {
            let end = code.find(|c: char| !c.is_ascii_alphanumeric());
            let name = code[..end.unwrap_or(code.len())].to_owned();
            found.push((name, std::mem::take(&mut message)));
        }
    }
    found
}

/// The fixed parts of a format string, the longest word sequences that every message has.
fn fixed_parts(attribute: &str) -> Vec<String> {
    // What is transparent says what something else says.
    let Some((_, format)) = attribute.split_once('"') else {
        return Vec::new();
    };
    let end = format.find('"').expect("the end of a format string");
    format[..end]
        .split(['{', '}'])
        .step_by(2)
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|part| part.len() > 2)
        .collect()
}

/// The members of an enumeration of the library with their messages.
fn kinds_of(name: &str) -> Vec<(String, String)> {
    let head = format!("pub enum {name} {{");
    let source = (files("src", &["rs"]).iter().map(|file| read(file)))
        .find(|content| content.contains(&head))
        .unwrap_or_else(|| panic!("no enumeration {name}"));
    let start = source.find(&head).expect("found above");
    let end = start + source[start..].find("\n}").expect("its end");
    members_with_messages(&source[start..end])
}

#[test]
fn every_error_is_in_the_catalogue() {
    let page = text("docs/guide/errors.md");
    let mut rows = 0;
    for name in [
        "Problem",
        "WriteError",
        "ReadError",
        "LinkError",
        "DeviceError",
        "DriverError",
        "LaunchError",
        "MemoryError",
    ] {
        let (_, table) = (page.split_once(&format!("| `{name}` | message |")))
            .unwrap_or_else(|| panic!("docs/guide/errors.md has no table of {name}"));
        let listed: Vec<&str> = (table.lines().skip(2))
            .take_while(|line| line.starts_with("| `"))
            .collect();
        let kinds = kinds_of(name);
        assert_eq!(listed.len(), kinds.len(), "{name}: {kinds:?}");
        for (kind, attribute) in &kinds {
            let row = (listed.iter())
                .find(|row| row.starts_with(&format!("| `{kind}` |")))
                .unwrap_or_else(|| panic!("docs/guide/errors.md has no {name}::{kind}"));
            for part in fixed_parts(attribute) {
                assert!(row.contains(&part), "`{part}` of {name}::{kind}: {row}");
            }
            rows += 1;
        }
    }
    assert!(rows > 50, "only {rows} kinds");
}

#[test]
fn every_fault_is_in_the_catalogue() {
    let kinds = kinds_of("FaultKind");
    assert!(kinds.len() > 10, "{kinds:?}");

    let catalogue = text("docs/guide/faults.md");
    let entries: Vec<&str> = catalogue.split("\n### ").skip(1).collect();
    for (name, attribute) in &kinds {
        let entry = entries
            .iter()
            .find(|entry| entry.lines().next() == Some(name))
            .unwrap_or_else(|| panic!("docs/guide/faults.md has no {name}"));
        let message = (entry.lines())
            .find_map(|line| line.strip_prefix("    "))
            .unwrap_or_else(|| panic!("{name} shows no message"));
        for part in fixed_parts(attribute) {
            assert!(
                message.contains(&part),
                "{name}: `{part}` is not in `{message}`"
            );
        }
    }
    assert_eq!(entries.len(), kinds.len(), "an entry without a fault");
}

#[test]
fn every_library_function_is_listed() {
    let mut names = BTreeSet::new();
    for file in files("src/compile/library", &["clif"]) {
        let library = read(&file);
        let lines: Vec<&str> = (library.lines())
            .filter(|line| !line.starts_with(";;"))
            .collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(rest) = line.strip_prefix("function %") else {
                continue;
            };
            let above = lines[..index].last().copied().unwrap_or_default();
            let name = rest.split('(').next();
            let others = above.strip_prefix("; ").into_iter();
            let others = others.flat_map(|others| others.split(", "));
            names.extend(name.into_iter().chain(others).map(str::to_owned));
        }
    }
    // Parts of functions, which nobody else is to call.
    names.retain(|name| !name.starts_with("__thisgpu_"));
    assert!(names.len() > 20, "{names:?}");
    let page = text("docs/guide/library.md");
    let listed: BTreeSet<&str> = (page.lines())
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| line.splitn(4, " | ").take(2))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(listed, names);
}

/// Bless it with `CRANELIFT_TEST_BLESS=1`.
#[test]
fn the_settings_are_listed() {
    let head = "| name | values | default | meaning |\n| --- | --- | --- | --- |\n";
    let page = text("docs/guide/settings.md");
    let start = page.find(head).expect("the table's head") + head.len();
    let defaults = Options {
        verify: false,
        ..Options::default()
    };
    let mut table = String::new();
    for setting in SETTINGS {
        let default = match setting.name {
            "verify" => "in debug builds".to_owned(),
            _ => setting.value(&defaults),
        };
        table += &format!(
            "| `{}` | {} | {default} | {} |\n",
            setting.name,
            setting.legal_values(),
            setting.help
        );
    }
    let wanted = format!("{}{table}", &page[..start]);
    if std::env::var_os("CRANELIFT_TEST_BLESS").is_some() {
        std::fs::write(root().join("docs/guide/settings.md"), wanted).expect("a writable page");
    } else {
        assert_eq!(page, wanted, "bless it with CRANELIFT_TEST_BLESS=1");
    }
}

#[test]
fn every_page_is_in_the_book() {
    let summary = text("docs/SUMMARY.md");
    for file in files("docs", &["md"]) {
        let name = shown(&file).replace("docs/", "");
        let listed = summary.matches(&format!("]({name})")).count();
        let wanted = usize::from(name != "SUMMARY.md");
        assert_eq!(listed, wanted, "{name} in docs/SUMMARY.md");
    }
    // The first page is also the book's index, from where links into folders would go wrong.
    let first = summary.split("](").nth(1).expect("a page");
    let first = &first[..first.find(')').expect("its end")];
    assert!(!first.contains('/'), "{first}");
}

/// Pages with programs are tested by `src/guide.rs`.
#[test]
fn every_program_of_the_guide_is_a_doctest() {
    let tested = text("src/guide.rs");
    for file in files("docs/guide", &["md"]) {
        let content = read(&file);
        let programs = blocks(&content)
            .iter()
            .any(|(kind, _)| kind.starts_with("rust"));
        let name = format!("../{}", shown(&file));
        assert_eq!(tested.contains(&name), programs, "{name} in src/guide.rs");
    }
    assert!(tested.contains("../README.md"), "README.md in src/guide.rs");
    let readme = text("README.md");
    assert!(blocks(&readme).iter().any(|(kind, _)| *kind == "rust"));
    // An indented block would be taken for a program, too.
    let mut fenced = false;
    for line in readme.lines() {
        fenced ^= line.starts_with("```");
        assert!(fenced || !line.starts_with("    "), "README.md: {line}");
    }
}

/// Types of Cranelift's crates that the guide names members of.
const FOREIGN: [&str; 6] = [
    "CallConv",
    "DataDescription",
    "ExternalName",
    "FunctionBuilder",
    "Linkage",
    "PointerWidth",
];

/// `Type::member` for every such mention in code spans of a text.
fn members_named(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    // What stands in programs is compiled.
    let text = text.split("\n```").step_by(2);
    for span in text.flat_map(|text| text.split('`').skip(1).step_by(2)) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        for path in span.split(|c| !is_part(c)) {
            let mut parts = path.rsplit("::");
            if let (Some(member), Some(ty)) = (parts.next(), parts.next())
                && ty.starts_with(|c: char| c.is_ascii_uppercase())
                && !member.is_empty()
            {
                found.push((ty, member));
            }
        }
    }
    found
}

#[test]
fn every_item_that_the_guide_names_is_there() {
    let source: String = files("src", &["rs"])
        .iter()
        .map(|file| read(file))
        .collect();
    let words: BTreeSet<&str> = source
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ' ')
        .map(str::trim)
        .collect();
    let has = |declarations: &[&str], name: &str| {
        declarations.iter().any(|declaration| {
            let wanted = format!("{declaration}{name}");
            words.contains(wanted.as_str())
        })
    };
    assert!(has(&["pub fn "], "live_allocations") && !has(&["pub fn ", "fn "], "fly"));
    assert_eq!(members_named("`a::B::c` `d`"), [("B", "c")]);
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for file in files("docs/guide", &["md"]) {
        let content = read(&file);
        for (ty, member) in members_named(&content) {
            if FOREIGN.contains(&ty) {
                continue;
            }
            checked += 1;
            let declared = has(&["pub struct ", "pub enum ", "pub trait "], ty);
            // Variants and constants stand alone on their lines.
            let member_declared = if member.starts_with(|c: char| c.is_ascii_uppercase()) {
                words.contains(member)
            } else {
                has(&["fn ", "pub fn ", "pub const fn ", "pub "], member)
            };
            if !declared || !member_declared {
                wrong.push(format!("{}: {ty}::{member}", shown(&file)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 30, "only {checked} items");
}

/// What the library calls unsupported: the texts of `unsupported: …`, and those of the errors that are made of an item
/// and a remedy.
fn unsupported_texts() -> Vec<String> {
    let mut found = Vec::new();
    for file in files("src", &["rs"]) {
        let source = read(&file);
        let source = source
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or("");
        let name = shown(&file);
        if name.contains("tests") || name == "src/error.rs" {
            continue;
        }
        let texts = source.split("\"unsupported: ").skip(1);
        found.extend(
            texts
                .filter_map(|rest| rest.split('"').next())
                .map(str::to_owned),
        );
        let complains = name == "src/clif/signatures.rs";
        let marks = [
            "self.unsupported(",
            "Problem::Unsupported {",
            "let remedy = \"",
            "let item = \"",
            "complain(",
        ];
        for mark in marks
            .iter()
            .filter(|mark| complains || **mark != "complain(")
        {
            for (start, _) in source.match_indices(mark) {
                let statement = source[start..].split(';').next().unwrap_or("");
                found.extend(statement.split('"').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }
    found
}

#[test]
fn everything_unsupported_is_on_the_page_of_limits() {
    let plain = |text: &str| {
        text.replace('`', "")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let page = plain(&text("docs/limits.md"));
    let texts = unsupported_texts();
    assert!(texts.len() > 15, "{texts:?}");
    for text in texts {
        for part in fixed_parts(&format!("\"{text}\"")) {
            let part = plain(&part);
            assert!(
                page.contains(part.trim_matches([':', ';', ',', ' '])),
                "`{part}` of `{text}`"
            );
        }
    }
}
