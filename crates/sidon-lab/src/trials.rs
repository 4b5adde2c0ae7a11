//! Repeats of an experiment, side by side.
//!
//! Each trial has a generator. Its seed follows from the run's seed, the experiment and the trial's
//! number. Results therefore do not depend on the number of threads, and a trial does not depend on
//! the trials after it.

use sidon::{Key, Seed};
use sidon_kit::Rng;
use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
};

/// How experiments are run.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Where all randomness comes from.
    pub seed: u64,
    /// Few trials, with wide intervals, in place of many.
    pub quick: bool,
    /// The number of trials of each experiment, if not the recorded one.
    pub trials: Option<u64>,
    /// The number of trials that run at the same time; 0 means 1.
    pub threads: usize,
    /// This many concurrent flows where state maps are compared, in place of a number that suits.
    pub flows: Option<u64>,
    /// Called after each trial with its planned cost in milliseconds of one core.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run { seed, quick, trials, threads, flows, .. } = self;
        f.debug_struct("Run")
            .field("seed", seed)
            .field("quick", quick)
            .field("trials", trials)
            .field("threads", threads)
            .field("flows", flows)
            .finish_non_exhaustive()
    }
}

impl Run<'_> {
    /// What each of `trials` trials gives, in their order, or the first refusal met.
    pub fn each<T: Send, E: Send>(
        &self,
        experiment: &str,
        trials: u64,
        millis: u64,
        trial: impl Fn(Rng) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        self.numbered(trials, millis, |number| trial(self.rng(experiment, number)))
    }

    /// What each number below `trials` gives, in their order, or the first refusal met.
    pub fn numbered<T: Send, E: Send>(
        &self,
        trials: u64,
        millis: u64,
        trial: impl Fn(u64) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let done = Mutex::new(Vec::new());
        let work = || {
            while !stop.load(Relaxed) {
                let number = next.fetch_add(1, Relaxed);
                if number >= trials {
                    return;
                }
                let result = trial(number);
                stop.fetch_or(result.is_err(), Relaxed);
                done.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
                (self.progress)(millis);
            }
        };
        let others = self.threads.saturating_sub(1).min(trials as usize);
        thread::scope(|scope| {
            for _ in 0..others {
                scope.spawn(work);
            }
            work();
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|&(number, _)| number);
        done.into_iter().map(|(_, result)| result).collect()
    }

    /// The generator of one trial.
    fn rng(&self, experiment: &str, number: u64) -> Rng {
        let name = format!("{experiment}/{number}");
        Rng::seeded(name.as_str().digest(Seed(self.seed.into())).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: u64, experiment: &str, trials: u64, threads: usize) -> Vec<u64> {
        let run = Run { seed, quick: true, trials: None, threads, flows: None, progress: &|_| {} };
        run.each(experiment, trials, 1, |mut rng| Ok::<_, ()>(rng.next_u64())).unwrap()
    }

    #[test]
    fn results_depend_on_seed_experiment_and_trial_alone() {
        let one = draw(1, "a", 50, 1);
        assert_eq!(one, draw(1, "a", 50, 3));
        assert_eq!(one[..20], draw(1, "a", 20, 2));
        assert_ne!(one, draw(2, "a", 50, 1));
        assert_ne!(one, draw(1, "b", 50, 1));
        let distinct: std::collections::HashSet<_> = one.iter().collect();
        assert_eq!(distinct.len(), 50);
    }

    #[test]
    fn a_refusal_ends_the_run() {
        let run =
            Run { seed: 1, quick: true, trials: None, threads: 2, flows: None, progress: &|_| {} };
        let count = AtomicU64::new(0);
        let result = run.each("a", 1_000_000, 1, |_| {
            if count.fetch_add(1, Relaxed) == 3 { Err("no") } else { Ok(()) }
        });
        assert_eq!(result, Err("no"));
        assert!(count.into_inner() < 1_000_000);
    }
}
