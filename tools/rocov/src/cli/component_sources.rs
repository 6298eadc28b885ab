//! Components that are made of sources.

use std::str::FromStr;

use anyhow::Result;
use rocov::support::diagnostic::fail;

use crate::coverage::SourceGlobs;

/// A name of a component, and a glob for its sources.
#[derive(Debug, Clone)]
pub(crate) struct ComponentSources {
    name: String,
    glob: String,
}

impl ComponentSources {
    /// The globs of each component, in the order of their first.
    ///
    /// # Errors
    ///
    /// Fails if one is not valid.
    pub(super) fn grouped(given: &[Self]) -> Result<Vec<(String, SourceGlobs)>> {
        let mut components: Vec<(&str, Vec<String>)> = Vec::new();
        for Self { name, glob } in given {
            match components.iter_mut().find(|(known, _)| known == name) {
                Some((_, globs)) => globs.push(glob.clone()),
                None => components.push((name, vec![glob.clone()])),
            }
        }
        let components = components.into_iter();
        components
            .map(|(name, globs)| Ok((name.to_owned(), SourceGlobs::new(&globs)?)))
            .collect()
    }
}

impl FromStr for ComponentSources {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('=') {
            Some((name, glob)) if !name.is_empty() && !glob.is_empty() => {
                SourceGlobs::new(&[glob.to_owned()])?;
                Ok(Self {
                    name: name.to_owned(),
                    glob: glob.to_owned(),
                })
            }
            _ => fail!("not a name and a glob"; "use NAME=GLOB"),
        }
    }
}
