//! The whole instruction table, generated from the description: forms, bits, syntax, operands, provenance.
#![allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags,
    rustdoc::bare_urls
)]
#![doc = ""]
#![doc = include_str!(concat!(env!("OUT_DIR"), "/reference.md"))]
