//! The threads that own the shards.
//!
//! ```text
//! feeding thread --Batch | Ask | Report--> worker --bounded answers--> feeding thread
//! ```
//! Without workers, the feeding thread owns the shards and does the same work itself. A worker
//! receives its messages in order, so an answer covers every batch that was sent before the
//! question. A worker answers with counts and bounded lists. It gives its tables away only when
//! the crew stops.

use crate::{
    batch::Batch,
    budget::SHARDS,
    event::Event,
    query::{Facts, Question},
    report::Part,
    shard::Shard,
    threads::{self, NoThread},
};
use std::{
    sync::{Arc, mpsc},
    thread,
};

/// Batches that may wait in a worker's queue.
const QUEUE: usize = 2;
/// Batches in memory with workers: those in the queues, one being read, one being filled.
const RING: usize = QUEUE + 2;

/// The batches, and the workers that read them.
pub(super) struct Crew {
    /// Empty if the feeding thread owns the shards.
    workers: Vec<Worker>,
    ring: Vec<Arc<Batch>>,
    /// The batch of the ring that is being filled.
    next: usize,
    /// Events of the workers' shards.
    events: mpsc::Receiver<Event>,
}

struct Worker {
    messages: mpsc::SyncSender<Message>,
    thread: thread::JoinHandle<Vec<Shard>>,
}

enum Message {
    /// Add the keys of these packets to the tables.
    Batch(Arc<Batch>),
    /// Look up a key.
    Ask(Question, mpsc::Sender<Facts>),
    /// Summarize every shard, with top lists of this length.
    Report(usize, mpsc::Sender<Part>),
}

impl Crew {
    /// No workers.
    pub(super) fn alone() -> Self {
        let (_, events) = mpsc::channel();
        Crew { workers: Vec::new(), ring: vec![Arc::new(Batch::new())], next: 0, events }
    }

    /// Divides the shards among this number of workers. If the system refuses a thread, the shards
    /// stay where they are.
    pub(super) fn start(shards: &mut Vec<Shard>, workers: usize) -> Result<Self, NoThread> {
        let (sender, events) = mpsc::channel();
        let started = (0..workers).map(|_| Worker::start(sender.clone()));
        // Workers without shards end when they are dropped.
        let started = started.collect::<Result<Vec<_>, _>>()?;
        let mut parts: Vec<Vec<Shard>> = (0..workers).map(|_| Vec::new()).collect();
        for (number, shard) in shards.drain(..).enumerate() {
            parts[number % workers].push(shard);
        }
        let workers = started.into_iter().zip(parts).map(|((give, worker), shards)| {
            // A worker waits for its shards, so the channel is open.
            let _ = give.send(shards);
            worker
        });
        let workers = workers.collect();
        let ring = (0..RING).map(|_| Arc::new(Batch::new())).collect();
        Ok(Crew { workers, ring, next: 0, events })
    }

    /// Whether workers own the shards.
    pub(super) fn is_at_work(&self) -> bool {
        !self.workers.is_empty()
    }

    /// The batch that is being filled.
    #[inline]
    pub(super) fn filling(&mut self) -> &mut Batch {
        loop {
            // Workers may still read this batch: wait for them.
            if Arc::get_mut(&mut self.ring[self.next]).is_some() {
                break Arc::get_mut(&mut self.ring[self.next]).expect("checked just before");
            }
            thread::yield_now();
        }
    }

    /// Passes the filled batch to the shards, and starts an empty one. `shards` are those that the
    /// feeding thread owns.
    pub(super) fn dispatch(&mut self, shards: &mut [Shard]) {
        for shard in shards {
            shard.take(&self.ring[self.next]);
        }
        for worker in &self.workers {
            // Sending fails only if the worker has panicked; `stop` then panics.
            let _ = worker.messages.send(Message::Batch(Arc::clone(&self.ring[self.next])));
        }
        self.next = (self.next + 1) % self.ring.len();
        self.filling().clear();
    }

    /// The summaries of all shards, in the order of their numbers.
    pub(super) fn parts(&self, shards: &[Shard], top: usize) -> Vec<Part> {
        let own = shards.iter().map(|shard| Part::of(shard, top)).collect();
        let mut parts = self.gather(own, |to| Message::Report(top, to));
        parts.sort_by_key(|part| part.number);
        parts
    }

    /// What the shards know about a key.
    pub(super) fn ask(&self, shards: &[Shard], question: &Question) -> Facts {
        let own = shards.iter().map(|shard| Facts::of(question, shard)).collect();
        let all = self.gather(own, |to| Message::Ask(*question, to));
        all.into_iter().fold(Facts::default(), Facts::or)
    }

    /// Sends a message to every worker, and adds the answers for their shards to `all`.
    ///
    /// # Panics
    /// If a worker panicked.
    fn gather<T>(&self, mut all: Vec<T>, ask: impl Fn(mpsc::Sender<T>) -> Message) -> Vec<T> {
        let (to, answers) = mpsc::channel();
        for worker in &self.workers {
            // A failed send leaves answers missing, which the assertion reports.
            let _ = worker.messages.send(ask(to.clone()));
        }
        drop(to);
        all.extend(answers);
        assert_eq!(all.len(), SHARDS, "a worker panicked");
        all
    }

    /// Calls `to` with the events since the last call.
    pub(super) fn drain_events(&mut self, shards: &mut [Shard], to: &mut dyn FnMut(Event)) {
        for shard in shards {
            shard.drain_events(&mut *to);
        }
        self.events.try_iter().for_each(to);
    }

    /// Ends the workers and returns their shards in the order of their numbers. Events stay
    /// readable.
    ///
    /// # Panics
    /// If a worker panicked.
    pub(super) fn stop(&mut self) -> Vec<Shard> {
        let parts = self.workers.drain(..).map(|worker| {
            drop(worker.messages);
            worker.thread.join().expect("a worker does not panic")
        });
        let mut shards: Vec<_> = parts.flatten().collect();
        shards.sort_by_key(Shard::number);
        shards
    }
}

impl Worker {
    /// Starts a worker, and returns it with the way to give it its shards.
    fn start(events: mpsc::Sender<Event>) -> Result<(mpsc::Sender<Vec<Shard>>, Self), NoThread> {
        let (give, given) = mpsc::channel::<Vec<Shard>>();
        let (messages, incoming) = mpsc::sync_channel(QUEUE);
        let thread = threads::spawn("a worker of the engine", move || {
            let mut shards = given.recv().unwrap_or_default();
            for message in incoming {
                for shard in &mut shards {
                    // A send fails only if the feeding thread no longer waits for it.
                    match &message {
                        Message::Batch(batch) => {
                            shard.take(batch);
                            shard.drain_events(|event| drop(events.send(event)));
                        }
                        Message::Ask(question, to) => drop(to.send(Facts::of(question, shard))),
                        Message::Report(top, to) => drop(to.send(Part::of(shard, *top))),
                    }
                }
            }
            shards
        })?;
        Ok((give, Worker { messages, thread }))
    }
}
