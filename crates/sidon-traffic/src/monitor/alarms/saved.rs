//! Alarms in a checkpoint: the suspects, and what a snapshot leaves out of the list of incidents.

use super::{Alarms, forged::Forged};
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
        let Alarms { contacts, floods, scans, beacons, forged, list, ticked, followed, events } =
            self;
        list.save(out);
        out.numbers(&[*ticked, *events]);
        out.flag(*followed);
        contacts.save(out);
        floods.save(out);
        scans.save(out);
        beacons.save(out);
        forged.iter().for_each(|forged| forged.save(out));
    }

    fn resume(&mut self, bytes: &mut In<'_>) -> Result<(), Malformed> {
        let Alarms { contacts, floods, scans, beacons, forged, list, ticked, followed, events } =
            self;
        list.resume(bytes)?;
        *ticked = bytes.number()?;
        *events = bytes.count("events")?;
        *followed = bytes.flag("followed")?;
        contacts.resume(bytes)?;
        floods.resume(bytes)?;
        scans.resume(bytes)?;
        beacons.resume(bytes)?;
        forged.iter_mut().try_for_each(|forged| forged.resume(bytes))?;
        let mut open = floods
            .open()
            .chain(scans.open())
            .chain(beacons.open())
            .chain(forged.iter().map(Forged::alarm));
        bytes.check("alarm", open.all(|number| list.has_raised(number)))
    }
}

/// The number of an open alarm.
pub(in crate::monitor) fn read_alarm(bytes: &mut In<'_>) -> Result<Option<usize>, Malformed> {
    let number = bytes.optional("alarm")?;
    Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
}
