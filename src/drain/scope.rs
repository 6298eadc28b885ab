//! Where what is counted goes: to the profile of its load, to that of a label, or nowhere, while no
//! window is open.

use crate::output::{Label, LabelError};

/// Where what is counted goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// To the profiles as they are named.
    #[default]
    Unlabelled,
    /// To those of this label.
    Labelled(Label),
    /// Nowhere.
    LeftOut,
}

/// The labels that the threads of a process have open, and its window.
#[derive(Debug, Default)]
pub struct Scopes {
    /// The label of all that is counted.
    base: Option<Label>,
    /// What was opened, the latest last: by which thread, and the label from the outermost on.
    open: Vec<(u64, Option<Label>)>,
    /// The label of the dump that has what is counted now.
    dump: Option<String>,
    window: Window,
}

/// Between `start` and `stop` a window is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// Nobody has asked for one: everything counts.
    #[default]
    None,
    /// What is counted now counts.
    Open,
    /// What is counted now does not.
    Closed,
}

impl Scopes {
    /// All is of the label `base`, if any.
    #[must_use]
    pub fn new(base: Option<Label>) -> Scopes {
        Scopes {
            base,
            ..Scopes::default()
        }
    }

    /// Whether a window is open.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Opens or closes a window.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// A thread opens a label within its innermost.
    ///
    /// # Errors
    /// Fails where that is none. What is counted then goes to the thread's innermost label, and
    /// [`Scopes::pop`] is owed all the same: who opens and closes in pairs need not know.
    pub fn push(&mut self, thread: u64, label: &str) -> Result<(), LabelError> {
        let outer = self.innermost(thread);
        let label = within(outer, label);
        let outer = outer.cloned();
        self.open
            .push((thread, label.as_ref().ok().cloned().or(outer)));
        label.map(drop)
    }

    /// A thread closes its innermost label. False where it has none.
    pub fn pop(&mut self, thread: u64) -> bool {
        let last = self.open.iter().rposition(|(of, _)| *of == thread);
        last.map(|last| self.open.remove(last)).is_some()
    }

    /// Whether a thread has labels open.
    #[must_use]
    pub fn has_open(&self, thread: u64) -> bool {
        self.open.iter().any(|(of, _)| *of == thread)
    }

    /// A thread has ended, and closes what it has open.
    pub fn close(&mut self, thread: u64) {
        self.open.retain(|(of, _)| *of != thread);
    }

    /// What is counted from now on is for a dump of this label, within those that are open; `None`: for
    /// none.
    pub fn set_dump(&mut self, label: Option<String>) {
        self.dump = label;
    }

    /// Whether more labels are open than can share a directory, so that counts go to none.
    #[must_use]
    pub fn are_too_many(&self) -> bool {
        let labels = self.labels();
        !labels.is_empty() && Label::sharing(&labels).is_none()
    }

    /// Where what is counted goes now. GPU counters do not tell which thread has launched a kernel:
    /// where several have labels, it goes to what these share.
    #[must_use]
    pub fn current(&self) -> Scope {
        match self.window {
            Window::Closed => Scope::LeftOut,
            Window::None | Window::Open => {
                let dump = self.dump.as_ref().and_then(|label| self.below(label).ok());
                dump.unwrap_or_else(|| self.scope_of(&self.labels()))
            }
        }
    }

    /// The same for what is to have a label of its own within the current one.
    ///
    /// # Errors
    /// Fails where `label` is none.
    pub fn below(&self, label: &str) -> Result<Scope, LabelError> {
        if self.window == Window::Closed {
            return Ok(Scope::LeftOut);
        }
        let labels = self.labels();
        let below: Result<Vec<Label>, LabelError> = match labels.as_slice() {
            [] => within(self.base.as_ref(), label).map(|label| vec![label]),
            labels => labels.iter().map(|it| within(Some(it), label)).collect(),
        };
        below.map(|labels| self.scope_of(&labels))
    }

    /// The label that `thread` has opened last.
    fn innermost(&self, thread: u64) -> Option<&Label> {
        let own = self.open.iter().rev().find(|(of, _)| *of == thread);
        own.map_or(self.base.as_ref(), |(_, label)| label.as_ref())
    }

    /// The innermost labels of all threads, in the order of their names.
    fn labels(&self) -> Vec<Label> {
        let mut labels: Vec<Label> = Vec::new();
        for (thread, _) in &self.open {
            let Some(label) = self.innermost(*thread) else {
                continue;
            };
            if let Err(at) = labels.binary_search(label) {
                labels.insert(at, label.clone());
            }
        }
        labels
    }

