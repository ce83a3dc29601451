//! Reads ISLE as nested lists.

use std::collections::BTreeSet;

/// A list or a word of ISLE.
#[derive(Debug)]
pub enum Node {
    Word(String),
    List(Vec<Node>),
}

impl Node {
    /// The word that a list begins with.
    pub fn head(&self) -> Option<&str> {
        match self {
            Node::List(nodes) => match nodes.first() {
                Some(Node::Word(word)) => Some(word),
                _ => None,
            },
            Node::Word(_) => None,
        }
    }

    /// The heads of this list and of all within it; names that a `let` gives are none.
    pub fn heads(&self, heads: &mut BTreeSet<String>) {
        let Node::List(nodes) = self else {
            return;
        };
        match (self.head(), nodes.as_slice()) {
            (Some("let"), [_, Node::List(bindings), body @ ..]) => {
                for binding in bindings {
                    if let Node::List(parts) = binding {
                        parts.iter().for_each(|part| part.heads(heads));
                    }
                }
                body.iter().for_each(|node| node.heads(heads));
            }
            (head, _) => {
                heads.extend(head.map(str::to_owned));
                nodes.iter().for_each(|node| node.heads(heads));
            }
        }
    }
}

/// The lists of a text without comments.
pub fn parse(text: &str) -> Vec<Node> {
    let mut open: Vec<Vec<Node>> = vec![Vec::new()];
    for line in text.lines() {
        let code = line.split(';').next().unwrap_or_default();
        let spaced = code.replace('(', " ( ").replace(')', " ) ");
        for word in spaced.split_whitespace() {
            match word {
                "(" => open.push(Vec::new()),
                ")" => {
                    let list = open.pop().expect("a list is open");
                    let outer = open.last_mut().expect("parentheses match");
                    outer.push(Node::List(list));
                }
                _ => {
                    let list = open.last_mut().expect("parentheses match");
                    list.push(Node::Word(word.to_owned()));
                }
            }
        }
    }
    assert_eq!(open.len(), 1, "parentheses match");
    open.remove(0)
}
