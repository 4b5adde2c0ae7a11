//! Sources in a checkpoint.

use super::{Scans, scan::Scan};
use crate::{
    monitor::alarms::read_alarm,
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::Malformed;

impl Resume for Scans {
    fn save(&self, out: &mut Out) {
        let Scans { seed: _, rules: _, hosts, ports, random, lost, skipped } = self;
        out.flag(*skipped);
        [hosts, ports, random].into_iter().for_each(|table| table.save(out));
        lost.save(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.skipped = bytes.flag("skipped")?;
        let Scans { hosts, ports, random, lost, .. } = self;
        [hosts, ports, random].into_iter().try_for_each(|table| table.resume(bytes))?;
        lost.resume(bytes)
    }
}

impl Resume for Scan {
    fn save(&self, out: &mut Out) {
        let Scan { subject: _, tried, answered, young, second, forgets, halves, .. } = self;
        let Scan { hosts, ports, stretches, stretch, start, last, since, alarm, .. } = *self;
        let Scan {
            is_first, attempts, sampled, techniques, aborted, waits, distinct, example, ..
        } = self;
        out.numbers(tried);
        out.numbers(answered);
        out.numbers(&young.map(u64::from));
        out.numbers(&[*second, *forgets, *halves, hosts, ports, stretches.into(), stretch]);
        out.numbers(&[
            start,
            last,
            *attempts,
            (*techniques).into(),
            (*aborted).into(),
            self.carried.into(),
        ]);
        [*is_first, *sampled, *waits].into_iter().for_each(|flag| out.flag(flag));
        out.optional(since);
        out.optional(alarm.map(|number| number as u64));
        distinct.save(out);
        out.flag(example.is_some());
        if let Some(flow) = example {
            out.flow(*flow);
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        (self.tried, self.answered) = (bytes.numbers()?, bytes.numbers()?);
        for young in &mut self.young {
            *young = bytes.below("young", 1 << 31)? as u32;
        }
        [self.second, self.forgets] = bytes.numbers()?;
        self.halves = bytes.count("halves")?;
        [self.hosts, self.ports] = bytes.numbers()?;
        self.stretches = bytes.below("stretches", 1 << 32)? as u32;
        [self.stretch, self.start, self.last] = bytes.numbers()?;
        self.attempts = bytes.count("attempts")?;
        self.techniques = bytes.below("techniques", 1 << 7)? as u8;
        self.aborted = bytes.below("aborted", 1 << 32)? as u32;
        self.carried = bytes.below("carried", 1 << 32)? as u32;
        (self.is_first, self.sampled) = (bytes.flag("is_first")?, bytes.flag("sampled")?);
        self.waits = bytes.flag("waits")?;
        (self.since, self.alarm) = (bytes.optional("since")?, read_alarm(bytes)?);
        self.distinct.resume(bytes)?;
        self.example = if bytes.flag("example")? { Some(bytes.flow("example")?) } else { None };
        Ok(())
    }
}
