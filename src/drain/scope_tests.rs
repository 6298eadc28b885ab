//! Labels and windows: opened, nested and closed.

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
fn labels_of_domains_end_in_any_order() {
    let mut scopes = Scopes::default();
    scopes.push(1, "step").unwrap();
    scopes.push_in(1, 7, "library/sort").unwrap();
    assert_eq!(current(&scopes), "step/library/sort");
    assert!(scopes.pop(1));
    assert_eq!(current(&scopes), "step/library/sort");
    assert!(!scopes.pop(1) && !scopes.pop_in(1, 8) && !scopes.pop_in(2, 7));
    assert!(scopes.pop_in(1, 7));
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
