//! Victims in a checkpoint.

use super::{
    Floods,
    flood::{Counts, Flood, Usual},
};
use crate::{
    monitor::alarms::read_alarm,
    resume::Resume,
    snapshot::encode::{In, Out},
};
use sidon::Malformed;

impl Resume for Floods {
    fn save(&self, out: &mut Out) {
        let Floods { rules: _, ports, hosts, prefixes, is_two_way, followed } = self;
        [is_two_way, followed].into_iter().for_each(|flag| out.flag(*flag));
        [ports, hosts].into_iter().chain(prefixes).for_each(|table| table.save(out));
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.is_two_way = bytes.flag("is_two_way")?;
        self.followed = bytes.flag("followed")?;
        let Floods { ports, hosts, prefixes, .. } = self;
        [ports, hosts].into_iter().chain(prefixes).try_for_each(|table| table.resume(bytes))
    }
}

fn save_counts(counts: &Counts, out: &mut Out) {
    let Counts { asked, answered, one_way, backing, again, refused, packets, bytes } = *counts;
    out.numbers(&[asked, answered, one_way, backing, again, refused, packets].map(u64::from));
    out.number(bytes);
}

fn read_counts(bytes: &mut In<'_>) -> Result<Counts, Malformed> {
    let mut read = || bytes.below("counts", 1 << 32).map(|count| count as u32);
    Ok(Counts {
        asked: read()?,
        answered: read()?,
        one_way: read()?,
        backing: read()?,
        again: read()?,
        refused: read()?,
        packets: read()?,
        bytes: bytes.count("bytes")?,
    })
}

impl Resume for Flood {
    fn save(&self, out: &mut Out) {
        let Flood { subject: _, windows, sampled, start, span, usual, since, alarm, .. } = self;
        let Flood { is_first, sends, attempts, bytes, peak, .. } = *self;
        let Flood { spread, parts, origins, range, sources, example, .. } = self;
        windows.iter().for_each(|counts| save_counts(counts, out));
        [sampled[0], sampled[1], is_first, sends].into_iter().for_each(|flag| out.flag(flag));
        out.numbers(&[*start, *span, self.told, attempts, bytes, peak]);
        out.number(usual.windows.into());
        usual.means.iter().for_each(|&mean| out.expected(mean));
        out.expected(usual.variance);
        out.optional(*since);
        out.optional(alarm.map(|number| number as u64));
        out.numbers(&spread.map(u64::from));
        out.numbers(parts);
        out.numbers(origins);
        out.numbers(&range.map(u64::from));
        sources.save(out);
        out.flag(example.is_some());
        if let Some(flow) = example {
            out.flow(*flow);
        }
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        self.windows = [read_counts(bytes)?, read_counts(bytes)?];
        self.sampled = [bytes.flag("sampled")?, bytes.flag("sampled")?];
        (self.is_first, self.sends) = (bytes.flag("is_first")?, bytes.flag("sends")?);
        [self.start, self.span] = bytes.numbers()?;
        [self.told, self.attempts, self.bytes, self.peak] = bytes.counts("attempts")?;
        let windows = bytes.below("usual", 1 << 32)? as u32;
        let mut expected = || bytes.expected("usual");
        let means = [expected()?, expected()?, expected()?];
        self.usual = Usual { windows, means, variance: expected()? };
        (self.since, self.alarm) = (bytes.optional("since")?, read_alarm(bytes)?);
        for count in &mut self.spread {
            *count = bytes.below("spread", 1 << 32)? as u32;
        }
        (self.parts, self.origins) = (bytes.numbers()?, bytes.numbers()?);
        for end in &mut self.range {
            *end = bytes.below("range", 256)? as u8;
        }
        self.sources.resume(bytes)?;
        self.example = if bytes.flag("example")? { Some(bytes.flow("example")?) } else { None };
        Ok(())
    }
}
