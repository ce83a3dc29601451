//! A store of opendal behind a cache of compiled code.
//!
//! opendal knows Redis, S3, GCS, Azure, WebDAV and some dozens more by one interface; which of them are built in, its
//! features say. [`Shared`] is the bridge: two methods, a time limit, and a prefix, since a server may keep other
//! things too. What an entry is worth the cache checks itself.

use anyhow::{Context, Result};
use cranelift_thisgpu::compile::{CacheKey, CacheStore};
use opendal::{ErrorKind, Operator};
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A store that many machines reach.
#[derive(Debug)]
pub struct Shared {
    service: String,
    operator: Operator,
    /// What waits for the network. Threads that compile block on it.
    runtime: Runtime,
    /// Most time that a question may take.
    limit: Duration,
}

impl Shared {
    /// Where entries lie.
    const PREFIX: &str = "thisgpu";

    /// The store of a service, `redis` or `s3` say, with opendal's options for it as `NAME=VALUE`: for Redis
    /// `endpoint=redis://127.0.0.1:6379`, for S3 `bucket=NAME`, `region=NAME` and `endpoint=URL` (secrets are taken
    /// from the environment as S3's own tools do).
    ///
    /// # Errors
    /// When the service is not built in, or an option is missing or wrong.
    pub fn new(service: &str, options: &[String], limit: Duration) -> Result<Self> {
        let options = options.iter().map(|option| {
            let (name, value) = option
                .split_once('=')
                .with_context(|| format!("{option:?} is no NAME=VALUE"))?;
            Ok((name.to_owned(), value.to_owned()))
        });
        let options = options.collect::<Result<Vec<_>>>()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        // Whatever is built in; it may be called again.
        opendal::init_default_registry();
        let operator = {
            let _entered = runtime.enter();
            Operator::via_iter(service, options)
                .with_context(|| format!("the service {service}"))?
        };
        Ok(Self {
            service: service.into(),
            operator,
            runtime,
            limit,
        })
    }

    fn path(key: &CacheKey) -> String {
        format!("{}/{key}", Self::PREFIX)
    }

    /// The answer, if it comes in time.
    fn wait<T>(&self, answer: impl Future<Output = opendal::Result<T>>) -> io::Result<T> {
        let limited = async { tokio::time::timeout(self.limit, answer).await };
        match self.runtime.block_on(limited) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let kind = match error.kind() {
                    ErrorKind::NotFound => io::ErrorKind::NotFound,
                    _ => io::ErrorKind::Other,
                };
                Err(io::Error::new(kind, error))
            }
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {:?}", self.limit),
            )),
        }
    }
}

impl CacheStore for Shared {
    fn get(&self, key: &CacheKey) -> io::Result<Option<Vec<u8>>> {
        match self.wait(self.operator.read(&Self::path(key))) {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn insert(&self, key: &CacheKey, entry: &[u8]) -> io::Result<()> {
        let path = Self::path(key);
        let written = self.operator.write(&path, entry.to_vec());
        self.wait(written).map(|_| ())
    }

    fn remove(&self, key: &CacheKey) {
        // It is replaced when it is compiled, or stays what it is: a miss.
        _ = self.wait(self.operator.delete(&Self::path(key)));
    }

    fn name(&self) -> String {
        format!("the service {}", self.service)
    }
}
