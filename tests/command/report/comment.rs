//! `rocov comment`, on stand-ins for the services: servers of this machine that know the few requests that it makes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::*;

/// The comments of one pull request, and the requests that were made.
#[derive(Default)]
struct Comments {
    /// The number and the text of each.
    comments: Vec<(u64, String)>,
    requests: Vec<String>,
}

/// A service.
struct Service {
    address: String,
    state: Arc<Mutex<Comments>>,
    place: Place,
}

/// The address, header and method of a service.
struct Kind {
    list: &'static str,
    one: &'static str,
    replaces: &'static str,
    token: &'static str,
}

const GITHUB: Kind = Kind {
    list: "/repos/owner/project/issues/7/comments",
    one: "/repos/owner/project/issues/comments/",
    replaces: "PATCH",
    token: "authorization: bearer secret",
};
const GITLAB: Kind = Kind {
    list: "/projects/42/merge_requests/7/notes",
    one: "/projects/42/merge_requests/7/notes/",
    replaces: "PUT",
    token: "private-token: secret",
};

impl Service {
    /// One that has so many comments of others.
    fn new(kind: &'static Kind, others: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(Comments::default()));
        let other = |number| (number, format!("other {number}\n<!-- rocov: coverage -->"));
        state.lock().unwrap().comments = (0..others).map(other).collect();
        let served = Arc::clone(&state);
        // It ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(kind, stream.unwrap(), &mut served.lock().unwrap());
            }
        });
        let place = Place::new();
        let event = json!({"pull_request": {"number": 7}}).to_string();
        fs::write(place.path().join("event.json"), event).unwrap();
        Self {
            address,
            state,
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
            .env("GITHUB_API_URL", &self.address)
            .env("GITHUB_REPOSITORY", "owner/project")
            .env("GITHUB_EVENT_PATH", "event.json")
            .env("GITHUB_TOKEN", "secret");
        command
    }

    fn on_gitlab(&self, text: &str) -> Command {
        let mut command = self.command(text, &[]);
        command
            .env("GITLAB_CI", "true")
            .env("CI_API_V4_URL", &self.address)
            .env("CI_PROJECT_ID", "42")
            .env("CI_MERGE_REQUEST_IID", "7")
            .env("GITLAB_TOKEN", "secret");
        command
    }

    /// The texts of comments that are rocov's, and the methods of the requests since the last call.
    fn since(&self) -> (Vec<String>, Vec<String>) {
        let mut state = self.state.lock().unwrap();
        let texts = state.comments.iter().map(|(_, text)| text.clone());
        let own = texts.filter(|text| text.starts_with("<!-- rocov: "));
        (own.collect(), std::mem::take(&mut state.requests))
    }
}

/// Answers one request.
fn answer(kind: &Kind, mut stream: TcpStream, state: &mut Comments) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let found = head.iter().map(|line| line.to_ascii_lowercase());
        found
            .filter_map(|line| line.strip_prefix(name).map(str::to_owned))
            .next()
    };
    let length = header("content-length: ").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = body["body"].as_str().unwrap_or_default().to_owned();
    let mut words = head[0].split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    state.requests.push(method.to_owned());
    let is_allowed = head
        .iter()
        .any(|line| line.to_ascii_lowercase() == kind.token);
    let (status, answer) = if !is_allowed {
        (401, json!({"message": "Bad credentials"}))
    } else if method == "GET" && path == kind.list {
        let value = |name: &str| {
            let value = query.split('&').find_map(|it| it.strip_prefix(name));
            value.unwrap().parse::<usize>().unwrap()
        };
        let (page, size) = (value("page="), value("per_page="));
        let shown = state.comments.iter().skip((page - 1) * size).take(size);
        (
            200,
            shown
                .map(|(id, body)| json!({"id": id, "body": body}))
                .collect(),
        )
    } else if method == "POST" && path == kind.list {
        let number = state.comments.len() as u64;
        state.comments.push((number, text));
        (201, json!({"id": number}))
    } else if let (true, Some(number)) = (method == kind.replaces, path.strip_prefix(kind.one)) {
        let number: usize = number.parse().unwrap();
        state.comments[number].1 = text;
        (200, json!({}))
    } else {
        (404, json!({"message": "Not Found"}))
    };
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.len()
    );
    stream.write_all((head + &answer).as_bytes()).unwrap();
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
        said.contains("failed (401): Bad credentials: check the token"),
        "{said}"
    );
    assert!(!said.contains("wrong"), "{said}");
    let mut without = github.on_github("one", &[]);
    let said = failure(&without.env_remove("GITHUB_TOKEN").output().unwrap(), 1);
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
