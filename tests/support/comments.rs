//! Stand-ins for the services that have pull requests: servers of this machine that know the few requests that comments
//! need.

use std::io::{BufRead, BufReader, Read, Write};
use std::mem;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// The comments of one pull request, and the requests that were made.
#[derive(Default)]
struct Comments {
    /// The number and the text of each.
    comments: Vec<(u64, String)>,
    requests: Vec<String>,
}

/// The address, header and method of a service.
pub struct Kind {
    list: &'static str,
    one: &'static str,
    replaces: &'static str,
    token: &'static str,
}

/// GitHub, with pull request 7 of `owner/project`, and the token `secret`.
pub const GITHUB: Kind = Kind {
    list: "/repos/owner/project/issues/7/comments",
    one: "/repos/owner/project/issues/comments/",
    replaces: "PATCH",
    token: "authorization: bearer secret",
};

/// GitLab, with merge request 7 of project 42, and the token `secret`.
pub const GITLAB: Kind = Kind {
    list: "/projects/42/merge_requests/7/notes",
    one: "/projects/42/merge_requests/7/notes/",
    replaces: "PUT",
    token: "private-token: secret",
};

/// A service.
pub struct Service {
    /// The address of its interface.
    pub address: String,
    state: Arc<Mutex<Comments>>,
}

impl Service {
    /// One that has so many comments of others.
    ///
    /// # Panics
    ///
    /// Panics if the machine has no port.
    pub fn new(kind: &'static Kind, others: u64) -> Self {
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
        Self { address, state }
    }

    /// The texts of comments that are rocov's, and the methods of the requests since the last call.
    ///
    /// # Panics
    ///
    /// Panics if a request was none that it knows.
    pub fn since(&self) -> (Vec<String>, Vec<String>) {
        let mut state = self.state.lock().unwrap();
        let texts = state.comments.iter().map(|(_, text)| text.clone());
        let own = texts.filter(|text| text.starts_with("<!-- rocov: "));
        (own.collect(), mem::take(&mut state.requests))
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
            let value = query.split('&').find_map(|part| part.strip_prefix(name));
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
