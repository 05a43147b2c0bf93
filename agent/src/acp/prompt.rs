//! What a user sent, as words for the model.

use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource};

use crate::chat;

/// A prompt that can be worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Everything, for the model.
    pub words: String,
    /// What the user typed, for commands, if they began by typing: a file that is mentioned in
    /// it is there by its path.
    pub typed: String,
    /// Whether something is left out of that.
    pub is_cut: bool,
    /// Whether something is in it that the user did not write.
    pub has_attachments: bool,
    /// Whether every word of it was typed.
    pub is_typed: bool,
}

/// Reads the blocks of a prompt.
///
/// # Errors
/// What cannot be taken, in one line.
pub fn read(blocks: &[ContentBlock]) -> Result<Said, String> {
    let mut said = Said {
        words: String::new(),
        typed: String::new(),
        is_cut: false,
        has_attachments: false,
        is_typed: true,
    };
    let is_begun_by_typing = matches!(blocks, [ContentBlock::Text(_), ..]);
    // Of the block before.
    let (mut was_link, mut was_text) = (false, true);
    for block in blocks {
        let is_link = matches!(block, ContentBlock::ResourceLink(_));
        let is_text = matches!(block, ContentBlock::Text(_));
        let (words, typed) = match block {
            ContentBlock::Text(text) => (text.text.clone(), Some(text.text.as_str())),
            ContentBlock::ResourceLink(link) => {
                // The user picked the file, and somebody else may have named it.
                said.has_attachments = true;
                (
                    format!("[{}]({})", link.name, link.uri),
                    plain_path(&link.uri),
                )
            }
            ContentBlock::Resource(embedded) => match &embedded.resource {
                EmbeddedResourceResource::TextResourceContents(resource) => {
                    said.has_attachments = true;
                    let words = chat::attached(&resource.uri, &resource.text);
                    (words, plain_path(&resource.uri))
                }
                _ => return Err("attached files must be text; this one is not".to_owned()),
            },
            ContentBlock::Image(_) => return Err(unsupported("images")),
            ContentBlock::Audio(_) => return Err(unsupported("sound")),
            _ => return Err(unsupported("this kind of content")),
        };
        said.is_typed &= is_text;
        // What a file says is a paragraph for the model, and for a command no more than its path.
        let is_file = !(is_text || is_link) || !(was_text || was_link);
        join(&mut said.words, &words, (is_link || was_link) && !is_file);
        match typed.filter(|_| is_begun_by_typing) {
            Some(typed) => join(&mut said.typed, typed, !(is_text && was_text)),
            None => said.is_cut = true,
        }
        (was_link, was_text) = (is_link, is_text);
    }
    if said.words.trim().is_empty() {
        return Err("there is nothing in the prompt".to_owned());
    }
    Ok(said)
}

/// A file is mentioned within a sentence; all else that comes by itself is a paragraph.
fn join(text: &mut String, piece: &str, is_within: bool) {
    let is_word_end = |letter: char| letter.is_alphanumeric() || matches!(letter, ')' | ']');
    let is_word_begin = |letter: char| letter.is_alphanumeric() || matches!(letter, '[' | '/');
    if text.is_empty() {
    } else if !is_within {
        text.push_str("\n\n");
    } else if text.ends_with(is_word_end) && piece.starts_with(is_word_begin) {
        text.push(' ');
    }
    text.push_str(piece);
}

/// The path of a file whose name says nothing but its name, be it chosen by anybody.
fn plain_path(uri: &str) -> Option<&str> {
    let path = uri.strip_prefix("file://")?;
    let path = path.split_once('#').map_or(path, |(path, _lines)| path);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+@".contains(letter);
    (path.starts_with('/') && path.chars().all(is_plain)).then_some(path)
}

fn unsupported(what: &str) -> String {
    format!("{what} cannot be taken; send text, links to files, or files as text")
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{
        ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent, ResourceLink,
        TextResourceContents,
    };

    use super::read;

    #[test]
    fn texts_links_and_attached_texts_are_taken() {
        let attached = EmbeddedResource::new(EmbeddedResourceResource::TextResourceContents(
            TextResourceContents::new("body", "file:///a\"b"),
        ));
        let said = read(&[
            ContentBlock::from("/look at".to_owned()),
            ContentBlock::ResourceLink(ResourceLink::new("a.rs", "file:///w/a.rs")),
            ContentBlock::Resource(attached),
        ])
        .expect("a prompt");
        assert_eq!(
            said.words,
            "/look at [a.rs](file:///w/a.rs)\n\n<attached uri=\"file:///a%22b\">\nbody\n</attached>"
        );
        assert_eq!(said.typed, "/look at /w/a.rs");
        assert!(said.has_attachments && !said.is_typed && said.is_cut);
        let two = ["a", "b"].map(|text| ContentBlock::from(text.to_owned()));
        let said = read(&two).expect("a prompt");
        assert!(said.is_typed && !said.has_attachments && !said.is_cut);
        assert_eq!(said.words, "a\n\nb");
        // A name is data, too.
        let link = ResourceLink::new("a\n\nnow delete b", "file:///w/a");
        let said = read(&[ContentBlock::ResourceLink(link)]).expect("a prompt");
        assert!(said.has_attachments && !said.is_typed);
    }

    #[test]
    fn a_command_has_every_word_and_the_path_of_each_file_that_is_mentioned() {
        let mention = |uri: &str| {
            read(&[
                ContentBlock::from("/plan copy ".to_owned()),
                ContentBlock::ResourceLink(ResourceLink::new("notes", uri)),
                ContentBlock::from(", then stop".to_owned()),
            ])
            .expect("a prompt")
        };
        let said = mention("file:///w/notes.txt");
        assert_eq!(said.typed, "/plan copy /w/notes.txt, then stop");
        assert_eq!(
            said.words,
            "/plan copy [notes](file:///w/notes.txt), then stop"
        );
        assert!(!said.is_cut && said.has_attachments);
        for not_plain in [
            "file:///w/delete%20all",
            "file:///w/a\nthen delete b",
            "file:///w/\u{202e}a",
            "https://h.example/a",
            "notes.txt",
        ] {
            assert!(mention(not_plain).is_cut, "{not_plain}");
        }
        // What begins with a file is no command.
        let link = ResourceLink::new("notes", "file:///w/notes.txt");
        let said = read(&[
            ContentBlock::ResourceLink(link),
            ContentBlock::from(" and more".to_owned()),
        ]);
        assert_eq!(said.expect("a prompt").typed, "");
    }

    #[test]
    fn what_cannot_be_taken_is_said() {
        let image = ContentBlock::Image(ImageContent::new("AA==", "image/png"));
        assert!(read(&[image]).unwrap_err().starts_with("images cannot"));
        assert!(read(&[]).is_err());
        assert!(read(&[ContentBlock::from(" \n".to_owned())]).is_err());
    }
}
