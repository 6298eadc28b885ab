//! The runs that the user wants: `commit=1a2b3c`, `date>=2026-11-01`.

use std::fmt;
use std::str::FromStr;

/// A condition that runs must meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCondition {
    key: RunKey,
    relation: Relation,
    value: String,
}

/// The thing that a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunKey {
    Date,
    Commit,
    Arch,
    Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    AtLeast,
    AtMost,
}

impl RunKey {
    const ALL: [Self; 4] = [Self::Date, Self::Commit, Self::Arch, Self::Run];

    /// Its name, which is that of its partition.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Commit => "commit",
            Self::Arch => "arch",
            Self::Run => "run",
        }
    }
}

impl Relation {
    const ALL: [Self; 3] = [Self::AtLeast, Self::AtMost, Self::Equal];

    fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
        }
    }
}

impl RunCondition {
    /// Returns whether it is of the arch, which a run can have several of.
    pub(crate) fn is_of_arch(&self) -> bool {
        self.key == RunKey::Arch
    }

    /// Returns whether `value` of `key` meets all `conditions` for it: one of those with `=`, if there are some, and
    /// all with `>=` or `<=`.
    pub(crate) fn allow(conditions: &[Self], key: RunKey, value: &str) -> bool {
        let of_key = conditions.iter().filter(|condition| condition.key == key);
        let (mut has_equal, mut is_equal) = (false, false);
        for condition in of_key {
            match condition.relation {
                Relation::Equal => {
                    has_equal = true;
                    is_equal |= condition.value == value;
                }
                Relation::AtLeast if value < &*condition.value => return false,
                Relation::AtMost if value > &*condition.value => return false,
                Relation::AtLeast | Relation::AtMost => {}
            }
        }
        is_equal || !has_equal
    }
}

impl FromStr for RunCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let split = Relation::ALL.into_iter().find_map(|relation| {
            let (key, value) = text.split_once(relation.sign())?;
            Some((key, relation, value))
        });
        let found = split.and_then(|(name, relation, value)| {
            let key = RunKey::ALL.into_iter().find(|key| key.name() == name)?;
            let is_ordered = relation == Relation::Equal || key == RunKey::Date;
            (is_ordered && !value.is_empty()).then(|| Self {
                key,
                relation,
                value: value.to_owned(),
            })
        });
        found.ok_or_else(|| {
            "use commit=COMMIT, arch=ARCH, run=RUN, date=YYYY-MM-DD, date>=YYYY-MM-DD or date<=YYYY-MM-DD".to_owned()
        })
    }
}

impl fmt::Display for RunCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}{}",
            self.key.name(),
            self.relation.sign(),
            self.value
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(texts: &[&str]) -> Vec<RunCondition> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn equal_values_are_alternatives_and_limits_must_all_hold() {
        let some = conditions(&[
            "commit=a",
            "commit=b",
            "date>=2026-02-01",
            "date<=2026-02-28",
        ]);
        let allow = |key, value| RunCondition::allow(&some, key, value);
        assert!(
            allow(RunKey::Commit, "a") && allow(RunKey::Commit, "b") && !allow(RunKey::Commit, "c")
        );
        assert!(allow(RunKey::Date, "2026-02-01") && allow(RunKey::Date, "2026-02-28"));
        assert!(!allow(RunKey::Date, "2026-01-31") && !allow(RunKey::Date, "2026-03-01"));
        assert!(allow(RunKey::Run, "any"));
    }

    #[test]
    fn other_texts_are_no_conditions() {
        for text in [
            "",
            "commit",
            "commit=",
            "branch=main",
            "commit>=a",
            "=a",
            "date>2026",
        ] {
            let error = text.parse::<RunCondition>().unwrap_err();
            assert!(error.contains("commit=COMMIT"), "{text}");
        }
        let shown = conditions(&["date>=2026-02-01"])[0].to_string();
        assert_eq!(shown, "date>=2026-02-01");
    }
}