    /// Labels that cannot share a directory get none: the counts are more than what they are of.
    fn scope_of(&self, labels: &[Label]) -> Scope {
        let shared = Label::sharing(labels).filter(|it| Some(it) != self.base.as_ref());
        shared.map_or(Scope::Unlabelled, Scope::Labelled)
    }
}

fn within(outer: Option<&Label>, label: &str) -> Result<Label, LabelError> {
    match outer {
        Some(outer) => format!("{outer}/{label}").parse(),
        None => label.parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current(scopes: &Scopes) -> String {
        match scopes.current() {
            Scope::Unlabelled => "unlabelled".to_owned(),
            Scope::Labelled(label) => label.to_string(),
            Scope::LeftOut => "left out".to_owned(),
        }
    }

    #[test]
    fn labels_nest_and_end_in_pairs() {
        let mut scopes = Scopes::default();
        assert_eq!(current(&scopes), "unlabelled");
        scopes.push(1, "suite").unwrap();
        scopes.push(1, "a/b").unwrap();
        assert_eq!(current(&scopes), "suite/a/b");
        assert!(scopes.push(1, "..").is_err());
        assert_eq!(current(&scopes), "suite/a/b");
        assert!(scopes.pop(1));
        assert!(scopes.pop(1));
        assert_eq!(current(&scopes), "suite");
        assert!(scopes.pop(1));
        assert!(!scopes.pop(1));
        assert_eq!(current(&scopes), "unlabelled");
    }

    #[test]
    fn threads_share_what_is_counted_meanwhile() {
        let mut scopes = Scopes::new(Some("all".parse().unwrap()));
        assert_eq!(current(&scopes), "unlabelled");
        scopes.push(2, "b").unwrap();
        scopes.push(1, "a").unwrap();
        assert_eq!(current(&scopes), "all/a & all/b");
        scopes.push(2, "c").unwrap();
        assert_eq!(current(&scopes), "all/a & all/b/c");
        assert!(scopes.pop(2) && scopes.pop(2));
        assert_eq!(current(&scopes), "all/a");
        scopes.push(3, "a").unwrap();
        assert_eq!(current(&scopes), "all/a", "the same label is one");
    }

    #[test]
    fn a_dump_is_below_what_is_open() {
        let mut scopes = Scopes::default();
        let label = |text: &str| text.parse::<Label>().unwrap();
        assert_eq!(scopes.below("x"), Ok(Scope::Labelled(label("x"))));
        scopes.push(1, "a").unwrap();
        assert_eq!(scopes.below("x"), Ok(Scope::Labelled(label("a/x"))));
        scopes.push(2, "b").unwrap();
        let shared = Label::sharing(&[label("a/x"), label("b/x")]).unwrap();
        assert_eq!(scopes.below("x"), Ok(Scope::Labelled(shared)));
        assert!(scopes.below("").is_err());
        scopes.set_window(Window::Closed);
        assert_eq!(scopes.below("x"), Ok(Scope::LeftOut));
    }

    #[test]
    fn a_dump_may_have_what_is_counted_for_a_while() {
        let mut scopes = Scopes::default();
        scopes.set_dump(Some("x".to_owned()));
        assert_eq!(current(&scopes), "x");
        scopes.push(1, "a").unwrap();
        assert_eq!(current(&scopes), "a/x");
        scopes.set_dump(None);
        assert_eq!(current(&scopes), "a");
    }

    #[test]
    fn labels_end_with_their_thread() {
        let mut scopes = Scopes::default();
        scopes.push(1, "a").unwrap();
        scopes.push(2, "b").unwrap();
        scopes.push(1, "c").unwrap();
        assert!(scopes.has_open(1));
        scopes.close(1);
        assert_eq!(current(&scopes), "b");
        assert!(!scopes.has_open(1) && scopes.has_open(2));
    }

    #[test]
    fn labels_that_cannot_share_a_directory_get_none() {
        let mut scopes = Scopes::default();
        for thread in [1, 2] {
            let label = format!("{thread}").repeat(128);
            assert!(!scopes.are_too_many());
            scopes.push(thread, &label).unwrap();
        }
        assert!(scopes.are_too_many());
        assert_eq!(current(&scopes), "unlabelled");
    }

    #[test]
    fn nothing_counts_while_a_window_is_closed() {
        let mut scopes = Scopes::default();
        scopes.push(1, "a").unwrap();
        scopes.set_window(Window::Closed);
        assert_eq!(current(&scopes), "left out");
        scopes.set_window(Window::Open);
        assert_eq!(current(&scopes), "a");
    }
}
