//! Where a report goes that is written when all is done.

use std::fs::{Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Looks whether a report can be written to `path`, before the work: a path that is wrong is an error at once and not
/// after hours. What the file has stays; one that is not there is made. What is no plain file, such as a pipe, is not
/// opened twice.
///
/// # Errors
/// What opening it for writing says, with its name.
pub fn check(path: &Path) -> io::Result<()> {
    let is_pipe = |found: Metadata| !found.is_file() && !found.is_dir();
    if path.metadata().is_ok_and(is_pipe) {
        return Ok(());
    }
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened
        .map(drop)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_found_and_nothing_is_lost() {
        let folder = std::env::temp_dir().join(format!("report-path-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("report.json");
        std::fs::write(&file, "before").unwrap();
        check(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
        check(&folder.join("new.json")).unwrap();
        assert!(check(&folder).is_err(), "a folder");
        assert!(
            check(&folder.join("none/report.json")).is_err(),
            "no folder"
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
