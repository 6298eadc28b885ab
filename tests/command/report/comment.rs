//! `rocov comment`, on stand-ins for the services.

use rocov_tests::comments::{self, GITHUB, GITLAB, Kind};
use serde_json::json;

use super::*;

/// A service, and a directory with the files of a job.
struct Service {
    comments: comments::Service,
    place: Place,
}

impl Service {
    /// One that has so many comments of others.
    fn new(kind: &'static Kind, others: u64) -> Self {
        let place = Place::new();
        let event = json!({"pull_request": {"number": 7}}).to_string();
        fs::write(place.path().join("event.json"), event).unwrap();
        Self {
            comments: comments::Service::new(kind, others),
            place,
        }
    }

    fn command(&self, text: &str, arguments: &[&str]) -> Command {
        fs::write(self.place.path().join("summary.md"), text).unwrap();
        let mut command = rocov();
        command.current_dir(self.place.path());
        for variable in ["GITHUB_ACTIONS", "GITLAB_CI", "http_proxy", "ALL_PROXY"] {
            command.env_remove(variable);
        }
        command.args(["comment", "summary.md"]).args(arguments);
        command
    }

    fn on_github(&self, text: &str, arguments: &[&str]) -> Command {
        let mut command = self.command(text, arguments);
        command
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_API_URL", &self.comments.address)
            .env("GITHUB_REPOSITORY", "owner/project")
            .env("GITHUB_EVENT_PATH", "event.json")
            .env("GITHUB_TOKEN", "secret");
        command
    }

    fn on_gitlab(&self, text: &str) -> Command {
        let mut command = self.command(text, &[]);
        command
            .env("GITLAB_CI", "true")
            .env("CI_API_V4_URL", &self.comments.address)
            .env("CI_PROJECT_ID", "42")
            .env("CI_MERGE_REQUEST_IID", "7")
            .env("GITLAB_TOKEN", "secret");
        command
    }

    fn since(&self) -> (Vec<String>, Vec<String>) {
        self.comments.since()
    }
}

#[test]
fn a_comment_stays_one() {
    let github = Service::new(&GITHUB, 100);
    run(&mut github.on_github("# one \"\u{e4}\"\n", &[]));
    let one = "<!-- rocov: coverage -->\n# one \"\u{e4}\"\n".to_owned();
    let asked = |methods: &[&str]| methods.iter().map(ToString::to_string).collect::<Vec<_>>();
    // The list has two pages.
    assert_eq!(github.since(), (vec![one], asked(&["GET", "GET", "POST"])));
    run(&mut github.on_github("two", &[]));
    let two = "<!-- rocov: coverage -->\ntwo".to_owned();
    assert_eq!(
        github.since(),
        (vec![two.clone()], asked(&["GET", "GET", "PATCH"]))
    );
    // Another job has another comment.
    run(&mut github.on_github("three", &["--name=gfx942"]));
    let three = "<!-- rocov: gfx942 -->\nthree".to_owned();
    assert_eq!(github.since().0, [two, three]);

    let gitlab = Service::new(&GITLAB, 1);
    run(&mut gitlab.on_gitlab("one"));
    run(&mut gitlab.on_gitlab("two"));
    let two = "<!-- rocov: coverage -->\ntwo".to_owned();
    assert_eq!(
        gitlab.since(),
        (vec![two], asked(&["GET", "POST", "GET", "PUT"]))
    );
}

#[test]
fn a_service_that_refuses_and_a_job_without_a_request_are_reported() {
    let github = Service::new(&GITHUB, 0);
    let mut wrong = github.on_github("one", &[]);
    let said = failure(&wrong.env("GITHUB_TOKEN", "wrong").output().unwrap(), 1);
    assert!(
        said.contains("failed (401): Bad credentials; check the token"),
        "{said}"
    );
    assert!(!said.contains("wrong"), "{said}");
    let mut without = github.on_github("one", &[]);
    let said = failure(&without.env_remove("GITHUB_TOKEN").output().unwrap(), 1);
    assert!(said.contains("GITHUB_TOKEN is not set"), "{said}");
    let mut empty = github.on_github("one", &[]);
    let said = failure(&empty.env("GITHUB_TOKEN", "").output().unwrap(), 1);
    assert!(said.contains("GITHUB_TOKEN is not set"), "{said}");
    let mut nowhere = github.on_github("one", &[]);
    let said = failure(
        &nowhere
            .env("GITHUB_API_URL", "http://127.0.0.1:1")
            .output()
            .unwrap(),
        1,
    );
    assert!(
        said.contains("cannot reach http://127.0.0.1:1/repos/"),
        "{said}"
    );
    // A push.
    fs::write(
        github.place.path().join("event.json"),
        "{\"before\": \"1\"}",
    )
    .unwrap();
    let output = github.on_github("one", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("no comment was written"));
    let said = failure(&github.command("one", &[]).output().unwrap(), 1);
    assert!(
        said.contains("neither GITHUB_ACTIONS nor GITLAB_CI"),
        "{said}"
    );
    for wrong in ["", "a-->", "a\nb", "a--b"] {
        let output = github
            .on_github("one", &["--name", wrong])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}
