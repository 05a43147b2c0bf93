//! The actions as a plan sees them: arguments, results, levels, needs.

use hermitcrab_core::{
    authority::Verb,
    label::Source,
    plan::{
        Kind, Level, Need, Param, Reach, Role, Signature, Toolbox, Type,
        signature::{READER_COMMANDS, READER_FILES},
    },
};

fn user(kind: Kind) -> Type {
    kind.at(Level::User)
}

fn made(kind: Kind) -> Type {
    kind.at(Level::Service)
}

fn needed(name: &str, kind: Kind, role: Role) -> Param {
    Param {
        name: name.to_owned(),
        kind: user(kind),
        required: true,
        role,
    }
}

fn optional(name: &str, kind: Kind, role: Role) -> Param {
    Param {
        required: false,
        ..needed(name, kind, role)
    }
}

fn paths() -> Kind {
    Kind::list(user(Kind::Path))
}

fn tool(
    name: &str,
    params: Vec<Param>,
    result: Type,
    source: Source,
    wants: &[(Verb, &str)],
) -> Signature {
    let changes = wants
        .iter()
        .any(|(verb, _)| verb.changes_files() || matches!(verb, Verb::ProcExec | Verb::NetConnect));
    let runs = wants.iter().any(|(verb, _)| *verb == Verb::ProcExec);
    let reader = if runs { READER_COMMANDS } else { READER_FILES };
    Signature {
        name: name.to_owned(),
        params,
        result,
        source,
        changes,
        wants: wants
            .iter()
            .map(|(verb, param)| Need {
                verb: *verb,
                param: (!param.is_empty()).then(|| (*param).to_owned()),
            })
            .collect(),
        readers: None,
        // What ends up in a file or its name is there for whoever reads files.
        reaches: changes
            .then(|| Reach::Reader(reader.to_owned()))
            .into_iter()
            .collect(),
        risk: None,
    }
}

/// Every action.
#[must_use]
pub fn toolbox() -> Toolbox {
    use Verb::{FsCreate, FsDelete, FsList, FsRead, ProcExec};
    let kind = || {
        Kind::Choice(
            ["file", "directory", "link", "other"]
                .map(str::to_owned)
                .into(),
        )
    };
    // A name that is there can be used as a place; what it says, as a text,
    // is whatever somebody called a file.
    let entry = made(Kind::record(&[
        ("name", Kind::Text.at(Level::Picked)),
        ("path", made(Kind::Path)),
        ("kind", made(kind())),
        ("size", made(Kind::Whole)),
    ]));
    let nothing = || user(Kind::Nothing);
    Toolbox::new(vec![
        tool(
            "list_files",
            vec![
                optional("path", Kind::Path, Role::Target),
                optional("all", Kind::Truth, Role::Free),
            ],
            made(Kind::record(&[("entries", made(Kind::list(entry)))])),
            Source::File,
            &[(FsList, "path")],
        ),
        tool(
            "find_files",
            vec![
                needed("pattern", Kind::Text, Role::Free),
                optional("path", Kind::Path, Role::Target),
                optional("kind", kind(), Role::Free),
            ],
            made(Kind::record(&[(
                "paths",
                made(Kind::list(made(Kind::Path))),
            )])),
            Source::File,
            &[(FsList, "path")],
        ),
        tool(
            "read_file",
            vec![needed("path", Kind::Path, Role::Target)],
            made(Kind::record(&[
                ("text", Kind::Text.at(Level::Untrusted)),
                ("size", made(Kind::Whole)),
            ])),
            Source::File,
            &[(FsRead, "path")],
        ),
        tool(
            "file_info",
            vec![needed("path", Kind::Path, Role::Target)],
            made(Kind::record(&[
                ("kind", made(kind())),
                ("size", made(Kind::Whole)),
                ("modified", made(Kind::Time)),
            ])),
            Source::File,
            &[(FsList, "path")],
        ),
        tool(
            "create_file",
            vec![
                needed("path", Kind::Path, Role::Target),
                needed("text", Kind::Text, Role::Content),
                optional("replace", Kind::Truth, Role::Target),
            ],
            nothing(),
            Source::User,
            &[(FsCreate, "path")],
        ),
        tool(
            "create_directory",
            vec![needed("path", Kind::Path, Role::Target)],
            nothing(),
            Source::User,
            &[(FsCreate, "path")],
        ),
        tool(
            "copy_file",
            vec![
                needed("from", Kind::Path, Role::Target),
                needed("to", Kind::Path, Role::Target),
            ],
            nothing(),
            Source::User,
            &[(FsRead, "from"), (FsCreate, "to")],
        ),
        tool(
            "move_file",
            vec![
                needed("from", Kind::Path, Role::Target),
                needed("to", Kind::Path, Role::Target),
            ],
            nothing(),
            Source::User,
            &[(FsRead, "from"), (FsDelete, "from"), (FsCreate, "to")],
        ),
        tool(
            "move_files",
            vec![
                needed("paths", paths(), Role::Target),
                needed("into", Kind::Path, Role::Target),
            ],
            made(Kind::record(&[("moved", made(Kind::Whole))])),
            Source::File,
            &[(FsRead, ""), (FsDelete, ""), (FsCreate, "into")],
        ),
        tool(
            "delete_files",
            vec![
                needed("paths", paths(), Role::Target),
                optional("recursive", Kind::Truth, Role::Target),
            ],
            made(Kind::record(&[("deleted", made(Kind::Whole))])),
            Source::File,
            &[(FsDelete, "")],
        ),
        tool(
            "organize_by_type",
            vec![needed("path", Kind::Path, Role::Target)],
            made(Kind::record(&[
                ("moved", made(Kind::Whole)),
                ("left", made(Kind::Whole)),
            ])),
            Source::File,
            &[
                (FsList, "path"),
                (FsRead, "path"),
                (FsDelete, "path"),
                (FsCreate, "path"),
            ],
        ),
        tool(
            "run_command",
            vec![
                needed("program", Kind::Text, Role::Program),
                optional("args", Kind::list(user(Kind::Text)), Role::Word),
                optional("seconds", Kind::Whole, Role::Free),
            ],
            made(Kind::record(&[
                ("output", Kind::Text.at(Level::Untrusted)),
                ("status", made(Kind::Whole)),
            ])),
            Source::Command,
            &[(ProcExec, "")],
        ),
    ])
}

#[cfg(test)]
mod tests {
    use hermitcrab_core::plan::Role;

    use super::toolbox;

    #[test]
    fn reading_changes_nothing_and_every_change_has_a_target_or_a_program() {
        for tool in toolbox().all() {
            let reads = ["list_files", "find_files", "read_file", "file_info"];
            assert_eq!(
                tool.changes,
                !reads.contains(&tool.name.as_str()),
                "{tool:?}"
            );
            if tool.changes {
                assert!(
                    tool.params
                        .iter()
                        .any(|param| matches!(param.role, Role::Target | Role::Program)),
                    "{tool:?}"
                );
            }
        }
    }
}
