//! The destination of counts: the load's own profile, the profile of a label, or nothing while a window is
//! closed.

use crate::store::{Label, LabelError};

/// The destination of counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The profiles without a label.
    #[default]
    Unlabelled,
    /// The profiles of this label.
    Labelled(Label),
    /// Nothing: the counts are dropped.
    LeftOut,
}

/// The labels that the threads of a process have open, and its window.
#[derive(Debug, Default)]
pub struct Scopes {
    /// The label of the whole process.
    base: Option<Label>,
    /// The open labels, the latest last.
    open: Vec<Open>,
    /// The label of the dump that gets the current counts.
    dump: Option<String>,
    window: Window,
}

/// An open label.
#[derive(Debug)]
struct Open {
    thread: u64,
    /// The domain in which it was opened. Labels of different domains may close in any order.
    domain: u64,
    /// The whole label from the outermost name on.
    label: Option<Label>,
}

/// The state of the process's window. It is open between `start` and `stop`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// There is no window: all counts are kept.
    #[default]
    None,
    /// The window is open: current counts are kept.
    Open,
    /// The window is closed: current counts are dropped.
    Closed,
}

impl Scopes {
    /// Makes scopes for a process with the label `base`, if any.
    #[must_use]
    pub fn new(base: Option<Label>) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// The state of the window.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Opens or closes a window.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }

    /// Opens a label for a thread, within the thread's innermost label.
    ///
    /// # Errors
    /// Fails if `label` is not valid. Counts then go to the thread's innermost label. Call [`Scopes::pop`] in
    /// this case too, so that callers can open and close in pairs.
    pub fn push(&mut self, thread: u64, label: &str) -> Result<(), LabelError> {
        self.push_in(thread, 0, label)
    }

    /// Does the work of [`Scopes::push`] for a label of a domain. Domain 0 is that of [`Scopes::push`].
    ///
    /// # Errors
    /// Fails if [`Scopes::push`] would.
    pub fn push_in(&mut self, thread: u64, domain: u64, label: &str) -> Result<(), LabelError> {
        let outer = self.innermost(thread);
        let label = within(outer, label);
        let outer = outer.cloned();
        self.open.push(Open {
            thread,
            domain,
            label: label.as_ref().ok().cloned().or(outer),
        });
        label.map(drop)
    }

    /// Closes a thread's innermost label. Returns false if it has none.
    pub fn pop(&mut self, thread: u64) -> bool {
        self.pop_in(thread, 0)
    }

    /// Closes a thread's innermost label of a domain. Labels within it keep its name. Returns false if it has none.
    pub fn pop_in(&mut self, thread: u64, domain: u64) -> bool {
        let is_it = |open: &Open| open.thread == thread && open.domain == domain;
        let last = self.open.iter().rposition(is_it);
        last.map(|last| self.open.remove(last)).is_some()
    }

    /// Returns whether a thread has open labels.
    #[must_use]
    pub fn has_open(&self, thread: u64) -> bool {
        self.open.iter().any(|open| open.thread == thread)
    }

    /// Closes all labels of a thread that has ended.
    pub fn close(&mut self, thread: u64) {
        self.open.retain(|open| open.thread != thread);
    }

    /// Assigns counts from now on to a dump of this label, within the open labels. `None` ends that.
    pub fn set_dump(&mut self, label: Option<String>) {
        self.dump = label;
    }

    /// Returns whether more labels are open than can share a directory. Counts then go to no label.
    #[must_use]
    pub fn are_too_many(&self) -> bool {
        let labels = self.labels();
        !labels.is_empty() && Label::sharing(&labels).is_none()
    }

    /// The current destination of counts. GPU counters do not show which thread has launched a kernel, so the
    /// labels of several threads share the counts.
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

    /// The destination for a label within the current ones.
    ///
    /// # Errors
    /// Fails if `label` is not valid.
    pub fn below(&self, label: &str) -> Result<Scope, LabelError> {
        if self.window == Window::Closed {
            return Ok(Scope::LeftOut);
        }
        let labels = self.labels();
        let below: Result<Vec<Label>, LabelError> = match labels.as_slice() {
            [] => within(self.base.as_ref(), label).map(|label| vec![label]),
            labels => labels
                .iter()
                .map(|outer| within(Some(outer), label))
                .collect(),
        };
        below.map(|labels| self.scope_of(&labels))
    }

    /// The latest open label of `thread`.
    fn innermost(&self, thread: u64) -> Option<&Label> {
        let own = self.open.iter().rev().find(|open| open.thread == thread);
        own.map_or(self.base.as_ref(), |open| open.label.as_ref())
    }

    /// The innermost labels of all threads, ordered by name.
    fn labels(&self) -> Vec<Label> {
        let mut labels: Vec<Label> = Vec::new();
        for open in &self.open {
            let Some(label) = self.innermost(open.thread) else {
                continue;
            };
            if let Err(at) = labels.binary_search(label) {
                labels.insert(at, label.clone());
            }
        }
        labels
    }

    /// If the labels cannot share a directory, the counts get no label: they matter more than their labels.
    fn scope_of(&self, labels: &[Label]) -> Scope {
        let shared = Label::sharing(labels).filter(|label| Some(label) != self.base.as_ref());
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
#[path = "scope_tests.rs"]
mod tests;
