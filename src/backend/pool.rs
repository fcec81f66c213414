//! Several backends that share the blocks of a run.

use super::{Backend, BackendError, StreamKind};
use serde::{Deserialize, Serialize};

/// What computed something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Name of the backend; of several, the names joined by `+`, each once.
    pub backend: String,
    /// Its adapter, if it has one; of several, joined by `; `, equal ones as `2 x NAME`.
    pub adapter: Option<String>,
}

impl Machine {
    /// What `backend` is.
    #[must_use]
    pub fn of(backend: &dyn Backend) -> Self {
        Self { backend: backend.name().to_owned(), adapter: backend.adapter() }
    }

    /// Several as one; `None` of none.
    #[must_use]
    pub fn joined(machines: &[Self]) -> Option<Self> {
        let counted = |names: &mut dyn Iterator<Item = &String>| {
            let mut counts: Vec<(String, usize)> = Vec::new();
            for name in names {
                match counts.iter_mut().find(|(counted, _)| counted == name) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((name.clone(), 1)),
                }
            }
            counts
        };
        let backends = counted(&mut machines.iter().map(|machine| &machine.backend));
        let adapters = counted(&mut machines.iter().filter_map(|machine| machine.adapter.as_ref()));
        let adapters: Vec<_> = adapters
            .into_iter()
            .map(|(name, count)| if count > 1 { format!("{count} x {name}") } else { name })
            .collect();
        (!machines.is_empty()).then(|| Self {
            backend: backends.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join("+"),
            adapter: (!adapters.is_empty()).then(|| adapters.join("; ")),
        })
    }
}

/// Backends that share the blocks of a run: at least one, all of the same stream.
///
/// A device that is lost for good leaves its pool; the last one is replaced by the CPU.
pub struct Pool {
    pub(crate) backends: Vec<Box<dyn Backend>>,
}

impl Pool {
    /// A pool of `backends`.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] where there is none, or their streams differ: their results would not add.
    pub fn new(backends: Vec<Box<dyn Backend>>) -> Result<Self, BackendError> {
        let Some(first) = backends.first() else {
            return Err(BackendError::Unsupported("a run needs a backend; give at least one".to_owned()));
        };
        if backends.iter().any(|backend| backend.stream() != first.stream()) {
            let why = "profiles draw another sample than single bins, so that both cannot share a run; use one of them";
            return Err(BackendError::Unsupported(why.to_owned()));
        }
        Ok(Self { backends })
    }

    /// Which random numbers they draw.
    #[must_use]
    pub fn stream(&self) -> StreamKind {
        self.backends[0].stream()
    }

    /// What they are.
    #[must_use]
    pub fn machines(&self) -> Vec<Machine> {
        self.backends.iter().map(|backend| Machine::of(&**backend)).collect()
    }
}

impl<B: Backend + 'static> From<B> for Pool {
    fn from(backend: B) -> Self {
        Self { backends: vec![Box::new(backend)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Host, Profiles};

    #[test]
    fn backends_of_different_streams_share_nothing() {
        assert!(Pool::new(Vec::new()).is_err());
        let mixed = Pool::new(vec![Box::new(Host::cpu()), Box::new(Profiles)]).err().expect("refused").to_string();
        assert!(mixed.contains("cannot share a run; use one of them"), "{mixed}");
        assert!(Pool::new(vec![Box::new(Host::cpu()), Box::new(Host::reference())]).is_ok());
    }

    #[test]
    fn several_machines_are_named_once_and_counted() {
        let machine = |backend: &str, adapter: Option<&str>| Machine {
            backend: backend.to_owned(),
            adapter: adapter.map(str::to_owned),
        };
        let (a, b, cpu) = (machine("gpu", Some("A")), machine("gpu", Some("B")), machine("cpu", None));
        assert_eq!(Machine::joined(&[]), None);
        for one in [&a, &cpu] {
            assert_eq!(Machine::joined(std::slice::from_ref(one)).as_ref(), Some(one));
        }
        assert_eq!(Machine::joined(&[a.clone(), cpu, b, a]), Some(machine("gpu+cpu", Some("2 x A; B"))));
    }
}
