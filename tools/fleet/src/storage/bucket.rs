//! A data set in the bucket of an object store: S3, or a server that speaks its protocol.
//!
//! The usual variables of AWS give the server and the credentials (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID` and others,
//! as the crate object_store reads them).

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    ClientOptions, Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, RetryConfig,
};
use rocov::store::layout::IN_BUCKETS;
use rocov::support::diagnostic::{diagnostic, fail};
use tokio::runtime::{Builder, Runtime};

use super::content::Content;

/// The times that a request is repeated, if the server fails or cannot be reached.
const RETRIES: usize = 3;
/// The time after which a request is not repeated.
const RETRY_TIME: Duration = Duration::from_secs(60);
/// The longest time of a request: of one file.
const REQUEST_TIME: Duration = Duration::from_secs(600);
/// The longest time until a server accepts a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// A prefix in a bucket.
pub(crate) struct Bucket {
    store: Arc<AmazonS3>,
    bucket: String,
    prefix: String,
    runtime: Runtime,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name(""))
    }
}

impl Bucket {
    /// The prefix `within` of a bucket, as in `BUCKET/PREFIX`. Nothing is looked at there.
    ///
    /// # Errors
    ///
    /// Fails if it names no bucket, or the settings are wrong.
    pub(super) fn open(within: &str) -> Result<Self> {
        let (bucket, prefix) = within.split_once('/').unwrap_or((within, ""));
        let prefix = prefix.trim_end_matches('/');
        if bucket.is_empty() || prefix.split('/').any(str::is_empty) && !prefix.is_empty() {
            fail!("{IN_BUCKETS}{within} names no bucket"; "use {IN_BUCKETS}BUCKET/PREFIX");
        }
        let failed = || format!("cannot use {IN_BUCKETS}{within}");
        let retries = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: RETRY_TIME,
            ..RetryConfig::default()
        };
        let mut client = ClientOptions::new()
            .with_timeout(REQUEST_TIME)
            .with_connect_timeout(CONNECT_TIME);
        if std::env::var("AWS_ALLOW_HTTP").is_ok_and(|value| matches!(&*value, "true" | "1")) {
            client = client.with_allow_http(true);
        }
        let store = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_retry(retries)
            .with_client_options(client)
            .build()
            .with_context(failed)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .with_context(failed)?;
        Ok(Self {
            store: Arc::new(store),
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            runtime,
        })
    }

    /// The name of an object.
    pub(super) fn name(&self, path: &str) -> String {
        format!("{IN_BUCKETS}{}/{}", self.bucket, self.key(path))
    }

    /// The key of an object: its path in the bucket.
    fn key(&self, path: &str) -> String {
        match (&*self.prefix, path) {
            ("", path) => path.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}/{path}"),
        }
    }

    fn location(&self, path: &str) -> Result<Path> {
        Path::parse(self.key(path)).with_context(|| format!("cannot use {}", self.name(path)))
    }

    pub(super) fn has_any(&self) -> Result<bool> {
        let prefix = self.location("")?;
        let first = self
            .runtime
            .block_on(async { self.store.list(Some(&prefix)).try_next().await });
        let first = first.map_err(|error| self.error("read", "", error))?;
        Ok(first.is_some())
    }

    pub(super) fn list(
        &self,
        below: &str,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let prefix = self.location(below)?;
        let listed = self
            .runtime
            .block_on(async { self.store.list(Some(&prefix)).try_collect::<Vec<_>>().await });
        let listed = listed.map_err(|error| self.error("list", below, error))?;
        let start = self.key("").len() + usize::from(!self.prefix.is_empty());
        let paths = listed.into_iter().filter_map(|object| {
            let path = object.location.as_ref().get(start..)?.to_owned();
            let rest = path.strip_prefix(below)?.trim_start_matches('/');
            let (directories, _) = rest.rsplit_once('/').unwrap_or_default();
            let mut directories = directories.split('/').filter(|part| !part.is_empty());
            directories.all(is_wanted).then_some(path)
        });
        Ok(paths.collect())
    }

    pub(super) fn read(&self, path: &str) -> Result<Option<Content>> {
        self.runtime.block_on(self.content(path))
    }

    pub(super) fn read_all(&self, paths: &[&str]) -> Result<Vec<Option<Content>>> {
        let contents = paths.iter().map(|path| self.content(path));
        self.runtime.block_on(try_join_all(contents))
    }

    async fn content(&self, path: &str) -> Result<Option<Content>> {
        let location = self.location(path)?;
        let read = async { self.store.get(&location).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(Content::Bytes(bytes))),
            Err(StoreError::NotFound { source, .. }) if !is_of_bucket(&source.to_string()) => {
                Ok(None)
            }
            Err(error) => Err(self.error("read", path, error)),
        }
    }

    pub(super) fn put(&self, path: &str, contents: Vec<u8>) -> Result<()> {
        let location = self.location(path)?;
        let put = self
            .runtime
            .block_on(self.store.put(&location, contents.into()));
        put.map(drop)
            .map_err(|error| self.error("write", path, error))
    }

    pub(super) fn create(&self, path: &str, contents: Vec<u8>) -> Result<bool> {
        let location = self.location(path)?;
        let contents = contents.into();
        let put = self
            .store
            .put_opts(&location, contents, PutMode::Create.into());
        match self.runtime.block_on(put) {
            Ok(_) => Ok(true),
            // If requests for one key meet, S3 answers 409 to all but one, or to all. So the importer looks again.
            Err(StoreError::AlreadyExists { .. } | StoreError::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.error("write", path, error)),
        }
    }

    pub(super) fn remove(&self, path: &str) -> Result<()> {
        let location = self.location(path)?;
        match self.runtime.block_on(self.store.delete(&location)) {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error("remove", path, error)),
        }
    }

    /// The error of a request, in one line, with the next step.
    fn error(&self, action: &str, path: &str, error: StoreError) -> Error {
        let name = self.name(path);
        let mut causes = Vec::new();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push(cause.to_string());
            next = cause.source();
        }
        let all = causes.join(" ");
        let cause = causes.pop().unwrap_or_else(|| error.to_string());
        let code = code(&all);
        let is_refused = matches!(
            error,
            StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. }
        );
        let (reason, remedy) = if is_of_bucket(&all) {
            let reason = format!("there is no bucket {}", self.bucket);
            (reason, "create it, or name another one")
        } else if is_refused || code.is_some_and(|code| code.starts_with("InvalidAccessKey")) {
            let reason = format!(
                "the server refused the credentials ({})",
                code.unwrap_or("403")
            );
            (
                reason,
                "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and what they may do in the bucket",
            )
        } else if all.contains("169.254.169.254") {
            (
                "there are no credentials".to_owned(),
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            )
        } else if let Some(code) = code {
            (format!("the server answered {code}"), "try again later")
        } else if all.contains("scheme is not allowed") {
            (
                "its address starts with http://".to_owned(),
                "set AWS_ALLOW_HTTP=true, or use an address with https://",
            )
        } else {
            let cause = cause.split_whitespace().collect::<Vec<_>>().join(" ");
            (
                cause,
                "check AWS_ENDPOINT_URL and AWS_REGION, and try again",
            )
        };
        diagnostic!("cannot {action} {name}: {reason}"; "{remedy}").into()
    }
}

/// Returns whether the error of a server is that there is no bucket.
fn is_of_bucket(error: &str) -> bool {
    error.contains("NoSuchBucket")
}

/// The code of a server's error, as in `<Code>SlowDown</Code>`.
fn code(error: &str) -> Option<&str> {
    let (_, rest) = error.split_once("<Code>")?;
    rest.split_once("</Code>").map(|(code, _)| code)
}
