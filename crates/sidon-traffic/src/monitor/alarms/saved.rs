//! Alarms in a checkpoint: the suspects, and what a snapshot leaves out of the list of incidents.

use super::{
    Alarms,
    flood::Flood,
    forged::Forged,
    scan::{Scan, TARGETS},
    table::Table,
};
use crate::{
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::Malformed;

impl Alarms {
    /// Takes the incidents read from a snapshot.
    pub(crate) fn resume_list(&mut self, read: Alarms) {
        self.list.take_over(read.list);
    }
}

impl Resume for Alarms {
    fn save(&self, out: &mut Out) {
        let Alarms { seed: _, floods, hosts, ports, random, forged, list, .. } = self;
        let Alarms { ticked, events, followed, skipped, .. } = *self;
        list.save(out);
        out.numbers(&[ticked, events]);
        [followed, skipped].into_iter().for_each(|flag| out.flag(flag));
        floods.save(out);
        [hosts, ports, random].into_iter().for_each(|table| table.save(out));
        forged.iter().for_each(|forged| forged.save(out));
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.list.resume(bytes)?;
        self.ticked = bytes.number()?;
        self.events = bytes.count("events")?;
        (self.followed, self.skipped) = (bytes.flag("followed")?, bytes.flag("skipped")?);
        self.floods.resume(bytes)?;
        let Alarms { hosts, ports, random, forged, .. } = self;
        [hosts, ports, random].into_iter().try_for_each(|table| table.resume(bytes))?;
        forged.iter_mut().try_for_each(|forged| forged.resume(bytes))?;
        let scans = [&self.hosts, &self.ports, &self.random].into_iter().flat_map(Table::entries);
        let open = self.floods.entries().map(|flood| flood.alarm);
        let open = open.chain(scans.map(|scan| scan.alarm));
        let mut open = open.chain(self.forged.iter().map(Forged::alarm));
        bytes.check("alarm", open.all(|number| self.list.has_raised(number)))
    }
}

impl Resume for Flood {
    fn save(&self, out: &mut Out) {
        let Flood { asked, answered, sampled, start, since, alarm, is_first, .. } = *self;
        out.numbers(&[asked[0], asked[1], answered[0], answered[1], self.attempts, self.peak]);
        [sampled[0], sampled[1], is_first].into_iter().for_each(|flag| out.flag(flag));
        out.number(start);
        out.optional(since);
        out.optional(alarm.map(|number| number as u64));
        self.sources.save(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        (self.asked, self.answered) = (bytes.counts("asked")?, bytes.counts("answered")?);
        [self.attempts, self.peak] = bytes.counts("attempts")?;
        self.sampled = [bytes.flag("sampled")?, bytes.flag("sampled")?];
        (self.is_first, self.start) = (bytes.flag("is_first")?, bytes.number()?);
        (self.since, self.alarm) = (bytes.optional("since")?, read_alarm(bytes)?);
        self.sources.resume(bytes)
    }
}

impl Resume for Scan {
    fn save(&self, out: &mut Out) {
        let Scan { start, last, since, alarm, is_first, sampled, attempts, let_in, .. } = *self;
        out.numbers(&[attempts, let_in, start, last]);
        [is_first, sampled].into_iter().for_each(|flag| out.flag(flag));
        out.optional(since);
        out.optional(alarm.map(|number| number as u64));
        out.number(self.used.into());
        let targets = &self.targets[..usize::from(self.used)];
        targets.iter().for_each(|target| out.raw(&target.to_le_bytes()));
        self.distinct.save(out);
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        [self.attempts, self.let_in] = bytes.counts("attempts")?;
        [self.start, self.last] = bytes.numbers()?;
        (self.is_first, self.sampled) = (bytes.flag("is_first")?, bytes.flag("sampled")?);
        (self.since, self.alarm) = (bytes.optional("since")?, read_alarm(bytes)?);
        self.used = bytes.below("used", TARGETS + 1)? as u8;
        for target in &mut self.targets[..usize::from(self.used)] {
            *target = u32::from_le_bytes(bytes.array()?);
        }
        self.distinct.resume(bytes)
    }
}

/// The number of an open alarm.
pub(super) fn read_alarm(bytes: &mut In<'_>) -> Result<Option<usize>, Malformed> {
    let number = bytes.optional("alarm")?;
    Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}
